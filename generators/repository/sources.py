"""Where a project's files come from: a pinned source distribution, a git commit, or a folder.

Each source becomes a `FileTree` of blobs. Nothing of the project is executed here: a source
distribution is taken as the archive that it is (no build back end runs for its metadata), a git
commit is read from the object store of a bare clone. A user's checkout is only ever read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import tarfile
import tempfile
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import git

from factory.core.blobs import BlobStore
from factory.core.digest import digest_of
from factory.core.errors import GeneratorError, UserError
from factory.core.files import Entry, EntryKind, FileTree

logger = logging.getLogger(__name__)

LEFT_OUT = ("*.pyc", "*.pyo", "*.orig", "*.rej", "*.egg", "*.whl", "*.so", "*.pyd")
"""File names that never enter a tree: bytecode and other copies that could hold the fixed text."""
LEFT_OUT_FOLDERS = ("__pycache__", ".git", ".hg", ".svn", ".tox", ".nox", ".eggs", "*.egg-info", ".*_cache", "build", "dist")
"""Folder names that never enter a tree: histories, build outputs and caches."""
FETCH_S = 180
"""Wall time of one download, seconds."""
ARCHIVE_BYTES = 64 << 20
"""The largest unpacked project, bytes."""

PIP_PROGRAM = """
import sys
from pip._internal.commands import create_command
from pip._vendor.packaging.specifiers import SpecifierSet

name, version, sha256, target = sys.argv[1:]
command = create_command("download")
options, _ = command.parse_args(["--no-deps", "--no-binary", ":all:", "--quiet"])
with command.main_context():
    session = command.get_default_session(options)
    finder = command._build_package_finder(options, session)
    found = [c for c in finder.find_all_candidates(name) if str(c.version) in SpecifierSet("===" + version)]
    found.sort(key=lambda candidate: candidate.link.hash != sha256)
    if not found:
        sys.exit(f"no source distribution of {name} {version}")
    response = session.get(found[0].link.url_without_fragment, headers={"Accept-Encoding": "identity"})
    response.raise_for_status()
    with open(target, "wb") as file:
        file.write(response.content)
"""
"""pip's own index, configuration and session, without the build that `pip download` runs for metadata."""


def included(path: str) -> bool:
    """Whether a file at this relative path belongs in a tree."""
    parts = PurePosixPath(path).parts
    return not any(fnmatch(parts[-1], name) for name in LEFT_OUT) and not any(
        fnmatch(part, name) for part in parts[:-1] for name in LEFT_OUT_FOLDERS
    )


def fetch_sdist(name: str, version: str, sha256: str, cache: Path) -> Path:
    """The source distribution's archive in `cache`, its hash checked. A hit needs no network.

    Raises GeneratorError when the index does not offer it or the bytes are not the pinned ones.
    """
    archive = cache / f"{name}-{version}-{sha256[:16]}.tar.gz"
    if archive.exists():
        _check(archive.read_bytes(), sha256, f"{name}=={version}")
        return archive
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        target = Path(folder) / "archive"
        try:
            done = subprocess.run(
                [sys.executable, "-c", PIP_PROGRAM, name, version, sha256, str(target)],
                capture_output=True,
                timeout=FETCH_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GeneratorError(f"{name}=={version}: no answer from the package index within {FETCH_S} s") from None
        if done.returncode:
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise GeneratorError(f"{name}=={version} can not be fetched: {last[:300]}")
        _check(target.read_bytes(), sha256, f"{name}=={version}")
        target.replace(archive)
    logger.info("fetched %s==%s", name, version)
    return archive


def _check(data: bytes, sha256: str, what: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise GeneratorError(f"{what}: sha256 {found} is not the pinned {sha256}")


def archive_tree(archive: Path, blobs: BlobStore) -> FileTree:
    """The regular files of a source distribution, without its top folder; read member by member, written nowhere.

    Links and special files are left out: a source distribution needs none, and they can point anywhere.
    Raises GeneratorError for what is no tar archive, an unsafe member or more than `ARCHIVE_BYTES`.
    """
    try:
        with tarfile.open(archive) as tar:
            return FileTree(_members(tar, archive.name, blobs))
    except (tarfile.ReadError, EOFError) as error:
        raise GeneratorError(f"{archive.name}: not a whole tar archive ({error})") from None


def _members(tar: tarfile.TarFile, name: str, blobs: BlobStore) -> dict[str, Entry]:
    contents: dict[str, Entry] = {}
    total = 0
    for member in tar:
        try:
            safe = tarfile.data_filter(member, "/nowhere")
        except tarfile.FilterError as error:
            raise GeneratorError(f"{name}: {error}") from None
        _, _, path = safe.name.partition("/")
        if not safe.isreg() or not path or not included(path):
            continue
        total += safe.size
        if total > ARCHIVE_BYTES:
            raise GeneratorError(f"{name}: more than {ARCHIVE_BYTES} bytes")
        file = tar.extractfile(safe)
        assert file is not None
        contents[path] = _entry(blobs, file.read(), bool((safe.mode or 0) & 0o100))
    return contents


def git_tree(location: str, commit: str, cache: Path, blobs: BlobStore) -> tuple[FileTree, str]:
    """The files of one commit and the commit's full name, from a URL or a local repository; `commit` may be any revision.

    A URL is cloned bare into `cache` once; of a local repository only the object store is read.
    Raises UserError when the repository or the commit does not exist.
    """
    try:
        resolved = _repository(location, commit, cache).commit(commit)
        items = [item for item in resolved.tree.traverse() if isinstance(item, git.Blob)]
    except (git.GitError, git.exc.ODBError, ValueError) as error:
        last = (str(error).strip().splitlines() or ["?"])[-1].strip()
        raise UserError("git", f"{location}@{commit}", f"a repository with that commit ({last[:200]})") from None
    contents = {
        str(item.path): _entry(blobs, item.data_stream.read(), item.mode == 0o100755)
        for item in items
        if item.mode in (0o100644, 0o100755) and included(str(item.path))
    }
    return FileTree(contents), resolved.hexsha


def _repository(location: str, commit: str, cache: Path) -> git.Repo:
    if Path(location).exists():
        return git.Repo(location)
    if location.startswith("-"):
        raise ValueError("not a location")
    clone = cache / f"git-{digest_of(location)[:16]}"
    if not clone.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            git.Repo.clone_from(location, Path(folder) / "clone", bare=True).close()
            (Path(folder) / "clone").replace(clone)
        return git.Repo(clone)
    repository = git.Repo(clone)
    try:
        assert repository.commit(commit).tree
    except (git.GitError, git.exc.ODBError, ValueError):
        repository.remote().fetch("+refs/heads/*:refs/heads/*", tags=True)
    return repository


def folder_tree(folder: Path, blobs: BlobStore) -> FileTree:
    """The regular files of a folder as they are; links are not followed. Raises UserError when there is no such folder."""
    if not folder.is_dir():
        raise UserError("path", str(folder), "a folder with the project's files")
    contents = {}
    for current, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if included(f"{name}/x"))
        for name in files:
            path = Path(current) / name
            relative = path.relative_to(folder).as_posix()
            if not path.is_symlink() and path.is_file() and included(relative):
                contents[relative] = _entry(blobs, path.read_bytes(), os.access(path, os.X_OK))
    return FileTree(contents)


def _entry(blobs: BlobStore, data: bytes, executable: bool) -> Entry:
    return Entry(EntryKind.FILE, blobs.put(data), len(data), executable)
