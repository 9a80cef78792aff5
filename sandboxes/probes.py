"""What holds on this machine: each property is tried in a sandbox of its own kind, none is taken on trust."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Limits
from sandboxes.contract import Backend, Capability, CommandResult

LIMITS = Limits(memory_bytes=128 << 20, processes=24, disk_bytes=8 << 20, file_bytes=4 << 20, open_files=64, episode_ms=60_000)
"""Small limits, so that reaching them is cheap."""

_HOLD = "python3 -c 'import time; held = bytearray(b\"x\") * (48 << 20); time.sleep(1.5)'"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One property: a command that tells `yes` where it holds."""

    name: str
    command: str
    remedy: str
    """What to do where it does not hold."""


PROBES = (
    Probe(
        name="no network",
        command='[ "$(grep -c : /proc/net/dev)" = 1 ] && ! (exec 9<>/dev/tcp/192.0.2.1/80) 2>/dev/null && echo yes',
        remedy="allow network namespaces to unprivileged users",
    ),
    Probe(name="not root", command='[ "$(id -u)" != 0 ] && echo yes', remedy="allow user namespaces"),
    Probe(
        name="no capabilities",
        command="[ $(grep -c -E '^Cap(Eff|Prm|Inh|Amb):[[:space:]]*0*$' /proc/self/status) = 4 ] && echo yes",
        remedy="a newer bubblewrap or engine drops them",
    ),
    Probe(
        name="no new privileges",
        command="grep -q 'NoNewPrivs:[[:space:]]*1' /proc/self/status && echo yes",
        remedy="a newer kernel has it",
    ),
    Probe(
        name="system call filter",
        command="grep -q 'Seccomp:[[:space:]]*2' /proc/self/status && echo yes",
        remedy="a kernel with CONFIG_SECCOMP_FILTER has it",
    ),
    Probe(
        name="no user namespaces inside",
        command="""python3 -c 'import ctypes; print("yes" if ctypes.CDLL(None).unshare(0x10000000) else "no")'""",
        remedy="bubblewrap 0.8 or newer and a kernel that can limit user namespaces",
    ),
    Probe(
        name="nothing of the host's folders",
        command='[ -d /usr ] && [ -z "$(ls -d /root/* /home/[!a]* /mnt/* /srv/* /media/* /boot/* 2>/dev/null)" ] && echo yes',
        remedy="use an image without files there",
    ),
    Probe(
        name="memory of one process",
        command="python3 -c 'bytearray(16 << 20)' && ! python3 -c 'bytearray(256 << 20)' 2>/dev/null && echo yes",
        remedy="a kernel with RLIMIT_AS",
    ),
    Probe(
        name="memory of all processes",
        command=f"for n in 1 2 3 4 5 6; do {_HOLD} & done; "
        '{ for n in 1 2 3 4 5 6; do wait -n || bad=1; done; } 2>/dev/null; [ "$bad" ] && echo yes',
        remedy="/proc must show the children of processes (CONFIG_PROC_CHILDREN); the engine needs its memory controller",
    ),
    Probe(
        name="processes",
        command="""[ "$(python3 -c '
import os, time
started = 0
try:
    while started < 200:
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
        started += 1
except BlockingIOError:
    print(started)
')" -le 32 ] && sleep 1 && echo yes""",
        remedy="run as another user than root, or give the engine the pids controller",
    ),
    Probe(
        name="disk in all",
        command="for f in w1 w2 /tmp/w1 /tmp/w2; do head -c 3000000 /dev/zero >$f || break; done 2>/dev/null; "
        "size=$(cat w? /tmp/w? | wc -c); [ $size -ge 6000000 -a $size -le 8388608 ] && echo yes; rm -f w? /tmp/w?",
        remedy="use the bubblewrap back end: here each writable folder has the limit for itself",
    ),
    Probe(
        name="disk of each folder",
        command="for f in w1 w2 w3 w4; do head -c 3000000 /dev/zero >$f; done 2>/dev/null; "
        "size=$(cat w? | wc -c); [ $size -ge 6000000 -a $size -le 8388608 ] && echo yes; rm -f w?",
        remedy="a kernel that mounts sized tmpfs in user namespaces",
    ),
    Probe(
        name="number of files",
        command="mkdir many && (cd many && for n in $(seq 5000); do : >$n || exit; done) 2>/dev/null; "
        "count=$(ls many | wc -l); [ $count -ge 1000 -a $count -lt 5000 ] && echo yes; rm -rf many",
        remedy="a kernel that mounts tmpfs with nr_inodes",
    ),
    Probe(
        name="file size",
        command="head -c 6000000 /dev/zero >big 2>/dev/null; [ $(wc -c <big) = 4194304 ] && echo yes; rm -f big",
        remedy="RLIMIT_FSIZE",
    ),
    Probe(name="open files", command='[ "$(ulimit -Hn)" = 64 ] && echo yes', remedy="RLIMIT_NOFILE"),
    Probe(name="CPU time of one process", command='[ "$(ulimit -Ht)" = 60 ] && echo yes', remedy="RLIMIT_CPU"),
    Probe(
        name="clean environment",
        command="! env | grep -q ENVFACTORY_PROBE && ! cat /proc/*/environ 2>/dev/null | grep -q ENVFACTORY_PROBE && echo yes",
        remedy="report this: the back end must clear it",
    ),
)
POLICIES: tuple[tuple[dict[str, Any], Probe], ...] = (
    (
        {"clock": "frozen:2001-09-09T01:46:40Z"},
        Probe(
            name="frozen clock",
            command="""[ "$(date +%s; printf '%(%s)T ' -1; python3 -c 'import time; print(int(time.time()))')" = \
"$(printf '1000000000\\n1000000000 1000000000')" ] && echo yes""",
            remedy="an image whose C library is glibc",
        ),
    ),
    (
        {"cores": 1},
        Probe(name="number of cores", command='[ "$(nproc)" = 1 ] && echo yes', remedy="a kernel with sched_setaffinity"),
    ),
    (
        {"cores": 1},
        Probe(
            name="number of cores in /sys",
            command='[ "$(cat /sys/devices/system/cpu/online)" = 0 ] && echo yes',
            remedy="use the bubblewrap back end: here `os.cpu_count()` tells the machine's cores",
        ),
    ),
    (
        {"timezone": "Asia/Kathmandu"},
        Probe(name="time zones by name", command='[ "$(date -d @0 +%z)" = +0530 ] && echo yes', remedy="install tzdata"),
    ),
    (
        {"locale": "en_US.UTF-8"},
        Probe(name="locale en_US.UTF-8", command="! locale 2>&1 | grep -q -i cannot && echo yes", remedy="install locales"),
    ),
    ({"network": "full"}, Probe(name="network", command="echo yes", remedy="")),
)
"""Policies that a task may ask for, each with what tells that it is kept."""


