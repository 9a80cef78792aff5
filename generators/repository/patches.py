"""Patches of file trees: applied and made by git, in empty folders that hold nothing else."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import git

from factory.core.blobs import BlobStore
from factory.core.errors import GeneratorError
from factory.core.files import EntryKind, FileTree
from generators.repository.sources import folder_tree

_ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
"""No setting of whoever runs this changes what a patch does or says."""


def applied(tree: FileTree, patch: str, blobs: BlobStore, *, reverse: bool = False) -> FileTree:
    """The tree after a unified diff, paths with one folder in front (`a/`, `b/`). An empty patch changes nothing.

    Raises GeneratorError, in one line, when the patch does not fit or leaves the tree's folder.
    """
    if not patch.strip():
        return tree
    text = patch if patch.endswith("\n") else f"{patch}\n"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        _lay_out(tree, root, blobs)
        file = Path(folder) / "patch"
        file.write_bytes(text.encode(errors="surrogateescape"))
        # Without this, a repository around the temporary folder would decide which paths count.
        environment = {**_ALONE, "GIT_CEILING_DIRECTORIES": folder}
        options = ["--whitespace=nowarn", *(["--reverse"] if reverse else []), "--", str(file)]
        try:
            git.Git(root).execute(["git", "apply", *options], env=environment)
        except git.GitCommandError as error:
            said = [line.partition("error:")[2] for line in str(error.stderr).splitlines() if "error:" in line] or [
                "git refuses it"
            ]
            raise GeneratorError("the patch does not apply: " + said[0].strip(" '")[:200]) from None
        changed = folder_tree(root, blobs)
    kept = {path: entry for path, entry in tree.items() if entry.kind is not EntryKind.FILE}
    return FileTree({**kept, **changed})


def difference(before: FileTree, after: FileTree, blobs: BlobStore) -> str:
    """The unified diff that turns one tree into the other, in git's form; the same bytes everywhere. Empty when equal."""
    paths = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    if not paths:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        for name, tree in (("a", before), ("b", after)):
            (Path(folder) / name).mkdir()
            _lay_out(FileTree({path: tree[path] for path in paths if path in tree}), Path(folder) / name, blobs)
        command = ["git", "-c", "core.quotePath=true", "-c", "diff.algorithm=histogram", "diff", "--no-index", "--no-prefix"]
        command += ["--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--full-index", "--binary", "--", "a", "b"]
        environment = {**_ALONE, "GIT_CEILING_DIRECTORIES": folder}
        _, out, err = git.Git(folder).execute(
            command,
            env=environment,
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
        )
        if err:
            raise GeneratorError(f"no difference can be made: {str(err).splitlines()[0][:200]}")
        assert isinstance(out, bytes)
        return out.decode(errors="surrogateescape")


def _lay_out(tree: FileTree, root: Path, blobs: BlobStore) -> None:
    root.mkdir(exist_ok=True)
    for path, entry in tree.items():
        if entry.kind is not EntryKind.FILE:
            continue
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(tree.read(blobs, path))
        target.chmod(0o755 if entry.executable else 0o644)
