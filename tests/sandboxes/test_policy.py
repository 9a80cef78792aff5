"""Clock, time zone, locale, umask, hash seed and cores are as the task says, and what can not be had is refused.

The rows of the frozen clock are those of the table in docs/decisions/0002-sandboxes.md.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Limits
from sandboxes.clock import clock_tree, frozen_ns
from sandboxes.contract import Backend, Sandbox
from sandboxes.preload import MACHINES, frozen_library
from sandboxes.shell import limit_script
from sandboxes.spec import Offered
from tests.sandboxes.conftest import Make

SECONDS = 1614834367
"""`date -u -d 2021-03-04T05:06:07Z +%s`"""
CLOCK = "frozen:2021-03-04T05:06:07.000008Z"
NOTES = Path(__file__).parents[2] / "docs/decisions/0002-sandboxes.md"

here = pytest.mark.skipif(os.uname().machine not in MACHINES, reason=f"frozen clocks are offered on {', '.join(MACHINES)}")


def python(code: str, program: str = "python3") -> str:
    return f"{program} - <<'END'\n{code}\nEND"


STANDS = {
    "`date`": "date +%s",
    "`date` without variables": "env -i /bin/date +%s",
    "`printf %()T` of bash": "printf '%(%s)T ' -1",
    "`EPOCHSECONDS` of bash": "echo $EPOCHSECONDS",
    "`time.time` of Python": python("import time; print(int(time.time()))"),
    "`time.time` of Python with `-I -S`": python("import time; print(int(time.time()))", "python3 -I -S"),
    "`datetime.now` of Python": python("import datetime as d; print(int(d.datetime.now(d.timezone.utc).timestamp()))"),
    "`now` of SQLite": python(
        "import sqlite3 as s; print(s.connect('').execute(\"select strftime('%s', 'now')\").fetchone()[0])"
    ),
}
"""Rows that stand: programs that print the clock's seconds."""

_WAIT = "import {0}, time\nbegun = time.monotonic()\n{1}\nprint(time.monotonic() - begun)"
GOES_ON = {
    "`time.monotonic` and `time.sleep` of Python": python(_WAIT.format("time", "time.sleep(0.4)")),
    "`time.perf_counter` of Python": python(
        "import time\na = time.perf_counter()\ntime.sleep(0.4)\nprint(time.perf_counter() - a)"
    ),
    "`Event.wait` and locks of `threading`": python(_WAIT.format("threading", "threading.Event().wait(0.4)")),
    "timeouts of `subprocess`": python(
        _WAIT.format("subprocess", "try: subprocess.run(['sleep', '9'], timeout=0.4)\nexcept subprocess.TimeoutExpired: pass")
    ),
    "`sleep`": python(_WAIT.format("os", "os.system('sleep 0.4')")),
    "`timeout`": python(_WAIT.format("os", "os.system('timeout 0.4 sleep 9')")),
    "`read -t` of bash": python(_WAIT.format("os", "os.system(\"sleep 0.7 | bash -c 'read -t 0.4; exit 0'\")")),
}
"""Rows that go on: programs that wait 0.4 s (the last 0.7 s, for its `sleep`) and print how long it took."""


@pytest.fixture(scope="module")
def frozen(backend: Backend) -> Iterator[Sandbox]:
    blobs = MemoryBlobs()
    spec = EnvironmentSpec(files=FileTree.of(blobs, {"a.txt": "one\n"}).save(blobs), clock=CLOCK)
    with backend.open(spec, blobs) as sandbox:
        yield sandbox


def said(sandbox: Sandbox, command: str) -> str:
    return sandbox.run(command, timeout_s=20, output_bytes=4000).output.decode().strip()


@here
@pytest.mark.parametrize("row", STANDS)
def test_what_stands(frozen: Sandbox, row: str) -> None:
    assert said(frozen, f"{STANDS[row]}\nsleep 1.01\n{STANDS[row]}").split() == [str(SECONDS)] * 2


@here
@pytest.mark.parametrize("row", GOES_ON)
def test_what_goes_on(frozen: Sandbox, row: str) -> None:
    assert 0.4 <= float(said(frozen, GOES_ON[row])) < 3


@here
def test_the_fraction_stands_too(frozen: Sandbox) -> None:
    assert said(frozen, "date +%N; echo ${EPOCHREALTIME#*.}").split() == ["000008000", "000008"]
    code = "import time; print(time.time_ns(), time.clock_gettime_ns(time.CLOCK_TAI))"
    assert said(frozen, python(code)) == f"{SECONDS}000008000 {SECONDS}000008000"


@here
def test_processes_beside_the_session_see_the_same_clock(frozen: Sandbox) -> None:
    """Verifiers run so."""
    argv = ["python3", "-I", "-S", "-c", "import time; print(int(time.time()))"]
    assert frozen.process(argv, stdin=b"", timeout_s=20, output_bytes=100).stdout.decode().strip() == str(SECONDS)


