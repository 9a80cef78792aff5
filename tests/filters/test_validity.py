"""Validity, on real sandboxes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from factory.core.blobs import BlobStore, MemoryBlobs
from factory.core.digest import digest_of
from factory.core.errors import NotFound, SandboxError, SandboxLost
from factory.core.task import EnvironmentSpec, Mount, Task
from filters.validity import ValidityConfig, check_validity, check_validity_many
from generators.database.generator import DatabaseGenerator
from generators.terminal.generator import TerminalGenerator
from sandboxes.contract import Backend
from tests.factory.agent.samples import Faulty, FaultySandbox, tree_verifier
from tests.factory.agent.samples import task as sample
from tests.filters.tasks import checked_by, solved_by


def written(blobs: MemoryBlobs, *commands: str, **limits: int) -> Task:
    """A task whose goal is `a.txt` with one line, solved by `commands`."""
    wanted = tree_verifier(blobs, {"a.txt": b"hello\n"})
    made = sample(blobs, files={"a.txt": "nothing\n"}, tools=("bash", "submit"), verifier=wanted, held_out=wanted, **limits)
    return replace(made, solution=solved_by(blobs, *commands))


def test_generated_tasks_are_valid(backend: Backend, blobs: MemoryBlobs) -> None:
    tasks = [
        one.task
        for generator in (TerminalGenerator(), DatabaseGenerator())
        for one in generator.generate(blobs, seed=5, start=0, count=4)
    ]
    judged = check_validity_many(tasks, backend=backend, blobs=blobs)
    assert [one.task for one in judged] == [task.digest for task in tasks]
    for task, one in zip(tasks, judged, strict=True):
        assert one.evidence is not None and one.evidence.passed and one.evidence.filter == "validity", one
        data = json.loads(json.dumps(one.evidence.data, allow_nan=False))
        assert data["gold_passed"] == 3 and data["masked"] == 0 and data["end_trees"] == 1 and data["held_out"] is True
        assert [run["start"] for run in (*data["gold"], data["no_op"])] == [task.environment.files] * 4
        assert data["no_op"]["end"] == task.environment.files != data["gold"][0]["end"]
        assert data["no_op"]["progress"] < data["gold"][0]["progress"] == 1.0
        assert data["image"] == backend.resolve(task.environment.image).digest
        assert all(run["wall_s"] >= run["verify_s"] > 0 for run in data["gold"])
        bundles = [task.verifier.bundle, task.held_out.bundle] if task.held_out else []
        for run in (*data["gold"], data["no_op"]):
            assert [found["verifier"] for found in run["verifiers"]] == bundles
            assert all(found["wall_s"] > 0 and found["cpu_s"] > 0 for found in run["verifiers"])
        assert all({*found["checks"]} == {"passed"} for run in data["gold"] for found in run["verifiers"])
        assert all({*found["checks"]} - {"passed"} for found in data["no_op"]["verifiers"])
        assert data["no_op"]["use"] is None
        used = [run["use"] for run in data["gold"]]
        assert all(use["wall_s"] > 0 and use["cpu_s"] is not None and use["disk_bytes"] is not None for use in used)
        assert all(use["processes"] >= 2 and use["memory_bytes"] > 0 for use in used if use["processes"] is not None)


def test_a_solution_that_does_not_solve(backend: Backend, blobs: MemoryBlobs) -> None:
    found = check_validity(written(blobs, "echo hallo > a.txt"), backend=backend, blobs=blobs)
    assert not found.passed and found.reason.startswith("run 1 of the reference solution does not pass: ")
    assert len(found.data["gold"]) == 1 and found.data["gold_passed"] == 0  # type: ignore[arg-type]


def test_a_task_that_doing_nothing_solves(backend: Backend, blobs: MemoryBlobs) -> None:
    wanted = tree_verifier(blobs, {"a.txt": b"nothing\n"})
    for verifier, held_out in ((wanted, None), (tree_verifier(blobs, {"b": b""}), wanted)):
        made = replace(written(blobs, "echo hello > a.txt"), verifier=verifier, held_out=held_out)
        found = check_validity(made, backend=backend, blobs=blobs)
        assert not found.passed and found.reason == "doing nothing passes a verifier" and found.data["gold"] == []


def test_the_held_out_verifier_counts(backend: Backend, blobs: MemoryBlobs) -> None:
    made = replace(written(blobs, "echo hello > a.txt"), held_out=tree_verifier(blobs, {"other.txt": b"hello\n"}))
    found = check_validity(made, backend=backend, blobs=blobs)
    assert not found.passed and found.data["gold"][0]["passed"] is True  # type: ignore[index]
    assert found.data["gold"][0]["held_out_passed"] is False  # type: ignore[index]


def test_no_held_out_verifier_is_said(backend: Backend, blobs: MemoryBlobs) -> None:
    found = check_validity(replace(written(blobs, "echo hello > a.txt"), held_out=None), backend=backend, blobs=blobs)
    assert found.passed and found.data["held_out"] is False


def test_a_solution_that_does_not_fit_its_limits(backend: Backend, blobs: MemoryBlobs) -> None:
    found = check_validity(written(blobs, "true", "echo hello > a.txt", turns=2), backend=backend, blobs=blobs)
    assert not found.passed and found.reason == "run 1 of the reference solution ended by turn limit"


def test_results_that_differ_between_runs_are_shown(backend: Backend, blobs: MemoryBlobs) -> None:
    """The verifier looks at one file only, so another of random content passes; the trees that differ are counted."""
    source = "def check(spec, submission, bundle, scratch):\n    text = open(submission + '/a.txt').read()\n"
    source += "    return [{'name': 'a', 'state': 'passed' if text == 'hello\\n' else 'failed', 'detail': ''}]\n"
    made = written(blobs, "echo hello > a.txt; echo $RANDOM$RANDOM$RANDOM > b.txt")
    found = check_validity(replace(made, verifier=checked_by(blobs, source), held_out=None), backend=backend, blobs=blobs)
    assert found.passed and found.data["end_trees"] == 3


class Drifting(Faulty):
    """Every episode's environment has another hash seed, counted from 1; the no-op never opens one."""

    def open(self, spec: EnvironmentSpec, blobs: BlobStore, mounts: tuple[Mount, ...] = ()) -> FaultySandbox:
        episodes = 1 + sum(not sandbox.verifies for sandbox in self.opened)
        return super().open(spec if mounts else replace(spec, hash_seed=episodes), blobs, mounts)


