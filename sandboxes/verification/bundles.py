"""Make verifier bundles: file trees that hold all that one verifier needs.

    verify.py     inside/bootstrap.py
    codec.py      inside/codec.py
    checker.py    inside/<checker>.py: `check(spec, submission, bundle, scratch) -> [{name, state, detail}]`
    <helper>.py   further modules of inside/ that the checker names in `HELPERS = ("module", ...)` at its top level
    spec.json     the checker's parameters
    files/        further files, as they are

A checker may also have `audited(spec) -> [name]` and `audit(spec, submission, bundle, scratch, passed) -> fault`: when
checks of these names passed, it looks again, in a sandbox of its own, for what speaks against believing them.

`submission` is the folder of the tree to grade, `bundle` the folder of the bundle (both read-only), `scratch` an empty
folder. `state` is one of the six of `CheckState`. What a checker raises is a failure of the harness: the episode
is masked. A hang or crash of graded code that it runs is its own business, and a failed check.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from factory.core.blobs import BlobStore
from factory.core.digest import Digest, Json, canonical_bytes, digest_bytes
from factory.core.errors import VerifierError
from factory.core.files import FileTree

INSIDE = Path(__file__).parent / "inside"
"""Sources of what runs inside."""


def bundle(blobs: BlobStore, *, checker: str, spec: Json, files: FileTree | None = None) -> Digest:
    """Store the bundle of `checker` with `spec` and `files`, and return the digest of its tree.

    Raises VerifierError when `inside/` has no such checker or lacks one of its helpers.
    """
    contents: dict[str, bytes | str] = {path: _source(module) for path, module in _modules(checker).items()}
    tree = FileTree.of(blobs, contents | {"spec.json": canonical_bytes(spec)})
    if files is not None:
        tree = tree.merged({f"files/{path}": entry for path, entry in files.items()})
    return tree.save(blobs)


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
    found = re.search(r"^HELPERS = \(([^)]*)\)", _source(checker), re.MULTILINE)
    return tuple(re.findall(r"[\"'](\w+)[\"']", found.group(1))) if found else ()
