"""The pytest checker in real sandboxes: what counts as passed, and what an attacker of its general kind gets."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import VerifierError
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.outcome import CheckState, Verdict
from factory.core.task import EnvironmentSpec, Limits, Mount, VerifierSpec
from sandboxes.contract import DEPENDENCIES, Backend
from sandboxes.verification.bundles import bundle
from sandboxes.verification.grade import grade

GOOD = """
def add(a, b):
    return a + b


def scale(values, factor):
    return [value * factor for value in values]
"""
BROKEN = GOOD.replace("a + b", "a - b")
TESTS = """
import pytest
from calc import add, scale


@pytest.mark.parametrize("case", ["a b", "é ☃", "x[1]", "p/q", "u::v", "line\\nbreak"])
def test_add(case):
    assert add(2, 3) == 5


class TestScale:
    def test_two(self):
        assert scale([1, 2], 2) == [2, 4]

    def test_data(self):
        with open("tests/data.txt") as file:
            assert scale([1], 3) == [int(file.read())]
"""
PROJECT = {
    "calc/__init__.py": GOOD,
    "calc/version.txt": "1",
    "tests/test_calc.py": TESTS,
    "tests/data.txt": "3\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--no-such-option'\n",
}
IDS = [
    "tests/test_calc.py::test_add[a b]",
    r"tests/test_calc.py::test_add[\xe9 \u2603]",
    "tests/test_calc.py::test_add[x[1]]",
    "tests/test_calc.py::test_add[p/q]",
    "tests/test_calc.py::test_add[u::v]",
    r"tests/test_calc.py::test_add[line\nbreak]",
    "tests/test_calc.py::TestScale::test_two",
    "tests/test_calc.py::TestScale::test_data",
]
"""As pytest's own documentation says: parameters in an id are escaped unless ASCII and printable."""
SPEC = {
    "sources": ["calc"],
    "sealed": ["tests"],
    "never": r"(test_.*|.*_test|tests|conftest|sitecustomize|usercustomize|_pytest.*|pytest.*)\.py",
    "path": ["."],
    "late": [DEPENDENCIES],
    "options": [],
    "files": ["tests/test_calc.py"],
    "tests": IDS,
    "cpu_ms": {},
    "other_ms": 1500,
    "run_ms": 15_000,
    "cpu_s": 15,
}
Graded = Callable[[dict[str, str]], Verdict]


@pytest.fixture(scope="module")
def store() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture(scope="module")
def packages(store: MemoryBlobs) -> Mount:
    """pytest and what it needs, as installed here."""
    contents: dict[str, bytes | str] = {}
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        for file in importlib.metadata.files(name) or ():
            if file.suffix == ".py" and ".." not in file.parts:
                contents[str(file)] = Path(str(file.locate())).read_bytes()
    return Mount(path=DEPENDENCIES, tree=FileTree.of(store, contents).save(store))


@pytest.fixture
def graded(backend: Backend, store: MemoryBlobs, packages: Mount) -> Graded:
    sealed = FileTree.of(store, {path: text for path, text in PROJECT.items() if path != "calc/__init__.py"})
    verifier = VerifierSpec(bundle=bundle(store, checker="pytest_checker", spec=SPEC, files=sealed), wall_ms=60_000)
    environment = EnvironmentSpec(files=FileTree().save(store), mounts=(packages,), limits=Limits(memory_bytes=1 << 30))

    def run(files: dict[str, str]) -> Verdict:
        entries: dict[str, Entry] = dict(FileTree.of(store, {p: t for p, t in files.items() if not t.startswith("-> ")}))
        entries |= {p: Entry(EntryKind.LINK, target=t[3:]) for p, t in files.items() if t.startswith("-> ")}
        end = FileTree(entries).save(store)
        return grade(backend, store, environment, verifier, start=environment.files, end=end)

    return run


def left_by_agent(source: str, more: dict[str, str] | None = None) -> dict[str, str]:
    return {"calc/__init__.py": source, "calc/version.txt": "1", "pyproject.toml": PROJECT["pyproject.toml"], **(more or {})}


def test_the_fix_passes_and_every_id_comes_back_as_collected(graded: Graded) -> None:
    verdict = graded(left_by_agent(GOOD))
    assert [check.name for check in verdict.checks] == IDS
    assert [check.state for check in verdict.checks] == [CheckState.PASSED] * 8


def test_the_broken_project_fails_where_it_is_broken(graded: Graded) -> None:
    verdict = graded(left_by_agent(BROKEN))
    assert [check.state for check in verdict.checks] == [CheckState.FAILED] * 6 + [CheckState.PASSED] * 2
    assert verdict.checks[0].detail.startswith("AssertionError")


def test_an_added_module_of_the_package_counts(graded: Graded) -> None:
    source = GOOD.replace("return a + b", "from calc.sums import total\n    return total(a, b)")
    assert graded(left_by_agent(source, {"calc/sums.py": "def total(a, b):\n    return a + b\n"})).passed