@here
def test_times_of_files_are_real(frozen: Sandbox) -> None:
    """Row `times of files`: the kernel's clock writes them, also where a program says `now`."""
    now = time.time()
    times = said(frozen, "echo > made; touch touched; touch -d now dated; stat -c %Y made touched dated").split()
    assert len(times) == 3 and all(now - 5 < int(one) < now + 60 for one in times)
    assert said(frozen, "touch -d @7 told; stat -c %Y told") == "7"


@here
def test_the_shell_measures_no_time(frozen: Sandbox) -> None:
    """Row `SECONDS and time of bash`: they are differences of the wall clock."""
    assert said(frozen, "SECONDS=0; sleep 1.1; echo $SECONDS") == "0"
    assert "real\t0m0.000s" in said(frozen, "time sleep 0.2")


@here
def test_waits_for_an_instant_end_at_once_or_late(frozen: Sandbox) -> None:
    """Row `waits for an instant of the wall clock`: the kernel compares a deadline in the frozen past with its own clock."""
    wait = "import multiprocessing, time\nlock = multiprocessing.Lock(); lock.acquire(); begun = time.monotonic()\n"
    assert said(frozen, python(f"{wait}print(lock.acquire(timeout=5), time.monotonic() - begun < 2)")) == "False True"


@here
def test_the_kernel_itself_is_asked_for_the_real_time(frozen: Sandbox) -> None:
    """Row `system calls without the C library`: 201 is `time`."""
    assert int(said(frozen, python("import ctypes; print(ctypes.CDLL(None).syscall(201, 0))"))) > SECONDS + 10**8


@here
def test_the_agent_can_not_take_it_off(frozen: Sandbox) -> None:
    said(frozen, "unset LD_PRELOAD; export LD_PRELOAD=; rm -f /etc/ld.so.preload /opt/clock/*; : >/etc/ld.so.preload")
    assert said(frozen, "cd /opt/clock && touch x 2>/dev/null; date +%s; env -i /bin/date +%s").split() == [str(SECONDS)] * 2


def test_every_row_of_the_table_is_tested() -> None:
    section = NOTES.read_text(encoding="utf-8").partition("| of a frozen clock |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in section.splitlines()[2:]]
    told = {name: word for name, word, *_ in rows}
    assert {name for name, word in told.items() if word == "stands"} == {*STANDS, "`SECONDS` and `time` of bash"}
    assert {name for name, word in told.items() if word == "goes on"} == {*GOES_ON}
    others = {"times of files", "system calls without the C library", "waits for an instant of the wall clock"}
    assert {name for name, word in told.items() if word in ("real", "wrong")} == others


@here
@pytest.mark.parametrize("instant", ["1970-01-01T00:00:00Z", "2001-09-09T03:46:40+02:00", "2106-02-07T06:28:16Z"])
def test_instants(make: Make, instant: str) -> None:
    """`date` itself reads the same text: before and after 32-bit seconds, and with an offset."""
    told = subprocess.run(["date", "-d", instant, "+%s"], capture_output=True, text=True, check=True).stdout.strip()
    sandbox = make(clock=f"frozen:{instant}")
    assert said(sandbox, "date +%s; printf '%(%s)T' -1").split() == [told, told]
    assert frozen_ns(f"frozen:{instant}") == int(told) * 10**9


class Timespec(ctypes.Structure):
    """`struct timespec` and `struct timeval` of a 64-bit machine."""

    _fields_ = (("seconds", ctypes.c_long), ("fraction", ctypes.c_long))


@here
def test_the_library_by_its_functions(tmp_path: Path) -> None:
    """Called directly, as their manual pages say: every argument that may be NULL, every kind of clock, and errors."""
    (tmp_path / "frozen.so").write_bytes(frozen_library(SECONDS * 10**9 + 123_456_789))
    library = ctypes.CDLL(str(tmp_path / "frozen.so"), use_errno=True)
    stamp, zone = Timespec(), Timespec(7, 7)
    for clock in (time.CLOCK_REALTIME, 5, time.CLOCK_TAI):
        stamp = Timespec()
        assert library.clock_gettime(clock, ctypes.byref(stamp)) == 0
        assert (stamp.seconds, stamp.fraction) == (SECONDS, 123_456_789)
    before = time.monotonic_ns()
    assert library.clock_gettime(time.CLOCK_MONOTONIC, ctypes.byref(stamp)) == 0
    assert before <= stamp.seconds * 10**9 + stamp.fraction <= time.monotonic_ns()
    assert library.clock_gettime(12345, ctypes.byref(stamp)) == -1 and ctypes.get_errno() == errno.EINVAL
    assert library.gettimeofday(ctypes.byref(stamp), ctypes.byref(zone)) == 0
    assert (stamp.seconds, stamp.fraction, zone.seconds) == (SECONDS, 123_456, 0)
    assert library.gettimeofday(None, None) == 0
    library.time.restype = ctypes.c_long
    seconds = ctypes.c_long()
    assert library.time(None) == library.time(ctypes.byref(seconds)) == seconds.value == SECONDS
    assert library.timespec_get(ctypes.byref(stamp), 1) == 1 and (stamp.seconds, stamp.fraction) == (SECONDS, 123_456_789)
    assert library.timespec_get(ctypes.byref(stamp), 2) == 0


@here
def test_the_library_has_no_page_to_write_and_run(tmp_path: Path) -> None:
    (tmp_path / "frozen.so").write_bytes(frozen_library(0))
    library = ctypes.CDLL(str(tmp_path / "frozen.so"))
    assert library.time(None) == 0
    pages = [line.split()[1] for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path) in line]
    assert sorted(pages) == ["r-xp", "rw-p"]
    stacks = [line.split()[1] for line in Path("/proc/self/maps").read_text().splitlines() if "[stack]" in line]
    assert stacks == ["rw-p"], "a library without PT_GNU_STACK would make it executable"


