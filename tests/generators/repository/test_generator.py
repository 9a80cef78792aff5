"""The generator end to end, in real sandboxes: a small project of this test, and one real one."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from pathlib import Path

import pytest

from factory.agent.environment import replay
from factory.core.action import Action
from factory.core.blobs import MemoryBlobs, get_json
from factory.core.demonstration import Demonstration
from factory.core.files import FileTree
from factory.core.outcome import OutcomeKind
from factory.core.task import Candidate, Task, VerifierSpec
from generators.repository.candidates import judge, steady_failures
from generators.repository.config import RepositoryConfig
from generators.repository.generator import RepositoryGenerator
from generators.repository.runs import Failure, RunResult
from generators.repository.triage import Profile, TriageConfig
from registry.admission import named_blobs
from sandboxes.contract import Backend
from tests.generators.repository.conftest import FILES, SHAPES, mount
from tests.generators.series import visible

COUNT = 28


def generator(fleet: Path, cache: Path, backend: Backend, **fields: object) -> RepositoryGenerator:
    config = RepositoryConfig(fleet=fleet, triage=TriageConfig(min_tests=5), **fields)  # type: ignore[arg-type]
    return RepositoryGenerator(config, cache=cache, backend=backend)


@pytest.fixture(scope="module")
def made(fleet: Path, downloads: Path, backend: Backend, store: MemoryBlobs) -> tuple[RepositoryGenerator, list[Candidate]]:
    one = generator(fleet, downloads, backend)
    return one, list(one.generate(store, seed=5, start=0, count=COUNT))


@pytest.fixture(scope="module")
def candidates(made: tuple[RepositoryGenerator, list[Candidate]]) -> list[Candidate]:
    return made[1]


def spec(verifier: VerifierSpec | None, store: MemoryBlobs) -> dict[str, list[str]]:
    assert verifier is not None
    found: dict[str, list[str]] = json.loads(FileTree.load(store, verifier.bundle).read(store, "spec.json"))
    return found


def failing(task: Task, backend: Backend, store: MemoryBlobs) -> tuple[set[str], set[str]]:
    """Names of the failed checks of both verifiers when nothing is done."""
    outcome = replay(task, (), backend, store)
    assert outcome.kind is OutcomeKind.SCORED
    assert outcome.verdict is not None
    assert outcome.held_out is not None
    visible, hidden = (
        {check.name for check in verdict.checks if not check.passed} for verdict in (outcome.verdict, outcome.held_out)
    )
    return visible, hidden


def test_every_number_has_a_fate(made: tuple[RepositoryGenerator, list[Candidate]]) -> None:
    one, candidates = made
    fates: Counter[str] = Counter()
    for (project, _, kind), count in one.fates.items():
        assert project == "shapes"
        fates[kind] += count
    assert fates.total() == COUNT
    assert fates["valid"] == len(candidates) >= 15
    assert fates["survived"] >= 1  # the function that no test calls
    assert fates["hang"] >= 1  # a loop that does not count down


def test_the_gold_passes_and_doing_nothing_fails_both_verifiers(
    candidates: list[Candidate], backend: Backend, store: MemoryBlobs
) -> None:
    for candidate in candidates[:3]:
        actions = Demonstration.from_manifest(get_json(store, candidate.task.solution)).actions
        gold = replay(candidate.task, actions, backend, store)
        assert gold.solved
        assert gold.held_out is not None
        assert gold.held_out.passed
        visible, hidden = failing(candidate.task, backend, store)
        assert visible
        assert hidden
        assert len(visible | hidden) == candidate.origin.parameters["fail_to_pass"]


def test_the_two_verifiers_share_tests_only_where_one_test_sees_the_bug(
    candidates: list[Candidate], store: MemoryBlobs
) -> None:
    single = [candidate.origin.parameters["single_test"] for candidate in candidates]
    assert set(single) == {True, False}
    for candidate in candidates:
        visible, hidden = spec(candidate.task.verifier, store)["tests"], spec(candidate.task.held_out, store)["tests"]
        shared = set(visible) & set(hidden)
        assert len(shared) == (1 if candidate.origin.parameters["single_test"] else 0)
        assert r"tests/test_shapes.py::test_area[\xe9 \u2603]" in {*visible, *hidden}
        assert "tests/test_shapes.py::test_area[two by three]" in {*visible, *hidden}


def test_unstable_and_skipped_tests_are_in_no_verifier(candidates: list[Candidate], store: MemoryBlobs) -> None:
    for candidate in candidates:
        for verifier in (candidate.task.verifier, candidate.task.held_out):
            names = " ".join(spec(verifier, store)["tests"])
            assert "test_second" not in names
            assert "test_skipped" not in names


def test_the_agent_gets_neither_tests_nor_the_fixed_text(candidates: list[Candidate], store: MemoryBlobs) -> None:
    for candidate in candidates:
        tree = FileTree.load(store, candidate.task.environment.files)
        assert set(tree) == {"shapes/__init__.py", "README.md", "setup.cfg"}
        broken = tree.read(store, "shapes/__init__.py").decode()
        assert broken != SHAPES
        for verifier in (candidate.task.verifier, candidate.task.held_out):
            assert verifier is not None
            sealed = FileTree.load(store, verifier.bundle)
            assert "files/tests/test_shapes.py" in sealed
            assert "files/shapes/__init__.py" not in sealed


def test_what_a_candidate_says_of_itself(candidates: list[Candidate]) -> None:
    explicit: Counter[object] = Counter()
    for candidate in candidates:
        assert candidate.keys.keys == ("repository:shapes",)
        assert candidate.families == (candidate.origin.operator,)
        assert candidate.origin.source == "shapes==HEAD"
        assert candidate.origin.site is not None
        assert candidate.origin.site.startswith("shapes/__init__.py:")
        assert candidate.task.environment.tools == ("bash", "edit", "submit")
        assert "shapes HEAD" in candidate.task.instruction.split("\n")[0]
        assert candidate.origin.parameters["instruction"] == {"by": "template"}
        explicit[candidate.origin.parameters["explicitness"]] += 1
    assert set(explicit) == {"symptom", "function", "line"}
    assert len({candidate.task.digest for candidate in candidates}) == len(candidates)
    assert len({candidate.origin.operator for candidate in candidates}) >= 8


def test_shards_and_another_cache_give_the_same_tasks_and_another_seed_others(
    candidates: list[Candidate], fleet: Path, backend: Backend, downloads: Path, tmp_path: Path
) -> None:
    store, other = MemoryBlobs(), generator(fleet, tmp_path, backend, workers=1)
    digests = [one.task.digest for part in (0, 6) for one in other.generate(store, seed=5, start=part, count=6)]
    assert digests == [one.task.digest for one in candidates if one.origin.parameters["number"] < 12]  # type: ignore[operator]
    assert {one.task.digest for one in other.generate(store, seed=6, start=0, count=4)} != set(digests)


def test_nothing_that_the_agent_can_read_holds_the_fix_or_a_test(
    candidates: list[Candidate], backend: Backend, store: MemoryBlobs
) -> None:
    for candidate in candidates[:4]:
        broken = FileTree.load(store, candidate.task.environment.files).read(store, "shapes/__init__.py").decode()
        fixed = [line for line in SHAPES.split("\n") if line.strip() and line not in broken.split("\n")]
        needles = ['"""Shapes."""', *fixed, "test_largest_of_nothing", "import area, countdown, largest"]
        found = visible(candidate.task, [needle.encode() for needle in needles], backend, store)
        assert found == ["0 /workspace/shapes/__init__.py"]


def test_a_task_costs_its_difference(candidates: list[Candidate], store: MemoryBlobs) -> None:
    stored: set[str] = set()
    costs = []
    for candidate in candidates:
        new = set(named_blobs(candidate.task, store, stored)) - stored
        costs.append(sum(len(store.get(digest)) for digest in new))
        stored |= new
    assert max(costs[1:]) < 16 << 10
    assert costs[0] > 1 << 20  # pytest, and the project, are stored with the first


def test_the_users_checkout_is_left_as_it_was(candidates: list[Candidate], checkout: Path) -> None:
    found = {str(path.relative_to(checkout)) for path in checkout.rglob("*") if ".git" not in path.parts and path.is_file()}
    assert found == set(FILES)
    assert all((checkout / path).read_text() == text for path, text in FILES.items())


def test_a_wrong_edit_scores_no_more_than_none(candidates: list[Candidate], backend: Backend, store: MemoryBlobs) -> None:
    task = candidates[0].task
    ruin = Action("bash", {"command": "echo 'def broken(:' >> shapes/__init__.py"})
    outcome = replay(task, (ruin,), backend, store)
    assert outcome.kind is OutcomeKind.SCORED
    assert outcome.verdict is not None
    assert not any(check.passed for check in outcome.verdict.checks if "test_data" not in check.name)
    assert outcome.verdict.progress == 0


def test_the_agents_shell_finds_the_dependencies(candidates: list[Candidate], backend: Backend, store: MemoryBlobs) -> None:
    with backend.open(candidates[0].task.environment, store) as sandbox:
        done = sandbox.run("python3 -c 'import pytest, shapes; print(pytest.__file__)'", timeout_s=20, output_bytes=1000)
    assert done.output == b"/opt/deps/pytest/__init__.py\n"


def test_a_project_that_can_not_serve_is_refused_with_figures(fleet: Path, downloads: Path, backend: Backend) -> None:
    config = RepositoryConfig(fleet=fleet, triage=TriageConfig(min_tests=50))
    one = RepositoryGenerator(config, cache=downloads, backend=backend)
    assert list(one.generate(MemoryBlobs(), seed=1, start=0, count=3)) == []
    assert one.fates == {("shapes", "", "refused"): 3}
    refusal = one.prepare(one.projects[0], MemoryBlobs())
    assert "12 stable tests of 14, fewer than 50" in str(refusal)


@pytest.mark.slow
def test_the_dependencies_have_one_digest(downloads: Path, backend: Backend, store: MemoryBlobs, tmp_path: Path) -> None:
    again = mount(tmp_path, backend, MemoryBlobs())
    assert again == mount(downloads, backend, store)


@pytest.mark.slow
def test_a_real_project(downloads: Path, backend: Backend) -> None:
    store = MemoryBlobs()
    one = RepositoryGenerator(RepositoryConfig(projects=("xmltodict",), excerpt_lines=12), cache=downloads, backend=backend)
    candidates = list(one.generate(store, seed=1, start=0, count=8))
    assert len(candidates) >= 4
    for candidate in candidates[:2]:
        actions = Demonstration.from_manifest(get_json(store, candidate.task.solution)).actions
        assert replay(candidate.task, actions, backend, store).solved
        visible, hidden = failing(candidate.task, backend, store)
        assert visible
        assert hidden


def result(states: dict[str, str], again: RunResult | None = None, ended: str = "exit:1", **fields: object) -> RunResult:
    known: dict[str, object] = {"finished": ended.startswith("exit"), "errors": (), "failures": {}, **fields}
    return RunResult(
        key="k",
        ended=ended,
        running=None,
        wall_ms=1,
        states=states,
        ms=dict.fromkeys(states, 1),
        again=again,
        **known,  # type: ignore[arg-type]
    )


PROFILE = Profile(tests={"a": 1, "b": 1, "c": 1})


def test_judging_two_runs() -> None:
    second = result({"a": "failed", "b": "passed", "c": "passed"})
    judged = judge(PROFILE, result({"a": "error", "b": "passed", "c": "failed"}, second))
    assert (judged.fail, judged.keep, judged.fault) == (("a",), ("b",), "")


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (result({"a": "passed", "b": "passed", "c": "passed"}), "survived"),
        (result({"a": "passed"}, ended="signal:27"), "hang"),
        (result({"a": "passed"}, ended="wall"), "hang"),
        (result({"a": "passed"}, ended="signal:11"), "crash"),
        (result({"a": "passed"}, finished=False), "crash"),
        (result({}, errors=("x: y",)), "import"),
        (result({}), "crash"),
        (result({"a": "failed"}, result({"a": "passed", "b": "passed", "c": "passed"})), "unstable"),
        (result({"a": "failed"}, result({"a": "failed"})), "nothing passes"),
    ],
)
def test_faults(found: RunResult, fault: str) -> None:
    assert judge(PROFILE, found).fault == fault


def test_failures_that_change_from_run_to_run_are_no_evidence() -> None:
    same, other = Failure("E", "1", "t.py", 1), Failure("E", "2", "t.py", 1)
    second = result({}, failures={"a": same, "b": same})
    assert steady_failures(result({}, second, failures={"a": same, "b": other}), ["a", "b", "c"]) == [same]


def test_a_message_is_evidence_up_to_what_changes_or_names_the_day() -> None:
    today = datetime.date.today()
    first = {"a": Failure("E", "1 == 2\nid 7", "t.py", 1), "b": Failure("E", f"3 == 4\nat {today}", "t.py", 2)}
    second = {"a": Failure("E", "1 == 2\nid 8", "t.py", 1), "b": first["b"]}
    found = steady_failures(result({}, result({}, failures=second), failures=first), ["a", "b"])
    assert [failure.message for failure in found] == ["1 == 2", "3 == 4"]
