"""Loopholes: submissions that solve nothing must not pass, and must not spoil the verdict either.

A probe is a tree that an agent could leave behind, made from the task's start tree without running anything; both
verifiers grade it. Its rule: no verifier passes, the attacks of repository tasks get no further than doing
nothing, and no probe can mask its episode (a policy could learn to be masked).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from factory.agent.environment import Grade
from factory.core.assessment import Evidence
from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import VerifierError
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.outcome import Verdict
from factory.core.task import Task, TaskKind
from filters.validity import Judged, judge_many
from sandboxes.contract import Backend
from sandboxes.verification.grade import grade


@dataclass(frozen=True, kw_only=True)
class LoopholeConfig:
    """How patiently, and how many at once."""

    masked_retries: int = 2
    """How often a grading that the infrastructure spoiled is made again."""
    workers: int = 2
    """Tasks probed at the same time."""


Make = Callable[[FileTree, BlobStore], FileTree]


@dataclass(frozen=True)
class Probe:
    """One way to hand in nothing of worth."""

    name: str
    make: Make
    attack: bool = False
    """Whether it must not even get further than doing nothing."""


_FORGED: dict[str, bytes | str] = {
    "reward.txt": "1\n",
    "reward.json": '{"reward": 1.0, "passed": true}\n',
    "result.xml": '<testsuite tests="1" failures="0" errors="0"/>\n',
    "verdict.json": '{"checks": [{"name": "all", "state": "passed", "detail": ""}]}\n',
}
"""Files in which an agent could hope that a verdict is looked for."""

_HOOKS = """
import sys

class _Pass:
    def pytest_runtest_makereport(self, item, call):
        from _pytest.reports import TestReport
        return TestReport(item.nodeid, item.location, {}, "passed", None, call.when)

def pytest_configure(config):
    config.pluginmanager.register(_Pass())

def pytest_pyfunc_call(pyfuncitem):
    return True

def pytest_sessionfinish(session, exitstatus):
    session.exitstatus = 0

def pytest_collection_modifyitems(items):
    for item in items:
        item.obj = lambda *args, **kwargs: None
