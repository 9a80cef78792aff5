"""`modify`: a whole function with one mistake put in, of one of several proposed kinds."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from types import MappingProxyType

from factory.agent.endpoint import Question
from generators.repository.language.config import LanguageConfig
from generators.repository.language.edits import Asked
from generators.repository.language.entities import Entity
from generators.repository.language.outline import outline

VERSION = "modify-1"
"""Of the prompt; part of provenance."""
OPERATOR = "language_modify"
MISTAKES: Mapping[str, str] = MappingProxyType(
    {
        "boundary": "a bound that is one too far or too short, or includes what it should exclude",
        "edge case": "an input at the edge (empty, zero, negative, None, repeated) that is no longer handled",
        "condition": "a condition that is too weak or too strong, or joins its parts in the wrong way",
        "wrong name": "one variable, attribute, key or function used where a similar one is meant",
        "order": "steps done in the wrong order, or a value read before it is brought up to date",
        "stale state": "state that is not reset, not updated, or updated twice",
        "aliasing": "a shared object changed where a copy was meant, or a copy changed where the object was meant",
        "conversion": "a value of the wrong unit, type, case, rounding or sign",
        "early end": "a loop or function that ends too early, too late, or skips an item",
        "errors": "an error that is swallowed, raised in the wrong case, or of the wrong kind",
        "result": "a result that is incomplete: part of it lost, doubled or in the wrong place",
        "defaults": "a missing or wrong fallback when an optional value is not given",
    }
)
"""Kinds of mistakes that are proposed, and what they are."""
_SYSTEM = (
    "You help to make debugging exercises. You put one realistic mistake into working Python code, such as an experienced "
    "programmer makes and a reviewer overlooks. The code still runs; some of its results become wrong."
)
_USER = """\
This is {path}, in outline:

```python
{outline}
```

Put one mistake into this function of it:

```python
{code}
```

Choose the kind that fits best:
{kinds}

The name, the parameters and the docstring stay as they are, and so does every line that the mistake does not need. Write no
comment that points at it. Answer with one line `Kind: ` and the kind's name, then the whole function in one code block.
"""


def question(entity: Entity, text: str, config: LanguageConfig, rng: random.Random, seed: int) -> tuple[Question, list[str]]:
    """What is asked, and the kinds that it proposes. `text` is the file, `seed` the server's."""
    kinds = rng.sample(sorted(MISTAKES), min(config.mistakes, len(MISTAKES)))
    user = _USER.format(
        path=entity.path,
        outline=outline(text, entity),
        code=entity.class_line + entity.text,
        kinds="\n".join(f"- {kind}: {MISTAKES[kind]}" for kind in kinds),
    )
    temperature = config.modify_temperature
    asked = Question(system=_SYSTEM, user=user, temperature=temperature, max_tokens=config.max_tokens, seed=seed)
    return asked, kinds


def asked(answer: str, kinds: list[str]) -> Asked:
    """What the model says that it did; a kind that was not proposed is told as that."""
    match = re.search(r"^\W*kind\W*:\W*(.+?)\W*$", answer, re.IGNORECASE | re.MULTILINE)
    said = match.group(1).lower() if match else ""
    kind = next((kind for kind in kinds if said == kind or said.startswith(f"{kind}:")), "")
    return Asked(operator=OPERATOR, prompt=VERSION, what=kind or "a mistake of no named kind")
