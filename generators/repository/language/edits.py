"""From a model's answer to an edit: what every answer must pass before any test is run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from factory.agent.endpoint import Answer
from factory.core.digest import Digest, Json
from generators.repository.language.entities import Entity, Refused, replaced
from generators.repository.language.logical import HEADER
from generators.repository.sites import Edit, _bytecode, _normal_form

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
THOUGHT = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)
"""What a reasoning model says to itself before its answer."""


@dataclass(frozen=True, kw_only=True)
class LanguageEdit(Edit):
    """An edit that a language model made of one function, with where it came from."""

    what: str
    """The kind of mistake, for people: `a boundary`."""
    model: str
    prompt: str
    """Name and version of the prompt."""
    request: Digest
    """Of the request that was answered: model, messages and parameters."""

    @property
    def parameters(self) -> dict[str, Json]:
        """For the origin of a task."""
        return {"model": self.model, "prompt": self.prompt, "request": self.request}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was wanted of the model when it gave an answer."""

    operator: str
    prompt: str
    what: str


def blocks(text: str) -> list[str]:
    """The fenced code blocks of an answer, without what a model thought aloud before it; an unfenced answer is one block."""
    spoken = THOUGHT.sub("", text)
    found = [match.group(2) for match in _FENCE.finditer(spoken)]
    bare = spoken.strip()
    return found or ([bare] if bare.startswith(("def ", "async def ", "class ", "@")) else [])


def edit_of(entity: Entity, text: str, answer: Answer, asked: Asked) -> LanguageEdit | Refused:
    """The edit that an answer makes of an entity in the file `text`: the last of its blocks that holds the function counts."""
    if answer.finish == "length":
        return Refused("cut off", f"at {answer.completion_tokens} tokens")
    codes = [code for code in blocks(answer.text) if re.search(rf"\bdef\s+{re.escape(entity.name)}\b", code)]
    if not codes:
        return Refused("no code")
    new = replaced(entity, codes[-1])
    if isinstance(new, Refused):
        return new
    header = HEADER if new[:1] in (" ", "\t") else ""
    if _normal_form(header + new) == _normal_form(header + entity.text):
        return Refused("equal")
    compiled = _bytecode(header + new)
    if compiled is None:
        return Refused("does not parse", "it does not compile")
    if compiled == _bytecode(header + entity.text):
        return Refused("equivalent")
    return _spliced(entity, text, new, answer, asked)


def form_of(entity: Entity, text: str, edit: Edit) -> bytes | None:
    """The syntax tree of an edited entity, by which edits of one function are told apart."""
    start, end = _span(entity, text)
    broken = text[start : edit.start] + edit.new + text[edit.end : end]
    return _normal_form((HEADER if broken[:1] in (" ", "\t") else "") + broken)


def _span(entity: Entity, text: str) -> tuple[int, int]:
    """Offsets of an entity's lines in its file, without the end of the last."""
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: entity.first - 1])
    own = "\n".join(lines[entity.first - 1 : entity.last])
    return start, start + len(own.removesuffix("\r"))


def _spliced(entity: Entity, text: str, new: str, answer: Answer, asked: Asked) -> LanguageEdit:
    """The smallest splice that puts `new` in place of the entity, with the file's own line ends."""
    start, end = _span(entity, text)
    old = text[start:end]
    if "\r\n" in text:
        new = new.replace("\n", "\r\n")
    same = _common(old, new)
    tail = _common(old[same:][::-1], new[same:][::-1])
    old, new = old[same : len(old) - tail], new[same : len(new) - tail]
    start += same
    return LanguageEdit(
        operator=asked.operator,
        path=entity.path,
        line=text.count("\n", 0, start) + 1,
        qualname=entity.qualname,
        start=start,
        end=start + len(old),
        new=new,
        one_line="\n" not in old and "\n" not in new,
        function=(entity.first, entity.last),
        what=asked.what,
        model=answer.model,
        prompt=asked.prompt,
        request=answer.request,
    )


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
