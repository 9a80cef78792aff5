"""How a change is split, on a suite whose tests are conditions on the pieces that are taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from generators.repository.history.config import HistoryConfig
from generators.repository.history.pieces import FileChange, Piece
from generators.repository.history.splitting import Split, joined, split
from generators.repository.runs import Run, RunResult
from generators.repository.triage import Profile

CONFIG = HistoryConfig()
Needs = Mapping[str, Callable[[Mapping[str, str | None]], bool]]
"""Tests: what of the files each wants to be so that it passes."""


class Suite:
    """A suite that answers at once: a test passes when its condition holds, an import fails when `imports` says so."""

    def __init__(self, tests: Needs, imports: Callable[[Mapping[str, str | None]], bool] = lambda files: True) -> None:
        self.tests, self.imports = tests, imports
        self.asked: list[Run] = []

    def __call__(self, runs: list[Run]) -> list[RunResult]:
        self.asked += runs
        return [self._result(run, run.confirm) for run in runs]

    def _result(self, run: Run, confirm: tuple[str, ...]) -> RunResult:
        sound = self.imports(run.files)
        passes = {name: sound and need(run.files) for name, need in self.tests.items()}
        states = {name: "passed" if good else "failed" for name, good in passes.items()} if sound else {"other": "passed"}
        again = self._result(run, ()) if confirm and sound and not all(passes.values()) else None
        return RunResult(
            key=run.key,
            ended="exit:1",
            finished=True,
            running=None,
            wall_ms=1,
            errors=() if sound else ("t.py: E   ImportError: x",),
            states={**states, "other": "passed"},
            ms=dict.fromkeys(states, 1),
            failures={},
            again=again,
        )


def profile(tests: Needs) -> Profile:
    return Profile(tests=dict.fromkeys([*tests, "other"], 1))


def new(*paths: str) -> dict[str, FileChange]:
    """Files whose text was `old` and is `new`."""
    return {path: FileChange(path, "old\n", "new\n") for path in paths}


def has(*paths: str) -> Callable[[Mapping[str, str | None]], bool]:
    """Passes while none of the files is taken back."""
    return lambda files: not any(files.get(path) == "old\n" for path in paths)


def broken(found: Split) -> list[list[str]]:
    return [sorted(part.broken) for part in found.parts]


def test_a_file_that_no_test_needs_stays_as_it_is_after_the_change() -> None:
    suite = Suite({"t": has("a.py")})
    found = split(new("a.py", "b.py"), profile(suite.tests), CONFIG, suite)
    assert broken(found) == [["a.py"]]
    assert found.parts[0].judged.fail == ("t",) and found.parts[0].judged.keep == ("other",)
    assert found.parts[0].fixed == {"a.py": "new\n"}


def test_files_that_one_test_needs_are_one_part_and_others_another() -> None:
    suite = Suite({"one": has("a.py", "b.py"), "two": has("c.py"), "three": has("b.py", "d.py")})
    found = split(new("a.py", "b.py", "c.py", "d.py", "e.py"), profile(suite.tests), CONFIG, suite)
    assert broken(found) == [["a.py", "b.py", "d.py"], ["c.py"]]
    assert [part.judged.fail for part in found.parts] == [("one", "three"), ("two",)]


def test_pieces_that_only_together_show_are_kept_together() -> None:
    either = {"t": lambda files: files.get("a.py") != "old\n" or files.get("b.py") != "old\n"}
    suite = Suite(either)
    assert broken(split(new("a.py", "b.py"), profile(suite.tests), CONFIG, suite)) == [["a.py", "b.py"]]


def test_a_piece_that_others_import_goes_with_the_group_that_needs_it() -> None:
    # helper.py is imported by a.py as it is after the change: without it alone nothing can be imported.
    def imports(files: Mapping[str, str | None]) -> bool:
        return files.get("helper.py") != "old\n" or files.get("a.py") == "old\n"

    suite = Suite({"one": has("a.py"), "two": has("b.py")}, imports)
    found = split(new("a.py", "b.py", "helper.py"), profile(suite.tests), CONFIG, suite)
    assert broken(found) == [["a.py", "helper.py"], ["b.py"]]


def test_what_tests_themselves_import_is_a_part_of_its_own_where_that_is_wanted() -> None:
    suite = Suite({"one": has("a.py")}, lambda files: files.get("feature.py") != "old\n")
    wanted = profile(suite.tests)
    found = split(new("a.py", "feature.py"), wanted, CONFIG, suite)
    assert broken(found) == [["a.py"], ["feature.py"]]
    assert found.parts[1].judged.fail == ("one",) and found.parts[1].result.again is not None
    unwanted = split(new("feature.py"), wanted, HistoryConfig(uncollected=False), suite)
    assert (unwanted.parts, unwanted.fates) == ((), ("import",))


def test_changes_that_make_no_task() -> None:
    blind = Suite({"t": lambda files: True})
    assert split(new("a.py"), profile(blind.tests), CONFIG, blind) == Split((), ("survived",))
    suite = Suite({"t": has("a.py", "b.py")})
    small = HistoryConfig(max_files=1)
    assert split(new("a.py", "b.py"), profile(suite.tests), small, suite) == Split((), ("too big",))
    suite.asked.clear()
    assert split(new("a.py", "b.py"), profile(suite.tests), HistoryConfig(max_pieces=1), suite).fates == ("too many pieces",)
    assert suite.asked == []
    short = HistoryConfig(max_lines=1)
    assert split(new("a.py"), profile(suite.tests), short, suite).fates == ("too big",)


def test_a_single_piece_costs_no_run_beyond_those_that_judge_it() -> None:
    suite = Suite({"t": has("a.py")})
    split(new("a.py"), profile(suite.tests), CONFIG, suite)
    assert [run.key for run in suite.asked] == ["whole"]


PIECES = st.integers(0, 7).map(lambda number: Piece("a.py", number))


@given(st.dictionaries(PIECES, st.frozensets(st.sampled_from("abcdef"), min_size=1), max_size=8))
def test_groups_share_no_test_and_have_every_piece_once(seen: dict[Piece, frozenset[str]]) -> None:
    groups = joined(seen)
    assert sorted(piece for group in groups for piece in group) == sorted(seen)
    tests = [{name for piece in group for name in seen[piece]} for group in groups]
    assert all(one.isdisjoint(two) for index, one in enumerate(tests) for two in tests[index + 1 :])
    for group in groups:  # no group can be cut in two without a test on both sides
        first = min(group)
        reached, grew = {first}, True
        while grew:
            more = {one for one in group if any(not seen[one].isdisjoint(seen[other]) for other in reached)}
            grew = more != reached
            reached |= more
        assert reached == group


MODULE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


def test_a_file_that_is_gone_after_the_change_is_there_for_the_agent() -> None:
    files = {**new("a.py"), "gone.py": FileChange("gone.py", MODULE, None)}
    suite = Suite({"t": has("a.py")})
    assert broken(split(files, profile(suite.tests), CONFIG, suite)) == [["a.py", "gone.py"]]


def test_a_module_that_only_moved_makes_no_task() -> None:
    files = {
        "new.py": FileChange("new.py", None, MODULE.replace("return 2", "return 3")),
        "old.py": FileChange("old.py", MODULE, None),
    }
    suite = Suite({"t": lambda taken: "new.py" not in taken})
    assert split(files, profile(suite.tests), CONFIG, suite) == Split((), ("moved",))
    other = {**files, "new.py": FileChange("new.py", None, "def three():\n    return 3\n")}
    assert broken(split(other, profile(suite.tests), CONFIG, suite)) == [["new.py", "old.py"]]