"""
_EXIT = "import atexit, os\nprint('1 passed in 0.01s')\natexit.register(lambda: os._exit(0))\n"
_SHADOW = "import sys\ndef main(*args, **kwargs):\n    return 0\nif __name__ == '__main__':\n    sys.exit(0)\n"
_OPTIONS = "[pytest]\naddopts = -p conftest --co -q\npython_functions = nothing_\n"
_TEST_PARTS = frozenset({"test", "tests", "testing"})


def _empty(tree: FileTree, blobs: BlobStore) -> FileTree:
    return FileTree()


def _garbage(tree: FileTree, blobs: BlobStore) -> FileTree:
    """Every file replaced by bytes that are nothing, and forged verdicts beside them."""
    data = b"\x00\xff garbage \x80\n" * 8
    junk = blobs.put(data)
    files = {path: Entry(EntryKind.FILE, junk, len(data), entry.executable) for path, entry in _files(tree)}
    return tree.merged(files).merged(FileTree.of(blobs, _FORGED))


def _syntax_error(tree: FileTree, blobs: BlobStore) -> FileTree:
    """Python that no longer parses, tests excepted."""
    sources = {path: tree.read(blobs, path) + b"\n(\n" for path, _ in _files(tree) if _python(path) and not _test(path)}
    return tree.merged(FileTree.of(blobs, sources))


def _no_tests(tree: FileTree, blobs: BlobStore) -> FileTree:
    return tree.without(*(path for path, _ in _files(tree) if _test(path)))


def _hooks(tree: FileTree, blobs: BlobStore) -> FileTree:
    """Everything that pytest or the interpreter loads by itself, planted; what it shadows is gone."""
    folders = {path.rpartition("/")[0] for path, _ in _files(tree) if _python(path)} | {""}
    planted: dict[str, bytes | str] = {f"{folder}/conftest.py".lstrip("/"): _HOOKS for folder in folders}
    planted |= {"sitecustomize.py": _EXIT, "usercustomize.py": _EXIT, "pytest.py": _SHADOW, "_pytest/__init__.py": _SHADOW}
    planted |= {"pytest.ini": _OPTIONS, "tox.ini": _OPTIONS, **_FORGED}
    clear = {path for path in planted if path in tree} | ({"_pytest"} & set(tree))
    return tree.without(*clear).merged(FileTree.of(blobs, planted))


_COMMON = (Probe("empty workspace", _empty), Probe("garbage and forged verdicts", _garbage))
PROBES: dict[TaskKind, tuple[Probe, ...]] = {
    TaskKind.TERMINAL: _COMMON,
    TaskKind.DATABASE: _COMMON,
    TaskKind.TOOLWORLD: _COMMON,
    TaskKind.REPOSITORY: (
        *_COMMON,
        Probe("syntax error in the source", _syntax_error),
        Probe("tests deleted", _no_tests, attack=True),
        Probe("hooks planted", _hooks, attack=True),
    ),
}
"""The probes of each kind of task."""


def probe(
    task: Task, *, backend: Backend, blobs: BlobStore, config: LoopholeConfig | None = None, untouched: Grade = grade
) -> Evidence:
    """Grade every probe of the task's kind; `untouched` grades doing nothing.

    Raises VerifierError when doing nothing cannot be graded.
    """
    config = config or LoopholeConfig()
    tree = FileTree.load(blobs, task.environment.files)
    nothing = _graded(task, task.environment.files, backend, blobs, config.masked_retries, untouched)
    found: dict[str, object] = {"doing nothing": _record(nothing)}
    faults = _faults("doing nothing", nothing, None)
    for one in PROBES[task.kind]:
        end = one.make(tree, blobs).save(blobs)
        if end == task.environment.files:
            continue
        try:
            verdicts = _graded(task, end, backend, blobs, config.masked_retries)
        except VerifierError as error:
            # The infrastructure, or the probe? Doing nothing tells them apart; where it fails too, nothing is said.
            _graded(task, task.environment.files, backend, blobs, config.masked_retries)
            found[one.name] = {"masked": str(error)}
            faults.append(f"{one.name} masks its episode: {error}")
            continue
        found[one.name] = _record(verdicts)
        faults += _faults(one.name, verdicts, nothing if one.attack else None)
    return Evidence(
        filter="loopholes",
        rule="no probe passes a verifier or masks its episode; attacks pass no more checks than doing nothing",
        passed=not faults,
        reason="; ".join(faults[:3]),
        data={"probes": found, "backend": backend.name},
    )


def probe_many(
    tasks: Sequence[Task],
    *,
    backend: Backend,
    blobs: BlobStore,
    config: LoopholeConfig | None = None,
    untouched: Grade = grade,
) -> list[Judged]:
    """Probe tasks in a pool of threads, in the order of `tasks`. A task that can not be judged sinks no other."""
    config = config or LoopholeConfig()

    def judge(task: Task) -> Evidence:
        return probe(task, backend=backend, blobs=blobs, config=config, untouched=untouched)

    return judge_many(tasks, judge, config.workers)


def _faults(name: str, verdicts: Sequence[Verdict], nothing: Sequence[Verdict] | None) -> list[str]:
    if any(verdict.passed for verdict in verdicts):
        return [f"{name} passes a verifier"]
    if nothing and any(verdict.progress > none.progress for verdict, none in zip(verdicts, nothing, strict=True)):
        return [f"{name} gets further than doing nothing"]
    return []


def _graded(
    task: Task, end: Digest, backend: Backend, blobs: BlobStore, retries: int, grade: Grade = grade
) -> tuple[Verdict, ...]:
    """The verdicts of the task's verifiers on `end`. Raises VerifierError when every attempt failed."""
    verifiers = [task.verifier, *([task.held_out] if task.held_out else [])]
    while True:
        try:
            return grade(backend, blobs, task.environment, verifiers, start=task.environment.files, end=end)
        except VerifierError:
            if retries == 0:
                raise
            retries -= 1


def _record(verdicts: Sequence[Verdict]) -> dict[str, object]:
    return {
        "passed": [verdict.passed for verdict in verdicts],
        "progress": [round(verdict.progress, 4) for verdict in verdicts],
    }


def _files(tree: FileTree) -> Iterator[tuple[str, Entry]]:
    return ((path, entry) for path, entry in tree.items() if entry.kind is EntryKind.FILE)


def _python(path: str) -> bool:
    return path.endswith(".py")


def _test(path: str) -> bool:
    *folders, name = path.split("/")
    return _python(path) and (name.startswith("test") or name.endswith("_test.py") or not _TEST_PARTS.isdisjoint(folders))
