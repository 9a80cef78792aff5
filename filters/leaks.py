"""Leaks: the fixed text of a repository task is nowhere in what the agent is given."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from factory.agent.environment import replay
from factory.core.action import Action
from factory.core.assessment import Evidence
from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxError
from factory.core.files import EntryKind, FileTree
from factory.core.task import Task
from filters.validity import Judged, judge_many, solution
from sandboxes.contract import Backend

CONTEXT = 1
"""Lines around a fix that make it recognisable: the line alone may be common."""
HISTORY = frozenset({".git", ".hg", ".svn", ".bzr"})
REMAINS = (".orig", ".rej", ".pyc", ".pyo", ".whl", ".egg", ".bundle", ".pack")
"""Names that hold earlier or compiled text in forms that a search for lines cannot see."""


@dataclass(frozen=True, kw_only=True)
class LeakConfig:
    """What counts as the fixed text."""

    minimum: int = 12
    """Fixed lines with fewer characters are not looked for in the instruction: `else:` is no secret."""
    workers: int = 2
    """Tasks searched at the same time."""


@dataclass(frozen=True)
class Fix:
    """One place that the reference solution changes."""

    path: str
    lines: tuple[str, ...]
    """The fixed lines, stripped; empty where the fix only deletes."""
    window: tuple[str, ...]
    """The same with the lines around."""


class LeakProbe:
    """Searches environments; trees that many tasks share (dependencies) are read once. Safe for several threads."""

    def __init__(self, backend: Backend, blobs: BlobStore, config: LeakConfig | None = None) -> None:
        self.backend, self.blobs = backend, blobs
        self.config = config or LeakConfig()
        self._mounts: dict[Digest, tuple[tuple[str, bytes], ...]] = {}

    def probe(self, task: Task) -> Evidence:
        """Search the instruction, the files and the mounts. Raises SandboxError when the solution could not be replayed."""
        tree = FileTree.load(self.blobs, task.environment.files)
        fixes = self._fixes(task, tree)
        found = [
            *self._in_instruction(task.instruction, fixes, tree),
            *self._in_files("workspace", _texts(tree, self.blobs), fixes),
            *_remains(tree),
        ]
        for mount in task.environment.mounts:
            found += self._in_files(mount.path, self._mount(mount.tree), fixes)
        return Evidence(
            filter="leaks",
            rule=f"no file holds the fixed lines with {CONTEXT} line around them, the instruction none of them, no history",
            passed=not found,
            reason="; ".join(found[:3]),
            data={"fixes": [{"path": fix.path, "lines": len(fix.lines)} for fix in fixes], "leaks": found},
        )

    def probe_many(self, tasks: Sequence[Task]) -> list[Judged]:
        """Search for several tasks' fixes in a pool of threads, in the order of `tasks`."""
        return judge_many(tasks, self.probe, self.config.workers)

    def _fixes(self, task: Task, tree: FileTree) -> list[Fix]:
        actions = solution(task, self.blobs)
        fixed = _edited(tree, actions, self.blobs)
        if fixed is None:
            fixed = FileTree.load(self.blobs, self._replayed(task, actions))
        changed = [path for path, entry in fixed.items() if entry.kind is EntryKind.FILE and tree.get(path) != entry]
        return [
            fix
            for path in changed
            for fix in _differences(path, _lines(tree, path, self.blobs), _lines(fixed, path, self.blobs))
        ]

    def _replayed(self, task: Task, actions: Sequence[Action]) -> Digest:
        outcome = replay(task, actions, self.backend, self.blobs, held_out=False)
        if outcome.verdict is None:
            raise SandboxError(f"the reference solution could not be replayed: {outcome.reason.value}: {outcome.fault}")
        return outcome.verdict.end

    def _in_instruction(self, instruction: str, fixes: Sequence[Fix], tree: FileTree) -> Iterator[str]:
        text = " ".join(instruction.split())
        for fix in fixes:
            known = {line.strip() for line in _lines(tree, fix.path, self.blobs)}
            for line in fix.lines:
                if len(line) >= self.config.minimum and line not in known and " ".join(line.split()) in text:
                    yield f"the instruction holds a fixed line of {fix.path}"

    def _in_files(self, place: str, texts: Sequence[tuple[str, bytes]], fixes: Sequence[Fix]) -> Iterator[str]:
        for fix in fixes:
            probe = max(fix.window, key=len).encode()
            for path, data in texts:
                if probe in data and _holds(data, fix.window):
                    yield f"{place}/{path} holds the fixed lines of {fix.path}"

    def _mount(self, digest: Digest) -> tuple[tuple[str, bytes], ...]:
        if digest not in self._mounts:
            self._mounts[digest] = tuple(_texts(FileTree.load(self.blobs, digest), self.blobs))
        return self._mounts[digest]


def _edited(tree: FileTree, actions: Sequence[Action], blobs: BlobStore) -> FileTree | None:
    """The tree after actions that only edit lines; None when a solution does anything else."""
    for action in actions:
        if action.tool == "submit":
            break
        path = action.arguments.get("path", "").removeprefix("/workspace/")
        if action.tool != "edit" or path not in tree:
            return None
        lines = tree.read(blobs, path).split(b"\n")
        lines[int(action.arguments["line"]) - 1] = action.arguments["text"].removesuffix("\n").encode()
        tree = tree.merged(FileTree.of(blobs, {path: b"\n".join(lines)}))
    return tree


def _differences(path: str, broken: Sequence[str], fixed: Sequence[str]) -> Iterator[Fix]:
    matcher = difflib.SequenceMatcher(a=broken, b=fixed, autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag == "equal":
            continue
        before = [line.strip() for line in fixed[:start] if line.strip()][-CONTEXT:]
        after = [line.strip() for line in fixed[end:] if line.strip()][:CONTEXT]
        lines = [line.strip() for line in fixed[start:end] if line.strip()]
        if [*before, *lines, *after]:
            yield Fix(path, tuple(lines), (*before, *lines, *after))


def _holds(data: bytes, window: Sequence[str]) -> bool:
    """Whether the window's lines stand one after another (blank lines and indentation apart) in `data`."""
    lines = [line.strip() for line in data.decode(errors="replace").split("\n") if line.strip()]
    size = len(window)
    return any(tuple(lines[start : start + size]) == tuple(window) for start in range(len(lines) - size + 1))


def _remains(tree: FileTree) -> Iterator[str]:
    for path in tree:
        if not HISTORY.isdisjoint(path.split("/")):
            yield f"workspace/{path} is history"
            return
    yield from (f"workspace/{path} may hold the fixed text" for path in tree if path.endswith(REMAINS))


def _texts(tree: FileTree, blobs: BlobStore) -> list[tuple[str, bytes]]:
    return [(path, tree.read(blobs, path)) for path, entry in tree.items() if entry.kind is EntryKind.FILE]


def _lines(tree: FileTree, path: str, blobs: BlobStore) -> list[str]:
    if path not in tree or tree[path].kind is not EntryKind.FILE:
        return []
    return tree.read(blobs, path).decode(errors="replace").split("\n")
