"""Which functions may be given new code in a process that has imported the old text."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import pytest

from generators.repository.inside import suite_swaps

TEXT = """import functools

SCALE = 3


def scaled(value, factor=SCALE):
    return value * factor


def counter(start):
    def step(by=1):
        nonlocal start
        start += by
        return start
    return step


@functools.lru_cache
def kept(value):
    return value + 1


class Box:
    size = 2

    @property
    def area(self):
        return self.size * self.size

    @classmethod
    def of(cls, size):
        box = cls()
        box.size = size
        return box

    def items(self):
        for number in range(self.size):
            yield number

    async def later(self):
        return self.size

    def name(self):
        return super().__repr__() and __class__.__name__


first, second = (lambda: 1), (lambda: 2)
shown = [number + 1 for number in range(3)]
"""
NOTHING = {"lines": [], "called": [], "read": []}


def functions(space: dict[str, Any]) -> dict[str, FunctionType]:
    box = space["Box"]
    return {
        "scaled": space["scaled"],
        "counter": space["counter"],
        "kept": space["kept"].__wrapped__,
        "area": box.area.fget,
        "of": box.of.__func__,
        **{name: vars(box)[name] for name in ("items", "later", "name")},
    }


def loaded(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "m"}
    exec(compile(text, "/m.py", "exec"), space)
    return space


def shown(space: dict[str, Any]) -> list[object]:
    """What the module does."""
    box = space["Box"].of(4)
    step = space["counter"](5)
    try:
        box.later().send(None)
    except StopIteration as stop:
        later = stop.value
    return [space["scaled"](2), step(), step(3), space["kept"](1), box.area, list(box.items()), later, box.name()]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("value * factor", "value + factor", ["scaled"]),
        ("start += by", "start -= by", ["counter"]),
        ("value + 1\n", "value + 2\n", ["kept"]),
        ("self.size * self.size", "self.size * 2", ["area"]),
        ("box.size = size", "box.size = size + 1", ["of"]),
        ("range(self.size)", "range(1, self.size)", ["items"]),
        (
            "        return self.size\n\n    def name",
            "        self.size += 1\n        return self.size\n\n    def name",
            ["later"],
        ),
        ("__class__.__name__", "__class__.__qualname__ * 2", ["name"]),
        ("value * factor", "value * \\\n        factor - 1", ["scaled"]),
    ],
)
def test_functions_with_exchanged_code_do_what_the_new_text_does(old: str, new: str, names: list[str]) -> None:
    changed = TEXT.replace(old, new, 1)
    found = suite_swaps.swaps("/m.py", TEXT, changed, NOTHING)
    space = loaded(TEXT)
    by_key = {suite_swaps.key(one.__code__): (name, one) for name, one in functions(space).items()}
    assert [by_key[key][0] for key, _ in found] == names
    for key, code in found:
        by_key[key][1].__code__ = code
    assert shown(space) == shown(loaded(changed))
    assert shown(space) != shown(loaded(TEXT))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("SCALE = 3", "SCALE = 4", "module level"),
        ("factor=SCALE", "factor=SCALE + 1", "module level"),
        ("by=1", "by=2", None),  # inside a function: made anew at each call
        ("@functools.lru_cache\n", "", "module level"),
        ("size = 2", "size = 3", "class body"),
        ("yield number", "return number", "class body"),
        ("async def later", "def later", "class body"),
        ("def scaled(value, factor", "def scaled(factor, value", "signature"),
        ("    return value * factor", '    """Scaled."""\n    return value * factor', "signature"),
        ("super().__repr__()", "1", None),
        ("super().__repr__() and __class__.__name__", "1", "class body"),
        ("lambda: 2", "lambda: 3", "two functions on one line"),
        ("return value * factor", "return value *", "does not compile: SyntaxError"),
    ],
)
def test_refusals(old: str, new: str, why: str | None) -> None:
    changed = TEXT.replace(old, new, 1)
    if why is None:
        assert suite_swaps.swaps("/m.py", TEXT, changed, NOTHING)
        return
    with pytest.raises(suite_swaps.Refused) as caught:
        suite_swaps.swaps("/m.py", TEXT, changed, NOTHING)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("imported", "why"),
    [({"called": ["11:counter.<locals>.step"]}, "runs on import"), ({"read": ["10:counter"]}, "read on import")],
)
def test_what_ran_or_was_looked_at_before_the_fork_is_not_exchanged(imported: dict[str, list[str]], why: str) -> None:
    code = compile(TEXT, "/m.py", "exec")
    keys = {suite_swaps.key(item) for item in suite_swaps._with_inner(code)}
    assert set(next(iter(imported.values()))) <= keys
    with pytest.raises(suite_swaps.Refused, match=why):
        suite_swaps.swaps("/m.py", TEXT, TEXT.replace("start += by", "start -= by"), NOTHING | imported)
