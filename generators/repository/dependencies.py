"""Test dependencies: one tree per lock, built once from pinned wheels, mounted read-only."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from base64 import b64decode
from importlib.resources import files
from pathlib import Path

from factory.core.blobs import BlobStore
from factory.core.digest import Digest, digest_of
from factory.core.errors import GeneratorError
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.task import EnvironmentSpec, Mount
from factory.records import read_record, write_record
from generators.repository.projects import Checkout
from generators.repository.sources import folder_tree
from sandboxes.contract import DEPENDENCIES, Backend

logger = logging.getLogger(__name__)

INSTALL_S = 300
"""Wall time of one installation, seconds."""
COMPILE_S = 120
"""Wall time of compiling one lock's modules, seconds."""


def dependency_mount(lock: tuple[str, ...], cache: Path, backend: Backend, image: str, blobs: BlobStore) -> Mount:
    """The mount of a lock's tree, from `cache` when it was built before.

    Wheels only, every one checked against its hash: no code of theirs runs on this machine. Bytecode is compiled in
    a sandbox by the image's own interpreter, in a form that depends on nothing but the source, so that the tree has
    one digest everywhere. Raises GeneratorError when the lock can not be installed.
    """
    record = cache / f"deps-{digest_of({'lock': lock, 'image': image})[:24]}.json"
    held: Digest | None = read_record(record)
    if held is not None and _whole(held, blobs):
        return Mount(path=DEPENDENCIES, tree=held)
    tree = _installed(lock, blobs)
    tree = tree.merged(_bytecode(tree, backend, image, blobs))
    digest = tree.save(blobs)
    write_record(record, digest)
    return Mount(path=DEPENDENCIES, tree=digest)


def _whole(tree: Digest, blobs: BlobStore) -> bool:
    return blobs.has(tree) and all(blobs.has(entry.content) for entry in FileTree.load(blobs, tree).values() if entry.content)


def _installed(lock: tuple[str, ...], blobs: BlobStore) -> FileTree:
    with tempfile.TemporaryDirectory() as folder:
        requirements, target = Path(folder) / "lock.txt", Path(folder) / "deps"
        requirements.write_text("".join(f"{line}\n" for line in lock))
        options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile", "--ignore-installed", "--quiet"]
        command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), "-r", str(requirements)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=INSTALL_S, check=False)
        except subprocess.TimeoutExpired:
            raise GeneratorError(f"dependencies: not installed within {INSTALL_S} s") from None
        if done.returncode:
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise GeneratorError(f"dependencies can not be installed: {last[:300]}")
        tree = folder_tree(target, blobs)
    logger.info("installed %d test dependencies", len(lock))
    machine_made = [
        path for path in tree if path.startswith("bin/") or path.endswith((".dist-info/RECORD", ".dist-info/REQUESTED"))
    ]
    return tree.without(*machine_made, *(path for path in tree if path.endswith((".dist-info/INSTALLER", "/direct_url.json"))))


def _bytecode(tree: FileTree, backend: Backend, image: str, blobs: BlobStore) -> dict[str, Entry]:
    program = files("generators.repository").joinpath("inside/compile_tree.py").read_text()
    empty = FileTree().save(blobs)
    spec = EnvironmentSpec(image=image, files=empty, mounts=(Mount(path=DEPENDENCIES, tree=tree.save(blobs)),))
    with backend.open(spec, blobs) as sandbox:
        argv = ["python3", "-s", "-S", "-P", "-B", "-c", program, DEPENDENCIES]
        done = sandbox.process(argv, stdin=b"", timeout_s=COMPILE_S, output_bytes=64 << 20)
    if done.exit_code != 0:
        raise GeneratorError(f"dependencies can not be compiled: {done.stderr_tail.decode(errors='replace')[-300:]}")
    compiled = {}
    for path, text in json.loads(done.stdout).items():
        data = b64decode(text)
        compiled[path] = Entry(EntryKind.FILE, blobs.put(data), len(data), False)
    return compiled


def check_apart(checkout: Checkout, mount: Mount, blobs: BlobStore) -> None:
    """Raise GeneratorError when a source module of the project stands in its dependencies too: another text of it, often the
    very one, would be readable beside every bug. So it is with a project that its own test tools need."""
    installed = FileTree.load(blobs, mount.tree)
    roots = sorted(("" if root == "." else f"{root.strip('/')}/" for root in checkout.project.path), key=len, reverse=True)
    for path in checkout.source_files():
        module = next((path.removeprefix(root) for root in roots if path.startswith(root)), path)
        if module in installed:
            raise GeneratorError(
                f"{checkout.project.release} is refused: {module} is among its test dependencies, where fixed text can be read"
            )
