"""Determinism: which cells there are, what is compared, and what is enough. On real sandboxes."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError, SandboxLost
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Mount, Task
from filters import determinism
from filters.determinism import Cell, DeterminismConfig, cells, check_determinism, pinned
from generators.database.generator import DatabaseGenerator
from generators.terminal.generator import TerminalGenerator
from sandboxes.contract import Backend
from tests.factory.agent.samples import Faulty, FaultySandbox, tree_verifier
from tests.factory.agent.samples import task as sample
from tests.filters.tasks import solved_by

QUIET = DeterminismConfig(load=0)


def written(blobs: MemoryBlobs, *commands: str, **policy: Any) -> Task:
    """A task whose goal is `a.txt` with one line, solved by `commands`."""
    wanted = tree_verifier(blobs, {"a.txt": b"hello\n"})
    made = sample(blobs, files={"a.txt": "nothing\n"}, tools=("bash", "submit"), verifier=wanted, held_out=wanted)
    made = replace(made, solution=solved_by(blobs, *commands))
    return replace(made, environment=replace(made.environment, **policy))


def data_of(found: Any) -> dict[str, Any]:
    """The evidence's data as it comes back from storage."""
    data: dict[str, Any] = json.loads(json.dumps(found.data, allow_nan=False))
    return data


def test_generated_tasks_are_deterministic(backend: Backend, blobs: MemoryBlobs) -> None:
    tasks = [
        next(iter(one.generate(blobs, seed=5, start=0, count=1))).task for one in (TerminalGenerator(), DatabaseGenerator())
    ]
    for task in tasks:
        found = check_determinism(task, backend=backend, blobs=blobs, times=5, config=DeterminismConfig(load=1))
        data = data_of(found)
        assert found.passed and found.filter == "determinism" and data["solved"] is True and data["differ"] == []
        # Wilson's interval for 4 of 4 by hand: 4 / (4 + 1.96 ** 2) = 0.5101
        assert data["verdicts"] == pytest.approx({"agree": 4, "of": 4, "share": 1.0, "low": 0.5101, "high": 1.0}, abs=1e-4)
        assert data["observations"] == data["verdicts"] and data["masked"] == data["not_judged"] == 0
        assert [run["load"] for run in data["runs"]].count(1) == 2 and len({run["end"] for run in data["runs"]}) == 1


@pytest.mark.parametrize(
    ("column", "command"),
    [
        ("timezone", "date -d @0 +%z"),
        ("locale", "locale charmap"),
        ("hash_seed", "python3 -c \"print(hash('a'))\""),
        ("umask", "umask"),
    ],
)
def test_the_column_on_which_observations_hang_is_seen(backend: Backend, blobs: MemoryBlobs, column: str, command: str) -> None:
    task = written(blobs, command, "echo hello > a.txt")
    found = check_determinism(task, backend=backend, blobs=blobs, times=7, config=QUIET)
    data = data_of(found)
    own = data["runs"][0][column]
    for value, counts in data["values"][column].items():
        assert counts["observations_differ"] == (0 if value == str(own) else counts["runs"]), value
    assert data["turns"][0]["agree"] == data["observations"]["agree"] < 6 and data["turns"][1]["agree"] == 6
    assert found.passed and data["verdicts"]["agree"] == 6, "only verdicts decide"
    wheres = {difference["where"] for cell in data["differ"] for difference in cell["differences"]}
    assert "turn 1 text" in wheres and all(where.startswith("turn 1 ") for where in wheres)


def test_a_verdict_that_hangs_on_a_default_fails(backend: Backend, blobs: MemoryBlobs) -> None:
    task = written(blobs, "[ $(date -d @0 +%H) = 00 ] && echo hello > a.txt")
    found = check_determinism(task, backend=backend, blobs=blobs, times=4, config=QUIET)
    data = data_of(found)
    assert not found.passed and data["verdicts"]["agree"] == 1 and data["pinned"] == []
    assert found.reason.startswith("verdicts agree in 1 of 3 runs; another in load=0 timezone=<")
    cell = data["differ"][0]
    assert {"where": "verifier contents", "first": "passed", "here": "failed"} in cell["differences"]
    assert {"where": "held_out contents", "first": "passed", "here": "failed"} in cell["differences"]
    assert check_determinism(task, backend=backend, blobs=blobs, times=4, config=replace(QUIET, floor=1 / 3)).passed


def test_what_a_task_asks_for_is_kept(backend: Backend, blobs: MemoryBlobs) -> None:
    policy = {"timezone": "<+0200>-2", "locale": "C", "hash_seed": 7, "umask": 0o027}
    task = written(blobs, "echo $(date -d @0 +%H) $LANG $PYTHONHASHSEED $(umask)", "echo hello > a.txt", **policy)
    data = data_of(check_determinism(task, backend=backend, blobs=blobs, times=4, config=QUIET))
    assert data["pinned"] == ["timezone", "locale", "hash_seed", "umask"] == list(pinned(task.environment))
    assert data["observations"]["share"] == 1.0
    assert {run["umask"] for run in data["runs"]} == {"027"}


