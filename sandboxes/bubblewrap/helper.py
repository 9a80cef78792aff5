"""The namespace helper: one small process per back end, in which every sandbox's mounts and processes are made.

It enters a user and mount namespace of its own, where it may mount without root, builds a root that
holds nothing but the runtime and the layers, and then serves requests on a socket: make a box (a
mount namespace with a sized tmpfs and an overlay over a layer), start bubblewrap in it, kill, drop.
Everything it made ends with it: its processes by their parent-death signal, its mounts with their
namespaces; and it ends when the other end of the socket closes, however that came about.

Runs as a script of its own (`python -I -S`); standard library only, everything imported before the root changes.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any

from sandboxes.bubblewrap import kernel
from sandboxes.bubblewrap.jobs import WATCH_S, Jobs
from sandboxes.bubblewrap.layout import BOX, Layout
from sandboxes.bubblewrap.root import FILTERS, copy_layer, enter_root

MESSAGE_BYTES = 192 << 10
"""The largest request, bytes: below what a socket takes in one piece unless the machine's settings are changed."""
ERROR_CHARACTERS = 1000
"""Most that is told of an error, so that the answer is read whole."""
PAGE_BYTES = 4096
"""The smallest disk, bytes: a size of 0 would mean none at all."""

_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV
_FACTS = 9
"""Descriptor on which bubblewrap tells its facts; it closes it in what it runs."""
_FILTER = 8
"""Descriptor from which bubblewrap reads the system call filter; it closes it too."""
_FIRST_FREE = 10
"""Descriptors below this one stay taken, so that received ones never collide with a child's."""
_RESET = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
"""Signals that sandboxes meet as if nobody had ever ignored them: a host under `nohup` or in the background ignores some."""


