"""The folders of trees: written once, compared, bounded on disk, never removed while a process uses them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.digest import Digest
from factory.core.errors import SandboxError
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.backends import open_backend
from sandboxes.contract import Sandbox
from sandboxes.folders import LAYER_TIME
from sandboxes.layers import LayerCache
from sandboxes.leases import Leases


def used(cache: LayerCache, blobs: MemoryBlobs, digest: Digest) -> Path:
    """The layer's folder after a use that is over."""
    folder = cache.take(blobs, digest)
    cache.give_back(digest)
    return folder


def laid(folder: Path, blobs: MemoryBlobs, digest: Digest) -> Path:
    """The same through a cache of its own, as another process would have."""
    cache = LayerCache(folder)
    try:
        return used(cache, blobs, digest)
    finally:
        cache.close()


def on_disk(folder: Path) -> int:
    """What `du` says of the layers, bytes."""
    layers = [path for path in folder.iterdir() if path.is_dir() and path.name != "uses"]
    if not layers:
        return 0
    told = subprocess.run(["du", "-s", "-B1", "-c", *map(str, layers)], capture_output=True, text=True, check=True).stdout
    return int(told.splitlines()[-1].split()[0])


def layers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if len(path.name) == 64}


def test_layers_are_written_once_and_checked_at_first_use(tmp_path: Path, blobs: MemoryBlobs, tree: FileTree) -> None:
    digest = tree.save(blobs)
    folder = laid(tmp_path, blobs, digest)
    assert (folder / "a.txt").stat().st_mtime == folder.stat().st_mtime == LAYER_TIME
    assert (folder / "run.sh").stat().st_mode & 0o777 == 0o755
    inode = (folder / "a.txt").stat().st_ino
    assert laid(tmp_path, blobs, digest) == folder
    assert (folder / "a.txt").stat().st_ino == inode
    (folder / "a.txt").write_text("tampered")
    assert (laid(tmp_path, blobs, digest) / "a.txt").read_text() == "one\ntwo\n"
    with pytest.raises(SandboxError, match="blob store"):
        laid(tmp_path, blobs, "0" * 64)


@pytest.mark.parametrize("spoil", ["owner", "mode", "time"])
def test_a_layer_whose_copy_lost_owner_mode_or_time_is_written_again(
    tmp_path: Path, blobs: MemoryBlobs, tree: FileTree, spoil: str
) -> None:
    digest = tree.save(blobs)
    file = laid(tmp_path, blobs, digest) / "a.txt"
    if spoil == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(file, 12345, 12345)
    elif spoil == "mode":
        file.chmod(0o600)
    else:
        os.utime(file)
    laid(tmp_path, blobs, digest)
    status = file.stat()
    assert (status.st_uid, status.st_mode & 0o777, status.st_mtime) == (os.geteuid(), 0o644, LAYER_TIME)


def test_commands_work_after_the_data_folder_was_copied(tmp_path: Path, blobs: MemoryBlobs, tree: FileTree) -> None:
    """`cp -r` as root makes all of it root's, and unreadable to the sandboxes' user where modes say so."""
    spec = EnvironmentSpec(files=tree.save(blobs))
    umask = os.umask(0o077)
    try:
        copied(tmp_path, spec, blobs)
    finally:
        os.umask(umask)


def changed(sandbox: Sandbox) -> Sandbox:
    """A sibling in another state, which has a layer of its own."""
    sandbox.run("echo new >new", timeout_s=20, output_bytes=100)
    return sandbox.fork(1)[0]


def copied(tmp_path: Path, spec: EnvironmentSpec, blobs: MemoryBlobs) -> None:
    for place in ("first", "second"):
        backend = open_backend("bubblewrap", cache=tmp_path / place)
        with backend.open(spec, blobs) as opened, changed(opened) as sandbox:
            assert sandbox.run("cat src/b.py; echo x >>a.txt; cat a.txt", timeout_s=20, output_bytes=100).output == (
                b"print('b')\none\ntwo\nx\n"
            )
        backend.close()
        if place == "first":
            subprocess.run(["cp", "-r", str(tmp_path / "first"), str(tmp_path / "second")], check=True)


