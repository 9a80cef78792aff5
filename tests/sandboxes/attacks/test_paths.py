"""Links, parents, pipes, devices and names: what stands in the working directory leads nowhere and stops nothing."""

from __future__ import annotations

import os
import shlex
import time

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.contract import Backend, Sandbox
from tests.sandboxes.attacks.conftest import ask
from tests.sandboxes.conftest import Make

pytestmark = pytest.mark.attack

LINKS = {
    "link to the root": ("ln -s / x", EntryKind.LINK),
    "link through parents": ("ln -s ../../../../../../../etc x", EntryKind.LINK),
    "link through the first process": ("ln -s /proc/1/root x", EntryKind.LINK),
    "link through a descriptor": ("ln -s /proc/self/fd/0 x", EntryKind.LINK),
    "link in place of a folder": ("rm -rf src; ln -s /etc src; mv src x", EntryKind.LINK),
    "link to itself": ("ln -s x x", EntryKind.LINK),
    "link with a long target": ("ln -s $(printf '../%.0s' $(seq 1000))etc/passwd x", EntryKind.LINK),
    "hard link": ("ln a.txt x", EntryKind.FILE),
    "hard link to a link": ("ln -s /etc/passwd y; ln y x", EntryKind.LINK),
    "hard link to the runtime": ("ln /etc/passwd x || : >x", EntryKind.FILE),
    "pipe": ("mkfifo x", EntryKind.SPECIAL),
    "pipe in place of a file": ("rm a.txt; mkfifo a.txt; mv a.txt x", EntryKind.SPECIAL),
    "socket": ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"x\")'", EntryKind.SPECIAL),
}


@pytest.mark.parametrize("name", LINKS)
def test_an_export_follows_nothing(sandbox: Sandbox, blobs: MemoryBlobs, name: str) -> None:
    command, kind = LINKS[name]
    ask(sandbox, command)
    sandbox.stop()
    started = time.monotonic()
    found = FileTree.load(blobs, sandbox.export())
    assert time.monotonic() - started < 10
    assert found["x"].kind is kind
    assert not any(path.startswith("x/") for path in found)
    if kind is EntryKind.FILE:
        assert b"root:" not in found.read(blobs, "x")


def test_devices_are_not_made(sandbox: Sandbox, blobs: MemoryBlobs) -> None:
    assert ask(sandbox, "mknod null c 1 3; mknod disk b 259 0; mknod white c 0 0").count(b"not permitted") >= 2
    sandbox.stop()
    found = FileTree.load(blobs, sandbox.export())
    # A device 0:0 opens nothing; where a file system lets anyone make one, it is one more special entry.
    assert {path for path, entry in found.items() if entry.kind is EntryKind.SPECIAL} <= {"white"}


RACE = """
import os
os.makedirs("deep", exist_ok=True)
open("deep/f", "w").write("own")
if os.fork() == 0:
    while True:
        for target in ("/etc", "/proc/self/root"):
            try:
                os.rename("deep", "kept"); os.symlink(target, "deep"); os.unlink("deep"); os.rename("kept", "deep")
            except OSError: pass
"""


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(sandbox: Sandbox, blobs: MemoryBlobs) -> None:
    ask(sandbox, f"cat >race.py <<'END'\n{RACE}\nEND\n(python3 race.py >/dev/null 2>&1 &); sleep 0.3")
    for _ in range(15):
        try:
            found = FileTree.load(blobs, sandbox.export())
        except Exception as error:  # noqa: BLE001  (a tree in motion may not be readable; then it says so)
            assert type(error).__module__ == "factory.core.errors"
            continue
        assert not any(path.endswith(("passwd", "hostname")) for path in found)
    sandbox.stop()
    first = sandbox.export()
    assert sandbox.export() == first


READS = (
    "/etc/shadow",
    "/proc/1/mem",
    "/workspace/pipe",
    "/workspace",
    "/dev/zero",
    "/proc/self/mem",
    "/nowhere/x",
    "/workspace/loop",
)


@pytest.mark.parametrize("path", READS)
def test_the_harness_s_reads_have_the_agent_s_rights_and_an_end(cell: Sandbox, path: str) -> None:
    ask(cell, "[ -e pipe ] || { mkfifo pipe; ln -s loop loop; }")
    started = time.monotonic()
    with pytest.raises((FileNotFoundError, IsADirectoryError, PermissionError)):
        cell.read_file(path, 1000)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "path", ["/workspace/../etc/planted", "/usr/bin/planted", "/workspace/out", "/workspace/pipe", "/dev/planted"]
)
def test_the_harness_s_writes_have_the_agent_s_rights_and_an_end(cell: Sandbox, path: str) -> None:
    ask(cell, "[ -e pipe ] || { mkfifo pipe; ln -s loop loop; }; [ -L out ] || ln -s /etc/planted out")
    started = time.monotonic()
    with pytest.raises((FileNotFoundError, IsADirectoryError, PermissionError)):
        cell.write_file(path, b"planted")
    assert time.monotonic() - started < 10
    assert ask(cell, "ls /etc/planted /usr/bin/planted /dev/planted 2>/dev/null") == b""


