"""Make verifier bundles: file trees that hold all that one verifier needs.

    verify.py     inside/bootstrap.py
    codec.py      inside/codec.py
    checker.py    inside/<checker>.py: `check(spec, submission, bundle, scratch) -> [{name, state, detail}]`
    <helper>.py   further modules of inside/ that the checker names in `HELPERS = ("module", ...)` at its top level
    spec.json     the checker's parameters
    files/        further files, as they are

What a checker with `RUNS_SUBMISSION = True` at its top level has beside its modules is `sealed/spec.json` and `sealed/files/`:
it goes to the verifier over standard input (`envelope`) and stands in no file of its sandbox, where the graded code could
compare it with what is run.

A checker may also have `audited(spec) -> [name]` and `audit(spec, submission, bundle, scratch, passed) -> fault`: when
checks of these names passed, it looks again, in a sandbox of its own, for what speaks against believing them.

`submission` is the folder of the tree to grade, `bundle` the folder of the bundle (both read-only), or, of what is sealed, the
further files as {path: bytes, None for an empty folder}; `scratch` is an empty folder. `state` is one of the six of
`CheckState`. What a checker raises is a failure of the harness: the episode is masked. A hang or crash of graded code that it
runs is its own business, and a failed check.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path

from factory.core.blobs import BlobStore
from factory.core.digest import Digest, Json, canonical_bytes, digest_bytes
from factory.core.errors import VerifierError
from factory.core.files import EntryKind, FileTree

INSIDE = Path(__file__).parent / "inside"
"""Sources of what runs inside."""


def bundle(blobs: BlobStore, *, checker: str, spec: Json, files: FileTree | None = None) -> Digest:
    """Store the bundle of `checker` with `spec` and `files`, and return the digest of its tree.

    Raises VerifierError when `inside/` has no such checker or lacks one of its helpers.
    """
    contents: dict[str, bytes | str] = {path: _source(module) for path, module in _modules(checker).items()}
    top = SEALED if _constant(checker, "RUNS_SUBMISSION") == "True" else ""
    tree = FileTree.of(blobs, contents | {f"{top}spec.json": canonical_bytes(spec)})
    if files is not None:
        tree = tree.merged({f"{top}files/{path}": entry for path, entry in files.items()})
    return tree.save(blobs)


SEALED = "sealed/"
"""Where a bundle has what no file of the verifier's sandbox may show."""


@functools.lru_cache(maxsize=16)
def envelope(blobs: BlobStore, digest: Digest) -> tuple[Digest, bytes]:
    """The tree of a bundle without what is sealed, and that as the bootstrap reads it; empty where nothing is.

    Raises VerifierError for a sealed entry that is neither a file nor a folder.
    """
    tree = FileTree.load(blobs, digest)
    sealed = {path: entry for path, entry in tree.items() if path.startswith(SEALED)}
    if not sealed:
        return digest, b""
    if other := [path for path, entry in sealed.items() if entry.kind not in (EntryKind.FILE, EntryKind.DIRECTORY)]:
        raise VerifierError(f"the bundle {digest} has something else than files: {other[0]!r}")
    heads: list[Json] = []
    contents: list[bytes] = []
    for path, entry in sealed.items():
        if entry.kind is EntryKind.FILE:
            contents.append(tree.read(blobs, path))
        heads.append([path.removeprefix(SEALED), len(contents[-1]) if entry.kind is EntryKind.FILE else None])
    return tree.without(*sealed).save(blobs), b"\n".join([json.dumps(heads).encode(), b"".join(contents)])


LOOKING = ("files", "database")
"""Checkers that only look at what was left: two bundles of one of them may be asked in one process."""


def shares_process(blobs: BlobStore, bundles: Sequence[Digest]) -> bool:
    """Whether all of `bundles` are of one checker that only looks, with the sources of this version."""
    wanted = [_sources(FileTree.load(blobs, digest)) for digest in bundles]
    return any(all(found == _current(checker) for found in wanted) for checker in LOOKING)


def _sources(tree: FileTree) -> dict[str, Digest | None]:
    return {path: entry.content for path, entry in tree.items() if path.endswith(".py") and "/" not in path}


@functools.cache
def _current(checker: str) -> dict[str, Digest]:
    return {path: digest_bytes(_source(module).encode()) for path, module in _modules(checker).items()}


def _modules(checker: str) -> dict[str, str]:
    """Files of a bundle and the modules of `inside/` that they are copies of."""
    helpers = {f"{helper}.py": helper for helper in _helpers(checker)}
    return {"verify.py": "bootstrap", "codec.py": "codec", "checker.py": checker} | helpers


@functools.cache
def _source(module: str) -> str:
    path = INSIDE / f"{module}.py"
    if not module.isidentifier() or not path.is_file():
        raise VerifierError(f"no verifier module {module!r} in {INSIDE.name}/")
    return path.read_text(encoding="utf-8")


@functools.cache
def _helpers(checker: str) -> tuple[str, ...]:
    """What the checker's source assigns to HELPERS, read without running it.

    Not by `ast`: CPython 3.11 raises SystemError (recursion depth mismatch) when two threads build trees at once.
    """
    return tuple(re.findall(r"[\"'](\w+)[\"']", _constant(checker, "HELPERS")))


def _constant(checker: str, name: str) -> str:
    """What stands after `name =` at the top level of a checker, to the end of its line; empty where nothing does."""
    found = re.search(rf"^{name} = (.*)$", _source(checker), re.MULTILINE)
    return found.group(1) if found else ""