def main() -> None:
    """Serve the socket on descriptor 0 until its other end closes."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # Three descriptors for each sandbox; what runs inside is limited by its task.
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    control = socket.socket(fileno=os.dup(0))
    config = json.loads(control.recv(MESSAGE_BYTES))
    try:
        enter_root(config)
    except OSError as error:
        control.send(json.dumps({"error": str(error)}).encode())
        return
    sys.path.clear()
    control.send(b"{}")
    Helper(control, config["bwrap"], Layout(config), filtered=bool(config["filters"]), overlays=config["overlays"]).serve()


class Helper:
    """Boxes by number, and the bubblewrap processes (jobs) that run in each."""

    def __init__(self, control: socket.socket, bwrap: str, layout: Layout, *, filtered: bool, overlays: bool) -> None:
        self._control, self._layout = control, layout
        self._bwrap = bwrap
        self._options = ["bwrap", "--json-status-fd", str(_FACTS)]
        self._filter = filtered
        self._overlays = overlays
        # The filter refuses every way to make a namespace; the limit on user namespaces, for machines without a filter,
        # takes longer the more sandboxes live.
        self._options += ["--seccomp", str(_FILTER)] if filtered else ["--disable-userns"]
        while os.dup(0) < _FIRST_FREE:
            pass
        self._home = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        self._cores = sorted(os.sched_getaffinity(0))
        self._boxes: dict[int, tuple[int, str]] = {}
        """Box number to its open mount namespace and the path of its system call filter."""
        self._jobs = Jobs()
        self._next = 0
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)

    def serve(self) -> None:
        """Answer requests until the socket closes; then kill what still runs."""
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(read, select.POLLIN)
        looked = time.monotonic()
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(WATCH_S * 1000 if self._jobs.any else None)}
            if read in ready:
                os.read(read, 4096)
                self._jobs.reap()
            if self._control.fileno() in ready and not self._answer():
                break
            if self._jobs.any and time.monotonic() - looked >= WATCH_S:
                self._jobs.watch()
                looked = time.monotonic()
        self._jobs.end_all()

    def _answer(self) -> bool:
        """Receive, serve and answer one request. False when the other end is gone."""
        try:
            data, ancillary, _, _ = self._control.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(16 * 4), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return False
        received = array.array("i")
        for _, _, part in ancillary:
            received.frombytes(part)
        if not data:
            return False
        reply, sent = self._served(data, list(received))
        for descriptor in received:
            os.close(descriptor)
        return self._reply(reply, sent)

    def _served(self, data: bytes, received: list[int]) -> tuple[dict[str, Any], list[int]]:
        """The boundary of requests: JSON, then words that each follow a NUL. Whatever goes wrong with one is its answer, since
        every sandbox of the back end ends with this process."""
        try:
            asked, *words = data.split(b"\0")
            request = json.loads(asked)
            served = getattr(self, "do_" + request.pop("op"))
            answer: tuple[dict[str, Any], list[int]] = served(received, **request, **({"words": words} if words else {}))
            return answer
        except OSError as error:
            return _refusal(error.strerror or str(error)), []
        except Exception as error:  # noqa: BLE001 (see above)
            return _refusal(f"{type(error).__name__}: {error}"), []

    def _reply(self, reply: dict[str, Any], sent: list[int]) -> bool:
        """Answer, with descriptors that are closed here after. False when the other end is gone."""
        fds = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", sent))] if sent else []
        try:
            self._control.sendmsg([json.dumps(reply).encode()], fds)
        except ConnectionError:
            return False
        except OSError as error:
            with contextlib.suppress(OSError):  # no answer: the other end waits its time, and knows then
                self._control.send(json.dumps(_refusal(str(error))).encode())
        finally:
            for descriptor in sent:
                os.close(descriptor)
        return True

    def do_open(
        self,
        _: list[int],
        *,
        layers: list[str],
        mounts: list[tuple[str, str]],
        scratch: str | None,
        disk: int,
        taken: int,
        inodes: int,
        memory: int,
        watches: bool,
    ) -> tuple[dict[str, Any], list[int]]:
        """Make a box; reply its number, whether its working directory is an overlay, and an open descriptor of its folder.

        `layers`, the lowest last, are put under the working directory, `mounts` are paths and layers beside it; `/tmp` and
        the home begin as a copy of `scratch`. Of `disk` bytes as many as `taken` count as used by layers that are shared.
        `watches` lets processes watch files.
        """
        root = self._layout.plan(mounts)
        kernel.unshare(kernel.CLONE_NEWNS)
        try:
            kernel.mount("tmpfs", BOX, "tmpfs", _FLAGS, f"size={disk},nr_inodes={inodes},mode=755")
            for name, mode in (("workspace", 0o755), ("tmp", 0o1777), ("home", 0o755), ("shm", 0o1777)):
                os.mkdir(f"{BOX}/{name}")
                os.chmod(f"{BOX}/{name}", mode)
            shared = bool(layers) and self._lay(layers)
            if shared and taken:
                kernel.mount(None, BOX, None, kernel.MS_REMOUNT | _FLAGS, f"size={max(PAGE_BYTES, disk - taken)}")
            if scratch is not None:
                for name in os.listdir(scratch):
                    copy_layer(f"{scratch}/{name}", f"{BOX}/{name}")
            self._layout.furnish(root, mounts)
            folder = os.open(BOX, os.O_RDONLY | os.O_DIRECTORY)
            namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        finally:
            kernel.enter(self._home)
        self._next += 1
        self._boxes[self._next] = (namespace, FILTERS[watches])
        self._jobs.limit(self._next, memory)
        return {"box": self._next, "shared": shared}, [folder]

    def _lay(self, layers: list[str]) -> bool:
        """Put `layers` under the working directory: as an overlay (True), or else as a copy."""
        if self._overlays:
            try:
                self._overlay(layers)
                return True
            except OSError:
                self._overlays = False
        for layer in reversed(layers):
            copy_layer(layer, f"{BOX}/workspace")
        return False

    def _overlay(self, layers: list[str]) -> None:
        os.mkdir(f"{BOX}/upper")
        os.chmod(f"{BOX}/upper", 0o755)
        os.mkdir(f"{BOX}/work")
        kernel.mount(
            "overlay",
            f"{BOX}/workspace",
            "overlay",
            _FLAGS,
            f"lowerdir={':'.join(layers)},upperdir={BOX}/upper,workdir={BOX}/work,userxattr",
        )

    def do_spawn(
        self, received: list[int], *, box: int, words: list[bytes], env: dict[str, str], cores: int
    ) -> tuple[dict[str, Any], list[int]]:
        """Start bubblewrap with the arguments `words` in a box, on `cores` cores (0: all). The last descriptor received is
        the status pipe, the others become 0, 1, 2, ..."""
        *streams, status = received
        argv: list[str | bytes] = [*self._options, *words]
        namespace, program = self._boxes[box]
        facts, facts_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
            (os.POSIX_SPAWN_DUP2, source, number) for number, source in enumerate(streams)
        ]
        actions.append((os.POSIX_SPAWN_DUP2, facts_write, _FACTS))
        if self._filter:
            actions.append((os.POSIX_SPAWN_OPEN, _FILTER, program, os.O_RDONLY, 0))
        kernel.enter(namespace)
        if cores:
            chosen = [self._cores[(box + place) % len(self._cores)] for place in range(cores)]
            os.sched_setaffinity(0, chosen)
        try:
            job = os.posix_spawn(
                self._bwrap,
                argv,
                env,
                file_actions=actions,
                setsigmask=[],
                setsigdef=_RESET,
            )
        except BaseException:
            os.close(facts)
            raise
        finally:
            if cores:
                os.sched_setaffinity(0, self._cores)
            kernel.enter(self._home)
            os.close(facts_write)
        self._jobs.begin(job, box, os.dup(status), facts)
        return {"job": job}, []

    def do_kill(self, _: list[int], *, box: int) -> tuple[dict[str, Any], list[int]]:
        """Kill every process in a box; their ends are told on the status pipes, once all are dead."""
        self._jobs.kill(box)
        return {}, []

    def do_end(self, _: list[int], *, job: int) -> tuple[dict[str, Any], list[int]]:
        """Kill one job."""
        self._jobs.end(job)
        return {}, []

    def do_interrupt(self, _: list[int], *, job: int, since: int) -> tuple[dict[str, Any], list[int]]:
        """Make a job's shell give up its command, and kill what that started at `since` (clock ticks) or later."""
        return self._jobs.interrupt(job, since), []

    def do_usage(self, _: list[int], *, box: int) -> tuple[dict[str, Any], list[int]]:
        """Processor time of a box's processes and of what they waited for; the most memory and processes of any look."""
        return self._jobs.usage(box), []

    def do_close(self, _: list[int], *, box: int) -> tuple[dict[str, Any], list[int]]:
        """Drop a box: its files are gone when its last process is."""
        self._jobs.forget(box)
        os.close(self._boxes.pop(box)[0])
        return {}, []


def _refusal(text: str) -> dict[str, Any]:
    return {"error": text[:ERROR_CHARACTERS]}
