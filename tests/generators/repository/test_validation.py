"""Validation: what two orders and a new interpreter make of a change, by hand and in real sandboxes on small projects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from generators.repository.coverage import Coverage
from generators.repository.projects import Project, check_out
from generators.repository.runs import Run, RunLimits, RunResult, Suite
from generators.repository.triage import Profile, TriageConfig, triage
from generators.repository.validation import Judged, ValidationConfig, disagreement, judge, planned
from sandboxes.contract import Backend
from tests.generators.repository.conftest import mount

PROFILE = Profile(tests={"a": 1, "b": 1, "c": 1})


def result(states: dict[str, str], *again: RunResult, **fields: object) -> RunResult:
    known: dict[str, object] = {"finished": True, "errors": (), "failures": {}, "ended": "exit:1", **fields}
    return RunResult(
        key="k",
        running=None,
        wall_ms=1,
        states=states,
        ms=dict.fromkeys(states, 1),
        again=again,
        **known,  # type: ignore[arg-type]
    )


def states(text: str) -> dict[str, str]:
    """`ab-`: a and b by name passed, others failed; a dot stands for no state."""
    return {name: "failed" if sign == "-" else "passed" for name, sign in zip("abc", text, strict=True) if sign != "."}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # a fails in both orders, c in one of them
        (result(states("-b-"), result(states("-bc"))), Judged(("a",), ("b",), "")),
        # a was screened, b and c are seen by the confirming run alone; b fails there and when it is run again
        (
            result(
                states("-.."),
                result(states("--c"), part="again"),
                result(states(".-."), part="newly", asked=("b",)),
                asked=("a",),
            ),
            Judged(("a", "b"), ("c",), ""),
        ),
        (result(states("abc")), Judged((), ("a", "b", "c"), "survived")),
        (result(states("a.."), asked=("a",)), Judged((), ("a",), "survived")),
        (result(states("-bc"), result(states("abc"))), Judged((), ("b", "c"), "unstable")),
        (result(states("-.."), result(states("-.."))), Judged(("a", "b", "c"), (), "nothing passes")),
        # the process ended in b: nobody knows of c
        (
            result(states("-.."), finished=False, ended="signal:27", stopped={"b": "signal:27"}, breakage="hang"),
            Judged(("a", "b"), (), "hang", "hang"),
        ),
        (result(states("a.."), finished=False, ended="signal:11", breakage="crash"), Judged((), ("a",), "crash", "crash")),
        # what is not collected does not pass
        (result(states("ab."), errors=("t.py: no",), breakage="import"), Judged(("c",), ("a", "b"), "import", "import")),
        (
            result({"a": "error", "b": "passed", "c": "passed"}, result({"a": "error", "b": "passed", "c": "passed"})),
            Judged(("a",), ("b", "c"), "", "fixture"),
        ),
    ],
)
def test_judging(found: RunResult, expected: Judged) -> None:
    assert judge(PROFILE, found) == expected


def test_breakages_are_kept_or_dropped_as_asked() -> None:
    hung = result(
        states("-b."), result(states("-b."), breakage="hang", stopped={"c": "wall"}), breakage="hang", stopped={"c": "wall"}
    )
    assert judge(PROFILE, hung).fault == "hang"
    assert judge(PROFILE, hung, kept=("hang",)) == Judged(("a", "c"), ("b",), "", "hang")
    broken = result({"a": "error", "b": "passed", "c": "passed"}, result({"a": "error", "b": "passed", "c": "passed"}))
    assert judge(PROFILE, broken, kept=()).fault == "fixture"


def test_disagreement_counts_tests_that_a_new_interpreter_tells_otherwise() -> None:
    forked = result(states("-bc"))
    assert disagreement(PROFILE, result(states("-bc"), forked)) is None
    assert disagreement(PROFILE, result(states("-bc"), forked, result(states("-bc"), part="fresh"))) == 0
    assert disagreement(PROFILE, result(states("-bc"), forked, result(states("a--"), part="fresh"))) == 3
    assert judge(PROFILE, result(states("-bc"), forked, result(states("a--"), part="fresh"))) == Judged((), (), "unstable")


MODULE = "def f(a):\n    return a\n\n\nX = 1\n"


@pytest.mark.parametrize(
    ("old", "new", "wanted", "fresh"),
    [("return a", "return 1", ("a", "c"), False), ("return a", "return 1", ("a", "c"), True), ("X = 1", "X = 2", None, True)],
)
def test_what_is_planned(old: str, new: str, wanted: tuple[str, ...] | None, fresh: bool) -> None:
    coverage = Coverage(tests=("a", "b", "c"), lines={"m.py": {"2": "1"}}, always={"c": "subprocess"})
    profile = Profile(tests={"a": 1, "b": 1, "c": 1}, coverage=coverage)
    changed = MODULE.replace(old, new)
    drawn = fresh and wanted is not None
    run = planned("k", {"m.py": changed}, profile=profile, sources={"m.py": MODULE}, config=ValidationConfig(), drawn=drawn)
    assert (run.wanted, run.fresh, run.confirm, run.how) == (wanted, fresh, ("a", "b", "c"), "collected")


# From here on in sandboxes.

Made = Callable[..., "Ready"]


class Ready:
    """A small project that passed triage."""

    def __init__(self, suite: Suite, sources: dict[str, str]) -> None:
        self.suite, self.sources = suite, sources
        self.profile = triage(suite, "box==1", TriageConfig(min_tests=1, max_unstable_percent=50))

    def validated(self, path: str, old: str, new: str, **settings: object) -> RunResult:
        """The first place of `old` replaced in a file."""
        return self.all([(path, old, new)], **settings)[0]

    def all(self, changes: list[tuple[str, str, str]], **settings: object) -> list[RunResult]:
        config = ValidationConfig(**{"fresh_percent": 0, **settings})  # type: ignore[arg-type]
        runs = []
        for number, (path, old, new) in enumerate(changes):
            assert old in self.sources[path]
            files = {path: self.sources[path].replace(old, new, 1)}
            drawn = config.fresh_percent == 100
            runs.append(planned(str(number), files, profile=self.profile, sources=self.sources, config=config, drawn=drawn))
        return self.suite.run(runs, self.profile.limits(), coverage=self.profile.coverage, kept=config.kept)

    def reference(self, path: str, old: str, new: str) -> set[str]:
        """Tests that fail when the whole suite runs in a new interpreter."""
        run = Run(key="reference", files={path: self.sources[path].replace(old, new, 1)}, how="fresh", plain=True)
        [found] = self.suite.run([run], self.profile.limits())
        return {name for name in self.profile.tests if found.states.get(name) != "passed"}


@pytest.fixture
def made(downloads: Path, backend: Backend, store: MemoryBlobs, tmp_path: Path) -> Made:
    """A project of these files; tests are below `tests`, sources `box` or below `src`."""

    def ready(files: dict[str, str], **fields: object) -> Ready:
        for path, text in files.items():
            (tmp_path / "p" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "p" / path).write_text(text)
        known: dict[str, object] = {"sources": ("box",), "tests": ("tests",), **fields}
        project = Project(name="box", version="1", folder=str(tmp_path / "p"), licence="MIT", **known)  # type: ignore[arg-type]
        checkout = check_out(project, tmp_path / "cache", store)
        sources = {path: files[path] for path in checkout.source_files()}
        return Ready(Suite(checkout, (mount(downloads, backend, store),), backend, store, "python-3.11"), sources)

    return ready


BOX = '''"""A box.

