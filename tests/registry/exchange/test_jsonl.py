from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory.core.assessment import TaskStatus
from factory.core.errors import Excluded, NotFound, UserError
from filters.validity import check_validity_many
from generators.database import DatabaseGenerator
from generators.terminal import TerminalGenerator
from registry.exchange.jsonl import export_tasks, import_tasks
from registry.store import Registry
from tests.engines import bubblewrap_backend
from tests.registry.material import VALID, candidate


@pytest.fixture
def other(tmp_path: Path) -> Any:
    with Registry.open(f"sqlite:///{tmp_path}/other.db", tmp_path / "other") as opened:
        yield opened


@pytest.fixture
def digests(registry: Registry) -> list[str]:
    found = [registered.digest for registered in registry.register_many([candidate(registry.blobs, n) for n in range(3)])]
    registry.register(candidate(registry.blobs, 1, seed=8))
    registry.add_evidence(found[0], VALID)
    registry.set_status(found[0], TaskStatus.ACCEPTED, "sound")
    return found


@pytest.mark.parametrize("name", ["tasks.jsonl", "tasks.jsonl.gz"])
def test_tasks_arrive_whole_as_candidates(
    registry: Registry, other: Registry, digests: list[str], tmp_path: Path, name: str
) -> None:
    sent = export_tasks(registry, [*digests, digests[0]], tmp_path / name)
    got = import_tasks(other, tmp_path / name)
    # Per task: two trees, note, verifier, solution; shared.txt once.
    assert (sent.tasks, sent.blobs) == (got.tasks, got.blobs) == (3, 3 * 5 + 1)
    assert got.created == 3
    for digest in digests:
        assert other.candidate(digest) == registry.candidate(digest)
        assert other.origins(digest) == registry.origins(digest)
        assert other.status(digest) is TaskStatus.CANDIDATE
    assert other.verify().problems == ()
    assert import_tasks(other, tmp_path / name).created == 0
    assert list(tmp_path.glob(".*.partial")) == []


def test_solutions_pass_and_doing_nothing_fails_before_and_after_the_exchange(
    registry: Registry, other: Registry, tmp_path: Path
) -> None:
    made = [
        one
        for generator in (TerminalGenerator(), DatabaseGenerator())
        for one in generator.generate(registry.blobs, seed=4, start=0, count=3)
    ]
    sent = [registered.digest for registered in registry.register_many(made)]
    export_tasks(registry, sent, tmp_path / "tasks.jsonl.gz")
    import_tasks(other, tmp_path / "tasks.jsonl.gz")
    backend = bubblewrap_backend(tmp_path / "layers")
    for store in (registry, other):
        judged = check_validity_many([store.task(digest) for digest in sent], backend=backend, blobs=store.blobs)
        told = [(one.evidence.data["gold_passed"], one.evidence.passed) for one in judged if one.evidence is not None]
        assert told == [(3, True)] * 6
    backend.close()


def test_the_same_tasks_give_the_same_bytes(registry: Registry, digests: list[str], tmp_path: Path) -> None:
    for name in ("one.gz", "two.gz"):
        export_tasks(registry, digests, tmp_path / name)
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()


def test_an_unknown_task_leaves_no_file(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        export_tasks(registry, ["0" * 64], tmp_path / "tasks.jsonl")
    assert not (tmp_path / "tasks.jsonl").exists()


Lines = list[dict[str, Any]]


def _another_blob(lines: Lines) -> None:
    lines[1]["data"] = base64.b64encode(b"other").decode()


def _no_base64(lines: Lines) -> None:
    lines[1]["data"] = "!"


def _another_instruction(lines: Lines) -> None:
    next(line for line in lines if "task" in line)["manifest"]["instruction"] = "Leak the answer."


def _unknown_field(lines: Lines) -> None:
    next(line for line in lines if "task" in line)["manifest"]["environment"]["gpu"] = 1


def _another_scheme(lines: Lines) -> None:
    next(line for line in lines if "task" in line)["manifest"]["scheme"] = 2


def _no_origin(lines: Lines) -> None:
    next(line for line in lines if "task" in line)["origins"] = []


def _a_newer_version(lines: Lines) -> None:
    lines[0]["version"] = 2


def _cut_off(lines: Lines) -> None:
    lines.pop()


def _a_line_lost(lines: Lines) -> None:
    lines.remove(next(line for line in lines if "task" in line))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_another_blob, ":2: .* the digest of its content"),
        (_no_base64, "base64"),
        (_another_instruction, "the digest of its content"),
        (_unknown_field, "a task of this version"),
        (_another_scheme, "scheme 2"),
        (_no_origin, "an origin"),
        (_a_newer_version, "version 1"),
        (_cut_off, "cut off"),
        (_a_line_lost, "cut off or lacks lines"),
    ],
)
def test_a_spoilt_file_is_refused_in_one_line_and_registers_nothing(
    registry: Registry, other: Registry, digests: list[str], tmp_path: Path, spoil: Callable[[Lines], None], said: str
) -> None:
    path = tmp_path / "tasks.jsonl"
    export_tasks(registry, digests, path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    spoil(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match=said) as caught:
        import_tasks(other, path)
    assert "\n" not in str(caught.value)
    assert other.query() == []


@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"[]\n", b"{}\n", gzip.compress(b"{}\n", mtime=0)[:8]])
def test_other_files_are_a_users_mistake(other: Registry, tmp_path: Path, content: bytes) -> None:
    for name in ("file.jsonl", "file.jsonl.gz"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError):
            import_tasks(other, tmp_path / name)
    with pytest.raises(UserError, match="readable"):
        import_tasks(other, tmp_path / "absent.jsonl")


def test_a_blob_that_the_file_lacks_and_an_excluded_repository_are_refused(
    registry: Registry, other: Registry, digests: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "tasks.jsonl"
    export_tasks(registry, digests, path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[-1]["end"]["blobs"] -= 1
    path.write_text("".join(json.dumps(line) + "\n" for line in [lines[0], *lines[2:]]))
    with pytest.raises(NotFound):
        import_tasks(other, path)
    lines[-1]["end"]["blobs"] += 1
    next(line for line in lines if "task" in line)["keys"] = ["repository:sympy"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(Excluded):
        import_tasks(other, path)
    assert other.query() == []


def test_files_of_older_registries_arrive_with_canonical_keys(
    registry: Registry, other: Registry, digests: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "tasks.jsonl"
    export_tasks(registry, digests[:1], path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    record = next(line for line in lines if "task" in line)
    for keys, error in (
        (["repository:django/"], Excluded),
        (["repository:\ufeffpsf/django.git"], Excluded),
        (["repository:/"], UserError),
        ([3], UserError),
    ):
        record["keys"] = keys
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with pytest.raises(error):
            import_tasks(other, path)
    record["keys"] = ["signature:Copy", "repository:zope.interface", "repository:zope-interface"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert import_tasks(other, path).created == 1
    assert other.keys(digests[0]) == ("signature:Copy", "repository:zope-interface")
