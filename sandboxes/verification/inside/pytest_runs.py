"""The parent side of a test run: starts a child that runs pytest, collects its events, and leaves nothing alive.

The parent never imports graded code. The child has a session of its own and cannot name this process in a system call
(`pytest_guard`); when the run is over, the whole tree below this process is killed: children whose parent died come here, since
this process is their subreaper. The child can reopen the pipes that it holds and fill or empty them: neither
end blocks here.
"""

import contextlib
import ctypes
import json
import os
import resource
import secrets
import selectors
import signal
import sys
import time

import pytest_guard

EVENT_BYTES = 32 << 20
"""Most bytes of events that one run may send."""
LINE_BYTES = 4 << 20
"""The longest event, bytes."""
STATES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """Become the parent of descendants whose own parent dies."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def run(body, spec, *, wall_s, cpu_s, until=(), stall_s=None):
    """Fork, call `body(events, control)` in the child, hand it `spec`, collect what it reports.

    `body` never returns; what it prints goes nowhere. Returns {ids, errors,
    tests: {id: event}, running, finished, tampered, ended, wall_s, cpu_s}: `finished` says that the child reported its
    end and exited by itself; `running` is the test that had begun and not ended; `ended` is `exit:<code>`,
    `signal:<number>`, `wall`, `stall` (for `stall_s` seconds none of its processes wanted the processor, however
    busy the machine), `events` (too many bytes) or `enough` (every id of `until` was reported: the child was not waited
    for). `cpu_s` is what the child and all below it used.
    """
    events_out, events_in = os.pipe()
    control_out, control_in = os.pipe()
    started, graders, used = time.monotonic(), pytest_guard.graders(), _children_cpu_s()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(events_out)
            os.close(control_in)
            _prepare(spec["root"], cpu_s)
            pytest_guard.keep_off(graders)
            body(events_in, control_out)
        finally:
            os._exit(70)
    os.close(events_in)
    os.close(control_out)
    try:
        _write(control_in, json.dumps(spec).encode() + b"\n")
        for descriptor in (events_out, control_in):
            os.set_blocking(descriptor, False)
        result = _watch(pid, events_out, control_in, started + wall_s, set(until), stall_s)
    finally:
        kill_descendants()
        os.close(events_out)
        os.close(control_in)
    result["wall_s"], result["cpu_s"] = time.monotonic() - started, _children_cpu_s() - used
    return result


def _children_cpu_s():
    """Processor time of all reaped descendants, seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _prepare(root, cpu_s):
    """In the child: own session, nothing to read, nowhere to print, a CPU limit as a backstop, the tree's root."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    limit = max(1, int(cpu_s))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(root)


def fresh_interpreter(plugin):
    """A `body` that runs `plugin` (a path) in a new interpreter: no site, no user site, nothing unsafe on the path."""

    def body(events, control):
        os.set_inheritable(events, True)
        os.set_inheritable(control, True)
        argv = [sys.executable, "-s", "-S", "-P", "-B", plugin, str(events), str(control)]
        os.execve(sys.executable, argv, environment())

    return body


def environment():
    """Variables of a test process: a short list of our own, nothing else of what was there."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/tmp",
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "TZ": os.environ.get("TZ", "UTC"),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def _write(target, data):
    try:
        while data:
            data = data[os.write(target, data) :]
    except (BrokenPipeError, BlockingIOError):
        return


def _watch(pid, events, control, deadline, until, stall_s):
    nonce = secrets.token_hex(16)
    result: dict = {"ids": None, "errors": [], "tests": {}, "running": None, "finished": False, "tampered": [], "ended": ""}
    buffer, total, idle = b"", 0, Idle()
    with selectors.DefaultSelector() as selector:
        selector.register(events, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                result["ended"] = "wall"
                return result
            if not selector.select(min(left, 0.2)):
                if _exited(pid):  # a surviving grandchild can hold the pipe open
                    break
                if stall_s is not None and idle.seconds() >= stall_s:
                    result["ended"] = "stall"
                    return result
                continue
            try:
                data = os.read(events, 1 << 16)
            except BlockingIOError:
                continue
            idle.reset()
            total += len(data)
            if total > EVENT_BYTES or len(buffer) > LINE_BYTES:
                result["ended"] = "events"
                return result
            if not data:
                break
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                _take(line, result, control, nonce)
            if until and until <= result["tests"].keys():
                result["ended"] = "enough"
                return result
    result["ended"] = _ending(pid, deadline)
    result["finished"] = result["finished"] and result["ended"].startswith("exit:")
    return result


LOOK_S = 0.25
"""The most idle time that one look counts, seconds: a watcher that was not scheduled itself has seen nothing."""


class Idle:
    """How long no process below this one wanted the processor.

    One that waits for its turn is runnable, and one that waits for a disk is not idle: a busy machine stalls nothing.
    """

    def __init__(self):
        self.reset()

    def reset(self):
        self._since, self._used, self._idle = time.monotonic(), None, 0.0

    def seconds(self):
        """Take a look; the time since the last sign of work."""
        now = time.monotonic()
        wants, used = _work(descendants())
        if wants or used != self._used:
            self._idle = 0.0
        else:
            self._idle += min(now - self._since, LOOK_S)
        self._since, self._used = now, used
        return self._idle


def _work(pids):
    """Whether a thread of these processes runs, waits for its turn or for a disk; the ticks that all have used."""
    wants, used = False, 0
    for pid in pids:
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                wants = wants or fields[0] in (b"R", b"D")
                used += int(fields[11]) + int(fields[12])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return wants, used


def _take(line, result, control, nonce):
    """One event; what does not parse or carries another nonce is dropped."""
    try:
        event = json.loads(line)
        kind = event["event"]
        if kind == "collected" and result["ids"] is None:
            result["ids"], result["errors"] = [str(name) for name in event["ids"]], event["errors"]
            _write(control, nonce.encode() + b"\n")
            return
        if event["nonce"] != nonce or result["finished"]:
            return
        if kind == "start":
            result["running"] = event["id"]
        elif kind == "test":
            first = event["id"] not in result["tests"]
            result["tests"][event["id"]] = _plain(event) if first else {**_plain(event), "state": "error"}
            result["running"] = None
        elif kind == "end":
            result["finished"], result["tampered"] = True, [str(name) for name in event["tampered"]]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError):
        return


def _plain(event):
    """A test's event in the form that it should have, whatever the graded process wrote."""
    failure = event["failure"]
    if failure is not None:
        texts = {key: str(failure[key]) for key in ("type", "message", "file")}
        failure = {**texts, "line": int(failure["line"])}
    return {
        "id": event["id"],
        "state": event["state"] if event["state"] in STATES else "error",
        "ms": int(event["ms"]),
        "failure": failure,
    }


def _exited(pid):
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _ending(pid, deadline):
    while not _exited(pid):
        if time.monotonic() > deadline:
            return "wall"
        time.sleep(0.002)
    status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert status is not None
    return f"exit:{status.si_status}" if status.si_code == os.CLD_EXITED else f"signal:{status.si_status}"


def kill_descendants():
    """Kill everything that has this process as ancestor, and reap it all.

    Stopped processes keep their places, so that one which forks all the time fills the table before it is killed.
    """
    stopped: set = set()
    while fresh := set(descendants()) - stopped:
        for victim in fresh:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGSTOP)
        stopped |= fresh
    while True:
        for victim in descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def descendants(root=None):
    """Process ids below `root` (None: this process), from /proc."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found, level = [], [os.getpid() if root is None else root]
    while level:
        level = [pid for pid, parent in parents.items() if parent in level]
        found += level
    return found
