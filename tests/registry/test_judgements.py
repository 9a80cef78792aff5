from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy.exc import IntegrityError

from factory.core.assessment import Assessment, Evidence, TaskState, TaskStatus
from factory.core.errors import Conflict, NotFound, RegistryError
from factory.core.policy import PolicyVersion
from registry.store import Registry
from tests.registry.material import POLICY, VALID, assessment, candidate

Raw = Callable[[str], None]
C, A, R, Q, W = (TaskStatus(name) for name in ("candidate", "accepted", "rejected", "quarantined", "withdrawn"))

# Written out by hand from the meaning of the words: what may follow what.
LEGAL = {(C, A), (C, R), (C, Q), (C, W), (A, Q), (A, W), (Q, A), (Q, R), (Q, W), (R, C), (R, W)}
WAY = {C: (), A: (A,), R: (R,), Q: (Q,), W: (W,)}


@pytest.fixture
def digest(registry: Registry) -> str:
    return registry.register(candidate(registry.blobs)).digest


@pytest.mark.parametrize("old", list(TaskStatus))
def test_only_legal_moves_are_made(registry: Registry, digest: str, old: TaskStatus) -> None:
    registry.add_evidence(digest, VALID)
    for step in WAY[old]:
        registry.set_status(digest, step, "on the way")
    for new in TaskStatus:
        if new is old:
            assert not registry.set_status(digest, new, "again")
        elif (old, new) not in LEGAL:
            with pytest.raises(Conflict, match=f"is {old} and cannot become {new}"):
                registry.set_status(digest, new, "no")
    assert registry.status(digest) is old


@pytest.mark.parametrize(("old", "new"), sorted(LEGAL))
def test_every_legal_move_can_be_made_and_leaves_an_event(
    registry: Registry, digest: str, old: TaskStatus, new: TaskStatus
) -> None:
    registry.add_evidence(digest, VALID)
    for step in WAY[old]:
        registry.set_status(digest, step, "on the way")
    assert registry.set_status(digest, new, "because")
    last = registry.status_log(digest)[-1]
    assert (last.old, last.new, last.reason) == (old, new, "because")
    assert registry.row(digest).reason == "because"


def test_acceptance_needs_validity_evidence_whose_latest_word_is_passed(registry: Registry, digest: str) -> None:
    with pytest.raises(RegistryError, match="it has none"):
        registry.set_status(digest, A, "")
    registry.add_evidence(digest, VALID)
    registry.add_evidence(digest, replace(VALID, passed=False, reason="flaky", data={"gold": [True, False, True]}))
    with pytest.raises(RegistryError, match="is failed"):
        registry.set_status(digest, A, "")
    registry.add_evidence(digest, VALID)
    assert registry.set_status(digest, A, "")


@pytest.mark.parametrize("known", ["none", "failed since", "of another filter", "of another task"])
def test_the_database_accepts_on_passed_validity_evidence_alone(registry: Registry, digest: str, raw: Raw, known: str) -> None:
    bad = replace(VALID, passed=False, reason="flaky")
    other = registry.register(candidate(registry.blobs, 1)).digest
    held = {
        "none": [],
        "failed since": [(digest, VALID), (digest, bad)],
        "of another filter": [(digest, replace(VALID, filter="loopholes"))],
        "of another task": [(other, VALID)],
    }
    registry.add_evidence_many(held[known])
    with pytest.raises(IntegrityError, match="without passed validity evidence"):
        raw(f"UPDATE tasks SET status = 'accepted' WHERE digest = '{digest}'")
    columns = "kind, name, reason, instruction, text, origin, created_at"
    with pytest.raises(IntegrityError, match="without passed validity evidence"):
        raw(f"INSERT INTO tasks (digest, status, {columns}) SELECT '{'0' * 64}', 'accepted', {columns} FROM tasks")
    assert registry.status(digest) is C
    registry.add_evidence(digest, VALID)
    raw(f"UPDATE tasks SET status = 'accepted' WHERE digest = '{digest}'")
    assert registry.status(digest) is A


def test_an_accepted_task_in_doubt_keeps_its_status_until_it_is_moved(registry: Registry, digest: str, raw: Raw) -> None:
    registry.add_evidence(digest, VALID)
    registry.set_status(digest, A, "")
    registry.add_evidence(digest, replace(VALID, passed=False, reason="flaky"))
    raw("UPDATE tasks SET status = 'accepted', reason = 'still'")
    assert registry.set_status(digest, Q, "flaky")
    with pytest.raises(IntegrityError, match="without passed validity evidence"):
        raw("UPDATE tasks SET status = 'accepted'")


@pytest.mark.parametrize("status", [R, Q, W])
def test_bad_news_needs_a_reason(registry: Registry, digest: str, status: TaskStatus) -> None:
    with pytest.raises(RegistryError, match="without a reason"):
        registry.set_status(digest, status, "  ")


def test_a_refused_move_takes_the_whole_batch_back(registry: Registry, digest: str) -> None:
    other = registry.register(candidate(registry.blobs, 1)).digest
    registry.set_status(other, R, "no")
    with pytest.raises(Conflict):
        registry.set_status_many([(digest, R, "no"), (other, Q, "no")])
    assert registry.status(digest) is C


