"""`rewrite`: the body is removed and written anew from signature and docstring; mistakes are those that a model makes."""

from __future__ import annotations

from factory.agent.endpoint import Question
from generators.repository.language.config import LanguageConfig
from generators.repository.language.edits import Asked
from generators.repository.language.entities import Entity
from generators.repository.language.outline import outline

VERSION = "rewrite-1"
"""Of the prompt; part of provenance."""
OPERATOR = "language_rewrite"
ASKED = Asked(operator=OPERATOR, prompt=VERSION, what="a body written anew")
_SYSTEM = "You write Python functions from their signature and docstring."
_USER = """\
This is {path}, in outline:

```python
{outline}
```

The body of this function of it is missing:

```python
{code}
```

Write it with builtins and with what the file imports or defines. Answer with the whole function in one code block.
"""


def serves(entity: Entity, config: LanguageConfig) -> bool:
    """Whether the docstring says enough to write a body from."""
    return len(entity.docstring) >= config.min_docstring


def question(entity: Entity, text: str, config: LanguageConfig, seed: int) -> Question:
    """What is asked; the body is nowhere in it. `text` is the file, `seed` the server's."""
    body = entity.logical[entity.head]
    code = f"{entity.class_line}{entity.signature}\n{body.indent}..."
    user = _USER.format(path=entity.path, outline=outline(text, entity), code=code)
    return Question(system=_SYSTEM, user=user, temperature=config.rewrite_temperature, max_tokens=config.max_tokens, seed=seed)
