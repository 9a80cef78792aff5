"""History tasks end to end, in real sandboxes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from factory.agent.environment import replay
from factory.core.blobs import MemoryBlobs, get_json
from factory.core.demonstration import Demonstration
from factory.core.errors import UserError
from factory.core.files import FileTree
from factory.core.outcome import OutcomeKind
from factory.core.task import Candidate
from filters.leaks import LeakProbe
from generators.repository.config import RepositoryConfig
from generators.repository.generator import RepositoryGenerator
from generators.repository.history.config import HistoryConfig
from generators.repository.history.written import Complete
from generators.repository.triage import TriageConfig
from sandboxes.contract import Backend
from tests.generators.repository.history.conftest import BASE, CHECK, FIXED, MIXED, shapes
from tests.generators.repository.history.test_written import GOOD, block

Made = tuple[RepositoryGenerator, dict[str, list[Candidate]]]


def generator(
    fleet: Path, cache: Path, backend: Backend, complete: Complete | None = None, **fields: int
) -> RepositoryGenerator:
    history = HistoryConfig(**{"percent": 100, **fields})  # type: ignore[arg-type]
    config = RepositoryConfig(fleet=fleet, triage=TriageConfig(min_tests=5), history=history)
    return RepositoryGenerator(config, cache=cache, backend=backend, complete=complete)


@pytest.fixture(scope="module")
def made(history_fleet: Path, downloads: Path, backend: Backend, store: MemoryBlobs) -> Made:
    one = generator(history_fleet, downloads, backend)
    found: dict[str, list[Candidate]] = {}
    for candidate in one.generate(store, seed=5, start=0, count=6):
        found.setdefault(str(candidate.origin.parameters["subject"]), []).append(candidate)
    return one, found


def source(candidate: Candidate, path: str, store: MemoryBlobs) -> str:
    return FileTree.load(store, candidate.task.environment.files).read(store, path).decode()


def test_every_change_has_a_fate(made: Made) -> None:
    one, found = made
    fates: Counter[str] = Counter()
    for (_, _, fate), count in one.fates.items():
        fates[fate] += count
    assert fates == {"valid": 4, "survived": 1, "moved": 1, "no more changes": 1}
    assert {subject: len(candidates) for subject, candidates in found.items()} == {
        "largest was the least": 1,
        "two repairs": 2,
        "perimeter": 1,
    }


def test_gold_passes_and_doing_nothing_fails_both_verifiers(made: Made, backend: Backend, store: MemoryBlobs) -> None:
    for candidates in made[1].values():
        for candidate in candidates:
            actions = Demonstration.from_manifest(get_json(store, candidate.task.solution)).actions
            gold = replay(candidate.task, actions, backend, store)
            assert gold.solved and gold.held_out is not None and gold.held_out.passed
            nothing = replay(candidate.task, (), backend, store)
            assert nothing.kind is OutcomeKind.SCORED
            assert nothing.verdict is not None and nothing.held_out is not None
            assert not nothing.verdict.passed and not nothing.held_out.passed


def test_what_no_test_needs_is_in_the_base_already(made: Made, store: MemoryBlobs) -> None:
    [candidate] = made[1]["largest was the least"]
    assert source(candidate, "shapes/__init__.py", store) == shapes("<", unused="-")
    parameters = candidate.origin.parameters
    assert (parameters["changed_files"], parameters["changed_lines"], parameters["fail_to_pass"]) == (1, 2, 2)


def test_repairs_that_have_nothing_to_do_with_each_other_are_tasks_of_their_own(made: Made, store: MemoryBlobs) -> None:
    one, two = sorted(made[1]["two repairs"], key=lambda candidate: str(candidate.origin.site))
    assert source(one, "shapes/__init__.py", store) == FIXED["shapes/__init__.py"]
    assert source(one, "shapes/lines.py", store) == MIXED["shapes/lines.py"]
    assert source(two, "shapes/__init__.py", store) == MIXED["shapes/__init__.py"]
    assert source(two, "shapes/lines.py", store) == BASE["shapes/lines.py"]
    assert [candidate.origin.parameters["part"] for candidate in (one, two)] == [0, 1]
    assert one.name != two.name and CHECK not in one.task.instruction


def test_a_feature_that_tests_import_is_missing_for_them(made: Made, store: MemoryBlobs) -> None:
    [candidate] = made[1]["perimeter"]
    assert "from shapes import perimeter" in candidate.task.instruction
    assert "ImportError: cannot import name 'perimeter' from 'shapes'" in candidate.task.instruction
    assert source(candidate, "shapes/__init__.py", store) == MIXED["shapes/__init__.py"]


def test_the_agent_sees_neither_tests_nor_what_the_list_of_changes_says(
    made: Made, backend: Backend, store: MemoryBlobs
) -> None:
    probe = LeakProbe(backend=backend, blobs=store)
    for candidates in made[1].values():
        for candidate in candidates:
            assert probe.probe(candidate.task).passed
            assert not any(path.startswith("tests/") for path in FileTree.load(store, candidate.task.environment.files))
    [first] = made[1]["largest was the least"]
    assert source(first, "CHANGES.md", store) == BASE["CHANGES.md"]


def test_what_a_candidate_says_of_itself(made: Made) -> None:
    for candidates in made[1].values():
        for candidate in candidates:
            origin = candidate.origin
            assert (origin.generator, origin.operator) == ("repository", "history_commit")
            assert candidate.families == ("history_commit",) and candidate.keys.keys == ("repository:shapes",)
            assert origin.source == f"shapes=={str(origin.parameters['before'])[:12]}"
            assert len(str(origin.parameters["after"])) == 40
            assert "This fails:" in candidate.task.instruction


def test_shards_give_the_same_tasks_and_edits_stay_what_they_were(
    made: Made, history_fleet: Path, downloads: Path, backend: Backend
) -> None:
    store = MemoryBlobs()
    other = generator(history_fleet, downloads, backend)
    digests = [one.task.digest for part in (0, 3) for one in other.generate(store, seed=5, start=part, count=3)]
    assert sorted(digests) == sorted(one.task.digest for found in made[1].values() for one in found)
    plain = generator(history_fleet, downloads, backend, percent=0)
    mixed = generator(history_fleet, downloads, backend, percent=50)
    edits = {one.origin.parameters["number"]: one.task.digest for one in plain.generate(store, seed=5, start=0, count=4)}
    both = list(mixed.generate(store, seed=5, start=0, count=4))
    kept = {one.origin.parameters["number"]: one.task.digest for one in both if one.origin.operator != "history_commit"}
    assert kept == {number: digest for number, digest in edits.items() if number in (0, 2)}
    assert any(one.origin.operator == "history_commit" for one in both)


def test_a_change_without_a_test_is_told_by_one_that_a_model_writes(
    history_fleet: Path, downloads: Path, backend: Backend, tmp_path: Path
) -> None:
    store, prompts = MemoryBlobs(), []

    def complete(prompt: str, *, seed: int) -> str:
        prompts.append(prompt)
        return block(GOOD if len(prompts) > 1 else "from shapes import area\n\n\ndef test_area():\n    assert area(1) == 1\n")

    fleet = tmp_path / "fleet.toml"
    fleet.write_text(history_fleet.read_text() + 'first = "HEAD~3"\nlast = "HEAD~2"\n')
    one = generator(fleet, downloads, backend, complete, written_tests=2)
    [candidate] = one.generate(store, seed=5, start=0, count=1)
    assert len(prompts) == 2 and "-    while number > 1:" in prompts[0]
    written = str(candidate.origin.parameters["written_test"])
    assert written.startswith("tests/test_change_") and candidate.origin.parameters["single_test"]
    spec = json.loads(FileTree.load(store, candidate.task.verifier.bundle).read(store, "spec.json"))
    assert spec["audit"] == [f"{written}::test_end"]
    assert written not in FileTree.load(store, candidate.task.environment.files)
    actions = Demonstration.from_manifest(get_json(store, candidate.task.solution)).actions
    assert replay(candidate.task, actions, backend, store).solved
    assert not replay(candidate.task, (), backend, store).solved


def test_settings_that_could_do_nothing_are_the_users_mistake(
    fleet: Path, history_fleet: Path, downloads: Path, backend: Backend
) -> None:
    with pytest.raises(UserError, match=r"\[\[history\]\] entries"):
        generator(fleet, downloads, backend)
    with pytest.raises(UserError, match="where there is no endpoint"):
        generator(history_fleet, downloads, backend, written_tests=1)
