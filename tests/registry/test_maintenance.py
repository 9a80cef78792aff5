from __future__ import annotations

import os
from collections.abc import Callable

from factory.core.action import Action
from factory.core.blobs import put_json
from factory.core.demonstration import Demonstration
from factory.core.files import FileTree
from registry.store import Registry
from tests.registry.material import VALID, candidate, trajectory


def _age(registry: Registry, seconds: float) -> None:
    for digest in registry.blobs.digests():
        path = registry.blobs.path(digest)
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - seconds))


def test_a_sound_store_has_no_problems(registry: Registry) -> None:
    digests = [registered.digest for registered in registry.register_many([candidate(registry.blobs, n) for n in range(3)])]
    registry.seal_split("main", dict.fromkeys(digests, "train"))
    registry.add_trajectories([trajectory(digests[0])], purpose="train")
    verified = registry.verify()
    # Three registrations, a seal and the trajectories. Per task: manifest, text, two trees, note, verifier and solution.
    # Once: shared.txt and the Parquet blob.
    assert (verified.tasks, verified.audit_entries, verified.blobs, verified.problems) == (3, 5, 3 * 7 + 2, ())


def test_what_is_missing_or_damaged_is_named(registry: Registry) -> None:
    one, two = candidate(registry.blobs, 1), candidate(registry.blobs, 2)
    registry.register_many([one, two])
    registry.add_trajectories([trajectory(one.task.digest)], purpose="train")
    registry.blobs.discard(one.task.solution)
    registry.blobs.discard(registry.trajectories()[0].blob)
    path = registry.blobs.path(two.task.digest)
    path.chmod(0o644)
    path.write_bytes(b"other")
    problems = "\n".join(registry.verify().problems)
    assert f"task {one.task.digest}: blob {one.task.solution} is not stored" in problems
    assert f"blob {two.task.digest} is damaged" in problems
    assert f"trajectories: blob {registry.trajectories()[0].blob} is not stored" in problems


def test_a_leak_made_past_every_guard_is_seen(registry: Registry, raw: Callable[[str], None]) -> None:
    if not registry._database.embedded:
        raw("DROP TRIGGER claim_split_tasks ON split_tasks")
    else:
        raw("DROP TRIGGER claim_split_tasks")
    one = registry.register(candidate(registry.blobs, 1))
    registry.seal_split("main", {one.digest: "train"})
    assert registry.verify().problems == (
        "trigger claim_split_tasks on split_tasks: missing",
        f"split main: task {one.digest} is in train but its key signature:1 belongs to no part",
        f"split main: task {one.digest} is in train but its key slots:1 belongs to no part",
    )


def test_collection_takes_only_old_blobs_that_nothing_names(registry: Registry) -> None:
    digest = registry.register(candidate(registry.blobs)).digest
    registry.withdraw(digest, "licence")
    left = FileTree.of(registry.blobs, {"left.txt": "what an episode left"})
    kept = registry.blobs.put(b"mentioned in evidence")
    ran = trajectory(digest)
    verdict = ran.outcome.verdict
    assert verdict is not None
    object.__setattr__(verdict, "end", left.save(registry.blobs))
    registry.add_trajectories([ran], purpose="train")
    registry.add_evidence(digest, type(VALID)(**{**vars(VALID), "data": {"log": [kept]}}))
    stray = FileTree.of(registry.blobs, {"stray.txt": "an abandoned candidate"})
    strays = {stray.save(registry.blobs), stray["stray.txt"].content}
    before = set(registry.blobs.digests())
    assert registry.gc().removed == 0, "everything is fresh"
    _age(registry, 100_000)
    fresh = put_json(registry.blobs, Demonstration((Action("submit"),)).manifest())
    leftover = registry.blobs.root / "tmp" / "1-1-dead"
    leftover.write_bytes(b"half")
    os.utime(leftover, (0, 0))
    dry = registry.gc(dry_run=True)
    assert (dry.removed, dry.kept) == (2, len(before) - 1)
    assert set(registry.blobs.digests()) == before | {fresh}
    done = registry.gc()
    assert (done.removed, done.bytes, done.leftovers) == (2, dry.bytes, 1)
    assert set(registry.blobs.digests()) == (before - strays) | {fresh}
    assert registry.verify().problems == ()
    assert registry.candidate(digest) == candidate(registry.blobs)


def test_a_blob_put_again_is_not_collected(registry: Registry) -> None:
    digest = registry.blobs.put(b"in use again")
    _age(registry, 100_000)
    registry.blobs.put(b"in use again")
    assert registry.gc().removed == 0
    assert registry.blobs.has(digest)


def test_where_a_manifest_cannot_be_read_everything_is_kept_and_the_task_named(registry: Registry) -> None:
    one, two = candidate(registry.blobs, 1), candidate(registry.blobs, 2)
    registry.register_many([one, two])
    registry.blobs.put(b"what an abandoned candidate left")
    _age(registry, 100_000)
    assert registry.gc(dry_run=True).removed == 1
    registry.blobs.discard(one.task.environment.files)
    path = registry.blobs.path(two.task.digest)
    path.unlink()
    path.mkdir()
    kept = registry.gc()
    assert (kept.removed, len(kept.unreadable)) == (0, 2)
    told = "\n".join(kept.unreadable)
    assert f"task {one.task.digest}: no blob {one.task.environment.files}" in told
    assert f"task {two.task.digest}: blob {two.task.digest} cannot be read" in told
    problems = "\n".join(registry.verify().problems)
    assert one.task.digest in problems and two.task.digest in problems
    assert len(registry.query()) == 2