def test_withdrawal_is_a_tombstone(registry: Registry, digest: str, raw: Raw) -> None:
    assert registry.withdraw(digest, "licence")
    assert not registry.withdraw(digest, "again")
    assert registry.query() == []
    assert [row.reason for row in registry.query(status=W)] == ["licence"]
    assert registry.task(digest).digest == digest
    assert not registry.register(candidate(registry.blobs)).created
    assert registry.status(digest) is W
    with pytest.raises(IntegrityError, match="withdrawn"):
        raw("UPDATE tasks SET status = 'accepted'")


def test_a_status_is_one_of_the_five(registry: Registry, digest: str, raw: Raw) -> None:
    with pytest.raises(IntegrityError, match="ck_tasks_status"):
        raw("UPDATE tasks SET status = 'perhaps'")


def test_evidence_reads_back_and_a_repetition_is_skipped(registry: Registry, digest: str) -> None:
    odd = Evidence(
        filter="contamination",
        rule="Jaccard below 0.7",
        passed=False,
        reason="like\0 a known\ud800 one",
        data={"similarity": 0.75, "pairs": [["a", 1]], "text": "\0 and \ud800", "none": None},
    )
    assert registry.add_evidence(digest, odd)
    assert not registry.add_evidence(digest, replace(odd, data={**odd.data, "pairs": (("a", 1),)}))
    assert registry.add_evidence(digest, VALID)
    assert not registry.add_evidence(digest, odd)
    found = registry.evidence(digest)
    assert [one.filter for one in found] == ["contamination", "validity"]
    assert found[0].data == odd.data
    assert found[0].reason == "like\N{REPLACEMENT CHARACTER} a known? one"
    assert found[1] == VALID


def test_evidence_about_all_tasks_by_filter_word_and_run(registry: Registry, digest: str) -> None:
    other = registry.register(candidate(registry.blobs, 1)).digest
    run = registry.begin_run("nightly", "one", "c" * 64).id
    bad = replace(VALID, passed=False, reason="the gold failed")
    overlap = replace(bad, filter="contamination")
    registry.add_evidence_many([(digest, VALID), (other, bad)])
    registry.add_evidence(other, overlap, run=run)
    assert registry.evidence_of() == [(digest, VALID), (other, bad), (other, overlap)]
    assert registry.evidence_of(passed=False) == [(other, bad), (other, overlap)]
    assert registry.evidence_of(filter="validity", passed=True) == [(digest, VALID)]
    assert registry.evidence_of(run=run) == [(other, overlap)]


def test_evidence_is_json_about_a_known_task(registry: Registry, digest: str) -> None:
    with pytest.raises(NotFound):
        registry.add_evidence("0" * 64, VALID)
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="JSON compliant"):
            registry.add_evidence(digest, replace(VALID, data={"rate": value}))
    with pytest.raises(TypeError):
        registry.add_evidence(digest, replace(VALID, data={"bytes": b""}))
    assert registry.evidence(digest) == []


def test_the_latest_assessment_of_a_line_decides(registry: Registry, digest: str) -> None:
    other = PolicyVersion(line="smollm2", weights="b" * 64)
    registry.add_policy(POLICY, path="/p", format="tiny")
    registry.add_policy(other, path="/q", format="chat")
    assert registry.state(digest, "tiny") is TaskState.UNASSESSED
    for successes, state in [
        (0, TaskState.TOO_HARD),
        (3, TaskState.FRONTIER),
        (8, TaskState.MASTERED),
        (2, TaskState.FRONTIER),
    ]:
        assert registry.add_assessments([assessment(digest, successes)]) == 1
        assert registry.state(digest, "tiny") is state
    registry.add_assessments([assessment(digest, 0, policy=other)])
    assert (registry.state(digest, "tiny"), registry.state(digest, "smollm2")) == (TaskState.FRONTIER, TaskState.TOO_HARD)
    assert [one.successes for one in registry.assessments(digest, "tiny")] == [0, 3, 8, 2]
    assert len(registry.assessments(digest)) == 5
    registry.add_assessments([assessment(digest, 0, rollouts=0)])
    assert registry.state(digest, "tiny") is TaskState.UNASSESSED


def test_assessments_read_back_equal_and_repeats_of_a_run_are_skipped(registry: Registry, digest: str) -> None:
    registry.add_policy(POLICY, path="/p", format="tiny")
    run = registry.begin_run("assess", "2026-11-30", "c" * 64).id
    one = Assessment(
        task=digest,
        line="tiny",
        policy=POLICY.weights,
        successes=1,
        rollouts=3,
        masked=4,
        unparsed=2,
        temperature=0.7,
        image="e" * 64,
        backend="bubblewrap",
    )
    assert registry.add_assessments([one, one], run=run) == 1
    assert registry.add_assessments([one], run=run) == 0
    assert registry.add_assessments([one]) == 1
    assert registry.assessments(digest) == [one, one]


def test_assessments_need_a_known_task_and_policy(registry: Registry, digest: str) -> None:
    with pytest.raises(NotFound, match="policy version"):
        registry.add_assessments([assessment(digest, 1)])
    registry.add_policy(POLICY, path="/p", format="tiny")
    with pytest.raises(NotFound, match="no task"):
        registry.add_assessments([assessment(digest, 1), assessment("0" * 64, 1)])
    with pytest.raises(Conflict):
        registry.add_assessments([assessment(digest, 9)])
    assert registry.assessments(digest) == []
