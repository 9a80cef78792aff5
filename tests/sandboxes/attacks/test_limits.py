"""Bombs and floods: what is used up is the sandbox's own, and it stays or becomes usable again."""

from __future__ import annotations

import shlex
import time

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.files import FileTree
from sandboxes.contract import Backend, Sandbox
from tests.sandboxes.attacks.conftest import ask, works
from tests.sandboxes.conftest import Make

pytestmark = pytest.mark.attack

SMALL = {"memory_bytes": 128 << 20, "processes": 24, "disk_bytes": 8 << 20, "file_bytes": 4 << 20, "open_files": 64}
TEN_GB = 10_000_000_000


@pytest.fixture
def small(make: Make) -> Sandbox:
    return make(limits=SMALL)


FORKS = {
    "functions of a shell": "bomb() { bomb | bomb & }; bomb",
    "forks without end": "python3 -c 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'",
    "threads": "python3 -c 'import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()'",
    "detached daemons": "while :; do (setsid nohup sleep 60 >/dev/null 2>&1 &); done",
}


@pytest.mark.parametrize("name", FORKS)
def test_a_fork_bomb_leaves_a_neighbour_alone_and_can_be_stopped(small: Sandbox, make: Make, name: str) -> None:
    bystander = make()
    ask(small, FORKS[name], timeout_s=2)
    started = time.monotonic()
    assert ask(bystander, "python3 -c 'print(1)'") == b"1\n"
    assert time.monotonic() - started < 15
    small.stop()
    small.export()