>>> grown(1)
2
"""
import asyncio
import functools

SCALE = 2


def grown(number):
    return number + 1


def shrunk(number):
    """Less.

    >>> shrunk(3)
    2
    """
    if number > 100:
        return number // 2
    return number - 1


@functools.lru_cache
def root(number):
    return number ** 0.5


def scaled(number, by=SCALE):
    return number * by


async def later(number):
    await asyncio.sleep(0)
    return number + 3


def numbers(stop):
    for number in range(stop):
        yield number


class Shelf:
    room = 3

    def __init__(self):
        self.held = []

    def put(self, what):
        if len(self.held) >= self.room:
            raise ValueError("full")
        self.held.append(what)
        return self

    @property
    def free(self):
        return self.room - len(self.held)
'''
TESTS = {
    "tests/conftest.py": "import pytest\nfrom box import Shelf\n\n\n"
    "@pytest.fixture(scope='module')\ndef shelf():\n    return Shelf().put(1)\n",
    "tests/deep/conftest.py": "import asyncio, inspect\nimport pytest\nfrom box import Shelf\n\n\n"
    "@pytest.fixture\ndef empty():\n    return Shelf()\n\n\n"
    "@pytest.hookimpl(tryfirst=True)\ndef pytest_pyfunc_call(pyfuncitem):\n"
    "    if inspect.iscoroutinefunction(pyfuncitem.obj):\n        asyncio.run(pyfuncitem.obj())\n        return True\n",
    "tests/test_plain.py": """
