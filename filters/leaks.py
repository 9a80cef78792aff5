"""Leaks: the fixed text of a repository task is nowhere in what the agent is given."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from factory.agent.environment import replay
from factory.core.action import Action
from factory.core.assessment import Evidence
from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxError
from factory.core.files import EntryKind, FileTree
from factory.core.task import Task
from filters.readings import Reading, is_bytecode, readings
from filters.validity import Judged, judge_many, solution
from sandboxes.contract import Backend

CONTEXT = 1
"""Lines around a fix that make it recognisable: the line alone may be common."""
HISTORY = frozenset({".git", ".hg", ".svn", ".bzr"})
GIT_PARTS = frozenset({"objects", "refs", "logs", "packed-refs", "ORIG_HEAD", "FETCH_HEAD"})
"""What stands beside `HEAD` in a repository's folder, whatever its name."""
CACHES = frozenset({"__pycache__", ".cache", ".tox", ".nox", ".eggs", ".venv", "site-packages", ".hypothesis"})
"""Folders of tools, installers' caches among them, which keep copies of what they worked on."""
REMAINS = (".orig", ".rej", ".pyc", ".pyo", ".whl", ".egg", ".bundle", ".pack")
"""Names of earlier or compiled text."""


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
    """Searches environments; files that many tasks share are read once. Safe for several threads."""

    def __init__(self, backend: Backend, blobs: BlobStore, config: LeakConfig | None = None) -> None:
        self.backend, self.blobs = backend, blobs
        self.config = config or LeakConfig()
        self._mounts: dict[Digest, tuple[Reading, ...]] = {}
        self._files: dict[tuple[str, Digest], tuple[Reading, ...]] = {}

    def probe(self, task: Task) -> Evidence:
        """Search the instruction, the files and the mounts. Raises SandboxError when the solution could not be replayed."""
        tree = FileTree.load(self.blobs, task.environment.files)
        fixes = self._fixes(task, tree)
        texts = self._workspace(tree)
        found = [
            *self._in_instruction(task.instruction, fixes, tree),
            *self._in_files("workspace", texts, fixes),
            *(f"workspace/{one.path} can not be searched: {one.closed}" for one in texts if one.closed),
            *_remains("workspace", tree),
            *_compiled(texts),
        ]
        for mount in task.environment.mounts:
            mounted = FileTree.load(self.blobs, mount.tree)
            found += self._in_files(mount.path, self._mount(mount.tree), fixes)
            found += [*_remains(mount.path, mounted, dependencies=True), *_installed(mount.path, mounted, tree, fixes)]
        return Evidence(
            filter="leaks",
            rule=f"no file, packed or not, holds the fixed lines with {CONTEXT} line around them, the instruction none of "
            "them; no history, bytecode, cache or installed copy",
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

    def _in_files(self, place: str, texts: Sequence[Reading], fixes: Sequence[Fix]) -> Iterator[str]:
        for fix in fixes:
            probe = max(fix.window, key=len).encode()
            holding = (one.path for one in texts if probe in one.data and _holds(one.data, fix.window))
            yield from (f"{place}/{path} holds the fixed lines of {fix.path}" for path in dict.fromkeys(holding))

    def _workspace(self, tree: FileTree) -> list[Reading]:
        """All that the files hold; what a file of one content holds is kept."""
        found: list[Reading] = []
        for path, entry in tree.items():
            if entry.content is not None:
                key = path, entry.content
                if key not in self._files:
                    self._files[key] = readings(path, self.blobs.get(entry.content))
                found += self._files[key]
        return found

    def _mount(self, digest: Digest) -> tuple[Reading, ...]:
        """All that a mount's files hold, packed things opened; a tree is read once."""
        if digest not in self._mounts:
            tree = FileTree.load(self.blobs, digest)
            self._mounts[digest] = tuple(
                one
                for path, entry in tree.items()
                if entry.content is not None
                for one in readings(path, self.blobs.get(entry.content), notations=False)
            )
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


def _remains(place: str, tree: FileTree, *, dependencies: bool = False) -> Iterator[str]:
    """Histories, caches and names of earlier or compiled text; dependencies may have the bytecode of their own sources."""
    heads = {path.rpartition("/")[0] for path in tree if path.rpartition("/")[2] == "HEAD"}
    history = next((path for path in tree if _is_history(path.split("/"), heads)), None)
    if history is not None:
        yield f"{place}/{history} is history"
    for path in tree:
        if dependencies and path.endswith(".pyc"):
            if _source_of(path) not in tree:
                yield f"{place}/{path} is bytecode without its source"
        elif dependencies:
            continue  # what is packed in them is opened and searched
        elif path.endswith(REMAINS):
            yield f"{place}/{path} may hold the fixed text"
        elif not CACHES.isdisjoint(path.split("/")[:-1]):
            yield f"{place}/{path} is in a cache"


def _is_history(parts: Sequence[str], heads: Container[str]) -> bool:
    """Whether a path is part of a repository; `heads` are the folders that a file `HEAD` stands in."""
    inside = (parts[depth] in GIT_PARTS and "/".join(parts[:depth]) in heads for depth in range(len(parts)))
    return not HISTORY.isdisjoint(parts) or any(inside)


def _source_of(path: str) -> str:
    """The source that bytecode was compiled from."""
    folder, _, name = path.rpartition("/")
    if folder.rpartition("/")[2] == "__pycache__":
        return f"{folder.removesuffix('__pycache__')}{name.partition('.')[0]}.py"
    return path.removesuffix("c")


def _compiled(texts: Sequence[Reading]) -> Iterator[str]:
    """Bytecode by its content, whatever its name."""
    for path in dict.fromkeys(one.path for one in texts if is_bytecode(one.data)):
        yield f"workspace/{path} is bytecode"


def _installed(place: str, mounted: FileTree, tree: FileTree, fixes: Sequence[Fix]) -> Iterator[str]:
    """Modules of the project that are installed among the dependencies: other texts of them show what was changed."""
    for path in dict.fromkeys(fix.path for fix in fixes):
        root, module = "", path
        while "/" in module and f"{root}{module.partition('/')[0]}/__init__.py" not in tree:
            folder, _, module = module.partition("/")
            root += f"{folder}/"
        if module in mounted:
            yield f"{place}/{module} is an installed copy of {path}"


def _lines(tree: FileTree, path: str, blobs: BlobStore) -> list[str]:
    if path not in tree or tree[path].kind is not EntryKind.FILE:
        return []
    return tree.read(blobs, path).decode(errors="replace").split("\n")
