"""Before-strings and after-strings: an operator gives these, and no others."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence

import pytest

from generators.repository.sites import ProjectSites


def offers(operator: str, text: str) -> list[str]:
    """Every text that an operator makes of a file's text, sorted."""
    sites = ProjectSites({"m.py": text}, (operator,), seed=0, project="p")
    found = []
    while (edit := sites.edit(len(found))) is not None:
        assert edit.operator == operator
        found.append(edit.applied(text))
    return sorted(found)


def in_functions(operator: str, cases: Mapping[str, Sequence[str]]) -> Callable[[str, Sequence[str]], None]:
    """A test of an operator on bodies of a function with the parameters `a`, `b` and `c`: before-strings with after-strings."""

    @pytest.mark.parametrize(("before", "after"), cases.items())
    def test(before: str, after: Sequence[str]) -> None:
        assert offers(operator, _function(before)) == sorted(map(_function, after))

    return test


def in_modules(operator: str, cases: Mapping[str, Sequence[str]]) -> Callable[[str, Sequence[str]], None]:
    """A test of an operator on whole files: before-strings with after-strings."""

    @pytest.mark.parametrize(("before", "after"), cases.items())
    def test(before: str, after: Sequence[str]) -> None:
        assert offers(operator, before) == sorted(after)

    return test


def _function(body: str) -> str:
    return f"def f(a, b, c):\n{textwrap.indent(body, '    ')}\n\n\n# tail\n"