@pytest.mark.parametrize("good_runs", [1, 2])
def test_a_solution_that_passes_only_sometimes(backend: Backend, blobs: MemoryBlobs, good_runs: int) -> None:
    made = written(blobs, f"[ $PYTHONHASHSEED -gt {good_runs} ] || echo hello > a.txt")
    found = check_validity(made, backend=Drifting(backend), blobs=blobs)
    assert not found.passed and found.data["gold_passed"] == good_runs
    assert found.reason.startswith(f"run {good_runs + 1} of the reference solution does not pass")


def test_masked_runs_are_repeated_and_reported(backend: Backend, blobs: MemoryBlobs) -> None:
    faulty = Faulty(backend, open=[SandboxLost("gone"), None, SandboxError("busy"), SandboxError("busy")])
    found = check_validity(written(blobs, "echo hello > a.txt"), backend=faulty, blobs=blobs)
    assert found.passed and found.data["masked"] == 3
    assert [len(run["masked"]) for run in found.data["gold"]] == [1, 2, 0]  # type: ignore[attr-defined]
    assert "SandboxLost: gone" in found.data["gold"][0]["masked"][0]  # type: ignore[index]


def test_a_task_whose_runs_stay_masked_is_not_judged(backend: Backend, blobs: MemoryBlobs) -> None:
    made = written(blobs, "echo hello > a.txt")
    faults: list[Exception | None] = [SandboxLost("gone")] * 3
    with pytest.raises(SandboxError, match="not judged, 3 runs were masked"):
        check_validity(made, backend=Faulty(backend, open=list(faults)), blobs=blobs)
    config = ValidityConfig(workers=1)
    lost, fine = check_validity_many([made, made], backend=Faulty(backend, open=faults), blobs=blobs, config=config)
    assert lost.evidence is None and "SandboxLost: gone" in lost.fault
    assert fine.evidence is not None and fine.evidence.passed and fine.fault == ""


def test_a_task_whose_image_can_not_be_had_is_not_judged(backend: Backend, blobs: MemoryBlobs) -> None:
    made = written(blobs, "echo hello > a.txt")
    with pytest.raises(SandboxError, match="unknown image 'ruby-3'"):
        check_validity(replace(made, environment=replace(made.environment, image="ruby-3")), backend=backend, blobs=blobs)


def test_a_lost_solution_is_not_a_verdict(backend: Backend, blobs: MemoryBlobs) -> None:
    made = replace(written(blobs, "true"), solution=digest_of("nowhere"))
    with pytest.raises(NotFound):
        check_validity(made, backend=backend, blobs=blobs)