import pytest
import box


@pytest.mark.parametrize(
    "number, more", [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)], ids=["a b", "src/x.py", "[0]", "é ☃", "two\\nlines"]
)
def test_grown(number, more):
    assert box.grown(number) == more


def test_shelf_room(shelf):
    assert shelf.free == 2


def test_shelf_again(shelf):
    assert shelf.held == [1]


def test_root():
    assert box.root(9) == 3


def test_root_from_the_cache():
    assert box.root(9) + 1 == 4


def test_scaled():
    assert box.scaled(3) == 6


def test_numbers():
    assert list(box.numbers(3)) == [0, 1, 2]


@pytest.mark.skip(reason="never")
def test_skipped():
    assert False


@pytest.mark.xfail
def test_known():
    assert box.grown(1) == 5
""",
    "tests/deep/test_classes.py": """
import unittest
import box


class TestShrunk(unittest.TestCase):
    def test_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(box.shrunk(number), number - 1)

    def test_large(self):
        self.assertEqual(box.shrunk(200), 100)


class TestLater(unittest.IsolatedAsyncioTestCase):
    async def test_later(self):
        self.assertEqual(await box.later(1), 4)


async def test_plain_coroutine():
    assert await box.later(2) == 5


def test_empty(empty):
    assert empty.free == 3
