"""What somebody changes in the database past the registry is named by `verify`, and by `check_split` where it is a split's."""

from __future__ import annotations

import pytest

from factory.core.errors import RegistryError
from registry.store import Registry

from ..material import candidate
from .conftest import Full, Past


def test_a_registry_that_only_the_registry_wrote_is_sound(full: Full) -> None:
    assert full.registry.verify().problems == ()
    assert full.registry.check_split("main") == []


# What is done, and what the one line that tells it (or one of the lines) must hold; {n} is the digest of task n.
TAMPERED = {
    "a rejected look for an accepted task": ("UPDATE tasks SET status = 'rejected' WHERE digest = '{0}'", "status is rejected"),
    "a candidate accepted": ("UPDATE tasks SET status = 'accepted' WHERE digest = '{3}'", "task {3}: its status is accepted"),
    "a withdrawn task back": ("UPDATE tasks SET status = 'accepted' WHERE digest = '{4}'", "task {4}: its status is accepted"),
    "another reason": ("UPDATE tasks SET reason = 'fine' WHERE digest = '{4}'", "task {4}: the reason of its status is 'fine'"),
    "a status event": ("UPDATE status_events SET reason = 'x' WHERE new = 'withdrawn'", "task {4}: its status events are not"),
    "a status event gone": ("DELETE FROM status_events WHERE new = 'withdrawn'", "task {4}: its status events are not"),
    "a task's name": (
        "UPDATE tasks SET name = 'other' WHERE digest = '{0}'",
        'tasks ["{0}"]: not as audit entry 2 recorded it',
    ),
    "a task's text": ("UPDATE tasks SET text = digest WHERE digest = '{0}'", 'tasks ["{0}"]: not as audit entry 2'),
    "a task gone": ("DELETE FROM tasks WHERE digest = '{3}'", 'tasks ["{3}"]: recorded by audit entry 5, and gone'),
    "a family": ("UPDATE task_families SET family = 'easy' WHERE task = '{0}' AND position = 0", "not on the audit trail"),
    "a key": ("DELETE FROM task_keys WHERE key = 'cluster:one'", 'task_keys ["{0}", "cluster:one"]: recorded by'),
    "an origin": ("UPDATE origins SET generator = 'other' WHERE task = '{1}'", "not as audit entry 3"),
    "an origin's manifest": ("UPDATE origins SET manifest = '{{}}' WHERE task = '{1}'", "task {1}: its origin"),
    "an origin that is no JSON": ("UPDATE origins SET manifest = '{{' WHERE task = '{1}'", "task {1}: its origin"),
    "an origin gone": ("DELETE FROM origins WHERE task = '{1}'", "task {1}: its origin"),
    "evidence turned": ("UPDATE evidence SET passed = NOT passed WHERE task = '{0}'", "evidence 1 of task {0}: not as"),
    "evidence measured otherwise": ("UPDATE evidence SET data = '{{}}' WHERE task = '{2}'", "evidence 3 of task {2}: not as"),
    "evidence gone": ("DELETE FROM evidence WHERE task = '{4}'", "evidence 5: recorded by audit entry"),
    "evidence invented": (
        "INSERT INTO evidence (id, task, filter, rule, passed, reason, data, run, created_at) "
        "SELECT 99, task, 'leaks', rule, passed, reason, data, run, created_at FROM evidence WHERE task = '{1}'",
        "evidence 99 of task {1}: not on the audit trail",
    ),
    "an assessment": ("UPDATE assessments SET successes = 4 WHERE task = '{0}'", "assessments 1 of task {0}: not as"),
    "an assessment's state": ("UPDATE assessments SET state = 'mastered' WHERE id = 1", "3 of 8 is not 'mastered'"),
    "an assessment gone": ("DELETE FROM assessments WHERE id = 2", "assessments 2: recorded by audit entry"),
    "a state": ("UPDATE task_states SET state = 'frontier' WHERE task = '{1}'", "task {1}: its state for 'tiny' is 'frontier'"),
    "a state gone": ("DELETE FROM task_states WHERE task = '{0}'", "task {0}: it has no state for 'tiny'"),
    "a rollout": ("UPDATE trajectories SET solved = NOT solved WHERE member = 1", "trajectories 2 of task {0}: not as"),
    "a rollout gone": ("DELETE FROM trajectories WHERE member = 0", "trajectories 1: recorded by audit entry"),
    "a policy's folder": ("UPDATE policies SET path = '/elsewhere' WHERE step = 1", "policies 2: not as audit entry"),
    "lineage": (
        "DELETE FROM lineage WHERE relation = 'trained on'",
        'lineage ["' + "b" * 64 + '", "{0}", "trained on"]: recorded',
    ),
    "an alias": (
        "UPDATE aliases SET digest = '{0}' WHERE name = 'best'",
        "alias 'best': it points at {0}, but its log says {1}",
    ),
    "an alias's log": ("DELETE FROM alias_log WHERE old IS NULL", "alias 'best': its log is not that of the audit trail"),
    "an exclusion gone": ("DELETE FROM excluded_repositories WHERE name = 'my-eval'", "'my-eval': it is not excluded any more"),
    "a first exclusion gone": (
        "DELETE FROM excluded_repositories WHERE name = 'django'",
        "'django': it is not excluded any more",
    ),
    "an exclusion invented": ("INSERT INTO excluded_repositories VALUES ('rival', '', '')", "'rival': not on the audit trail"),
    "a run": ("UPDATE runs SET config = '" + "d" * 64 + "'", "run nightly/2026-01-02: not as"),
    "an entry that is no JSON": ("UPDATE audit SET data = '{{' WHERE seq = 3", "broken at entry 3 (register {1})"),
}


