"""Privileges, namespaces, mounts, other processes, the kernel's files: what a process of a sandbox asks the kernel for."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.contract import Backend, Sandbox
from tests.sandboxes.attacks.conftest import GOT, Probe, ask, works
from tests.sandboxes.conftest import Make

pytestmark = pytest.mark.attack

CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    done = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if done < 0: raise OSError(ctypes.get_errno(), "refused")
    return done
machine = os.uname().machine == "x86_64"
"""
CALLS = {
    "user namespace": "call(272 if machine else 97, 0x10000000)",
    "mount namespace": "call(272 if machine else 97, 0x00020000)",
    "process namespace by clone": "call(56 if machine else 220, 0x20000000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "user namespace by clone": "call(56 if machine else 220, 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "namespaces of the first process": "call(308 if machine else 268, os.open('/proc/1/ns/mnt', 0), 0)",
    "mount of a file system": "call(165 if machine else 40, b'none', b'/tmp', b'tmpfs', 0, 0)",
    "mount that binds": "call(165 if machine else 40, b'/', b'/tmp', 0, 4096, 0)",
    "mount made writable": "call(165 if machine else 40, 0, b'/usr', 0, 32 | 4096, 0)",
    "unmount": "call(166 if machine else 39, b'/proc', 2)",
    "new mount calls": "call(430, b'tmpfs', 0)",
    "open tree": "call(428, -100, b'/', 1)",
    "change of root": "os.chroot('/tmp')",
    "root by user id": "os.setuid(0)",
    "root by group": "os.setgroups([0])",
    "root by capability": "[os.setresuid(0, 0, 0), os.seteuid(0)]",
    "file given to root": "os.chown('a.txt', 0, 0)",
    "device made": "os.mknod('disk', 0o60666, os.makedev(259, 0)) or open('disk', 'rb')",
    "program for the kernel": "call(321 if machine else 280, 0, b'\\0' * 64, 64)",
    "events of the kernel": "call(298 if machine else 241, b'\\0' * 112, 0, -1, -1, 0)",
    "page faults handled": "call(323 if machine else 282, 0)",
    "files by handle": "call(304 if machine else 265, -100, b'\\0' * 32, 0)",
    "key ring": "call(250 if machine else 219, 0, -3, 1)",
    "input and output ring": "call(425, 8, b'\\0' * 128)",
    "input and output ring entered": "call(426, 0, 0, 0, 0, 0, 0)",
    "memory without a file": "os.memfd_create('x')",
    "memory hidden from the kernel": "call(447, 0)",
    "shared memory of System V": "call(29 if machine else 194, 0, 4096, 0o1600)",
    "queue of messages of System V": "call(68 if machine else 186, 0, 0o1600)",
    "semaphores of System V": "call(64 if machine else 190, 0, 32000, 0o1600)",
    "queue of messages": "call(240 if machine else 180, b'x', 0o102, 0o600, 0)",
    "queue of messages as a file": "open('/dev/mqueue/x', 'w')",
    "keys added": "call(248 if machine else 217, b'user', b'x', b'y', 1, -3)",
    "memory of another process": "call(310 if machine else 270, 1, 0, 0, 0, 0, 0)",
    "descriptors of another process": "call(438, os.pidfd_open(1), 0, 0)",
    "new processes past the filter": "call(435, b'\\0' * 64, 64)",
    "packets": "import socket; socket.socket(17, socket.SOCK_RAW)",
    "sockets of the kernel's cryptography": "import socket; socket.socket(38, socket.SOCK_SEQPACKET)",
    "sockets of virtual machines": "import socket; socket.socket(40, socket.SOCK_STREAM)",
    "personality": "call(135 if machine else 92, 0x0400000) == 0 or call(9999)",
    "kernel module": "call(175 if machine else 105, b'', 0, b'')",
    "another kernel": "call(246 if machine else 104, 0, 0, 0, 0)",
    "restart of the machine": "call(169 if machine else 142, 0xfee1dead - (1 << 32), 672274793, 0x89abcdef - (1 << 32), 0)",
    "swap": "call(167 if machine else 224, b'/workspace/a.txt', 0)",
    "clock": "import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
    "host name": "import socket; socket.sethostname('other')",
    "priority": "os.setpriority(os.PRIO_PROCESS, 0, -5)",
    "limits raised": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))",
    "ports of the processor": "call(172, 3) if machine else call(9999)",
    "log of the kernel": "call(103 if machine else 116, 3, ctypes.create_string_buffer(99), 99)",
    "accounting": "call(163 if machine else 89, b'/workspace/a.txt')",
    "ptrace of the first process": "call(101 if machine else 117, 16, 1, 0, 0)",
    "memory of the first process": "open('/proc/1/mem', 'rb').read(1)",
    "descriptors of the first process": "os.listdir('/proc/1/fd')",
    "root of the first process": "os.listdir('/proc/1/root')",
    "lease on a file": "import fcntl; fcntl.fcntl(open('mine', 'w'), 1024, 1)",
    "lease past 32 bits": "call(72 if machine else 25, os.open('mine', 65), 1 << 32 | 1024, 1)",
    "watch of a folder by signals": "import fcntl; fcntl.fcntl(os.open('.', 0), 1026, 2)",
    "memory shared without a file": "import mmap; mmap.mmap(-1, 4096)",
    "watch of files": "call(294 if machine else 26, 0)",
    "limits of the first process": "import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (4, 4))",
}
"""Python statements that get something which no sandbox may give."""
WHEN_OWN = ("root of the first process", "descriptors of the first process", "limits of the first process")
"""On a back end whose first process is of the agent's user these may succeed: it is inside the sandbox as well."""


