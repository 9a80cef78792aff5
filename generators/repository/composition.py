"""Mutations: one edit, or several that are one bug together."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from factory.core.digest import Json
from factory.core.errors import UserError
from generators.repository.edits import Edit
from generators.repository.forms import form_of
from generators.repository.operators import OPERATORS
from generators.repository.sites import IMPORT_SHARE
from generators.repository.units import lines_of

RELATIONS = ("single", "function", "file", "package", "call")


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Shares of mutations, relative to each other, by how their edits belong together; 0 leaves a relation out."""

    single: float = 0.8
    """One edit."""
    function: float = 0.05
    """Several in one function."""
    file: float = 0.05
    """Several in one file, no two in one function."""
    package: float = 0.05
    """Several in the files of one folder, no two in one file."""
    call: float = 0.05
    """One in a function, one in a function of another module that it calls."""
    most: int = 3
    """Most edits of one mutation, 2 or more."""
    import_time: float = IMPORT_SHARE
    """Share of edits in class bodies and at module level, 0 to 1, as long as functions offer some too."""

    def __post_init__(self) -> None:
        for name in RELATIONS:
            if not getattr(self, name) >= 0:
                raise UserError(f"repository.mix.{name}", getattr(self, name), "0 or more")
        if not sum(getattr(self, name) for name in RELATIONS) > 0:
            raise UserError("repository.mix", "0", "a share above 0")
        if self.most < 2:
            raise UserError("repository.mix.most", self.most, "2 or more")
        if not 0 <= self.import_time <= 1:
            raise UserError("repository.mix.import_time", self.import_time, "0 to 1")


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One bug: edits of one file or more, none of which touches another."""

    edits: tuple[Edit, ...]
    """By path and place."""
    relation: str
    """Why the edits belong together: one of `RELATIONS`."""
    form: str
    """Digest of the normal forms of all that the edits change: two mutations with the same one are the same."""

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(edit.operator for edit in self.edits)

    @property
    def sites(self) -> tuple[str, ...]:
        return tuple(edit.site for edit in self.edits)

    @property
    def import_time(self) -> bool:
        """Whether importing a module runs some of what changes."""
        return any(edit.import_time for edit in self.edits)

    @property
    def what(self) -> str:
        """The kinds of mistake, for people: `a comparison and a missing call`."""
        return " and ".join(dict.fromkeys(OPERATORS[name].what for name in self.operators))

    @property
    def parameters(self) -> dict[str, Json]:
        """Provenance beside the seed."""
        return {"relation": self.relation, "edits": [edit.parameters for edit in self.edits], "form": self.form}

    def files(self, texts: Mapping[str, str]) -> dict[str, str]:
        """The broken text of each file that changes, by path; `texts` are the project's."""
        return {path: _applied(edits, texts[path]) for path, edits in _by_path(self.edits).items()}

    def lines(self, texts: Mapping[str, str]) -> tuple[int, ...]:
        """The first line of each edit in the broken text of its file, from 1."""
        moved = []
        for edit in self.edits:
            before = [other for other in self.edits if other.path == edit.path and other.start < edit.start]
            text = texts[edit.path]
            moved.append(edit.line + sum(one.new.count("\n") - text.count("\n", one.start, one.end) for one in before))
        return tuple(moved)


def composed(edits: Sequence[Edit], relation: str, texts: Mapping[str, str]) -> Mutation | None:
    """The edits as one mutation; None where two of them meet, what they give together does not compile, or one of them has
    no effect beside the others."""
    ordered = tuple(sorted(edits, key=lambda edit: (edit.path, edit.start)))
    for first, second in itertools.pairwise(ordered):
        if first.path == second.path and second.start <= first.end:
            return None
    forms = []
    for (path, function), group in _by_function(ordered).items():
        form = group[0].form if len(group) == 1 else _together(group, texts[path], function)
        if form is None:
            return None
        forms.append(f"{path} {function} {form}")
    for path, group in _by_path(ordered).items():
        if len(group) > 1 and form_of(_applied(group, texts[path])) is None:
            return None
    form = hashlib.sha256("\n".join(sorted(forms)).encode()).hexdigest()
    return Mutation(edits=ordered, relation=relation, form=form)


def _together(edits: Sequence[Edit], text: str, function: tuple[int, int]) -> str | None:
    """The normal form of a function with all the edits; None unless each of them changes it beside the others too."""
    whole = _function_form(edits, text, function)
    if whole is None:
        return None
    fewer = [[other for other in edits if other is not edit] for edit in edits]
    for rest in (*fewer, []):
        other = _function_form(rest, text, function)
        if other is None or whole[0] == other[0] or whole[1] == other[1]:
            return None
    return whole[0]


def _function_form(edits: Sequence[Edit], text: str, function: tuple[int, int]) -> tuple[str, str] | None:
    lines = lines_of(text)
    first = len("".join(lines[: function[0] - 1]))
    last = first + len("".join(lines[function[0] - 1 : function[1]]))
    rest = len(text) - last
    broken = _applied(edits, text)
    part = broken[first : len(broken) - rest]
    form = form_of("if 1:\n" + part if part[:1] in (" ", "\t") else part)
    return (form.tree, form.code) if form else None


def _applied(edits: Sequence[Edit], text: str) -> str:
    for edit in sorted(edits, key=lambda one: one.start, reverse=True):
        text = edit.applied(text)
    return text


def _by_path(edits: Sequence[Edit]) -> dict[str, list[Edit]]:
    found: dict[str, list[Edit]] = {}
    for edit in edits:
        found.setdefault(edit.path, []).append(edit)
    return found


def _by_function(edits: Sequence[Edit]) -> dict[tuple[str, tuple[int, int]], list[Edit]]:
    found: dict[tuple[str, tuple[int, int]], list[Edit]] = {}
    for edit in edits:
        found.setdefault((edit.path, edit.function), []).append(edit)
    return found