@pytest.mark.parametrize(("statement", "line"), TAMPERED.values(), ids=list(TAMPERED))
def test_what_was_changed_is_named(full: Full, past: Past, statement: str, line: str) -> None:
    past(statement.format(*full.digests))
    problems = full.registry.verify().problems
    assert any(line.format(*full.digests) in problem for problem in problems), problems


SPLITS = {
    "a holdout's task gone": ("DELETE FROM split_tasks WHERE task = '{1}'", "task {1} is not in it any more"),
    "a holdout grown": (
        "INSERT INTO split_tasks VALUES ('main', '{4}', 'holdout-families')",
        "task {4} is in holdout-families, which the audit trail does not say",
    ),
    "train grown": ("INSERT INTO split_tasks VALUES ('main', '{4}', 'train')", "task {4} is in train, which the audit trail"),
    "train shrunk": ("DELETE FROM split_tasks WHERE task = '{3}'", "task {3} joined train, and is not there"),
    "a task in another part": (
        "UPDATE split_tasks SET part = 'train' WHERE task = '{1}'",
        "its tasks are not those that were sealed",
    ),
    "another assignment": ("UPDATE splits SET digest = '" + "e" * 64 + "'", "but the audit trail sealed"),
    "open again": ("UPDATE splits SET sealed = NOT sealed", "it is not sealed any more"),
    "a key claimed": (
        "INSERT INTO split_keys VALUES ('main', 'signature:77', 'holdout-families')",
        "the key signature:77 belongs to",
    ),
    "a key of a holdout freed": ("DELETE FROM split_keys WHERE part <> 'train'", "its key signature:1 belongs to no part"),
}


@pytest.mark.parametrize(("statement", "line"), SPLITS.values(), ids=list(SPLITS))
def test_what_was_changed_in_a_split_is_named_by_both(full: Full, past: Past, statement: str, line: str) -> None:
    past(statement.format(*full.digests))
    problems = full.registry.check_split("main")
    assert any(line.format(*full.digests) in problem for problem in problems), problems
    assert {f"split main: {problem}" for problem in problems} <= set(full.registry.verify().problems)


def test_a_removed_split_is_named(full: Full, past: Past) -> None:
    past("DELETE FROM split_tasks", "DELETE FROM split_keys", "DELETE FROM splits")
    assert "split main: sealed by the audit trail, and gone" in full.registry.verify().problems


def test_a_trail_cut_short_leaves_rows_that_it_does_not_cover(full: Full, past: Past) -> None:
    last = full.registry.audit_log(action="add evidence")[0]
    past(f"DELETE FROM audit WHERE seq >= {last.seq}")
    assert full.registry.verify_audit() == last.seq - 1, "the chain that is left is whole"
    assert f"evidence 1 of task {full.digests[0]}: not on the audit trail" in full.registry.verify().problems


