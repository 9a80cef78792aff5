"""The contamination screen against the shipped evaluation."""

from __future__ import annotations

import inspect
import statistics
import textwrap
from dataclasses import replace

import pytest

from factory.core.digest import is_digest
from filters.contamination.references import ReferenceItem, ReferenceSet
from filters.contamination.screen import ContaminationConfig, ContaminationScreen


def part(evaluation: ReferenceSet, number: int, name: str) -> str:
    return next(item.text for item in evaluation.items if (item.problem, item.part) == (f"HumanEval/{number}", name))


def views(screen: ContaminationScreen, text: str, problem: str) -> set[str]:
    return {match.view for match in screen.findings(text).rejecting if match.problem == problem}


def test_rewrapped_prose_that_long_n_grams_of_lines_would_miss(screen: ContaminationScreen, evaluation: ReferenceSet) -> None:
    prompt = " ".join(part(evaluation, 1, "prompt").split())
    assert "words" in views(screen, textwrap.fill(prompt, width=31).upper(), "HumanEval/1")


def test_short_texts_by_their_exact_form_only(screen: ContaminationScreen, evaluation: ReferenceSet) -> None:
    short = part(evaluation, 2, "solution")
    assert short.strip() == "return number % 1.0"
    assert views(screen, "RETURN number,  1.0", "HumanEval/2") == {"exact"}
    assert views(screen, "return number 1.1", "HumanEval/2") == set()
    assert "human-eval/HumanEval/2/solution" in screen.too_short


def test_a_value_inside_a_file_by_its_exact_form_from_three_words_on(screen: ContaminationScreen) -> None:
    assert {match.problem for match in screen.same("RETURN number,  1.0").rejecting} == {"HumanEval/2"}
    reference = ReferenceSet(name="own", items=(ReferenceItem(problem="p", part="answer", text="forty two"),))
    own = ContaminationScreen([reference])
    assert own.findings("forty two").rejecting and not own.same("forty two").rejecting


def test_a_short_text_that_holds_most_of_a_reference_matches(evaluation: ReferenceSet) -> None:
    """16 words are 12 shingles, the shortest reference that shingles find; 12 of them are 8, 0.67 of it."""
    words = [f"w{number}" for number in range(16)]
    own = ContaminationScreen([ReferenceSet(name="own", items=(ReferenceItem(problem="p", part="q", text=" ".join(words)),))])
    assert [match.contained for match in own.findings(" ".join(words[:12])).rejecting] == [8 / 12]
    assert own.findings(" ".join(words[:9])).rejecting == ()


def test_renamed_code_by_its_tree(screen: ContaminationScreen) -> None:
    """HumanEval/0's solution, retold by hand: other names, no hints, no docstring."""
    text = """
def near(values, gap):
    for i, left in enumerate(values):
        for j, right in enumerate(values):
            if i != j:
                space = abs(left - right)
                if space < gap:
                    return True
    return False
"""
    assert views(screen, text, "HumanEval/0") >= {"tree", "code"}
    edited = text.replace("    return False", "    found = 0\n    return False")
    assert views(screen, edited, "HumanEval/0") == {"code"}


def test_a_function_among_many_lines_is_found_by_containment(screen: ContaminationScreen, evaluation: ReferenceSet) -> None:
    filler = inspect.getdoc(statistics) or ""
    text = f"{filler}\n\n{part(evaluation, 4, 'prompt')}\n\n{filler}"
    matches = [match for match in screen.findings(text).rejecting if (match.problem, match.part) == ("HumanEval/4", "prompt")]
    words = next(match for match in matches if match.view == "words")
    assert words.jaccard < 0.5 and words.contained == 1.0 and words.rejects


def test_the_frame_of_an_evaluation_is_no_match(screen: ContaminationScreen) -> None:
    """The header and the shape of HumanEval's tests, around other content."""
    frame = "METADATA = {\n    'author': 'jt',\n    'dataset': 'test'\n}\n\n\ndef check(candidate):\n"
    lines = [
        f"    assert candidate('{word}') == '{word[::-1]}'\n" for word in ("kiwi", "plum", "pear", "fig", "date", "lime", "nut")
    ]
    assert screen.findings(frame + "".join(lines)).rejecting == ()


def test_thresholds_decide_by_exact_shares() -> None:
    """20 words give 16 shingles; the first 12 of them are 8 shingles: containment 8/16 both below and at a threshold."""
    words = [f"w{number}" for number in range(20)]
    reference = ReferenceSet(name="own", items=(ReferenceItem(problem="p", part="prompt", text=" ".join(words)),))
    text = " ".join(words[:12] + [f"x{number}" for number in range(60)])
    config = ContaminationConfig(minimum_words=8)
    for threshold, rejects in ((0.5, True), (0.51, False)):
        found = ContaminationScreen([reference], replace(config, words_contained=threshold)).findings(text)
        assert bool(found.rejecting) is rejects


def test_similar_code_under_the_threshold_is_for_review(evaluation: ReferenceSet) -> None:
    strict = ContaminationScreen([evaluation], ContaminationConfig(code=0.99, code_contained=1.0))
    text = (
        part(evaluation, 0, "solution").replace("threshold", "limit").replace("distance = abs(elem - elem2)", "distance = elem")
    )
    matches = [match for match in strict.findings(text).matches if match.view == "code"]
    assert matches and not any(match.rejects for match in matches)
    assert all(match.jaccard >= 0.35 for match in matches)


@pytest.mark.parametrize("text", ["", "\n\n", "!!!", "\ud800", "\0", "def f(", "x" * 100_000])
def test_hostile_and_empty_texts(screen: ContaminationScreen, text: str) -> None:
    assert screen.findings(text).rejecting == ()


def test_the_digest_names_references_and_thresholds(screen: ContaminationScreen, evaluation: ReferenceSet) -> None:
    others = [
        ContaminationScreen([evaluation], ContaminationConfig(words=0.51)),
        ContaminationScreen([ReferenceSet(name="human-eval", items=evaluation.items[1:])]),
    ]
    digests = {screen.digest, *(other.digest for other in others)}
    assert len(digests) == 3 and all(map(is_digest, digests))
    assert ContaminationScreen([evaluation]).digest == screen.digest