MEMORY = {
    "objects": "python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'",
    "a map": "python3 -c 'import mmap; m = mmap.mmap(-1, 1 << 30); [m.write(bytes(1 << 20)) for _ in range(1024)]'",
    "a file in memory": "python3 -c 'import os; f = os.memfd_create(\"x\"); [os.write(f, bytes(1 << 20)) for _ in range(300)]'",
    "a variable of the shell": "x=$(head -c 400000000 /dev/zero | tr '\\0' x)",
    "shared memory of System V": "python3 -c 'import ctypes; c = ctypes.CDLL(None); i = c.shmget(0, 1 << 30, 0o1600); "
    "c.shmat.restype = ctypes.c_void_p; p = c.shmat(i, None, 0); ctypes.memset(p, 1, 1 << 30)'",
    "numbers of many digits": "python3 -c 'x = 3 ** (3 ** 24)'",
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_is_bounded_in_one_process(small: Sandbox, name: str) -> None:
    assert b"filled" not in ask(small, f"{MEMORY[name]} && echo filled", timeout_s=2)
    assert works(small)


def test_memory_is_bounded_in_all_processes(small: Sandbox, backend: Backend) -> None:
    """160 MiB; in a container processes may also take what the folders leave."""
    hold = "python3 -c 'import time; x = bytearray(60 << 20); x[::4096] = bytes(15360); time.sleep(2); print(6 * 7)'"
    told = ask(small, f"for n in 1 2 3 4 5 6; do {hold} & done; wait")
    assert 0 < told.splitlines().count(b"42") <= (2 if backend.name == "bubblewrap" else 3)
    assert works(small)


SHARED = {
    "by processes": ("mmap.mmap(-1, size)", "pass"),
    "as zeros": ("mmap.mmap(os.open('/dev/zero', os.O_RDWR), size)", "pass"),
    "by nobody": ("mmap.mmap(-1, size)", "held.madvise(mmap.MADV_DONTNEED)"),
}
HOLD_SHARED = """
import mmap, os, time
size = 100 << 20
for _ in range(6):
    if os.fork() == 0:
        held = {mapped}
        for place in range(0, size, 4096): held[place] = 1
        {after}
        time.sleep(2)
        print("held", flush=True)
        os._exit(0)
try:
    while True: os.wait()
except ChildProcessError: pass
"""


@pytest.mark.parametrize("name", SHARED)
def test_memory_that_is_shared_is_bounded(small: Sandbox, name: str) -> None:
    """It is no process's own, and stays when no process maps it any more."""
    mapped, after = SHARED[name]
    told = ask(small, f"python3 -c {shlex.quote(HOLD_SHARED.format(mapped=mapped, after=after))}", 40)
    assert told.splitlines().count(b"held") <= 2
    assert works(small)


def test_memory_is_shared_by_files(small: Sandbox) -> None:
    """The control, in the ways that Python's own modules have; and zeros are read."""
    code = "from multiprocessing import Array, Process; a = Array('i', [0]); p = Process(target=lambda: a.__setitem__(0, 42)); "
    code += "p.start(); p.join(); print(a[0]); import tempfile, mmap; f = tempfile.TemporaryFile(); f.truncate(4096); "
    code += "m = mmap.mmap(f.fileno(), 4096); m[0] = 42; print(m[0])"
    assert ask(small, f'python3 -c "{code}"; head -c 3 /dev/zero | od -An -tu1') == b"42\n42\n   0   0   0\n"


def test_a_process_at_its_own_limit_is_not_killed_for_its_neighbours(make: Make) -> None:
    """Three neighbours of 8 MiB each, and a process that holds all that it may for longer than two looks of the helper."""
    neighbour = 'python3 -c \'import time; x = bytes(8 << 20).replace(b"\\0", b"x"); time.sleep(3)\''
    full = """python3 -c '
import time
kept = []
try:
    while True: kept.append(bytearray(1 << 20))
except MemoryError: pass
time.sleep(1)
print(len(kept) > 200)'"""
    box = make(limits={**SMALL, "memory_bytes": 256 << 20})
    assert ask(box, f"for n in 1 2 3; do {neighbour} & done; {full}") == b"True\n"


def test_disk_and_inodes_are_bounded(small: Sandbox) -> None:
    ask(small, "for n in $(seq 9); do head -c 4000000 /dev/zero >$n; done; for n in $(seq 99999); do : >f$n || break; done", 30)
    used, count = ask(small, "cat [1-9] | wc -c; ls | wc -l").split()[-2:]
    assert int(used) <= 8 << 20
    assert int(count) <= 2200
    assert works(small)
    small.stop()
    assert len(small.export()) == 64


FILL = "for n in 1 2 3 4 5; do head -c 4000000 /dev/zero >$d/$n; done 2>/dev/null"
DELETED = """
import os, sys
kept, folder = [], sys.argv[1]
try:
    for _ in range(9):
        kept.append(open(folder + "/x", "wb", 0))
        os.unlink(folder + "/x")
        kept[-1].write(bytes(3 << 20))
except OSError: pass
print(sum(os.fstat(file.fileno()).st_blocks for file in kept) * 512, file=open(folder + "/sum", "w"))
"""
DISK = {
    "shared memory": (FILL, "/dev/shm"),
    "temporary files": (FILL, "/tmp"),
    "the home folder": (FILL, "/home/agent"),
    "files that were deleted and are still open": (f"python3 -c '{DELETED}' $d", "/tmp"),
    "one file": ("yes | head -c 90000000 >$d/x", "/workspace"),
}


@pytest.mark.parametrize("name", DISK)
def test_no_folder_takes_more_than_the_disk(small: Sandbox, name: str) -> None:
    command, folder = DISK[name]
    told = ask(small, f"d={folder}; {command}; cat $d/* | wc -c; cat $d/sum 2>/dev/null || echo 0")
    assert max(map(int, told.split()[-2:])) <= 8 << 20
    assert works(small)


FULL = {
    "content": "for n in 1 2 3; do head -c 30000000 /dev/zero >$d/$n; done",
    "empty files": "for n in $(seq 20000); do : >$d/a-name-that-takes-some-room-of-its-own-in-the-kernel-$n || break; done",
}


@pytest.mark.parametrize("name", FULL)
def test_full_folders_leave_room_for_the_harness(make: Make, name: str) -> None:
    """Where the folders are memory and may hold more than the processes."""
    box = make(limits={"memory_bytes": 96 << 20, "disk_bytes": 64 << 20})
    ask(box, f"for d in /tmp /dev/shm ~ /workspace; do {FULL[name]}; done 2>/dev/null", 60)
    assert works(box)
    box.stop()
    box.export()


@pytest.mark.parametrize(
    "place",
    ["/", "/usr", "/etc", "/dev", "/opt", "/var/tmp", "/run/lock", "/proc/self", "/sys/fs/cgroup", "/mnt", "/root", "/home"],
)
def test_no_other_place_takes_data(cell: Sandbox, place: str) -> None:
    assert b"in\n" not in ask(cell, f"(echo in >{place}/planted) 2>/dev/null && cat {place}/planted")
    assert b"in\n" in ask(cell, "(echo in >/tmp/planted) 2>/dev/null && cat /tmp/planted")


FLOODS = {
    "ten gigabytes": f"head -c {TEN_GB} /dev/zero",
    "lines without end": "yes passed",
    "errors": f"head -c {TEN_GB} /dev/zero >&2",
    "a background job": "yes & sleep 60",
    "both streams at once": "yes out & yes error >&2 & wait",
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_is_bounded_in_bytes_and_time(cell: Sandbox, name: str) -> None:
    started = time.monotonic()
    result = cell.run(FLOODS[name], timeout_s=1, output_bytes=1000)
    assert result.timed_out
    assert len(result.output) <= 1000 + 100
    assert result.omitted_bytes > 100_000
    assert time.monotonic() - started < 15
    assert works(cell)


def test_a_flood_into_a_reader_is_bounded(cell: Sandbox) -> None:
    """What a process beside the shell prints is bounded as well, and a file is read up to the limit asked for."""
    started = time.monotonic()
    flood = cell.process(["yes"], stdin=b"", timeout_s=1, output_bytes=1000)
    assert flood.timed_out and len(flood.stdout) <= 1000
    ask(cell, "truncate -s 30M sparse")
    assert len(cell.read_file("/workspace/sparse", 1000)) <= 1001
    with pytest.raises(PermissionError):
        cell.read_file("/dev/zero", 1000)
    assert time.monotonic() - started < 15


PIPES = """
import os, time
kept = []
try:
    while True: kept.append(os.pipe())
except OSError: time.sleep(9)
"""
USED_UP = {
    "open files": "exec {a}</dev/null; for n in $(seq 200); do exec {a}</dev/null; done 2>/dev/null",
    "processor time": "python3 -c 'while True: pass'",
    "stack": "f() { f; }; f",
    "pipes": f"python3 -c '{PIPES}' &",
    "locks of files": "python3 -c 'import fcntl, time; f = open(\"a.txt\"); fcntl.flock(f, 2); time.sleep(60)' & sleep 0.2",
    "arguments": "x=$(head -c 3000000 /dev/zero | tr '\\0' x); /bin/echo $x | wc -c",
    "a glob without end": "mkdir -p a/a/a/a; ls */*/*/*/../../../../*/*/*/*/../../../../*/*/*/*",
    "core dumps": "ulimit -c unlimited; sleep 60 & kill -SEGV $!; wait; ls core* 2>/dev/null",
}


@pytest.mark.parametrize("name", USED_UP)
def test_what_is_used_up_is_the_command_s_own(make: Make, name: str) -> None:
    opened = make(limits={**SMALL, "disk_bytes": 64 << 20})
    said = opened.run(USED_UP[name], timeout_s=1.5, output_bytes=1000)
    assert b"core." not in said.output
    for _ in range(3):
        if opened.run("echo $((6 * 7))", timeout_s=5, output_bytes=1000).output.endswith(b"42\n"):
            break
    else:
        pytest.fail("the sandbox does not come back")
    opened.stop()
    opened.export()


def test_a_sparse_file_is_not_exported_at_its_size(small: Sandbox, blobs: MemoryBlobs) -> None:
    ask(small, "for n in $(seq 50); do truncate -s 4M s$n; done")
    small.stop()
    tree = FileTree.load(blobs, small.export())
    assert sum(entry.size for path, entry in tree.items() if path[1:].isdigit()) <= 8 << 20
