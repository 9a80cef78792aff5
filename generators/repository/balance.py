"""Balance: a selection of tasks in which no operator, module or difficulty drowns the others."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from factory.core.errors import UserError
from factory.core.streams import stream_seed
from factory.core.syntax import parse_python

BANDS = ("easy", "middle", "hard")
FARTHEST = 6
"""Calls between a test and an edit that are told apart; what is not found by name is as far."""


@dataclass(frozen=True, kw_only=True)
class BalanceConfig:
    """How much of a selection one group may take."""

    operator: float = 0.15
    """Largest part of one operator, 0 to 1."""
    module: float = 0.4
    """Largest part of one source file of one project, 0 to 1."""
    easy: float = 0.5
    """Largest part of tasks whose difficulty is under a third, 0 to 1."""
    middle: float = 0.7
    """Largest part of tasks in between, 0 to 1."""
    hard: float = 0.5
    """Largest part of tasks whose difficulty is over two thirds, 0 to 1."""

    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            if not 0 < share <= 1:
                raise UserError(f"repository.balance.{name}", share, "above 0, at most 1")
        if self.easy + self.middle + self.hard < 1:
            raise UserError("repository.balance", "easy, middle, hard", "parts that add up to 1 or more")


@dataclass(frozen=True, kw_only=True)
class Features:
    """What of a task decides its groups."""

    key: str
    """Names the task: its digest or number."""
    operator: str
    module: str
    """Project and path of the edited file."""
    fail_to_pass: int
    distance: int
    """Calls from the nearest failing test to the edited function; 1: the test calls it itself."""
    edit_lines: int
    """Lines that the solution writes or deletes."""
    pass_rate: float | None = None
    """Measured; None: not yet, and the difficulty is an estimate."""


def difficulty(features: Features) -> float:
    """From 0, easy, to 1: one minus the measured pass rate, or an estimate where there is none.

    The estimate rises with the distance and with the size of the edit, and falls with the number of failing tests. Its weights
    are a prior, made to spread one-line edits over the three bands; only the order that it gives is meant.
    """
    if features.pass_rate is not None:
        return 1 - features.pass_rate
    far = (min(features.distance, FARTHEST) - 1) / (FARTHEST - 1)
    large = min(1.0, math.log2(max(1, features.edit_lines)) / 5)
    hidden = 1 / (1 + math.log2(max(1, features.fail_to_pass)))
    return 0.4 * far + 0.25 * large + 0.35 * hidden


def band(features: Features) -> str:
    """The third of the scale that a task's difficulty lies in."""
    return BANDS[min(2, int(3 * difficulty(features)))]


def balanced(items: Sequence[Features], count: int, config: BalanceConfig, *, seed: int) -> list[Features]:
    """At most `count` of the items, no group over its part of `count` (rounded up); fewer where quotas leave no more.

    Each step takes the item whose fullest group is emptiest, ties by a draw that depends on the seed and the item's key, so
    that the order of the items does not matter.
    """
    parts = {name: getattr(config, name) for name in BANDS}
    groups = {one.key: _groups(one) for one in items}
    limits = {
        group: math.ceil(round(count * (parts[group[1]] if group[0] == "band" else getattr(config, group[0])), 9))
        for one in groups.values()
        for group in one
    }
    waiting = sorted(items, key=lambda one: (stream_seed(seed, "repository balance", one.key), one.key))
    taken: Counter[tuple[str, str]] = Counter()
    chosen: list[Features] = []
    while len(chosen) < count:
        waiting = [one for one in waiting if all(taken[group] < limits[group] for group in groups[one.key])]
        if not waiting:
            break
        best = min(waiting, key=lambda one: max(taken[group] / limits[group] for group in groups[one.key]))
        waiting.remove(best)
        taken.update(groups[best.key])
        chosen.append(best)
    return chosen


def _groups(one: Features) -> tuple[tuple[str, str], ...]:
    return ("operator", one.operator), ("module", one.module), ("band", band(one))


def distance(function: str, tests: Sequence[str], texts: Mapping[str, str]) -> int:
    """Calls from the nearest of the tests to a function, by name; `FARTHEST` where no chain of names leads there.

    `tests` are names of test functions without parameters, `texts` the sources and test files by path. Names are all that is
    compared: a method is called where anything of its name is.
    """
    calls = _calls(texts)
    wanted, here, seen = function.rpartition(".")[2], set(tests), set(tests)
    for steps in range(1, FARTHEST):
        here = {called for name in here for called in calls.get(name, ())} - seen
        if wanted in here:
            return steps
        seen |= here
    return FARTHEST


def _calls(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Names that functions of a name use; a class uses what its `__init__` does."""
    found: dict[str, set[str]] = {}
    for text in texts.values():
        try:
            tree = parse_python(text)
        except (SyntaxError, ValueError):
            continue
        for name, node in _functions(tree, ""):
            found.setdefault(name, set()).update(_used(node))
    return found


def _functions(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child.name, child
            if child.name == "__init__" and owner:
                yield owner, child
        yield from _functions(child, child.name if isinstance(child, ast.ClassDef) else owner)


def _used(node: ast.AST) -> set[str]:
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