@pytest.mark.parametrize("name", CALLS)
def test_the_kernel_refuses(inside: Probe, cell: Sandbox, name: str) -> None:
    said = inside(f"{CALL}\n{CALLS[name]}\nprint({GOT!r})")
    if name in WHEN_OWN and ask(cell, "stat -c %u /proc/1").strip() == b"1000":
        return
    assert GOT not in said and "Traceback" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="as root only")
@pytest.mark.parametrize("name", ["user namespace", "root by user id", "priority", "ptrace of a child"])
def test_outside_the_kernel_allows(outside: Probe, name: str) -> None:
    """The control: the same statements get through where nothing forbids them."""
    child = "pid = os.fork() or os.execlp('sleep', 'sleep', '9'); call(101 if machine else 117, 16, pid, 0, 0); os.kill(pid, 9)"
    assert GOT in outside(f"{CALL}\n{CALLS.get(name, child)}\nprint({GOT!r})")


def test_only_where_a_verifier_looks_files_can_be_watched(backend: Backend, blobs: MemoryBlobs) -> None:
    """128 watchers are all that the user has by whom every sandbox runs; a task's own mounts make no verifier's sandbox."""
    mount = Mount(path="/opt/deps", tree=FileTree.of(blobs, {"m.py": "x = 6 * 7"}).save(blobs))
    watch = ["python3", "-c", f"{CALL}\ncall(294 if machine else 26, 0); print('watched')"]
    told = []
    for own, given in (((mount,), ()), ((), (mount,))):
        spec = EnvironmentSpec(files=FileTree().save(blobs), mounts=own)
        with backend.open(spec, blobs, given) as opened:
            told.append(opened.process(watch, stdin=b"", timeout_s=20, output_bytes=100).stdout)
    assert told == [b"", b"watched\n"]


LEASED = """
import fcntl, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = open("/opt/deps/m.py")
fcntl.fcntl(held, 1024, 1)
time.sleep(60)
"""


def test_a_shared_layer_is_not_made_to_wait_for(make: Make, blobs: MemoryBlobs) -> None:
    """Whoever held leases on the packages that a neighbour's verifier imports had it graded as too slow."""
    packages = (Mount(path="/opt/deps", tree=FileTree.of(blobs, {"m.py": "x = 6 * 7"}).save(blobs)),)
    one, other = make(mounts=packages), make(mounts=packages)
    ask(one, f"python3 -c {shlex.quote(LEASED)} & sleep 0.5")
    started = time.monotonic()
    assert ask(other, "cat /opt/deps/m.py", 30) == b"x = 6 * 7"
    assert time.monotonic() - started < 10


def test_the_commands_of_descriptors_work(inside: Probe) -> None:
    """The control: what programs need of `fcntl`."""
    code = "import fcntl, os; f = open('mine', 'w'); fcntl.lockf(f, 2); fcntl.flock(f, 2); fcntl.fcntl(f, 1030, 9); "
    code += "fcntl.fcntl(f, 4, os.O_APPEND); fcntl.fcntl(open('m', 'w'), 37, bytes([1]) + bytes(31)); print('used')"
    assert inside(code) == "used\n"