""",
}
CHANGES = [
    ("return number + 1", "return number + 2"),
    ("return number // 2", "return number // 3"),
    ("return number - 1", "return number"),
    ("number ** 0.5", "number ** 0.25"),
    ("SCALE = 2", "SCALE = 3"),
    ("by=SCALE", "by=5"),
    ("number + 3", "number + 4"),
    ("yield number", "yield -number"),
    ("room = 3", "room = 1"),
    (">= self.room", "> 0"),
    ("self.room - len", "self.room + len"),
    ("self.held.append(what)", "self.held.insert(0, what + 1)"),
    ("self.held = []", "self.held = None"),
]
LAYOUTS = {
    "flat package": ("box/__init__.py", {}),
    "flat module": ("box.py", {"sources": ("box.py",)}),
    "src": ("src/box/__init__.py", {"sources": ("src/box",), "path": ("src",)}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lists_are_those_of_new_interpreters(made: Made, layout: str) -> None:
    """Parametrized ids of all kinds, classes, subtests, coroutines, doctests, skips, wide fixtures and cached functions."""
    path, fields = LAYOUTS[layout]
    ready = made(
        {path: BOX, **TESTS},
        **{"options": ("--doctest-modules",), "tests": ("tests",), **fields},
    )
    assert ready.profile.how == "collected", ready.profile.why
    tests = set(ready.profile.tests)
    assert {f"tests/test_plain.py::test_grown[{name}]" for name in ("a b", "src/x.py", "[0]")} <= tests
    assert any("two" in name and "lines" in name for name in tests)
    assert ready.profile.left_out == {
        "tests/test_plain.py::test_skipped": "skipped",
        "tests/test_plain.py::test_known": "xfailed",
    }
    changes = [(path, old, new) for old, new in CHANGES]
    results = ready.all(changes)
    for change, found in zip(changes, results, strict=True):
        assert set(judge(ready.profile, found).fail) == ready.reference(*change), change
    assert [found.how for found in results].count("collected") >= 9
    assert {found.why for found in results} == {"", "module level", "class body"}


def test_few_tests_are_run_for_what_few_reach(made: Made) -> None:
    ready = made({"box/__init__.py": BOX, **TESTS})
    found = ready.validated("box/__init__.py", "return number // 2", "return number // 3")
    assert found.asked == ("tests/deep/test_classes.py::TestShrunk::test_large",)
    [again] = found.again
    assert again.asked is not None
    assert set(again.asked) == set(ready.profile.tests)
    unseen = ready.validated("box/__init__.py", "raise ValueError", "return ValueError")
    assert (unseen.asked, unseen.ended, unseen.again) == ((), "none", ())
    assert judge(ready.profile, unseen).fault == "survived"


def test_a_change_of_several_files(made: Made) -> None:
    files = {"box/__init__.py": "from box.one import f\nfrom box.two import g\n", "box/one.py": "def f():\n    return 1\n"}
    files |= {"box/two.py": "def g():\n    return 2\n", "tests/test_all.py": TWO}
    ready = made(files)
    changed = {"box/one.py": "def f():\n    return 3\n", "box/two.py": "def g():\n    return 4\n"}
    run = planned("k", changed, profile=ready.profile, sources=ready.sources, config=ValidationConfig(), drawn=False)
    [found] = ready.suite.run([run], ready.profile.limits(), coverage=ready.profile.coverage)
    assert found.how == "collected"
    assert judge(ready.profile, found) == Judged(
        ("tests/test_all.py::test_f", "tests/test_all.py::test_g"), ("tests/test_all.py::test_neither",), ""
    )


TWO = "import box\n\ndef test_f():\n    assert box.f() == 1\n\ndef test_g():\n    assert box.g() == 2\n\n"
TWO += "def test_neither():\n    pass\n"
LOOPS = """
import os
import time


def down(number):
    while number > 0:
        number -= 1
    return number


def wait(number):
    time.sleep(0.01 * number)
    return number


def leave(number):
    return number
"""
USES_LOOPS = """
from box import down, leave, wait


def test_first():
    assert down(0) == 0


def test_down():
    assert down(3) == 0


def test_down_twice():
    assert down(2) == down(1)


def test_other():
    assert wait(1) == 1


def test_leave():
    assert leave(1) == 1


def test_last():
    assert down(-1) == -1
