from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from factory.core.assessment import TaskStatus
from factory.core.digest import digest_of
from factory.core.errors import Excluded, InvalidTask, NotFound, RegistryError, SplitViolation, UserError
from factory.core.files import FileTree
from factory.core.task import Candidate, SplitKeys, Task, TaskKind
from registry.store import Registry
from tests.registry.material import candidate

Raw = Callable[[str], None]


def test_registering_twice_is_one_task_and_it_reads_back_equal(registry: Registry) -> None:
    one = candidate(registry.blobs)
    first, second = registry.register(one), registry.register(one)
    assert (first.created, first.new_origin) == (True, True)
    assert (second.created, second.new_origin) == (False, False)
    assert first.digest == second.digest == one.task.digest
    assert registry.task(first.digest) == one.task
    assert registry.candidate(first.digest) == one
    assert len(registry.query()) == 1
    assert [event.new for event in registry.status_log(first.digest)] == [TaskStatus.CANDIDATE]


def test_a_second_origin_is_one_task_with_two_origins_and_the_keys_of_both(registry: Registry) -> None:
    one = candidate(registry.blobs, keys=("signature:a",))
    other = replace(candidate(registry.blobs, seed=8), keys=SplitKeys(keys=("signature:b", "signature:a")), families=("sort",))
    assert one.task == other.task
    first, second = registry.register_many([one, other])
    assert (second.digest, second.created, second.new_origin) == (first.digest, False, True)
    assert registry.origins(first.digest) == [one.origin, other.origin]
    assert registry.keys(first.digest) == ("signature:a", "signature:b")
    assert registry.query()[0].families == ("count", "rename", "sort")


def _without_instruction(one: Candidate) -> Candidate:
    return replace(one, task=replace(one.task, instruction=" \n"))


def _without_provenance(one: Candidate) -> Candidate:
    return replace(one, origin=replace(one.origin, generator=""))


def _without_keys(one: Candidate) -> Candidate:
    return replace(one, keys=SplitKeys(keys=()))


def _without_solution(one: Candidate) -> Candidate:
    return replace(one, task=replace(one.task, solution="0" * 64))


def _without_bundle(one: Candidate) -> Candidate:
    return replace(one, task=replace(one.task, verifier=replace(one.task.verifier, bundle="0" * 64)))


def _without_a_file(one: Candidate) -> Candidate:
    missing = FileTree.from_manifest([["gone.txt", {"kind": "file", "content": "1" * 64, "size": 1, "executable": False}]])
    return replace(one, task=replace(one.task, environment=replace(one.task.environment, files=missing.digest)))


class _FutureTask(Task):
    def manifest(self) -> dict[str, Any]:
        return {**super().manifest(), "scheme": 99}


def _of_unknown_scheme(one: Candidate) -> Candidate:
    return replace(one, task=_FutureTask(**{name: getattr(one.task, name) for name in Task.__dataclass_fields__}))


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (_without_instruction, InvalidTask, "empty instruction"),
        (_without_provenance, InvalidTask, "no provenance"),
        (_without_keys, InvalidTask, "no split keys"),
        (_of_unknown_scheme, InvalidTask, "scheme 99"),
        (_without_solution, NotFound, "not stored"),
        (_without_bundle, NotFound, "no blob"),
    ],
)
def test_unsound_candidates_are_refused_and_leave_nothing(
    registry: Registry, spoil: Callable[[Candidate], Candidate], error: type[Exception], said: str
) -> None:
    sound = candidate(registry.blobs, 1)
    with pytest.raises(error, match=said):
        registry.register_many([sound, spoil(candidate(registry.blobs))])
    assert registry.query() == []


def test_a_tree_with_a_file_that_is_not_stored_is_refused_each_time(registry: Registry) -> None:
    spoilt = _without_a_file(candidate(registry.blobs))
    tree = FileTree.from_manifest([["gone.txt", {"kind": "file", "content": "1" * 64, "size": 1, "executable": False}]])
    assert tree.save(registry.blobs) == spoilt.task.environment.files
    for _ in range(2):
        with pytest.raises(NotFound, match="1" * 64):
            registry.register(spoilt)


@pytest.mark.parametrize("name", ["django", "scikit-learn", "pallets/flask", "github-com/psf/requests", "pytest"])
def test_repositories_of_swe_bench_are_excluded(registry: Registry, raw: Raw, name: str) -> None:
    one = candidate(registry.blobs, kind=TaskKind.REPOSITORY, keys=(f"repository:{name}",))
    with pytest.raises(Excluded, match=name):
        registry.register(one)
    sound = registry.register(candidate(registry.blobs, 1)).digest
    with pytest.raises(IntegrityError, match="excluded repository"):
        raw(f"INSERT INTO task_keys (task, key, position) VALUES ('{sound}', 'repository:{name}', 9)")


def test_the_twelve_repositories_are_seeded_and_more_can_follow(registry: Registry) -> None:
    twelve = [
        "astropy",
        "django",
        "flask",
        "matplotlib",
        "pylint",
        "pytest",
        "requests",
        "scikit-learn",
        "seaborn",
        "sphinx",
        "sympy",
        "xarray",
    ]
    assert sorted(registry.excluded()) == twelve
    registry.exclude("someone/Some_Project.git", "an evaluation set of ours")
    assert registry.excluded()["some-project"] == "an evaluation set of ours"
    with pytest.raises(Excluded):
        registry.register(candidate(registry.blobs, kind=TaskKind.REPOSITORY, keys=("repository:fork/some-project",)))


def test_a_repository_task_needs_its_repository_key_but_similar_names_are_free(registry: Registry) -> None:
    with pytest.raises(InvalidTask, match="repository:<name>"):
        registry.register(candidate(registry.blobs, kind=TaskKind.REPOSITORY, keys=("cluster:1",)))
    assert registry.register(candidate(registry.blobs, kind=TaskKind.REPOSITORY, keys=("repository:django-like",))).created