@pytest.mark.parametrize(
    "clock", ["frozen", "frozen:", "frozen:noon", "frozen:2021-03-04T05:06:07", "frozen:1969-12-31T23:59:59Z", "simulated", ""]
)
def test_other_clocks_are_refused_in_one_line(make: Make, clock: str) -> None:
    with pytest.raises(SandboxError, match=rf"clock '{re.escape(clock)}' is not offered: only real, or frozen: and an instant"):
        make(clock=clock)


def test_a_machine_without_the_library_refuses(blobs: MemoryBlobs) -> None:
    spec = EnvironmentSpec(files="0" * 64, clock=CLOCK)
    with pytest.raises(SandboxError, match="not offered on riscv64: only on x86_64"):
        clock_tree(spec, blobs, "riscv64")


@here
def test_a_clock_that_does_not_stand_opens_no_shell() -> None:
    """A C library that preloads nothing: here the script runs outside."""
    script = limit_script(EnvironmentSpec(files="0" * 64, clock=CLOCK), bash=True, processes=False)
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and ended.stdout == "the frozen clock does not hold here\n"


@pytest.mark.parametrize(
    ("fields", "command", "output"),
    [
        ({"timezone": "<+0545>-5:45"}, "date -d @0 +%H:%M%z", "05:45+0545"),
        ({"timezone": "Asia/Kathmandu"}, "date -d @0 +%H:%M%z", "05:30+0530"),
        ({"timezone": "EST5EDT,M3.2.0,M11.1.0"}, "date -d @1625097600 +%z", "-0400"),
        ({"locale": "C"}, "locale charmap; echo $LANG $LC_ALL", "ANSI_X3.4-1968\nC C"),
        ({"locale": "C.UTF-8"}, "locale charmap", "UTF-8"),
        ({"umask": 0o077}, "umask; echo > f; mkdir d; stat -c %a f d", "0077\n600\n700"),
        ({"hash_seed": 5}, "echo $PYTHONHASHSEED; python3 -c \"print(hash('a') == hash('a'))\"", "5\nTrue"),
        ({"cores": 1}, "nproc; python3 -c 'import os; print(len(os.sched_getaffinity(0)))'", "1\n1"),
    ],
    ids=str,
)
def test_policies_are_kept(make: Make, fields: dict[str, Any], command: str, output: str) -> None:
    assert said(make(**fields), command) == output


def test_hash_seeds_decide_the_order_of_sets(make: Make) -> None:
    command = "python3 -c \"print(list({'a', 'b', 'c', 'd', 'e', 'f', 'g'}))\""
    first, second, third = (said(make(hash_seed=seed), command) for seed in (1, 2, 1))
    assert first == third != second


def test_all_cores_are_seen_by_default(make: Make) -> None:
    assert said(make(), "nproc") == str(len(os.sched_getaffinity(0)))


def test_processes_beside_the_session_see_as_many_cores(make: Make) -> None:
    argv = ["python3", "-c", "import os; print(len(os.sched_getaffinity(0)))"]
    assert make(cores=1).process(argv, stdin=b"", timeout_s=20, output_bytes=100).stdout.strip() == b"1"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"locale": "xx_YY.UTF-8"}, "locale 'xx_YY.UTF-8' is not offered: only C, "),
        ({"timezone": "Mars/Olympus"}, "time zone 'Mars/Olympus' is not offered"),
        ({"timezone": "../../etc/passwd"}, "time zone '../../etc/passwd' is not offered"),
        ({"timezone": ""}, "time zone '' is not offered"),
        ({"cores": 100_000}, "100000 cores are not offered: the machine has "),
        ({"cores": -1}, "-1 cores are not offered"),
        ({"hash_seed": -1}, "hash seed -1 is not offered"),
        ({"umask": 0o1000}, "umask 1000 is not offered"),
    ],
    ids=str,
)
def test_what_is_not_to_be_had_is_refused_in_one_line(make: Make, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SandboxError) as raised:
        make(**fields)
    assert str(raised.value).startswith(message) and "\n" not in str(raised.value)


def test_locales_are_known_by_any_spelling_of_their_codeset() -> None:
    offered = Offered.of(["locale de_DE.utf8", "zone Europe/Berlin", "locale POSIX", "noise"])
    spec = EnvironmentSpec(files="0" * 64, limits=Limits(), timezone="Europe/Berlin", locale="de_DE.UTF-8")
    offered.check(spec, cores=1)