"""


def test_a_hang_costs_its_limit_and_what_comes_after_it_is_still_run(made: Made) -> None:
    ready = made({"box/__init__.py": LOOPS, "tests/test_box.py": USES_LOOPS})
    hung = ready.validated("box/__init__.py", "number -= 1", "number -= 0")
    assert hung.stopped == {"tests/test_box.py::test_down": "signal:27", "tests/test_box.py::test_down_twice": "signal:27"}
    assert hung.breakage == "hang"
    assert hung.cpu_ms < 10_000
    judged = judge(ready.profile, hung)
    assert judged.fault == "hang"
    assert judged.fail == ("tests/test_box.py::test_down", "tests/test_box.py::test_down_twice")
    once = ready.validated(
        "box/__init__.py", "    return number\n\n\ndef wait", "    return -number if number else 1\n\n\ndef wait"
    )
    assert once.breakage == ""
    kept = ready.validated("box/__init__.py", "number -= 1", "number -= 2 if number == 3 else 1 - 1", kept=("hang",))
    assert judge(ready.profile, kept, kept=("hang",)).fault == ""
    assert "tests/test_box.py::test_other" in judge(ready.profile, kept, kept=("hang",)).keep


def test_waiting_without_end_is_a_hang_and_a_crash_is_none(made: Made) -> None:
    ready = made({"box/__init__.py": LOOPS, "tests/test_box.py": USES_LOOPS})
    waits, leaves = ready.all(
        [
            ("box/__init__.py", "time.sleep(0.01 * number)", "time.sleep(10_000)"),
            ("box/__init__.py", "def leave(number):\n    return number", "def leave(number):\n    os._exit(3)"),
        ]
    )
    assert (waits.breakage, waits.stopped) == ("hang", {"tests/test_box.py::test_other": "stall"})
    assert (leaves.breakage, leaves.stopped) == ("crash", {"tests/test_box.py::test_leave": "exit:3"})


def test_what_breaks_import_collection_or_a_fixture_is_told_apart(made: Made) -> None:
    ready = made({"box/__init__.py": BOX, **TESTS})
    imports, fixture = ready.all(
        [
            ("box/__init__.py", "SCALE = 2", "SCALE = 1 / 0"),
            ("box/__init__.py", "self.held.append(what)", "self.held.add(what)"),
        ]
    )
    assert judge(ready.profile, imports).fault == "import"
    judged = judge(ready.profile, fixture)
    assert (judged.fault, judged.breakage) == ("", "fixture")
    assert "tests/test_plain.py::test_shelf_room" in judged.fail


THREADS = "import threading, time\n\n\ndef serve():\n    while True:\n        time.sleep(1)\n\n\n"
THREADS += "threading.Thread(target=serve, daemon=True, name='served').start()\n\n\ndef f():\n    return 1\n"


def test_a_project_with_threads_is_imported_in_each_fork_and_says_why(made: Made) -> None:
    ready = made({"box/__init__.py": THREADS, "tests/test_box.py": "import box\n\n\ndef test_f():\n    assert box.f() == 1\n"})
    assert ready.profile.how == "forked"
    assert "served" in ready.profile.why
    found = ready.validated("box/__init__.py", "return 1", "return 2")
    assert (found.how, judge(ready.profile, found).fail) == ("forked", ("tests/test_box.py::test_f",))


def test_a_file_that_stays_open_forbids_sharing_it(made: Made) -> None:
    module = "lines = open(__file__)\n\n\ndef first():\n    return next(lines)\n"
    tests = "import box\n\n\ndef test_first():\n    assert box.first() == 'lines = open(__file__)\\n'\n"
    ready = made({"box/__init__.py": module, "tests/test_box.py": tests}, options=("-Wignore",))
    assert (ready.profile.how, ready.profile.why.split(":")[0]) == ("forked", "files are open after collection")


STARTS = """
import subprocess
import sys
import box


def test_in_a_process():
    done = subprocess.run([sys.executable, "-c", "import box; print(box.f())"], capture_output=True, text=True)
    assert done.stdout == "1\\n"


def test_other():
    assert box.g() == 2
"""


def test_tests_that_start_processes_always_run_and_are_confirmed_in_a_new_interpreter(made: Made) -> None:
    ready = made({"box/__init__.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "tests/test_box.py": STARTS})
    assert ready.profile.coverage.always == {"tests/test_box.py::test_in_a_process": "subprocess"}
    found = ready.validated("box/__init__.py", "return 1", "return 3")
    assert found.asked == ("tests/test_box.py::test_in_a_process",)
    assert judge(ready.profile, found).fail == ("tests/test_box.py::test_in_a_process",)
    assert [part.part for part in found.again] == ["again", "fresh"]
    assert disagreement(ready.profile, found) == 0


IMPORTS = """
def table(count):
    return [number * number for number in range(count)]


def register(function):
    NAMES.append(function.__code__.co_name)
    return function


