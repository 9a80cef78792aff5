"""Which tests a change can reach: spans by hand, and, for any program drawn, no test that really runs the change is left
out."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.repository.coverage import Coverage, merged
from generators.repository.selection import Selection, _reaching, select

TEXT = '''import os

LIMIT = 3


def sign(value):
    """Of a number."""
    if value > 0:
        found = 1
    elif value < 0:
        found = -1
    else:
        found = 0
    return found


class Box:
    size = 2

    def grown(self, by):
        for step in range(by):
            self.size += step
        return self.size
'''


def spans(old: str, new: str) -> list[tuple[int, int]]:
    assert old in TEXT
    return [span for found, _ in _reaching(TEXT, TEXT.replace(old, new, 1)) for span in found]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("found = 1\n", "found = 2\n", [(9, 9)]),
        ("found = -1", "found = 1", [(11, 11)]),
        ("value < 0", "value <= 0", [(10, 13)]),
        ("value > 0", "value >= 0", [(8, 13)]),
        ("    return found\n", "    return None\n", [(14, 14)]),
        ("        self.size += step\n", "            self.size -= step\n".replace("    ", "", 1), [(22, 22)]),
        # one statement more: what comes to it comes to the statement that it stands before
        ("    return found\n", "    found += 1\n    return found\n", [(14, 14)]),
        # and at a block's end, whatever enters the block
        ("        found = 0\n", "        found = 0\n        found += 1\n", [(10, 13)]),
        # the only assignment of a name gone: the whole function means something else
        ("        for step in range(by):\n            self.size += step\n", "        step = by\n", [(21, 22)]),
        ("        return self.size\n", "        total = self.size\n        return total\n", [(21, 23)]),
    ],
)
def test_lines_of_which_one_runs_first(old: str, new: str, expected: list[tuple[int, int]]) -> None:
    assert spans(old, new) == expected


COVERAGE = Coverage(
    tests=("a", "b", "c"),
    lines={"m.py": {"8": "3", "9": "1", "11": "2", "22": "4"}},
    imported={"m.py": {"lines": [1, 3, 6, 17, 18, 20], "called": [], "read": []}},
    always={"c": "subprocess"},
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("found = 1\n", "found = 2\n", Selection(frozenset({"a", "c"}))),
        ("value > 0", "value >= 0", Selection(frozenset({"a", "b", "c"}))),
        ("LIMIT = 3", "LIMIT = 4", Selection(None, ("module level",))),
        ("size = 2", "size = 3", Selection(None, ("class body",))),
        ("(value)", "(value=1)", Selection(None, ("module level",))),
        ("return found", "yield found", Selection(None, ("kind",))),
        ("Of a number", "Of one number", Selection(None, ("docstring",))),
        ("return found", "return (", Selection(None, ("syntax",))),
    ],
)
def test_tests_and_risks(old: str, new: str, expected: Selection) -> None:
    assert select(COVERAGE, {"m.py": TEXT}, {"m.py": TEXT.replace(old, new, 1)}) == expected


def test_a_function_that_runs_on_import_reaches_all_tests() -> None:
    early = Coverage(tests=("a",), imported={"m.py": {"lines": [14]}})
    assert select(early, {"m.py": TEXT}, {"m.py": TEXT.replace("found = 1\n", "found = 2\n")}) == Selection(
        None, ("import-time",)
    )


def test_changes_of_several_files_reach_what_any_of_them_does() -> None:
    coverage = Coverage(tests=("a", "b", "c"), lines={"m.py": {"9": "1"}, "n.py": {"11": "2", "22": "4"}})
    after = {"m.py": TEXT.replace("found = 1\n", "found = 2\n"), "n.py": TEXT.replace("found = -1", "found = 5")}
    assert select(coverage, {"m.py": TEXT, "n.py": TEXT}, after) == Selection(frozenset({"a", "b"}))


def test_traces_in_different_orders_are_one_coverage() -> None:
    first = {"ids": ["b", "a"], "lines": {"m.py": {"3": "1"}}, "imported": {}, "always": {}}
    second = {
        "ids": ["a", "gone", "b"],
        "lines": {"m.py": {"3": "3"}},
        "imported": {"m.py": {"lines": [2], "called": ["1:f"], "read": []}},
        "always": {"gone": "subprocess", "b": "threads"},
    }
    found = merged(["a", "b"], [first, second], failed=["a"])
    assert found.covering("m.py", [(3, 3)]) == {"a", "b"}
    assert found.covering("m.py", [(4, 9)]) == set()
    assert found.imports("m.py", 1, 2)
    assert found.always == {"a": "fails when traced", "b": "threads"}


# A program is a tree of blocks; each leaf counts one up. What a call runs is known from the interpreter itself.
SIMPLE = st.sampled_from(["hit({0})", "x = hit({0})", "hit({0}) or hit({0})"])


def blocks(depth: int) -> st.SearchStrategy[list[Any]]:
    leaf = SIMPLE.map(lambda text: ("leaf", text))
    if depth == 0:
        return st.lists(leaf, min_size=1, max_size=3)
    inner = blocks(depth - 1)
    compound = st.one_of(
        st.tuples(st.just("if"), inner, inner),
        st.tuples(st.just("for"), inner),
        st.tuples(st.just("try"), inner, inner, inner),
        st.tuples(st.just("with"), inner),
    )
    return st.lists(st.one_of(leaf, compound), min_size=1, max_size=3)


def written(block: list[Any], indent: str, count: list[int]) -> list[str]:
    lines: list[str] = []
    for kind, *parts in block:
        count[0] += 1
        number = count[0]
        deeper = indent + "    "
        if kind == "leaf":
            lines.append(indent + parts[0].format(number))
        elif kind == "if":
            lines += [f"{indent}if ask({number}):", *written(parts[0], deeper, count)]
            lines += [f"{indent}else:", *written(parts[1], deeper, count)]
        elif kind == "for":
            lines += [f"{indent}for _ in range(ask({number})):", *written(parts[0], deeper, count)]
        elif kind == "with":
            lines += [f"{indent}with suppress(KeyError):", *written(parts[0], deeper, count)]
        else:
            lines += [f"{indent}try:", *written(parts[0], deeper, count), f"{indent}except KeyError:"]
            lines += [*written(parts[1], deeper, count), f"{indent}finally:", *written(parts[2], deeper, count)]
    return lines


def ran(text: str, answers: list[int]) -> tuple[set[int], list[object]]:
    """Lines that a call runs, and what the program did."""
    lines: set[int] = set()
    did: list[object] = []

    def ask(number: int) -> int:
        did.append(("asked", number))
        answer = answers[number % len(answers)]
        if answer == 2:
            raise KeyError(number)
        return answer

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename != "program":
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    space: dict[str, Any] = {"ask": ask, "hit": did.append}
    exec(compile("from contextlib import suppress\n" + text, "program", "exec"), space)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        space["f"]()
    except KeyError as error:
        did.append(("raised", error.args))
    finally:
        sys.settrace(before)
    return lines, did


@settings(deadline=None)
@given(blocks(2), st.data())
def test_no_call_that_a_change_alters_is_left_out(block: list[Any], data: st.DataObject) -> None:
    """For a line changed, removed or doubled, every call that then does something else had run a line of the spans."""
    body = written(block, "    ", [0])
    text = "\n".join(["def f():", *body, ""])
    where = data.draw(st.integers(0, len(body) - 1))
    change = data.draw(st.sampled_from(["number", "double", "remove"]))
    line = body[where]
    if change == "number":
        other = [re.sub(r"(hit|ask)\(", r"\1(1000 + ", line, count=1)]
    elif line.strip().endswith(":"):
        return
    else:
        other = [line, line] if change == "double" else [line[: len(line) - len(line.lstrip())] + "pass"]
    changed = "\n".join(["def f():", *body[:where], *other, *body[where + 1 :], ""])
    answers = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=7))
    offset = 1  # the import above
    lines, did = ran(text, answers)
    _, now = ran(changed, answers)
    found = [span for spans, _ in _reaching(text, changed) for span in spans]
    if did != now:
        assert any(first + offset <= line <= last + offset for first, last in found for line in lines)
