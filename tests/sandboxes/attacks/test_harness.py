"""What the agent does to the processes that its tools start is an observation: it never gets an episode masked by it."""

from __future__ import annotations

import time

import pytest

from factory.agent.environment import Step, replay
from factory.core.action import Action, ObservationRole
from factory.core.blobs import MemoryBlobs
from factory.core.outcome import OutcomeKind
from sandboxes.contract import Backend, FileRefused
from tests.factory.agent.samples import task, tree_verifier
from tests.sandboxes.attacks.conftest import ask, works
from tests.sandboxes.conftest import Make

pytestmark = pytest.mark.attack

LEASE = """
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
open("/tmp/x", "w").write("a\\n")
try:
    held = os.open("/tmp/x", os.O_RDWR)
    fcntl.fcntl(held, 1024, fcntl.F_WRLCK)
except OSError: pass
time.sleep(600)
"""
EXCHANGE = """
import ctypes, os
library = ctypes.CDLL(None)
open("/tmp/x", "w").write("a\\n"); os.mkfifo("/tmp/p")
while True: library.renameat2(-100, b"/tmp/x", -100, b"/tmp/p", 2)
"""
FORKS = """
import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(1000)
    except OSError: time.sleep(0.001)
"""
KILLER = """
import os, signal
spared = {1, os.getpid(), os.getppid(), *(int(name) for name in os.listdir("/proc") if name.isdigit())}
while True:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in spared:
            try: os.kill(int(name), signal.SIGKILL)
            except OSError: pass
"""
STOPPER = KILLER.replace("SIGKILL", "SIGSTOP")


def daemon(code: str) -> str:
    return f"echo a >/tmp/x; cat >/tmp/d.py <<'END'\n{code}\nEND\nsetsid python3 /tmp/d.py >/dev/null 2>&1 & sleep 0.5"


WAYS = {
    "working directory closed": "echo a >/tmp/x; chmod 000 /workspace",
    "working directory closed, and the shell ended": "echo a >/tmp/x; chmod 000 /workspace; exit",
    "working directory closed, temporary folder too": "chmod 000 /workspace /tmp ~; exit",
    "a lease on the file": daemon(LEASE),
    "file and pipe exchanged": daemon(EXCHANGE),
    "no process more": daemon(FORKS),
    "whatever starts is killed": daemon(KILLER),
    "no room": "echo a >/tmp/x; head -c 99999999 /dev/zero >/tmp/fill; head -c 99999999 /dev/zero >/workspace/fill",
    "a link to itself": "ln -s x /tmp/x",
    "a file without end": "ln -s /dev/zero /tmp/x",
}


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_gets_no_episode_masked_through_its_tools(backend: Backend, blobs: MemoryBlobs, way: str) -> None:
    wanted = task(
        blobs,
        files={"a.txt": "one\n"},
        verifier=tree_verifier(blobs, {"a.txt": b"one\n"}),
        disk_bytes=8 << 20,
        file_bytes=4 << 20,
        processes=24,
    )
    edits = [Action("edit", {"path": "/tmp/x", "line": "1", "text": "b"})] * 3
    actions = [Action("bash", {"command": WAYS[way]}), *edits, Action("sql", {"query": "select 1"})]
    steps: list[Step] = []
    started = time.monotonic()
    outcome = replay(wanted, [*actions, Action("bash", {"command": "echo $((6 * 7))"})], backend, blobs, watch=steps.append)
    assert outcome.kind is OutcomeKind.SCORED, outcome.fault
    assert time.monotonic() - started < 60
    told = [step.observation for step in steps]
    assert len(told) == 6
    assert all(observation is not None and observation.role is ObservationRole.TOOL for observation in told)
    assert told[-1] is not None and told[-1].text.endswith("42\n")


@pytest.mark.slow
def test_a_process_that_is_stopped_whenever_it_begins_is_no_fault_of_the_machine(make: Make) -> None:
    """It is started again alone where it was stopped before it told that it lives, and meets its limit afterwards."""
    box = make()
    ask(box, daemon(STOPPER))
    result = box.process(["echo", "here"], stdin=b"", timeout_s=5, output_bytes=100)
    assert result.timed_out or result.stdout == b"here\n"
    assert works(box)


def test_a_shell_that_begins_in_a_closed_working_directory_is_at_the_root(make: Make) -> None:
    box = make()
    ask(box, "chmod 000 /workspace; exit")
    assert ask(box, "pwd; chmod 755 /workspace; cd /workspace; ls a.txt") == b"/\na.txt\n"


def test_a_shell_begins_with_no_trace_of_how_it_came_to_its_folder(make: Make) -> None:
    box = make()
    assert ask(box, "pwd; declare -p OLDPWD; cd - 2>&1 | grep -c 'not set'; env | grep OLDPWD") == (
        b"/workspace\ndeclare -x OLDPWD\n1\n"
    )
    seen = box.process(["env"], stdin=b"", timeout_s=20, output_bytes=2000).stdout.splitlines()
    assert b"PWD=/workspace" in seen and not any(line.startswith(b"OLDPWD") for line in seen)


def test_a_write_that_finds_no_room_leaves_the_file_as_it_was(make: Make) -> None:
    box = make(limits={"disk_bytes": 4 << 20, "file_bytes": 4 << 20})
    ask(box, "seq 1000 >kept; cp kept /tmp/copy; head -c 99999999 /dev/zero >fill; head -c 99999999 /dev/zero >/tmp/fill")
    for path in ("/workspace/kept", "/tmp/copy", "/workspace/a.txt"):
        with pytest.raises(FileRefused, match="room"):
            box.write_file(path, bytes(1 << 20))
    assert ask(box, "seq 1000 | cmp - kept && seq 1000 | cmp - /tmp/copy && cat a.txt") == b"one\ntwo\n"
    box.write_file("/tmp/copy", b"shorter")
    assert ask(box, "cat /tmp/copy") == b"shorter"


def test_a_write_beyond_the_largest_file_leaves_the_file_as_it_was(make: Make) -> None:
    box = make(limits={"disk_bytes": 8 << 20, "file_bytes": 1 << 20})
    with pytest.raises(FileRefused, match="large"):
        box.write_file("/workspace/a.txt", bytes(2 << 20))
    assert ask(box, "cat a.txt") == b"one\ntwo\n"
