"""Edits as splices: where they stand, which are left out, and in which order they come."""

from __future__ import annotations

import ast

from hypothesis import given, settings
from hypothesis import strategies as st

from generators.repository.operators import OPERATORS
from generators.repository.sites import Edit, ProjectSites

TEXT = '''"""Module."""


class Box:
    """A box."""

    def __init__(self, items):
        self.items = list(items)

    @property
    def total(self):
        count = 0
        for item in self.items:
            if item > 0 and item < 10:
                count += item
        return count

    def nested(self, a, b):
        def inner(c):
            return c - a

        return inner(b)


async def wait(a, b):
    text = """first
second"""
    return await go(a, b, text)
'''
ALL = tuple(OPERATORS)


def edits(text: str, seed: int = 0, path: str = "box.py") -> list[Edit]:
    sites = ProjectSites({path: text}, ALL, seed=seed, project="p")
    found = []
    while (edit := sites.edit(len(found))) is not None:
        found.append(edit)
    return found


def test_sites_name_line_and_function() -> None:
    found = {(edit.operator, edit.line, edit.qualname) for edit in edits(TEXT)}
    assert ("comparison_boundary", 14, "Box.total") in found
    assert ("operands_swapped", 20, "Box.nested.inner") in found
    assert ("arguments_swapped", 28, "wait") in found


def test_every_edit_changes_its_line_and_nothing_outside_its_function() -> None:
    lines = TEXT.split("\n")
    for edit in edits(TEXT):
        changed = edit.applied(TEXT).split("\n")
        first, last = edit.function
        assert changed[: first - 1] == lines[: first - 1]
        assert changed[len(changed) - (len(lines) - last) :] == lines[last:]
        different = [number for number, (a, b) in enumerate(zip(lines, changed, strict=False), 1) if a != b]
        assert different[0] == edit.line
        assert edit.one_line == (len(changed) == len(lines) and different == [edit.line])


def test_no_two_edits_and_no_original_share_a_syntax_tree() -> None:
    trees = [ast.dump(ast.parse(edit.applied(TEXT))) for edit in edits(TEXT)]
    assert len({*trees, ast.dump(ast.parse(TEXT))}) == len(trees) + 1


def test_an_edit_that_compiles_to_the_same_code_is_left_out() -> None:
    text = "def f():\n    return 2 + 3\n"
    assert text.replace("2 + 3", "3 + 2") not in {edit.applied(text) for edit in edits(text)}


def test_same_seed_same_order_other_seed_other_order() -> None:
    assert edits(TEXT, seed=1) == edits(TEXT, seed=1)
    assert edits(TEXT, seed=1) != edits(TEXT, seed=2)
    assert set(edits(TEXT, seed=1)) == set(edits(TEXT, seed=2))


def test_operators_take_turns() -> None:
    first = [edit.operator for edit in edits(TEXT)[:8]]
    assert len(set(first)) >= 7


def test_line_ends_are_kept() -> None:
    text = TEXT.replace("\n", "\r\n")
    found = edits(text)
    assert found
    for edit in found:
        assert edit.applied(text).replace("\r\n", "").count("\n") == 0


def test_files_that_do_not_parse_offer_nothing() -> None:
    assert edits("def f(:\n") == []


def test_class_bodies_and_module_level_are_sites_too() -> None:
    method = "    @cached(5)\n    def area(self, scale=2):\n        return scale * 7\n"
    text = f"LIMIT = 3\n\n\nclass Box(Base):\n    size = 1\n\n{method}"
    found = {(edit.qualname, edit.line, edit.import_time) for edit in edits(text)}
    assert {
        ("<module>", 1, True),
        ("Box", 5, True),
        ("Box.area", 7, True),
        ("Box.area", 8, True),
        ("Box.area", 9, False),
    } <= found
    assert ("Box", 4, True) in found


def test_places_read_as_people_say_them() -> None:
    found = {edit.where for edit in edits("LIMIT = 3\n\n\ndef f(a):\n    return -a\n")}
    assert found == {"at the top level of box.py", "in f in box.py"}


def test_defaults_of_inner_functions_are_no_import_time_code() -> None:
    text = "def f(a):\n    def g(b=1):\n        return b\n    return g\n"
    assert {edit.import_time for edit in edits(text) if edit.operator == "default_argument"} == {False}


def test_functions_come_before_import_time_code_by_its_share() -> None:
    text = "".join(f"X{number} = {number}\n\n\ndef f{number}(a, b):\n    return a - b < {number}\n" for number in range(30))
    found = [ProjectSites({"m.py": text}, ALL, seed=0, project="p", import_share=share) for share in (0.0, 0.25, 1.0)]
    importing = [sum(edit.import_time for edit in map(sites.edit, range(40)) if edit is not None) for sites in found]
    assert importing == [0, 10, 40]


def test_an_edit_knows_its_version_and_its_form() -> None:
    found = edits("def f(a):\n    return a + 7\n")
    assert {edit.variant for edit in found if edit.operator == "constant_integer"} == {0, 1}
    assert len({edit.form for edit in found}) == len(found)
    assert found[0].parameters["site"] == found[0].site


def test_nothing_is_taken_from_above_the_first_line() -> None:
    text = "@once\ndef f(a):\n    return a\n"
    assert [edit for edit in edits(text) if edit.operator == "decorator_removed"] == []
    assert [edit for edit in edits(f"import x\n{text}") if edit.operator == "decorator_removed"] != []


def test_the_end_of_a_file_stays_as_it_is() -> None:
    text = "class A:\n    x = 1\n\n    def f(self):\n        return self.x"
    assert all(edit.applied(text).endswith("\n") is False for edit in edits(text))


NAMES = st.sampled_from(["a", "b", "c"])
EXPRESSIONS = st.recursive(
    NAMES | st.integers(0, 20).map(str),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "<", "and", "or", "=="]), inner).map(
        lambda t: f"({' '.join(t)})"
    ),
    max_leaves=6,
)


@settings(max_examples=30, deadline=None)
@given(EXPRESSIONS, EXPRESSIONS)
def test_every_edit_of_any_expression_compiles_to_something_else(first: str, second: str) -> None:
    text = f"def f(a, b, c):\n    if {first}:\n        return {second}\n    return a\n"
    for edit in edits(text):
        broken = edit.applied(text)
        assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(text))
