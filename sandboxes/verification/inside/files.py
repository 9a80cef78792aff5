"""Checks a file tree that an agent left behind. Looks only: nothing is executed, no link is followed.

The specification:

    view    "asked": one check for each asked-for step, and one for the rest;
            "whole": one check each for which paths there are, what kind they are of, what the files hold
            and where the links lead
    tree    {path: entry}, the whole expected tree, folders included; an entry has `kind` (file, directory, link),
            for a file `sha256`, `size`, `executable` and `loose` (true: a missing last line end is no mistake;
            `sha256_open` is then the digest without it), for a link `target`, as it reads from its own `folder`
    steps   [{name, paths}], the paths that each step of the request is about

Whatever stands in the tree, the answer is a failed check. Only the machine's own faults raise.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat

try:  # what `hashlib` wraps, without loading OpenSSL
    from _sha2 import sha256
except ImportError:  # before Python 3.12
    from _sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself takes longer to import than most trees to check
    from typing import Any

ENTRIES = 10_000
"""A tree with more entries fails: no task asks for so many."""
DEPTH = 40
"""A tree with deeper folders fails: no task asks for them."""
DETAIL = 300
"""Longest detail, characters."""
REFUSALS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENAMETOOLONG, errno.EISDIR}
"""What a strange tree can answer to a look at it."""


def check(spec: dict[str, Any], submission: str, bundle: str, scratch: str) -> list[dict[str, str]]:
    """Compare the tree at `submission` with the specification; a list of {name, state, detail}."""
    root = os.open(submission, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _VIEWS[spec["view"]](spec, root)
    finally:
        os.close(root)


def _result(name: str, faults: list[str]) -> dict[str, str]:
    detail = "; ".join(faults)
    return {"name": name, "state": "failed" if faults else "passed", "detail": detail[:DETAIL]}


# The view "asked": every expected path is looked up by itself, from the root, and the rest is listed.


def _asked(spec: dict[str, Any], root: int) -> list[dict[str, str]]:
    tree, folders = spec["tree"], _folders(spec["tree"])
    asked = {path for step in spec["steps"] for path in step["paths"]}
    results = [
        _result(step["name"], [fault for path in step["paths"] for fault in _path_faults(root, path, tree.get(path), folders)])
        for step in spec["steps"]
    ]
    rest = [fault for path in sorted(tree) if path not in asked for fault in _path_faults(root, path, tree[path], folders)]
    found, fault = _listing(root)
    rest += [fault] if fault else []
    rest += [f"{path!a} was not there before" for path in sorted(found) if path not in tree and path not in asked]
    return [*results, _result("nothing else changed", rest)]


def _path_faults(root: int, path: str, expected: dict[str, Any] | None, folders: set[str]) -> list[str]:
    """What is wrong at one path, told in words; nothing when it is as expected (`None`: absent)."""
    try:
        with _Folder(root, path) as (folder, name):
            status = os.lstat(name, dir_fd=folder)
            if expected is None:
                return [f"{path!a} is still there"]
            return [f"{path!a} {fault}" for fault in _entry_faults(folder, name, status, expected, folders)]
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        return [] if expected is None else [f"{path!a} is not there"]


def _entry_faults(folder: int, name: str, status: os.stat_result, expected: dict[str, Any], folders: set[str]) -> list[str]:
    kind = _kind(status.st_mode)
    if kind != expected["kind"]:
        return [f"is a {kind}, not a {expected['kind']}"]
    if kind == "link":
        return [] if _leads_to(folder, name, expected, folders) else ["leads elsewhere"]
    if kind == "directory":
        return []
    faults = []
    if bool(status.st_mode & stat.S_IXUSR) != expected["executable"]:
        faults.append("should be executable" if expected["executable"] else "should not be executable")
    if _digest(folder, name, status.st_size, expected["size"]) not in _accepted(expected):
        faults.append("has other content")
    return faults


class _Folder:
    """The folder that holds a path, opened part by part so that no link is followed, and the last name."""

    def __init__(self, root: int, path: str) -> None:
        self._parts = path.split("/")
        self._root = root

    def __enter__(self) -> tuple[int, str]:
        self._fd = os.dup(self._root)
        try:
            for part in self._parts[:-1]:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._fd)
                os.close(self._fd)
                self._fd = inner
        except OSError:
            os.close(self._fd)
            raise
        return self._fd, self._parts[-1]

    def __exit__(self, *exception: object) -> None:
        os.close(self._fd)


# The view "whole": the tree is listed once, and sets are compared.


def _whole(spec: dict[str, Any], root: int) -> list[dict[str, str]]:
    tree, folders = spec["tree"], _folders(spec["tree"])
    found, fault = _listing(root)
    kinds: list[str] = []
    contents: list[str] = []
    links: list[str] = []
    for path in sorted(found.keys() & tree.keys()):
        expected, status = tree[path], found[path]
        if _kind(status.st_mode) != expected["kind"]:
            kinds.append(f"{path!a} is a {_kind(status.st_mode)}")
        elif expected["kind"] == "file":
            if bool(status.st_mode & 0o111) != expected["executable"]:
                kinds.append(f"{path!a} has the wrong executable bit")
            with _Folder(root, path) as (folder, name):
                if _digest(folder, name, status.st_size, expected["size"]) not in _accepted(expected):
                    contents.append(f"{path!a} has other content")
        elif expected["kind"] == "link":
            with _Folder(root, path) as (folder, name):
                if not _leads_to(folder, name, expected, folders):
                    links.append(f"{path!a} leads elsewhere")
    missing = sorted(tree.keys() - found.keys())
    extra = sorted(found.keys() - tree.keys())
    paths = [fault] if fault else []
    paths += [f"{path!a} is missing" for path in missing] + [f"{path!a} is too many" for path in extra]
    everything_there = [] if not missing else [f"{len(missing)} paths are missing"]
    return [
        _result("paths", paths),
        _result("kinds", kinds + everything_there),
        _result("contents", contents + everything_there),
        _result("links", links + everything_there),
    ]


_VIEWS = {"asked": _asked, "whole": _whole}


def _listing(root: int) -> tuple[dict[str, os.stat_result], str]:
    """{path: status} of everything below `root`, and what stopped the listing, if anything did."""
    found: dict[str, os.stat_result] = {}
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        try:
            with _Folder(root, prefix + ".") as (folder, _), os.scandir(folder) as entries:
                for entry in entries:
                    path = prefix + entry.name
                    found[path] = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found[path].st_mode):
                        waiting.append(path + "/")
                    if len(found) > ENTRIES:
                        return found, f"more than {ENTRIES} entries"
        except OSError as error:
            if error.errno not in REFUSALS:
                raise
            return found, f"{prefix!a} cannot be listed"
        if prefix.count("/") > DEPTH:
            return found, f"folders deeper than {DEPTH}"
    return found, ""


def _kind(mode: int) -> str:
    for test, name in ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link")):
        if test(mode):
            return name
    return "special file"


def _accepted(expected: dict[str, Any]) -> set[str]:
    return {expected["sha256"], expected["sha256_open"]} if expected["loose"] else {expected["sha256"]}


def _digest(folder: int, name: str, size: int, expected_size: int) -> str:
    """SHA-256 of a file, or nothing where its size alone says that it is another one."""
    if not expected_size - 1 <= size <= expected_size:
        return ""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    digest = sha256()
    with os.fdopen(fd, "rb") as file:
        while data := file.read(1 << 16):
            digest.update(data)
    return digest.hexdigest()


def _folders(tree: dict[str, Any]) -> set[str]:
    """The paths of a tree's folders, its root among them."""
    return {".", *(path for path, entry in tree.items() if entry["kind"] == "directory")}


def _leads_to(folder: int, name: str, expected: dict[str, Any], folders: set[str]) -> bool:
    """Whether a link's text names the expected place, relative to its folder or below /workspace.

    A text that ends with a slash, or with one and a dot, leads to folders alone: with it a link to a file leads nowhere.
    """
    target = os.readlink(name, dir_fd=folder)
    if target == expected["target"]:
        return True
    if ".." in target.split("/"):
        return False
    place = posixpath.normpath(posixpath.join(expected["folder"], expected["target"]))
    if target.endswith(("/", "/.")) and place.removeprefix("/workspace/") not in folders:
        return False
    if target.startswith("/workspace/"):
        target = posixpath.relpath(target, posixpath.join("/workspace", expected["folder"]))
    return bool(posixpath.normpath(target) == posixpath.normpath(expected["target"]))