NAMES = []
SQUARES = table(4)


@register
def square(number):
    return SQUARES[number]
"""


def test_what_runs_or_is_looked_at_on_import_is_imported_anew(made: Made) -> None:
    tests = "import box\n\n\ndef test_square():\n    assert box.square(2) == 4\n\n\n"
    tests += "def test_names():\n    assert box.NAMES == ['square']\n"
    ready = made({"box/__init__.py": IMPORTS, "tests/test_box.py": tests})
    early, read = ready.all(
        [
            ("box/__init__.py", "number * number", "number + number + 1"),
            ("box/__init__.py", "return SQUARES[number]", "return SQUARES[number - 1]"),
        ]
    )
    assert (early.asked, early.how, early.why) == (None, "forked", "runs on import")
    assert [part.part for part in early.again] == ["again", "fresh"]
    assert (read.how, read.why) == ("forked", "read on import")
    for found in (early, read):
        assert judge(ready.profile, found).fail == ("tests/test_box.py::test_square",)


WRITES = """
import os


def count():
    names = os.listdir("/tmp")
    with open("/tmp/left", "a") as file, open("tests/left.txt", "a") as other:
        file.write("x")
        other.write("x")
    return "left" in names


def text():
    with open("box/__init__.py") as file:
        return file.read()
"""


def test_no_run_sees_what_another_left(made: Made) -> None:
    tests = (
        "import box, os\n\n\ndef test_clean():\n    assert not os.path.exists('tests/left.txt')\n    assert not box.count()\n"
    )
    tests += "\n\ndef test_text():\n    assert 'or 0' not in box.text()\n"
    ready = made({"box/__init__.py": WRITES, "tests/test_box.py": tests})
    assert len(ready.profile.tests) == 2
    changed, again, last = ready.all(
        [
            ("box/__init__.py", "return file.read()", "return file.read() or 0"),
            ("box/__init__.py", 'return "left" in names', 'return "left" in names or None'),
            ("box/__init__.py", 'return "left" in names', 'return "left" not in names'),
        ]
    )
    assert judge(ready.profile, changed).fail == ("tests/test_box.py::test_text",)
    assert judge(ready.profile, again).fault == "survived"
    assert judge(ready.profile, last).fail == ("tests/test_box.py::test_clean",)


def test_every_way_gives_the_same_lists(made: Made) -> None:
    ready = made({"box/__init__.py": BOX, **TESTS})
    for change in [("box/__init__.py", old, new) for old, new in CHANGES[:4]]:
        text = BOX.replace(change[1], change[2], 1)
        runs = [
            Run(key=how, files={"box/__init__.py": text}, how=how, confirm=tuple(ready.profile.tests))
            for how in ("collected", "forked", "fresh")
        ]
        found = ready.suite.run(runs, ready.profile.limits(), coverage=ready.profile.coverage)
        assert [one.how for one in found] == ["collected", "forked", "fresh"]
        assert len({judge(ready.profile, one) for one in found}) == 1


def test_a_test_near_its_limit_is_not_ended_by_a_busy_machine(made: Made) -> None:
    """Wall time is no limit for what waits its turn: the same test, with other processes on the processor all the while."""
    module = "import os\n\n\ndef spend():\n    return sum(range(3_000_000))\n"
    tests = (
        "import os, signal\nimport box\n\n\ndef test_spend():\n    others = [os.fork() for _ in range(3)]\n"
        "    if 0 in others:\n        while True:\n            pass\n    box.spend()\n    [os.kill(pid, 9) for pid in others]\n"
    )
    ready = made({"box/__init__.py": module, "tests/test_box.py": tests})
    limits = RunLimits(cpu_ms={}, other_ms=2_000, stall_s=1)
    [found] = ready.suite.run([Run(key="busy")], limits)
    assert (found.states, found.breakage) == ({"tests/test_box.py::test_spend": "passed"}, "")