def test_verdicts_by_chance_are_caught(backend: Backend, blobs: MemoryBlobs) -> None:
    """One run in two passes: over nine comparisons all agree once in 2**9."""
    task = written(blobs, "[ $(($(od -An -N1 -tu1 /dev/urandom) % 2)) = 0 ] && echo hello > a.txt")
    assert not check_determinism(task, backend=backend, blobs=blobs, times=10, config=QUIET).passed


def test_cells_are_balanced_and_drawn_once(blobs: MemoryBlobs) -> None:
    task = written(blobs, "true")
    drawn = cells(task, 13, DeterminismConfig())
    assert drawn[0] == Cell(load=0, timezone="UTC", locale="C.UTF-8", hash_seed=0, umask=0o022)
    for name, most in (("load", 6), ("timezone", 4), ("locale", 6), ("hash_seed", 4), ("umask", 4)):
        assert set(Counter(getattr(cell, name) for cell in drawn[1:]).values()) == {most}, name
    assert drawn == cells(task, 13, DeterminismConfig())
    assert drawn[1:] != cells(task, 13, DeterminismConfig(seed=1))[1:]
    assert len(set(drawn)) > 6
    first = cells(task, 2, DeterminismConfig())[1]
    assert first.timezone != "UTC" and first.locale == "C" and first.hash_seed and first.umask != 0o022 and first.load == 2


def test_one_run_is_no_comparison(backend: Backend, blobs: MemoryBlobs) -> None:
    with pytest.raises(ValueError, match="at least 2 runs"):
        check_determinism(written(blobs, "true"), backend=backend, blobs=blobs, times=1)


def test_busy_loops_are_busy_and_end(backend: Backend, blobs: MemoryBlobs) -> None:
    def running() -> set[str]:
        found = set()
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = path.read_text().partition(") ")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if rest.startswith("R") and name.endswith("(bash"):
                found.add(name)
        return found

    before = running()
    with determinism._busy(2, backend, blobs):
        time.sleep(0.3)
        fresh = running() - before
        assert len(fresh) >= 2
    assert not fresh & running()


class Counted(Faulty):
    """Tells which sandboxes were opened for busy loops: those with an empty tree and the default limits."""

    def open(self, spec: EnvironmentSpec, blobs: Any, mounts: tuple[Mount, ...] = (), **rest: Any) -> FaultySandbox:
        self.plan.setdefault("loads", []).extend([None] * (spec.files == FileTree().digest and not mounts))
        return super().open(spec, blobs, mounts, **rest)


def test_half_the_runs_are_loaded(backend: Backend, blobs: MemoryBlobs) -> None:
    counted = Counted(backend)
    check_determinism(written(blobs, "echo hello > a.txt"), backend=counted, blobs=blobs, times=5)
    assert len(counted.plan["loads"]) == 2


def test_masked_runs_are_made_again(backend: Backend, blobs: MemoryBlobs) -> None:
    faulty = Faulty(backend, run=[SandboxLost("gone"), None, SandboxLost("gone")])
    found = check_determinism(written(blobs, "echo hello > a.txt"), backend=faulty, blobs=blobs, times=3, config=QUIET)
    data = data_of(found)
    assert found.passed and data["masked"] == 2 and [len(run["masked"]) for run in data["runs"]] == [1, 1, 0]
    assert data["verdicts"]["of"] == 2


def test_runs_that_stay_masked_are_no_verdict(backend: Backend, blobs: MemoryBlobs) -> None:
    task = written(blobs, "echo hello > a.txt")
    gone: list[Exception | None] = [SandboxLost("gone")] * 3
    with pytest.raises(SandboxError, match=r"not judged, .*SandboxLost: gone"):
        check_determinism(task, backend=Faulty(backend, run=list(gone)), blobs=blobs, times=3, config=QUIET)
    with pytest.raises(SandboxError, match=r"not judged, .*SandboxLost: gone"):
        check_determinism(task, backend=Faulty(backend, run=[None, *gone]), blobs=blobs, times=2, config=QUIET)
    found = check_determinism(task, backend=Faulty(backend, run=[None, *gone]), blobs=blobs, times=3, config=QUIET)
    data = data_of(found)
    assert data["not_judged"] == 1 and data["verdicts"]["of"] == 1 and data["masked"] == 3


def test_a_policy_that_is_not_offered_is_said_in_one_line(backend: Backend, blobs: MemoryBlobs) -> None:
    config = replace(QUIET, locales=("xx_YY.UTF-8",))
    with pytest.raises(SandboxError, match=r"^locale 'xx_YY.UTF-8' is not offered"):
        check_determinism(written(blobs, "true"), backend=backend, blobs=blobs, times=3, config=config)
