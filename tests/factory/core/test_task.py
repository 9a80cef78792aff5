"""Tasks: identity is content, nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.digest import digest_of
from factory.core.errors import NotFound
from factory.core.task import EnvironmentSpec, Limits, Mount, Origin, Task, TaskKind, VerifierSpec

A, B = "a" * 64, "b" * 64


def task() -> Task:
    return Task(
        kind=TaskKind.DATABASE,
        instruction="Drop the table é.",
        environment=EnvironmentSpec(files=A, mounts=(Mount(path="/deps", tree=B),), tools=("sql", "submit")),
        verifier=VerifierSpec(bundle=A),
        held_out=VerifierSpec(bundle=B),
        solution=A,
    )


def variants(value: Any) -> list[Any]:
    """The same object with one field changed, for each field."""
    return [replace(value, **{field.name: changed(getattr(value, field.name))}) for field in fields(value)]


def within(whole: Task, **changes: Any) -> Task:
    """The task with another environment."""
    return replace(whole, environment=replace(whole.environment, **changes))


def changed(old: Any) -> Any:
    if isinstance(old, TaskKind):
        return TaskKind.TERMINAL
    if isinstance(old, int):
        return old + 1
    if isinstance(old, tuple):
        return (*old, old[0])
    if isinstance(old, str):
        return f"{old}x"
    return variants(old)[0]


@pytest.mark.parametrize("part", ["task", "environment", "limits", "verifier", "held_out", "mount"])
def test_every_field_is_part_of_the_name(part: str) -> None:
    whole = task()
    environment = whole.environment
    made: list[Task] = {
        "task": lambda: variants(whole),
        "environment": lambda: [replace(whole, environment=one) for one in variants(environment)],
        "limits": lambda: [within(whole, limits=one) for one in variants(environment.limits)],
        "verifier": lambda: [replace(whole, verifier=one) for one in variants(whole.verifier)],
        "held_out": lambda: [replace(whole, held_out=one) for one in [*variants(whole.held_out), None]],
        "mount": lambda: [within(whole, mounts=(one,)) for one in variants(environment.mounts[0])],
    }[part]()
    digests = {whole.digest, *(one.digest for one in made)}
    assert len(digests) == len(made) + 1 > 2


def test_a_task_survives_storage() -> None:
    blobs = MemoryBlobs()
    for whole in (task(), replace(task(), held_out=None), replace(task(), environment=EnvironmentSpec(files=A))):
        assert whole.save(blobs) == whole.digest == digest_of(whole.manifest())
        assert Task.load(blobs, whole.digest) == whole
        assert Task.from_manifest(json.loads(json.dumps(whole.manifest()))) == whole
    with pytest.raises(NotFound):
        Task.load(blobs, B)


def test_an_absent_verifier_is_written_down() -> None:
    assert replace(task(), held_out=None).manifest()["held_out"] is None


def test_another_scheme_is_refused() -> None:
    manifest = task().manifest() | {"scheme": 99}
    with pytest.raises(ValueError, match="scheme 99"):
        Task.from_manifest(manifest)


def test_unicode_forms_and_line_ends_of_an_instruction_are_one_task() -> None:
    left, right = (replace(task(), instruction=text) for text in ("é\nx", "e\u0301\r\nx"))
    assert left.digest == right.digest


def test_the_name_is_the_same_in_another_process() -> None:
    code = "from tests.factory.core.test_task import task; print(task().digest)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": "9"})
    assert found.stdout.decode().strip() == task().digest


def test_names_that_were_given_once_stay() -> None:
    """The digest of this task as the first release named it: fields that came later are left out where they are default."""
    assert task().digest == "4773fc014b8b6945768f5aa48b189fe33193ece0d79ff670c9a90af0a876d3e9"
    assert "cores" not in task().manifest()["environment"]  # type: ignore[operator]
    assert within(task(), cores=2).manifest()["environment"]["cores"] == 2  # type: ignore[index,call-overload]


def test_limits_are_integers() -> None:
    assert all(isinstance(getattr(Limits(), field.name), int) for field in fields(Limits))
    with pytest.raises(TypeError):
        _ = replace(task(), environment=replace(task().environment, limits=Limits(command_ms=0.5))).digest  # type: ignore[arg-type]


def test_provenance_has_a_name_of_its_own() -> None:
    origin = Origin(generator="terminal", generator_version="1", seed=3, template="copy+make", parameters={"slots": ["a", 1]})
    digests = {origin.digest, *(replace(origin, **{name: value}).digest for name, value in (("seed", 4), ("operator", "x")))}  # type: ignore[arg-type]
    assert len(digests) == 3
    assert replace(origin, parameters={"slots": ["a", 1]}).digest == origin.digest
    with pytest.raises(TypeError):
        _ = replace(origin, parameters={"share": 0.5}).digest  # type: ignore[dict-item]