def measure(backend: Backend) -> list[Capability]:
    """Try every property in a sandbox of `backend`; one capability says why when none can be opened."""
    blobs = MemoryBlobs()
    spec = EnvironmentSpec(files=FileTree().save(blobs), limits=LIMITS)
    os.environ["ENVFACTORY_PROBE"] = "set on the host"
    try:
        with backend.open(spec, blobs) as sandbox:
            found = [_judge(probe, sandbox.run(probe.command, timeout_s=20, output_bytes=1000)) for probe in PROBES]
            found.append(_wall_time(sandbox.run("echo begun; sleep 60", timeout_s=0.3, output_bytes=1000)))
            found.append(_output(sandbox.run("head -c 3000000 /dev/zero", timeout_s=20, output_bytes=1000)))
    except SandboxError as error:
        return [Capability("sandboxes", False, str(error))]
    finally:
        del os.environ["ENVFACTORY_PROBE"]
    return [Capability("sandboxes", True, ""), *found, *_policies(backend, blobs, spec)]


def _judge(probe: Probe, result: CommandResult) -> Capability:
    holds = result.output.strip().endswith(b"yes")
    return Capability(probe.name, holds, "" if holds else probe.remedy)


def _wall_time(result: CommandResult) -> Capability:
    holds = result.timed_out and result.output.startswith(b"begun")
    return Capability("wall time of one command", holds, "" if holds else f"ended with {result.exit_code}")


def _output(result: CommandResult) -> Capability:
    holds = len(result.output) <= 1000 and len(result.output) + result.omitted_bytes == 3_000_000
    return Capability("bounded output", holds, "" if holds else f"{len(result.output)} bytes kept")


def _policies(backend: Backend, blobs: MemoryBlobs, spec: EnvironmentSpec) -> list[Capability]:
    """What tasks may ask for and a back end may refuse, or not be able to keep."""
    found = []
    for policy, probe in POLICIES:
        asked = replace(spec, **policy)
        try:
            with backend.open(asked, blobs) as sandbox:
                found.append(_judge(probe, sandbox.run(probe.command, timeout_s=20, output_bytes=1000)))
        except SandboxError as error:
            found.append(Capability(probe.name, False, f"tasks that ask for it are refused: {error}"))
    return found
