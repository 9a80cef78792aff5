"""Files of a sandbox: reading, writing, exporting, snapshots, mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError, SandboxLost
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.contract import Sandbox, Snapshot
from tests.sandboxes.conftest import Make, Run


def exported(sandbox: Sandbox, blobs: MemoryBlobs) -> FileTree:
    sandbox.stop()
    return FileTree.load(blobs, sandbox.export())


def test_an_untouched_episode_exports_its_start(
    make: Make, tree: FileTree, run: Run, sandbox: Sandbox, blobs: MemoryBlobs
) -> None:
    run("cat a.txt; ls -R")
    assert exported(sandbox, blobs) == tree


def test_an_empty_start_exports_as_empty(make: Make, blobs: MemoryBlobs) -> None:
    assert exported(make(files=FileTree()), blobs) == FileTree()


def test_changes_are_exported(run: Run, sandbox: Sandbox, blobs: MemoryBlobs, tree: FileTree) -> None:
    script = """
    echo new >made; echo more >>a.txt; rm src/b.py; chmod +x src/deep/c.txt; chmod -x run.sh
    mkdir -p empty/inner; ln -s ../a.txt src/link; ln -s /etc/passwd outside; mkfifo pipe
    """
    assert run(script).exit_code == 0
    found = exported(sandbox, blobs)
    changed = {
        "made": Entry(EntryKind.FILE, blobs.put(b"new\n"), 4),
        "a.txt": Entry(EntryKind.FILE, blobs.put(b"one\ntwo\nmore\n"), 13),
        "src/deep/c.txt": Entry(EntryKind.FILE, blobs.put(b"c"), 1, True),
        "run.sh": Entry(EntryKind.FILE, blobs.put(b"echo ran\n"), 9, False),
        "empty/inner": Entry(EntryKind.DIRECTORY),
        "src/link": Entry(EntryKind.LINK, target="../a.txt"),
        "outside": Entry(EntryKind.LINK, target="/etc/passwd"),
        "pipe": Entry(EntryKind.SPECIAL),
    }
    assert found == tree.merged(changed).without("src/b.py")


@pytest.mark.parametrize(
    ("command", "gone", "made"),
    [
        ("rm -r src", ["src/b.py", "src/deep/c.txt", "src/deep/d.txt"], {}),
        ("rm -r src && mkdir src && printf n >src/n", ["src/b.py", "src/deep/c.txt", "src/deep/d.txt"], {"src/n": b"n"}),
        ("mv src/deep moved", ["src/deep/c.txt", "src/deep/d.txt"], {"moved/c.txt": b"c", "moved/d.txt": b"d"}),
        ("rm -r src/deep && printf f >src/deep", ["src/deep/c.txt", "src/deep/d.txt"], {"src/deep": b"f"}),
        ("rm a.txt && mkdir a.txt && printf n >a.txt/n", ["a.txt"], {"a.txt/n": b"n"}),
        ("chmod 000 a.txt src/deep && printf n >z", [], {"z": b"n"}),
        ("chmod 700 src && printf x >src/deep/c.txt && chmod 100 src/deep && chmod 000 src", [], {"src/deep/c.txt": b"x"}),
    ],
)
def test_shapes_of_change(
    run: Run, sandbox: Sandbox, blobs: MemoryBlobs, tree: FileTree, command: str, gone: list[str], made: dict[str, bytes]
) -> None:
    assert run(command).exit_code == 0
    assert exported(sandbox, blobs) == tree.without(*gone).merged(FileTree.of(blobs, made))


def test_names_of_any_bytes(run: Run, sandbox: Sandbox, blobs: MemoryBlobs, tree: FileTree) -> None:
    listed = r'b"\xff\xfe\n \\ name", "\u00e9", "e\u0301"'
    run(f"python3 -c 'for name in ({listed}): open(name, \"w\").close()'")
    names = set(exported(sandbox, blobs)) - set(tree)
    assert names == {"\udcff\udcfe\n \\ name", "\u00e9", "e\u0301"}


def test_sparse_files_beyond_the_disk_limit_are_not_read(make: Make, blobs: MemoryBlobs) -> None:
    opened = make(limits={"disk_bytes": 4 << 20, "file_bytes": 3 << 20}, files=FileTree())
    opened.run("truncate -s 3M a b c", timeout_s=5, output_bytes=100)
    kinds = {path: entry.kind for path, entry in exported(opened, blobs).items()}
    assert kinds == {"a": EntryKind.FILE, "b": EntryKind.SPECIAL, "c": EntryKind.SPECIAL}


def test_folders_without_end_are_cut(make: Make, blobs: MemoryBlobs) -> None:
    opened = make(files=FileTree())
    opened.run("for n in $(seq 300); do mkdir d && cd d || break; done", timeout_s=10, output_bytes=100)
    found = exported(opened, blobs)
    assert [entry.kind for entry in found.values()] == [EntryKind.SPECIAL]


def test_snapshot_and_restore(run: Run, sandbox: Sandbox, blobs: MemoryBlobs, tree: FileTree) -> None:
    run("echo v1 >state; rm a.txt; sleep 60 &")
    saved = sandbox.snapshot()
    assert run("jobs -rp | wc -l").output == b"1\n"
    run("echo v2 >state; echo x >later; rm -r src")
    sandbox.restore(saved)
    assert run("pwd; cat state; ls").output == b"/workspace\nv1\nrun.sh\nsrc\nstate\n"
    assert sandbox.snapshot() == saved
    with pytest.raises(SandboxError, match="blob store"):
        sandbox.restore(Snapshot(tree="f" * 64))
    sandbox.restore(Snapshot(tree=tree.digest))
    assert exported(sandbox, blobs) == tree


def test_read_file(sandbox: Sandbox, run: Run) -> None:
    run("mkdir secret; chmod 000 secret; ln -s a.txt link; ln -s nowhere dangling; mkfifo pipe; touch closed; chmod 000 closed")
    assert sandbox.read_file("/workspace/a.txt", 100) == b"one\ntwo\n"
    assert sandbox.read_file("/workspace/a.txt", 3) == b"one"
    assert sandbox.read_file("/workspace/link", 100) == b"one\ntwo\n"
    assert sandbox.read_file("/etc/passwd", 4) == b"root"
    for path, error in [
        ("/workspace/missing", FileNotFoundError),
        ("/workspace/src", IsADirectoryError),
        ("/workspace/closed", PermissionError),
        ("/workspace/secret/file", PermissionError),
        ("/workspace/pipe", PermissionError),
        ("/workspace/dangling", FileNotFoundError),
    ]:
        with pytest.raises(error):
            sandbox.read_file(path, 100)


def test_write_file(sandbox: Sandbox, run: Run) -> None:
    data = bytes(range(256)) * 1000
    sandbox.write_file("/workspace/src/new.bin", data)
    sandbox.write_file("/workspace/a.txt", b"short")
    sandbox.write_file("/tmp/-odd name", b"")
    assert run("wc -c <src/new.bin; cat a.txt; ls /tmp").output == b"256000\nshort-odd name\n"
    for path, error in [
        ("/workspace/missing/file", FileNotFoundError),
        ("/workspace/src", IsADirectoryError),
        ("/etc/passwd", PermissionError),
    ]:
        with pytest.raises(error):
            sandbox.write_file(path, b"x")


def test_processes_and_the_session_share_the_files(sandbox: Sandbox, run: Run) -> None:
    run("ls >/dev/null; cat later 2>/dev/null")
    sandbox.process(["sh", "-c", "echo made >later"], stdin=b"", timeout_s=5, output_bytes=10)
    assert run("cat later; echo more >>later").output == b"made\n"
    assert sandbox.process(["cat", "later"], stdin=b"", timeout_s=5, output_bytes=100).stdout == b"made\nmore\n"


def test_mounts_are_read_only_data(make: Make, blobs: MemoryBlobs, tree: FileTree) -> None:
    entries = {
        **FileTree.of(blobs, {"pkg/m.py": "x = 1\n"}),
        "to-host": Entry(EntryKind.LINK, target="/etc/shadow"),
        "odd": Entry(EntryKind.SPECIAL),
        "void": Entry(EntryKind.DIRECTORY),
    }
    opened = make(
        mounts=(Mount(path="/data/set", tree=FileTree(entries).save(blobs)), Mount(path="/again", tree=tree.save(blobs)))
    )

    def run(command: str) -> bytes:
        return opened.run(command, timeout_s=10, output_bytes=1000).output

    assert (
        run("cat /data/set/pkg/m.py; ls -A /again; readlink /data/set/to-host") == b"x = 1\na.txt\nrun.sh\nsrc\n/etc/shadow\n"
    )
    assert run("stat -c %F /data/set/odd /data/set/void; ls -A /data/set/void; cat /data/set/odd 2>/dev/null; echo $?") == (
        b"socket\ndirectory\n1\n"
    )
    assert (
        run("(echo y >/again/a.txt; rm /again/a.txt; mkdir /data/x; chmod 777 /again) 2>/dev/null; cat /again/a.txt")
        == b"one\ntwo\n"
    )
    assert exported(opened, blobs) == tree


@pytest.mark.parametrize("path", ["relative", "/workspace/x", "/etc", "/proc/x", "/a/../b", "/", "//x", "/usr/lib/y"])
def test_mounts_inside_the_runtime_are_refused(make: Make, tree: FileTree, blobs: MemoryBlobs, path: str) -> None:
    with pytest.raises(SandboxError, match="mount path"):
        make(mounts=(Mount(path=path, tree=tree.save(blobs)),))


@pytest.mark.parametrize("fields", [{"clock": "frozen:yesterday"}, {"network": "full"}, {"image": "ruby-3"}])
def test_what_is_not_offered_is_refused(make: Make, fields: dict[str, str]) -> None:
    with pytest.raises(SandboxError, match=r"not offered|unknown image"):
        make(**fields)


def test_an_unknown_tree_is_a_sandbox_error(make: Make, backend: object, blobs: MemoryBlobs) -> None:
    with pytest.raises(SandboxError, match="blob store"):
        make(mounts=(Mount(path="/x", tree="0" * 64),))


def test_a_tree_below_its_own_link_is_refused(make: Make, blobs: MemoryBlobs) -> None:
    link = {"a": Entry(EntryKind.LINK, target="/tmp"), "a/b": Entry(EntryKind.FILE, blobs.put(b"x"), 1)}
    with pytest.raises(SandboxError, match="no folder"):
        make(files=FileTree(link))


@pytest.mark.docker
def test_a_reading_that_the_engine_cuts_off_as_it_starts_is_made_again(
    tmp_path: Path, blobs: MemoryBlobs, tree: FileTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the engine says then comes in place of the files; three times in a row it is a fault."""
    from sandboxes.docker.trees import Entries
    from tests.engines import docker_backend

    whole, cut = Entries.add, iter([True, True])
    said = b"OCI runtime exec failed: exec failed: unable to start container process: read init-p: connection reset by peer"

    def add(self: Entries, data: bytes) -> bool:
        return whole(self, said if next(cut, False) else data)

    with docker_backend(tmp_path).open(EnvironmentSpec(files=tree.save(blobs)), blobs) as sandbox:
        sandbox.stop()
        monkeypatch.setattr(Entries, "add", add)
        assert sandbox.export() == tree.digest
        cut = iter([True, True, True])
        with pytest.raises(SandboxLost, match="in another form"):
            sandbox.export()
