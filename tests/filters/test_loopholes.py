"""Loophole probes, on real sandboxes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import VerifierError
from factory.core.files import FileTree
from factory.core.task import Task, TaskKind, VerifierSpec
from filters.loopholes import PROBES, probe, probe_many
from generators.database.generator import DatabaseGenerator
from generators.terminal.generator import TerminalGenerator
from sandboxes.contract import Backend
from tests.factory.agent.samples import Faulty, tree_verifier
from tests.factory.agent.samples import task as sample
from tests.filters.tasks import checked_by

NEVER = {"never.txt": b"never\n"}


def project(blobs: MemoryBlobs, verifier: VerifierSpec) -> Task:
    files: dict[str, bytes | str] = {"pkg/__init__.py": "def f():\n    return 1\n", "tests/test_f.py": "def test_f(): pass\n"}
    return replace(sample(blobs, files=files, verifier=verifier), kind=TaskKind.REPOSITORY)


def test_generated_tasks_have_none(backend: Backend, blobs: MemoryBlobs) -> None:
    tasks = [
        one.task
        for generator in (TerminalGenerator(), DatabaseGenerator())
        for one in generator.generate(blobs, seed=6, start=0, count=4)
    ]
    judged = probe_many(tasks, backend=backend, blobs=blobs)
    for task, one in zip(tasks, judged, strict=True):
        assert one.evidence is not None and one.evidence.passed, one
        assert set(one.evidence.data["probes"]) == {"doing nothing", *(known.name for known in PROBES[task.kind])}  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [({}, "empty workspace passes a verifier"), ({"a.txt": b"nothing\n"}, "doing nothing passes a verifier")],
)
def test_a_verifier_that_nothing_satisfies(backend: Backend, blobs: MemoryBlobs, wanted: dict[str, bytes], reason: str) -> None:
    made = sample(blobs, files={"a.txt": "nothing\n"}, verifier=tree_verifier(blobs, wanted))
    found = probe(made, backend=backend, blobs=blobs)
    assert not found.passed and found.reason == reason
    hidden = replace(made, verifier=tree_verifier(blobs, NEVER), held_out=made.verifier)
    assert probe(hidden, backend=backend, blobs=blobs).reason == reason


def test_a_verifier_that_believes_a_forged_file(backend: Backend, blobs: MemoryBlobs) -> None:
    source = "import os\ndef check(spec, submission, bundle, scratch):\n"
    source += "    found = os.path.exists(submission + '/reward.json')\n"
    source += "    return [{'name': 'reward', 'state': 'passed' if found else 'failed', 'detail': ''}]\n"
    made = sample(blobs, files={"a.txt": ""}, verifier=checked_by(blobs, source))
    found = probe(made, backend=backend, blobs=blobs)
    assert not found.passed and found.reason == "garbage and forged verdicts passes a verifier"


def test_a_verifier_that_garbage_can_mask(backend: Backend, blobs: MemoryBlobs) -> None:
    source = "def check(spec, submission, bundle, scratch):\n    text = open(submission + '/a.txt', encoding='utf-8').read()\n"
    source += "    return [{'name': 'text', 'state': 'failed', 'detail': text}]\n"
    made = sample(blobs, files={"a.txt": "text\n"}, verifier=checked_by(blobs, source))
    found = probe(made, backend=backend, blobs=blobs)
    assert not found.passed and "garbage and forged verdicts masks its episode" in found.reason
    assert "masked" in found.data["probes"]["garbage and forged verdicts"]  # type: ignore[index]


def test_failures_of_the_machine_are_no_verdict(backend: Backend, blobs: MemoryBlobs) -> None:
    made = sample(blobs, files={"a.txt": ""}, verifier=tree_verifier(blobs, NEVER))
    faults: list[Exception | None] = [VerifierError("lost")] * 2
    assert probe(made, backend=Faulty(backend, verify=list(faults)), blobs=blobs).passed
    with pytest.raises(VerifierError):
        probe(made, backend=Faulty(backend, verify=[VerifierError("lost")] * 100), blobs=blobs)
    [judged] = probe_many([made], backend=Faulty(backend, verify=[VerifierError("lost")] * 100), blobs=blobs)
    assert judged.evidence is None and "lost" in judged.fault


COUNTING = """
import os
def check(spec, submission, bundle, scratch):
    states = [("always", False), ("gets further", CONDITION)]
    return [{"name": name, "state": "passed" if state else "failed", "detail": ""} for name, state in states]
"""


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ("not os.path.exists(submission + '/tests/test_f.py')", "tests deleted"),
        (
            "os.path.exists(submission + '/pkg/conftest.py') and os.path.exists(submission + '/sitecustomize.py')",
            "hooks planted",
        ),
    ],
)
def test_an_attack_that_gets_further_than_nothing(backend: Backend, blobs: MemoryBlobs, condition: str, name: str) -> None:
    made = project(blobs, checked_by(blobs, COUNTING.replace("CONDITION", condition)))
    found = probe(made, backend=backend, blobs=blobs)
    assert not found.passed and f"{name} gets further than doing nothing" in found.reason


def test_what_the_probes_of_a_project_hand_in(blobs: MemoryBlobs) -> None:
    files: dict[str, bytes | str] = {
        "pkg/a.py": "x = 1\n",
        "tests/test_a.py": "",
        "test_b.py": "",
        "conftest.py": "own",
        "README": "r",
    }
    tree = FileTree.of(blobs, files)
    made = {one.name: one.make(tree, blobs) for one in PROBES[TaskKind.REPOSITORY]}
    assert len(made["empty workspace"]) == 0
    broken = made["syntax error in the source"]
    with pytest.raises(SyntaxError):
        compile(broken.read(blobs, "pkg/a.py"), "a.py", "exec")
    assert broken["tests/test_a.py"] == tree["tests/test_a.py"] and broken["README"] == tree["README"]
    assert set(made["tests deleted"]) == {"pkg/a.py", "conftest.py", "README"}
    hooks = made["hooks planted"]
    assert {"conftest.py", "pkg/conftest.py", "sitecustomize.py", "pytest.ini", "pytest.py"} <= set(hooks)
    assert hooks.read(blobs, "conftest.py") != b"own"
    garbage = made["garbage and forged verdicts"]
    assert {"reward.txt", "reward.json"} <= set(garbage)
    with pytest.raises(UnicodeDecodeError):
        garbage.read(blobs, "README").decode()
    assert all(garbage[path].size == len(garbage.read(blobs, path)) for path in garbage)