def test_a_noted_head_must_be_on_the_trail(full: Full, past: Past) -> None:
    noted = full.registry.verify().head
    full.registry.exclude("other-eval", "ours")
    assert full.registry.verify(noted).problems == ()
    # The whole act undone, on the trail as well: nothing contradicts it but the head.
    past("DELETE FROM audit WHERE action = 'exclude'", "DELETE FROM excluded_repositories WHERE reason = 'ours'")
    assert full.registry.verify().problems == ()
    assert full.registry.verify(noted).problems == (
        f"the audit trail does not contain the noted head {noted}: entries are missing",
    )


def test_rows_cannot_be_adopted_later(full: Full) -> None:
    from registry import audit

    with full.registry._database.write() as connection:
        audit.record(connection, [("adopt rows", "evidence", {"rows": {"evidence": {"99": "f" * 64}}})])
    problems = full.registry.verify().problems
    assert problems[0].endswith("adopts rows after the trail began to cover them")
    assert any(problem.startswith("evidence 99: recorded by audit entry") for problem in problems)


TRIGGERS = {
    "missing": {"sqlite": ["DROP TRIGGER guard_{t}"], "postgresql": ["DROP TRIGGER guard_{t} ON evidence"]},
    "altered or disabled": {
        "sqlite": [
            "DROP TRIGGER guard_{t}",
            "CREATE TRIGGER guard_{t} BEFORE DELETE ON evidence FOR EACH ROW WHEN 1 = 0 BEGIN SELECT RAISE(ABORT, 'no'); END",
        ],
        "postgresql": ["ALTER TABLE evidence DISABLE TRIGGER guard_{t}"],
    },
}


def _guard(registry: Registry) -> str:
    """The trigger that refuses to delete evidence, without `guard_`."""
    from registry.migrations.versions.r0002_guards import REFUSALS

    number = next(at for at, one in enumerate(REFUSALS) if one[:2] == ("evidence", "DELETE"))
    return f"{number:02d}_evidence_delete"


@pytest.mark.parametrize("what", TRIGGERS)
def test_a_trigger_that_is_not_the_registrys_is_named(full: Full, raw: Past, what: str) -> None:
    name = _guard(full.registry)
    for statement in TRIGGERS[what]["sqlite" if full.registry._database.embedded else "postgresql"]:
        raw(statement.format(t=name))
    assert full.registry.verify().problems == (f"trigger guard_{name} on evidence: {what}",)
    assert full.registry.check_split("main") == []


def test_a_changed_function_of_a_trigger_is_named(full: Full, raw: Past) -> None:
    if full.registry._database.embedded:
        pytest.skip("functions are PostgreSQL's")
    name = _guard(full.registry)
    raw(f"CREATE OR REPLACE FUNCTION guard_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$")
    assert full.registry.verify().problems == (f"trigger guard_{name} on evidence: altered or disabled",)


def test_a_trigger_of_a_split_is_named_by_its_check(full: Full, raw: Past) -> None:
    raw("DROP TRIGGER claim_split_tasks" + ("" if full.registry._database.embedded else " ON split_tasks"))
    assert full.registry.check_split("main") == ["trigger claim_split_tasks on split_tasks: missing"]


def test_a_trigger_of_somebody_else_is_named(full: Full, raw: Past) -> None:
    if not full.registry._database.embedded:
        pytest.skip("one of SQLite")
    raw("CREATE TRIGGER mine AFTER INSERT ON tasks BEGIN SELECT 1; END")
    assert full.registry.verify().problems == ("trigger mine on tasks: not one of the registry's",)


def test_text_that_is_no_json_is_one_clear_error(full: Full, past: Past) -> None:
    past("UPDATE evidence SET data = '{'")
    with pytest.raises(RegistryError, match="where JSON must be"):
        full.registry.evidence(full.digests[0])
    assert full.registry.gc(dry_run=True).unreadable == ()


def test_registering_known_content_again_writes_nothing(full: Full) -> None:
    entries = full.registry.verify_audit()
    full.registry.register(candidate(full.registry.blobs, 0))
    full.registry.add_evidence_many([])
    full.registry.add_assessments([])
    full.registry.link([])
    assert full.registry.verify_audit() == entries