def test_layers_of_many_processes_at_once(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from factory.core.blobs import MemoryBlobs
from factory.core.files import FileTree
from sandboxes.layers import LayerCache
blobs = MemoryBlobs()
tree = FileTree.of(blobs, {{f"d{{n % 7}}/f{{n}}": str(n) for n in range(300)}}).save(blobs)
folder = LayerCache(Path({str(tmp_path)!r})).take(blobs, tree)
assert len([path for path in folder.rglob("f*") if path.is_file()]) == 300
"""
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_500_end_trees_take_no_more_than_the_bound(tmp_path: Path, blobs: MemoryBlobs) -> None:
    """Each tree takes 7 blocks: 4 files, 2 folders, itself. They are mounted as a submission is."""
    bound = 100 * 7 * 4096
    backend = open_backend("bubblewrap", cache=tmp_path, layer_bytes=bound)
    spec = EnvironmentSpec(files=FileTree.of(blobs, {"start": "s\n"}).save(blobs))
    trees = [
        FileTree.of(blobs, {"a/b/one": f"{number}\n", "a/b/two": "2\n", "a/three": "3\n", "four": "4\n"}).save(blobs)
        for number in range(500)
    ]
    most = 0
    with backend.open(spec, blobs) as kept:
        for number, tree in enumerate(trees):
            with backend.open(spec, blobs, (Mount(path="/submission", tree=tree),)) as sandbox:
                if number % 100 == 0:
                    told = sandbox.process(["cat", "/submission/a/b/one"], stdin=b"", timeout_s=20, output_bytes=99)
                    assert told.stdout == b"%d\n" % number
            if number % 10 == 9:
                most = max(most, on_disk(tmp_path / "layers"))
        assert bound // 2 < most <= bound
        assert trees[-1] in layers(tmp_path / "layers") and trees[0] not in layers(tmp_path / "layers")
        assert kept.run("cat start", timeout_s=20, output_bytes=99).output == b"s\n"
        with backend.open(spec, blobs, (Mount(path="/submission", tree=trees[0]),)) as again:
            assert again.process(["cat", "/submission/a/b/one"], stdin=b"", timeout_s=20, output_bytes=99).stdout == b"0\n"
    backend.close()


def test_the_layer_used_longest_ago_goes_first(tmp_path: Path, blobs: MemoryBlobs) -> None:
    """A bound of 8 layers of 2 blocks: at the eighth, two go."""
    cache = LayerCache(tmp_path)
    trees = [FileTree.of(blobs, {"f": f"{number}"}).save(blobs) for number in range(8)]
    for number, tree in enumerate(trees):
        used(cache, blobs, tree)
        os.utime(tmp_path / "uses" / tree, (1000 + number, 1000 + number))
    os.utime(tmp_path / "uses" / trees[0], (2000, 2000))
    cache.close()
    LayerCache(tmp_path, limit_bytes=8 * 2 * 4096).close()
    assert layers(tmp_path) == {trees[0], *trees[3:]}


def test_a_layer_in_use_anywhere_stays(tmp_path: Path, blobs: MemoryBlobs) -> None:
    first, second = LayerCache(tmp_path, limit_bytes=4096), LayerCache(tmp_path, limit_bytes=4096)
    kept, *others = (FileTree.of(blobs, {"f": f"{number}"}).save(blobs) for number in range(4))
    folder = first.take(blobs, kept)
    assert first.take(blobs, kept) == folder
    for tree in others:
        used(second, blobs, tree)
        used(first, blobs, tree)
    first.give_back(kept)
    used(second, blobs, others[0])
    assert layers(tmp_path) >= {kept}
    first.give_back(kept)
    used(second, blobs, others[1])
    assert kept not in layers(tmp_path)
    first.close()
    second.close()


def test_a_spoilt_layer_that_another_process_uses_is_no_layer(
    tmp_path: Path, blobs: MemoryBlobs, tree: FileTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandboxes.layers.MEND_S", 0.1)
    digest = tree.save(blobs)
    user = LayerCache(tmp_path)
    (user.take(blobs, digest) / "a.txt").write_text("tampered")
    with pytest.raises(SandboxError, match="does not match its digest, and another process uses it"):
        laid(tmp_path, blobs, digest)
    assert digest in layers(tmp_path)
    user.give_back(digest)
    assert (laid(tmp_path, blobs, digest) / "a.txt").read_text() == "one\ntwo\n"
    user.close()


def test_a_layer_that_someone_else_removed_or_replaced_is_laid_out_and_compared_again(
    tmp_path: Path, blobs: MemoryBlobs, tree: FileTree
) -> None:
    digest = tree.save(blobs)
    cache = LayerCache(tmp_path)
    folder = used(cache, blobs, digest)
    other = LayerCache(tmp_path, limit_bytes=1)
    assert not folder.exists()
    folder.mkdir()
    (folder / "a.txt").write_text("forged")
    assert (used(cache, blobs, digest) / "a.txt").read_text() == "one\ntwo\n"
    cache.close()
    other.close()


def test_leases_end_with_their_process_and_tell_owners_apart(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from sandboxes.leases import Leases
leases = Leases(Path({str(tmp_path / "leases")!r}))
leases.share("x")
print("ready", flush=True)
time.sleep(600)
"""
    one, other = Leases(tmp_path / "leases"), Leases(tmp_path / "leases")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        assert (one.own("x"), one.own("y"), other.own("y")) == (False, True, False)
        one.share("x")
        process.kill()
    other.share("x")
    assert not one.own("x")
    other.free("x")
    assert one.own("x")
    one.close()
    assert other.own("x") and other.own("y")
    other.close()


TENANT = """
import sys
from pathlib import Path
from factory.core.blobs import MemoryBlobs
from factory.core.files import FileTree
from sandboxes.export import scan, canonical
from sandboxes.folders import load_tree
from sandboxes.layers import LayerCache
import os, random
folder, seed, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
blobs = MemoryBlobs()
trees = [FileTree.of(blobs, {f"d{m}/f{m}": f"{n} {m}" for m in range(6)}).save(blobs) for n in range(12)]
cache = LayerCache(folder / "layers", limit_bytes=4 * 13 * 4096)
print("ready", flush=True)
pick = random.Random(seed)
for _ in range(rounds):
    held = pick.sample(trees, 2)
    for tree in held:
        layer = os.open(cache.take(blobs, tree), os.O_RDONLY)
        assert scan(None, layer) == canonical(load_tree(blobs, tree))
        os.close(layer)
    for tree in held:
        cache.give_back(tree)
"""


def tenant(folder: Path, seed: int, rounds: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", TENANT, str(folder), str(seed), str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def test_processes_evict_while_others_open(tmp_path: Path) -> None:
    """A bound of 4 layers, 12 trees, 3 processes that hold 2 each: whatever one holds is whole."""
    running = [tenant(tmp_path, seed, 150) for seed in range(3)]
    assert [process.wait() for process in running if process.communicate()] == [0] * 3
    assert [path.name for path in (tmp_path / "layers").iterdir() if path.name.startswith(".")] == []
    LayerCache(tmp_path / "layers", limit_bytes=4 * 13 * 4096).close()
    assert len(layers(tmp_path / "layers")) <= 4


def test_a_kill_at_any_moment_leaves_nothing_half(tmp_path: Path) -> None:
    for number in range(8):
        process = tenant(tmp_path, number, 100_000)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        time.sleep(0.05 + 0.013 * number)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    last = tenant(tmp_path, 99, 30)
    last.communicate()
    assert last.returncode == 0
    folder = tmp_path / "layers"
    LayerCache(folder, limit_bytes=4 * 13 * 4096).close()
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    assert {path.name for path in (folder / "uses").iterdir()} == layers(folder)
    assert on_disk(folder) <= 4 * 13 * 4096


def test_a_layer_that_cannot_be_written_is_the_machine_s_fault(
    tmp_path: Path, blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told as such it masks one episode; as an exception of the system it ended the run."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr("sandboxes.layers.write_tree", full)
    backend = open_backend("bubblewrap", cache=tmp_path)
    try:
        with pytest.raises(SandboxError, match="no room"):
            backend.open(EnvironmentSpec(files=FileTree.of(blobs, {"a": "1"}).save(blobs)), blobs)
    finally:
        backend.close()
