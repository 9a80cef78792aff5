"""What holds for edits and mutations of real projects: the sources of packages that the tests need anyway."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from generators.repository.composition import Mix
from generators.repository.operators import OPERATORS
from generators.repository.plan import MutationPlan
from generators.repository.sites import ProjectSites
from generators.repository.units import lines_of

PACKAGES = ("packaging", "click", "pluggy")
ALL = tuple(OPERATORS)
EVEN = Mix(single=1, function=1, file=1, package=1, call=1)


def sources(package: str) -> dict[str, str]:
    found = importlib.util.find_spec(package)
    assert found is not None and found.submodule_search_locations is not None
    root = Path(found.submodule_search_locations[0])
    return {f"{package}/{path.relative_to(root)}": path.read_text() for path in sorted(root.rglob("*.py"))}


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_every_edit_compiles_is_new_and_stays_in_its_place(package: str) -> None:
    texts = sources(package)
    sites = ProjectSites(texts, ALL, seed=1, project=package)
    trees = {path: {ast.dump(ast.parse(text))} for path, text in texts.items()}
    for number in range(150):
        edit = sites.edit(number)
        assert edit is not None
        text = texts[edit.path]
        broken = edit.applied(text)
        tree = ast.dump(ast.parse(broken))
        compile(broken, edit.path, "exec", dont_inherit=True)
        assert tree not in trees[edit.path], edit
        trees[edit.path].add(tree)
        before, after = lines_of(text), lines_of(broken)
        first, last = edit.function
        assert after[: first - 1] == before[: first - 1]
        assert after[len(after) - (len(before) - last) :] == before[last:]
        assert broken.startswith(text[: edit.start]) and broken.endswith(text[edit.end :])
        assert edit.import_time or _in_a_function(ast.parse(text), edit.line), edit


def _in_a_function(tree: ast.Module, line: int) -> bool:
    """Whether a line is in the body of a function, or where one begins."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(isinstance(node, kinds) and node.lineno <= line <= (node.end_lineno or 0) for node in ast.walk(tree))


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_every_mutation_compiles_and_is_new(package: str) -> None:
    texts = sources(package)
    plan = MutationPlan(texts, ALL, 1, package, EVEN)
    seen = set()
    relations = set()
    for number in range(60):
        mutation = plan.mutation(number)
        assert mutation is not None
        files = mutation.files(texts)
        for path, text in files.items():
            compile(text, path, "exec", dont_inherit=True)
        seen.add(tuple((path, ast.dump(ast.parse(text))) for path, text in sorted(files.items())))
        relations.add(mutation.relation)
        for edit, line in zip(mutation.edits, mutation.lines(texts), strict=True):
            before, after = lines_of(texts[edit.path])[: edit.line - 1], lines_of(files[edit.path])
            assert line == edit.line or len(after) != len(lines_of(texts[edit.path]))
            assert len(before) == edit.line - 1
    assert len(seen) == 60
    assert {"single", "function", "file", "package"} <= relations


PROGRAM = """
import hashlib
from tests.generators.repository.test_real_sources import ALL, EVEN, MutationPlan, sources
plan = MutationPlan(sources("packaging"), ALL, 5, "packaging", EVEN)
print(hashlib.sha256(repr([plan.mutation(number) for number in range(40)]).encode()).hexdigest())
"""


@pytest.mark.slow
def test_the_order_is_the_same_in_every_process() -> None:
    root = Path(__file__).parents[3]
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