NAMES = {
    "that does not print": "\x1b" * 60_000,
    "half of a character": "/tmp/\ud800" + "\udcff" * 60_000,
    "quotes": '"' * 64_000,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_the_asker_s_own_affair(make: Make, name: str) -> None:
    """What it takes on its way into a sandbox ended every sandbox of the machine."""
    one, other = make(), make()
    ask(other, "x=here")
    with pytest.raises((OSError, SandboxError)):
        one.write_file(NAMES[name], b"x")
    assert (ask(other, "echo $x"), ask(one, "echo alive")) == (b"here\n", b"alive\n")


@pytest.mark.parametrize("size", [8, 250])
def test_a_path_is_never_longer_than_others_can_lay_out(make: Make, backend: Backend, blobs: MemoryBlobs, size: int) -> None:
    """Relative to where it stands a path can be as long as one likes: its end tree could be neither graded nor restored."""
    box = make()
    code = f"import os\nfor _ in range(60): os.mkdir('d' * {size}); os.chdir('d' * {size})\nopen('leaf', 'w')"
    ask(box, f"(cd /tmp; python3 -c {shlex.quote(code)}); python3 -c {shlex.quote(code)}")
    state = box.snapshot()
    assert state.scratch is not None
    depths = [path.count("/") + 1 for path in FileTree.load(blobs, state.tree) if path.startswith("d" * size)]
    assert depths == [61 if size == 8 else 2048 // 251 + 1]
    box.restore(state)
    end = box.export()
    assert end == state.tree
    spec = EnvironmentSpec(files=FileTree().save(blobs))
    with backend.open(spec, blobs, (Mount(path="/submission", tree=end),)) as grading:
        assert ask(grading, "ls -d /submission/d*/d* | wc -l") == b"1\n"
    with backend.open(EnvironmentSpec(files=end), blobs) as again:
        assert again.export() == end


def test_special_files_are_as_many_as_one_likes(make: Make, backend: Backend, blobs: MemoryBlobs) -> None:
    """More of them than a process can have arguments."""
    box = make()
    code = "import os\nfor n in range(12000): os.mkfifo('pipe' * 50 + str(n))"
    ask(box, f"python3 -c {shlex.quote(code)}")
    state = box.snapshot()
    box.restore(state)
    assert box.export() == state.tree
    spec = EnvironmentSpec(files=FileTree().save(blobs))
    with backend.open(spec, blobs, (Mount(path="/submission", tree=state.tree),)) as grading:
        assert ask(grading, "find /submission -type s | wc -l") == b"12000\n"


LEFT = {
    "folders in folders": 'python3 -c \'import os\nfor _ in range(3000): os.mkdir("d"); os.chdir("d")\'',
    "closed folders": "mkdir -p a/b/c; : >a/b/c/d; chmod 000 a/b/c a/b a; chmod 000 /workspace /tmp ~",
    "names that lead elsewhere": "ln -s /usr u; ln -s . s; mkdir -- -rf; mkfifo $'\\xff\\n'",
}


@pytest.mark.parametrize("name", LEFT)
def test_a_restore_clears_whatever_was_left(make: Make, name: str) -> None:
    box = make()
    before = box.snapshot()
    ask(box, f"(cd /tmp; {LEFT[name]}); {LEFT[name]}")
    box.restore(before)
    assert box.export() == before.tree
    told = ask(box, "stat -c %a /workspace /tmp ~; ls; ls -d /tmp/d /tmp/a /tmp/u 2>/dev/null")
    assert told.split() == [b"755", b"1777", b"755", b"a.txt", b"run.sh", b"src"]


def test_a_daemon_is_dead_before_files_are_read(sandbox: Sandbox, blobs: MemoryBlobs) -> None:
    daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True:\n"
    daemon += "            open('/workspace/answer', 'a').write('x'); time.sleep(0.001)\n"
    ask(sandbox, f"cat >d.py <<'END'\n{daemon}\nEND\n(nohup setsid python3 d.py >/dev/null 2>&1 &); sleep 0.5")
    sandbox.stop()
    first = sandbox.export()
    time.sleep(0.3)
    assert sandbox.export() == first
    assert len(FileTree.load(blobs, first).read(blobs, "answer")) > 10


def test_other_sandboxes_files_are_out_of_reach(make: Make) -> None:
    one, other = make(), make()
    ask(one, "echo secret-of-one | tee f /tmp/f ~/f >/dev/shm/f")
    look = "grep -rs secret-of-one /workspace /tmp /home /dev/shm /run /var/tmp /mnt /opt | wc -l"
    assert (ask(one, look).strip(), ask(other, look).strip()) == (b"4", b"0")
    assert ask(other, "ls -A /tmp /dev/shm | grep -v : | wc -w") == b"0\n"


def test_what_one_episode_leaves_no_other_finds(backend: Backend, make: Make) -> None:
    first = make()
    ask(
        first,
        "for d in /tmp ~ /dev/shm /workspace; do echo kept >$d/kept; done; export KEPT=kept; alias kept=ls",
    )
    first.close()
    assert ask(make(), "find / -xdev -name kept 2>/dev/null; env | grep KEPT; alias; ls /tmp ~ /dev/shm | grep kept") == b""


def test_the_machine_is_as_it_was(backend: Backend) -> None:
    """Nothing that the probes of this folder plant has come out."""
    assert not [path for path in ("/etc/planted", "/usr/bin/planted", "/dev/planted", "/tmp/planted") if os.path.lexists(path)]


def test_a_link_in_place_of_the_start_is_not_followed_into_the_next_reset(
    make: Make, blobs: MemoryBlobs, tree: FileTree
) -> None:
    opened = make()
    ask(opened, "rm -rf src a.txt; ln -s /etc src; ln -s /usr/bin/env a.txt")
    left = opened.snapshot()
    opened.restore(left)
    assert ask(opened, "readlink src a.txt; echo x >src/planted; echo $?").splitlines()[:2] == [b"/etc", b"/usr/bin/env"]
    fresh = make()
    assert ask(fresh, "cat a.txt src/b.py; ls /etc/planted 2>&1 | grep -c planted") == b"one\ntwo\nprint('b')\n1\n"
    assert FileTree.load(blobs, left.tree)["src"] == Entry(EntryKind.LINK, target="/etc")
