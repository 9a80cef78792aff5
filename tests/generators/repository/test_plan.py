"""Which mutations a project's series has."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from generators.repository.calls import Routine, call_edges
from generators.repository.composition import RELATIONS, Mix, Mutation
from generators.repository.operators import OPERATORS
from generators.repository.plan import MutationPlan

BODY = """
def one{0}(a, b, c):
    if a < b and c:
        return a - {0}
    return b + c


def two{0}(items, key):
    total = 0
    for item in items:
        total += item[key] * 2
    return total
"""
TEXTS = {
    "p/a.py": "from p.b import one2\n" + BODY.format(1) + "\n\ndef calls(x):\n    return one2(x, x + 1, True) - 1\n",
    "p/b.py": BODY.format(2),
    "q/c.py": BODY.format(3),
}


def only(relation: str, **more: int) -> Mix:
    shares = dict.fromkeys(RELATIONS, 0.0)
    return Mix(**{**shares, relation: 1.0}, **more)  # type: ignore[arg-type]


def dealt(mix: Mix, count: int, seed: int = 0) -> list[Mutation]:
    plan = MutationPlan(TEXTS, tuple(OPERATORS), seed, "p", mix)
    found = [plan.mutation(number) for number in range(count)]
    assert found == [plan.mutation(number) for number in range(count)]
    return [one for one in found if one is not None]


@pytest.mark.parametrize("relation", ["function", "file", "package", "call"])
def test_composed_mutations_belong_together(relation: str) -> None:
    found = [one for one in dealt(only(relation), 30) if one.relation != "single"]
    assert len(found) >= 10
    edges = {(caller, callee) for caller, callee in call_edges(TEXTS)}
    for one in found:
        assert one.relation == relation
        assert 2 <= len(one.edits) <= 3
        paths = {edit.path for edit in one.edits}
        functions = {(edit.path, edit.function) for edit in one.edits}
        if relation == "function":
            assert len(functions) == 1
        elif relation == "file":
            assert len(paths) == 1 and len(functions) == len(one.edits)
        elif relation == "package":
            assert paths == {"p/a.py", "p/b.py"}
        else:
            first, second = (Routine(edit.path, edit.qualname) for edit in one.edits)
            assert (first, second) in edges


def test_every_mutation_compiles_and_is_new() -> None:
    trees = set()
    found = dealt(Mix(single=1, function=1, file=1, package=1, call=1), 120)
    for one in found:
        files = one.files(TEXTS)
        trees.add(tuple(sorted((path, ast.dump(ast.parse(text))) for path, text in files.items())))
        assert all(text != TEXTS[path] for path, text in files.items())
    assert len(trees) == len(found) == len({one.form for one in found})


def test_no_edit_is_dealt_twice() -> None:
    counts = Counter(edit for one in dealt(Mix(single=1, function=1, file=1, package=1, call=1), 100) for edit in one.edits)
    assert set(counts.values()) == {1}


def test_taking_one_edit_back_leaves_the_others() -> None:
    for one in dealt(only("function"), 20):
        text = TEXTS[one.edits[0].path]
        whole = ast.dump(ast.parse(one.files(TEXTS)[one.edits[0].path]))
        for edit in one.edits:
            rest = text
            for other in sorted(one.edits, key=lambda other: -other.start):
                rest = rest if other is edit else other.applied(rest)
            tree = ast.dump(ast.parse(rest))
            assert tree != whole
            assert (tree != ast.dump(ast.parse(text))) == (len(one.edits) > 1)


def test_the_mix_is_kept() -> None:
    relations = Counter(one.relation for one in dealt(Mix(single=0.5, function=0.5, file=0, package=0, call=0), 100))
    assert set(relations) == {"single", "function"}
    assert 25 <= relations["function"] <= 75


def test_same_seed_same_order_other_seed_other_order() -> None:
    mix = Mix(single=1, function=1, file=1, package=1, call=1)
    assert dealt(mix, 40, seed=1) == dealt(mix, 40, seed=1)
    assert dealt(mix, 40, seed=1) != dealt(mix, 40, seed=2)


def test_the_series_ends_when_every_edit_was_dealt() -> None:
    plan = MutationPlan({"m.py": "def f(a):\n    return -a\n"}, ("sign_dropped",), 0, "p", only("single"))
    assert plan.mutation(0) is not None
    assert plan.mutation(1) is None
    assert plan.mutation(2) is None
