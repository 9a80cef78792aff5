"""What runs in the boxes of the namespace helper: its ends, its memory. Imported by the helper: standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import time
from dataclasses import dataclass
from typing import Any

from sandboxes.bubblewrap.processes import cpu_seconds, descendants, interrupt, parent, private_bytes

WATCH_S = 0.1
"""Seconds between two looks at the memory of all processes of the sandboxes."""
LOOK_S = 0.005
"""Seconds that one look may take: requests wait meanwhile. What was not looked at is looked at first the next time."""


@dataclass
class Job:
    """One bubblewrap and what it started."""

    box: int
    status: int
    """Pipe on which the end is told."""
    facts: int
    """Pipe on which bubblewrap told the process id of the first process of its namespace."""
    exit: int | None = None
    cpu_s: float = 0.0


class Jobs:
    """Bubblewrap processes by process id, and the boxes that they run in."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        """Process id of a bubblewrap, or after its end of its first process, to what is known of the job."""
        self._orphans: dict[int, resource.struct_rusage] = {}
        """First processes that were reaped before the bubblewrap that made them."""
        self._limits: dict[int, int] = {}
        """Box number to the memory that all its processes may hold, bytes."""
        self._peaks: dict[int, tuple[int, int]] = {}
        """Box number to the most memory, bytes, and processes that a look saw."""
        self._due: dict[int, list[int]] = {}
        """Boxes whose memory is still to be looked at in this turn, and their jobs."""

    @property
    def any(self) -> bool:
        """Whether anything runs."""
        return bool(self._jobs)

    def limit(self, box: int, memory: int) -> None:
        """Let all processes of a new box hold `memory` bytes together."""
        self._limits[box] = memory

    def begin(self, job: int, box: int, status: int, facts: int) -> None:
        """Take over a bubblewrap that was started in `box`, with the pipes of a `Job`."""
        self._jobs[job] = Job(box, status, facts)

    def interrupt(self, job: int, since: int) -> dict[str, Any]:
        """See `sandboxes.bubblewrap.processes.interrupt`; nothing for a job that has ended."""
        return interrupt(job, since) if job in self._jobs else {}

    def end(self, job: int) -> None:
        """Kill one job."""
        if job in self._jobs:
            _end(job)

    def kill(self, box: int) -> None:
        """Kill every job of a box."""
        for job in [job for job, known in self._jobs.items() if known.box == box]:
            _end(job)

    def end_all(self) -> None:
        """Kill what still runs."""
        for job in self._jobs:
            _end(job)

    def forget(self, box: int) -> None:
        """Kill every job of a box that is dropped."""
        self.kill(box)
        self._limits.pop(box)
        self._peaks.pop(box, None)

    def usage(self, box: int) -> dict[str, Any]:
        """Processor time of a box's processes and of what they waited for; the most memory and processes of any look."""
        pids = [pid for job, known in self._jobs.items() if known.box == box for pid in descendants(job)]
        self._look(box, pids)
        memory, processes = self._peaks.get(box, (None, None))
        return {"cpu_s": cpu_seconds(pids), "memory": memory, "processes": processes}

    def reap(self) -> None:
        """Take every ended child. A job has ended when both bubblewrap and the first process of its namespace are
        reaped: with the latter, the kernel has killed and reaped everything in the namespace."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            job = self._jobs.pop(pid, None)
            if job is None:
                self._orphans[pid] = usage
                continue
            job.cpu_s += usage.ru_utime + usage.ru_stime
            if job.exit is None:
                job.exit = os.waitstatus_to_exitcode(status)
                first = _first_process(job.facts)
                if first in self._orphans:
                    usage = self._orphans.pop(first)
                    job.cpu_s += usage.ru_utime + usage.ru_stime
                elif parent(first) == os.getpid():
                    self._jobs[first] = job
                    if job.exit < 0:
                        os.kill(first, signal.SIGKILL)
                    continue
            _tell(job)

    def watch(self) -> None:
        """Look at the boxes in turn, for `LOOK_S` at a time: with many of them each is looked at less often."""
        limit = time.monotonic() + LOOK_S
        if not self._due:
            for job, known in self._jobs.items():
                self._due.setdefault(known.box, []).append(job)
        while self._due and time.monotonic() < limit:
            box, jobs = self._due.popitem()
            self._look(box, [pid for job in jobs for pid in descendants(job)])

    def _look(self, box: int, pids: list[int]) -> None:
        """Kill the largest processes of a box when all together hold more memory than they may."""
        sizes = sorted((private_bytes(pid), pid) for pid in pids)
        total = sum(size for size, _ in sizes)
        if pids and box in self._limits:
            memory, processes = self._peaks.get(box, (0, 0))
            self._peaks[box] = max(memory, total), max(processes, len(pids))
        while total > self._limits.get(box, total):
            size, pid = sizes.pop()
            total -= size
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _tell(job: Job) -> None:
    """Write how a job ended on its status pipe, unless nobody reads it any more."""
    with contextlib.suppress(BrokenPipeError, BlockingIOError):
        os.write(job.status, json.dumps({"exit": job.exit, "cpu_s": job.cpu_s}).encode())
    os.close(job.status)


def _first_process(facts: int) -> int:
    """The process id that bubblewrap told (it is closed after), 0 when it told none."""
    with contextlib.suppress(BlockingIOError, ValueError, KeyError), open(facts, "rb", buffering=0) as stream:
        return int(json.loads((stream.read(4096) or b"").partition(b"\n")[0])["child-pid"])
    return 0


def _end(job: int) -> None:
    """Kill a bubblewrap's first process (with it dies its whole process namespace), or itself before it has one."""
    for pid in descendants(job, deep=False) or [job]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
