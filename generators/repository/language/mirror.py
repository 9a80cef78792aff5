"""`mirror`: the mistake that a historical change mended, put into the present code, which may have moved on since."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from factory.agent.endpoint import Answer, Endpoint, Question
from factory.core.streams import stream_seed
from generators.repository.language.config import LanguageConfig
from generators.repository.language.edits import Asked, LanguageEdit, edit_of
from generators.repository.language.entities import Entity, Refused, entities_of

VERSION = "mirror-1"
"""Of the prompt; part of provenance."""
OPERATOR = "language_mirror"
MOST_FUNCTIONS = 4
"""Changes of more functions are not mirrored."""
MOST_DIFF_LINES = 200
"""Changes with longer diffs are not mirrored."""
SEED_BITS = 31
_SYSTEM = (
    "You help to make debugging exercises out of a project's history. You are shown a change that mended a mistake, and the "
    "functions of today that it was about. You put the same mistake back into them."
)
_USER = """\
The change that mended the mistake:

```diff
{diff}
```

Functions of today:

{functions}

Put the mistake back: today's code with the behaviour from before the change, with as little else changed as can be. Names,
parameters and docstrings stay as they are. Write no comment that points at it. Answer with each function that you change,
whole, in a code block of its own.
"""


@dataclass(frozen=True)
class Change:
    """One file of a historical change."""

    path: str
    before: str
    """Its text with the mistake."""
    after: str
    """Its text without."""


def mirrored(
    changes: Sequence[Change], texts: Mapping[str, str], config: LanguageConfig, endpoint: Endpoint, seed: int
) -> list[LanguageEdit] | Refused:
    """Edits of the present files `texts` that bring the mistake of a change back, one for each function; all or none.

    Those of one file do not overlap, and their offsets are those of the present text: apply them from the last to the
    first. Raises EndpointError (BudgetSpent among it) when there is no answer.
    """
    entities = touched(changes, texts)
    if isinstance(entities, Refused):
        return entities
    diff = unified(changes)
    if diff.count("\n") >= MOST_DIFF_LINES:
        return Refused("too large", f"{diff.count(chr(10)) + 1} lines of diff")
    names = ",".join(f"{entity.path}:{entity.qualname}" for entity in entities)
    number = stream_seed(seed, "repository language", "mirror", diff, names) % 2**SEED_BITS
    answer = endpoint.ask(_question(diff, entities, config, number))
    return _edits(entities, texts, answer)


def touched(changes: Sequence[Change], texts: Mapping[str, str]) -> list[Entity] | Refused:
    """The functions of the present files that a change was about: same path and name, else the only one of that name."""
    present = [entity for path in sorted(texts) for entity in entities_of(path, texts[path])]
    found: list[Entity] = []
    for change in changes:
        before = {entity.qualname: entity.text for entity in entities_of(change.path, change.before)}
        for entity in entities_of(change.path, change.after):
            if entity.qualname not in before or before[entity.qualname] == entity.text:
                continue
            named = [one for one in present if one.qualname == entity.qualname]
            here = [one for one in named if one.path == change.path] or named
            if len(here) != 1:
                return Refused("gone", f"{change.path}:{entity.qualname} is there {len(here)} times")
            found.append(here[0])
    if not found:
        return Refused("no function", "the change is outside functions that are there before and after")
    return found if len(found) <= MOST_FUNCTIONS else Refused("too large", f"{len(found)} functions")


def unified(changes: Sequence[Change]) -> str:
    """The change as a unified diff, from the text with the mistake to the text without."""
    lines: list[str] = []
    for change in changes:
        before, after = change.before.splitlines(), change.after.splitlines()
        lines += difflib.unified_diff(before, after, f"a/{change.path}", f"b/{change.path}", lineterm="")
    return "\n".join(lines)


def _question(diff: str, entities: Sequence[Entity], config: LanguageConfig, seed: int) -> Question:
    functions = "\n\n".join(f"{one.path}:\n\n```python\n{one.class_line}{one.text}\n```" for one in entities)
    user = _USER.format(diff=diff, functions=functions)
    return Question(system=_SYSTEM, user=user, temperature=config.mirror_temperature, max_tokens=config.max_tokens, seed=seed)


def _edits(entities: Sequence[Entity], texts: Mapping[str, str], answer: Answer) -> list[LanguageEdit] | Refused:
    asked = Asked(operator=OPERATOR, prompt=VERSION, what="a mistake of the project's past")
    made: list[LanguageEdit] = []
    reasons: list[Refused] = []
    for entity in entities:
        edit = edit_of(entity, texts[entity.path], answer, asked)
        if isinstance(edit, LanguageEdit):
            made.append(edit)
        elif edit.reason in ("no code", "equal"):  # the model saw no need to change this one
            reasons.append(edit)
        else:
            return edit
    return made or reasons[0]