def test_references(registry: Registry) -> None:
    one, two = candidate(registry.blobs, 1), candidate(registry.blobs, 2)
    digest, other = (registered.digest for registered in registry.register_many([one, two]))
    assert registry.resolve(digest) == registry.resolve(digest[:8]) == registry.resolve(digest[:63]) == digest
    assert registry.resolve(one.name) == digest
    registry.alias_set("best", other, expected=None)
    assert registry.task("best") == two.task
    for absent in (digest[:7], "0" * 64, "0" * 8, "nothing", "", digest.upper()):
        with pytest.raises(NotFound):
            registry.resolve(absent)
    same_name = replace(candidate(registry.blobs, 3), name=one.name)
    registry.register(same_name)
    with pytest.raises(UserError, match="fits one task") as caught:
        registry.resolve(one.name)
    assert "\n" not in str(caught.value)


def test_an_ambiguous_prefix_says_so(registry: Registry) -> None:
    digests = [registered.digest for registered in registry.register_many([candidate(registry.blobs, n) for n in range(3)])]
    shared = "deadbeef"
    with registry._database.write() as connection:
        for number, digest in enumerate(digests[:2]):
            columns = "kind, name, status, reason, instruction, text, origin, created_at"
            twin = shared + f"{number}" * 56
            connection.exec_driver_sql(
                f"INSERT INTO tasks (digest, {columns}) SELECT '{twin}', {columns} FROM tasks WHERE digest = '{digest}'"
            )
    with pytest.raises(UserError, match="fits one task"):
        registry.resolve(shared)
    assert registry.resolve(shared + "1") == shared + "1" * 56


def test_an_alias_of_a_withdrawn_task_does_not_resolve(registry: Registry) -> None:
    digest = registry.register(candidate(registry.blobs)).digest
    registry.alias_set("best", digest, expected=None)
    registry.withdraw(digest, "its licence does not allow it")
    with pytest.raises(NotFound):
        registry.resolve("best")
    assert registry.resolve(digest) == digest


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tasks SET digest = '{zeros}'",
        "UPDATE tasks SET kind = 'database'",
        "UPDATE tasks SET name = 'other'",
        "UPDATE tasks SET origin = '{zeros}'",
        "DELETE FROM tasks",
        "UPDATE origins SET manifest = '{{}}'",
        "DELETE FROM origins",
        "UPDATE task_keys SET key = 'signature:other'",
        "DELETE FROM task_keys",
        "UPDATE status_events SET reason = 'other'",
        "DELETE FROM status_events",
    ],
)
def test_the_database_refuses_to_change_what_is_registered(registry: Registry, raw: Raw, statement: str) -> None:
    digest = registry.register(candidate(registry.blobs)).digest
    before = registry.candidate(digest)
    with pytest.raises(IntegrityError):
        raw(statement.format(zeros="0" * 64))
    assert registry.candidate(digest) == before


def test_a_replaced_row_is_refused_too(registry: Registry, raw: Raw) -> None:
    if not registry._database.embedded:
        pytest.skip("INSERT OR REPLACE is SQLite's")
    digest = registry.register(candidate(registry.blobs)).digest
    with pytest.raises(IntegrityError, match="immutable"):
        raw(
            "INSERT OR REPLACE INTO tasks (digest, kind, name, status, reason, instruction, text, origin, created_at) "
            f"VALUES ('{digest}', 'database', 'x', 'candidate', '', '', '', '', '')"
        )


def test_keys_found_later_are_added_once(registry: Registry) -> None:
    digest = registry.register(candidate(registry.blobs, keys=("signature:a",))).digest
    registry.add_keys([(digest, "cluster:1"), (digest, "cluster:1")])
    registry.add_keys([(digest, "cluster:1")])
    assert registry.keys(digest) == ("signature:a", "cluster:1")
    with pytest.raises(InvalidTask, match="kind:value"):
        registry.add_keys([(digest, "no kind")])
    with pytest.raises(NotFound):
        registry.add_keys([("0" * 64, "cluster:1")])
    with pytest.raises(Excluded):
        registry.add_keys([(digest, "repository:django")])


def test_a_second_origin_cannot_carry_a_key_of_the_other_side(registry: Registry) -> None:
    train, held = registry.register_many(
        [candidate(registry.blobs, 1, keys=("signature:a",)), candidate(registry.blobs, 2, keys=("signature:b",))]
    )
    registry.seal_split("main", {train.digest: "train", held.digest: "holdout-families"})
    leaking = replace(candidate(registry.blobs, 1, seed=8), keys=SplitKeys(keys=("signature:a", "signature:b")))
    with pytest.raises(SplitViolation):
        registry.register(leaking)
    assert registry.keys(train.digest) == ("signature:a",)
    assert len(registry.origins(train.digest)) == 1


def test_a_manifest_of_a_future_scheme_is_not_read(registry: Registry) -> None:
    one = candidate(registry.blobs)
    digest = registry.register(one).digest
    future = {**one.task.manifest(), "scheme": 2}
    path = registry.blobs.path(digest)
    with pytest.raises(RegistryError):
        path.chmod(0o644)
        path.write_text(str(future))
        registry.task(digest)


def test_instructions_of_any_text_survive(registry: Registry) -> None:
    one = candidate(registry.blobs, instruction="Zähle die Zeilen \N{RIGHT-TO-LEFT OVERRIDE} in 文件\n")
    assert registry.task(registry.register(one).digest).instruction == one.task.instruction
    assert digest_of(one.task.manifest()) == one.task.digest