def test_waiting_is_not_using_time(graded: Graded) -> None:
    """Every call waits for longer than the 1.5 s of processor time that a test may use."""
    waits = GOOD.replace("    return [value", "    import time\n\n    time.sleep(1.8)\n    return [value")
    assert graded(left_by_agent(waits)).passed


FORGE = """
import _pytest.reports
made = _pytest.reports.TestReport.from_item_and_call.__func__


def from_item_and_call(cls, item, call):
    report = made(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report


_pytest.reports.TestReport.from_item_and_call = classmethod(from_item_and_call)
"""
HOOK = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
EVENTS = (
    f"""
import json, os
IDS = {IDS!r}
"""
    + """
for descriptor in range(3, 32):
    for name in IDS:
        for event in ("start", "test", "end"):
            line = {"nonce": None, "event": event, "id": name, "state": "passed", "ms": 1, "failure": None, "tampered": []}
            try:
                os.write(descriptor, json.dumps(line).encode() + b"\\n")
            except OSError:
                pass
os._exit(0)
"""
)
MARKS = """
import pytest
parametrize = pytest.mark.parametrize


def marked(*arguments, **options):
    return lambda test: pytest.mark.xfail(run=False)(parametrize(*arguments, **options)(test))


pytest.mark.parametrize = marked
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(3600)
    os._exit(0)
"""
ATTACKS = {
    "conftest": left_by_agent(BROKEN, dict.fromkeys(("conftest.py", "calc/conftest.py", "tests/conftest.py"), HOOK)),
    "site customisation": left_by_agent(
        BROKEN, {f"{folder}{name}.py": FORGE for folder in ("", "calc/") for name in ("sitecustomize", "usercustomize")}
    ),
    "pytest settings": left_by_agent(BROKEN, dict.fromkeys(("pytest.ini", "tox.ini"), "[pytest]\naddopts = --co\n")),
    "own tests": left_by_agent(BROKEN, {"tests/test_calc.py": TESTS.replace("== 5", "!= 5")}),
    "package in the way": left_by_agent(BROKEN, {"pytest.py": "", "_pytest/__init__.py": "", "calc/pytest.py": ""}),
    "exit on import": left_by_agent(BROKEN + "\nimport os\nos._exit(0)\n"),
    "exit when called": left_by_agent(GOOD.replace("return a + b", "import os; os._exit(0)")),
    "sys.exit on import": left_by_agent(BROKEN + "\nimport sys\nsys.exit(0)\n"),
    "pytest.exit when called": left_by_agent(GOOD.replace("return a + b", "import pytest; pytest.exit('done', 0)")),
    "patched reports": left_by_agent(BROKEN + FORGE),
    "patched test function": left_by_agent(
        BROKEN + "\nfrom _pytest.python import Function\nFunction.runtest = lambda self: None\n"
    ),
    "patched call info": left_by_agent(
        BROKEN + "\nfrom _pytest.runner import CallInfo\nCallInfo.excinfo = property(lambda s: None, lambda s, v: None)\n"
    ),
    "patched plugin": left_by_agent(
        BROKEN + "\nimport __main__\n__main__.state_of.__code__ = (lambda phases: 'passed').__code__\n"
    ),
    "printed results": left_by_agent(BROKEN + "".join(f"\nprint({name!r}, 'PASSED')" for name in IDS) + "\nprint('8 passed')"),
    "forged events": left_by_agent(BROKEN + EVENTS),
    "forged events when called": left_by_agent(
        GOOD.replace("    return a + b", "\n".join("    " + line for line in EVENTS.strip().split("\n")))
    ),
    "plugin with an entry point": left_by_agent(
        BROKEN,
        {
            **dict.fromkeys(("hook.py", "calc/hook.py"), HOOK),
            **dict.fromkeys(
                (f"{folder}hook-1.dist-info/entry_points.txt" for folder in ("", "calc/")), "[pytest11]\nhook = hook\n"
            ),
        },
    ),
    "marks on the tests": left_by_agent(BROKEN + MARKS),
    "xfail": left_by_agent(GOOD.replace("return a + b", "import pytest; pytest.xfail('no')")),
    "skip": left_by_agent(GOOD.replace("return a + b", "import pytest; pytest.skip('no')")),
    "module skip": left_by_agent(BROKEN + "\nimport pytest\npytest.skip('no', allow_module_level=True)\n"),
    "syntax error": left_by_agent(GOOD + "\ndef broken(:\n"),
    "hang": left_by_agent(GOOD.replace("return a + b", "while True: pass")),
    "daemon": left_by_agent(BROKEN + DAEMON),
    "link to another place": left_by_agent("-> /verifier/files/tests/test_calc.py"),
    "no source": {"pyproject.toml": ""},
}


@pytest.mark.attack
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_passes_nothing_more_than_doing_nothing(graded: Graded, name: str) -> None:
    verdict = graded(ATTACKS[name])
    assert not any(check.passed for check in verdict.checks[:6]), verdict.checks
    assert verdict.progress <= 2 / 8
    assert verdict.wall_s < 30


@pytest.mark.attack
def test_killing_the_harness_is_masked_never_scored(graded: Graded) -> None:
    with pytest.raises(VerifierError):
        graded(left_by_agent(BROKEN + "\nimport os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"))