NEIGHBOUR = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
got = []
for pid in {pids}:
    read = lambda name, mode: open(f"/proc/{{pid}}/{{name}}", mode).read(0)
    for what in (lambda: os.kill(pid, 0), lambda: read("cmdline", "r"), lambda: read("mem", "rb")):
        try:
            what()
            got.append(pid)
        except OSError: pass
    if libc.ptrace(16, pid, 0, 0) == 0: got.append(pid)
print("{got}" if got else "nothing")
"""


def test_processes_of_this_machine_are_no_neighbours(inside: Probe, outside: Probe) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            pids = [sleeper.pid, os.getpid(), os.getppid()]
            code = NEIGHBOUR.format(pids=[pid for pid in pids if pid > 1000], got=GOT)
            assert GOT in outside(code.replace("libc.ptrace(16, pid, 0, 0) == 0", "False"))
            assert inside(code) == "nothing\n"
        finally:
            sleeper.kill()


def test_processes_of_another_sandbox_are_no_neighbours(make: Make) -> None:
    one, other = make(), make()
    ask(one, "exec -a secret-of-one sleep 60 & sleep 0.2")
    look = "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^secret-of-on[e]'"
    assert (ask(one, look), ask(other, look)) == (b"1\n", b"0\n")


def test_the_first_process_takes_no_signal(sandbox: Sandbox) -> None:
    ask(sandbox, "for n in $(seq 1 64); do kill -$n 1; done 2>/dev/null")
    assert works(sandbox)
    ask(sandbox, "kill -9 -1")
    assert works(sandbox)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM])
def test_a_shell_that_signals_everything_loses_only_itself(sandbox: Sandbox, number: signal.Signals) -> None:
    ask(sandbox, f"kill -{number.value} -1; kill -{number.value} $$; kill -{number.value} 1")
    assert works(sandbox)


def test_a_setuid_bit_changes_nothing(cell: Sandbox) -> None:
    told = ask(
        cell, "cp /usr/bin/id mine; chmod 6755 mine; ./mine -u; id -u; find / -xdev -perm -4000 -user 0 -exec {} -h \\; | wc -c"
    )
    assert set(told.split()[:2]) == {b"1000"}
    assert ask(cell, "su -c id </dev/null; echo $?").endswith(b"\n") and b"uid=0" not in ask(cell, "su -c id </dev/null")


KERNEL_FILES = (
    "/proc/kcore /proc/kmsg /dev/mem /dev/kmsg /dev/port /dev/sda /dev/vda /dev/nvme0n1 /dev/fuse /dev/kvm "
    "/sys/kernel/debug /sys/firmware/dmi/tables/DMI /sys/kernel/security /sys/fs/bpf/x"
)


def test_files_of_the_kernel_hold_nothing(cell: Sandbox) -> None:
    told = ask(cell, f"for f in {KERNEL_FILES}; do head -c 16 $f 2>/dev/null | wc -c; done")
    assert set(told.split()) == {b"0"}


@pytest.mark.parametrize(
    "path",
    [
        "/proc/sys/kernel/panic",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj",
        "/proc/self/uid_map",
        "/sys/kernel/uevent_helper",
        "/sys/fs/cgroup/cgroup.procs",
        "/proc/irq/default_smp_affinity",
    ],
)
def test_files_of_the_kernel_take_nothing(cell: Sandbox, path: str) -> None:
    value = "-1000" if path.endswith("adj") else "0 0 1"
    assert b"took" not in ask(cell, f"(echo {value} >{path}) 2>/dev/null && echo took")


def test_proc_shows_nothing_of_the_host(cell: Sandbox) -> None:
    names = ask(cell, "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'; cat /proc/self/mountinfo /proc/self/cgroup").decode(
        errors="replace"
    )
    for secret in (str(Path.cwd()), "pytest", str(Path.home()) + "/"):
        assert secret not in names


def test_the_host_s_variables_and_folders_are_unseen(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "leaked-value")
    (tmp_path / "host-file").write_text("leaked-value")
    told = ask(
        make(),
        f"env; cat /proc/*/environ; cat {tmp_path}/host-file; ls {Path.cwd()} {Path.home()}; cat /etc/hostname /etc/shadow",
    )
    assert b"leaked-value" not in told and b"pyproject.toml" not in told
    assert b"leaked-value" in subprocess.run(["env"], capture_output=True, check=True).stdout


def test_a_killed_sandbox_is_told_as_such(make: Make) -> None:
    """Whatever kills the whole sandbox is an infrastructure fault of this one and of no other."""
    one, other = make(), make()
    one.close()
    with pytest.raises(SandboxError):
        one.run("echo", timeout_s=5, output_bytes=100)
    assert works(other)
