"""Live sessions: what persists, how commands end, what is kept of their output."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from factory.core.errors import SandboxLost
from sandboxes.contract import Sandbox
from sandboxes.shell import SHELL
from tests.sandboxes.conftest import Make, Run


def test_directory_variables_functions_and_aliases_persist(run: Run) -> None:
    run("cd src; export COLOUR=red; plain=1; greet() { echo hello $1; }; alias two='echo 2'")
    result = run("pwd; echo $COLOUR $plain; greet you; two; sh -c 'echo $COLOUR$plain'")
    assert result.output == b"/workspace/src\nred 1\nhello you\n2\nred\n"


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("false", 1), ("sh -c 'exit 77'", 77), ("no-such-program", 127)])
def test_exit_codes(run: Run, command: str, code: int) -> None:
    assert run(command).exit_code == code


def test_a_killed_program_shows_its_signal(run: Run) -> None:
    assert run("sh -c 'kill -9 $$'").exit_code == 128 + 9


def test_output_and_errors_are_interleaved(run: Run) -> None:
    assert run("echo 1; echo 2 >&2; echo 3; echo 4 >&2").output == b"1\n2\n3\n4\n"


def test_standard_input_is_closed(run: Run) -> None:
    assert run("cat; read line; echo $?; wc -c").output == b"1\n0\n"


def test_a_syntax_error_is_a_failed_command_and_no_more(run: Run) -> None:
    assert run("echo 'unclosed; (").exit_code == 2
    assert run("echo fine").output == b"fine\n"


def test_a_command_with_nul_is_refused(run: Run) -> None:
    assert run("echo a\0echo b").exit_code == 2
    assert run("echo fine").output == b"fine\n"


def test_long_and_multilingual_commands(run: Run) -> None:
    text = "grüße 你好 \U0001f600 " * 5000
    assert run(f"cat <<'END' | wc -c\n{text}\nEND").output.strip() == str(len(text.encode()) + 1).encode()


def test_bytes_of_any_kind_come_through(run: Run) -> None:
    everything = bytes(range(256))
    assert run("python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)))'").output == everything


def test_head_and_tail_are_kept_and_the_rest_is_counted(run: Run) -> None:
    result = run("seq 100000", output_bytes=101)
    whole = "".join(f"{number}\n" for number in range(1, 100001)).encode()
    assert result.output == whole[:51] + whole[-50:]
    assert result.omitted_bytes == len(whole) - 101


def test_a_flood_is_drained_without_growing(run: Run) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run("head -c 300000000 /dev/zero", timeout_s=60, output_bytes=4096)
    assert result.omitted_bytes == 300_000_000 - 4096
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB


def test_a_timeout_keeps_partial_output_and_the_session(run: Run) -> None:
    run("kept=7; cd src")
    result = run("echo begun; sleep 60; echo never", timeout_s=0.5)
    assert (result.timed_out, result.exit_code) == (True, None)
    assert result.output.startswith(b"begun\n")
    assert b"never" not in result.output
    assert 0.5 <= result.wall_s < 5
    assert run("echo $kept; pwd").output == b"7\n/workspace/src\n"


@pytest.mark.parametrize("command", ["while :; do :; done", "while true; do sleep 0.01; done", "f() { sleep 60; }; f"])
def test_loops_and_functions_are_interrupted_too(run: Run, command: str) -> None:
    run("kept=7")
    assert run(command, timeout_s=0.5).timed_out
    assert run("echo $kept").output == b"7\n"


def test_all_that_a_command_started_is_dead_at_its_limit(run: Run) -> None:
    started = "(setsid sleep 71 &); python3 -c 'import os, time; os.fork() or os.setsid() or os.fork() or time.sleep(72)' &"
    assert run(f"{started} sleep 71", timeout_s=1).timed_out
    left = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -cE 'sleep.7[12]'"
    deadline = time.monotonic() + 10  # what is killed still needs a processor to die on
    while (found := run(left).output.splitlines()[-1]) != b"0" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found == b"0"


def test_a_shell_that_cannot_be_interrupted_is_replaced_and_the_output_says_so(run: Run) -> None:
    run("kept=7; cd src; trap '' USR1")
    result = run("while :; do :; done", timeout_s=0.5)
    assert result.timed_out
    assert b"[the shell ended (killed at the limit)" in result.output
    assert run("echo x$kept; pwd").output == b"x\n/workspace\n"


def shell_of(run: Run) -> int:
    """The shell's process id on this machine: the one of its command line in its process namespace."""
    namespace = run("readlink /proc/self/ns/pid").output.decode().strip()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            told = (entry / "cmdline").read_bytes()
            if (entry / "ns/pid").readlink() == Path(namespace) and told == "\0".join([*SHELL, ""]).encode():
                return int(entry.name)
    raise AssertionError("no shell")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can slow processes of other users")
@pytest.mark.parametrize("command", ["sleep 60", "while :; do :; done"])
def test_a_shell_that_is_slow_at_its_limit_is_kept(run: Run, command: str) -> None:
    """As on a machine that is busy elsewhere: for three seconds it rarely gets the processor."""
    run("kept=7")
    shell = shell_of(run)

    def slow() -> None:
        limit = time.monotonic() + 3.4
        while time.monotonic() < limit:
            os.kill(shell, signal.SIGSTOP)
            time.sleep(0.8)
            os.kill(shell, signal.SIGCONT)
            time.sleep(0.00005)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        assert run(command, timeout_s=0.3).timed_out
        assert run("echo $kept").output == b"7\n"
    finally:
        thread.join()


def test_a_stopped_shell_is_replaced(run: Run) -> None:
    result = run("kill -STOP $$", timeout_s=0.5)
    assert result.timed_out
    assert run("echo again").output == b"again\n"


@pytest.mark.parametrize(("command", "code"), [("exit 5", 5), ("exec false", 1), ("set -e; false", 1), ("kill -9 $$", 137)])
def test_a_shell_that_ends_is_replaced_and_the_output_says_so(run: Run, command: str, code: int) -> None:
    run("kept=7")
    result = run(command)
    assert result.exit_code == code
    assert b"[the shell ended" in result.output
    assert run("echo x$kept").output == b"x\n"


def test_a_background_job_does_not_hold_up_its_command(run: Run) -> None:
    started = time.monotonic()
    assert run("sleep 60 & echo on").output == b"on\n"
    assert b"on" in run("(while :; do echo noise; sleep 0.01; done) & echo on").output.splitlines()
    assert time.monotonic() - started < 10
    assert b"2" in run("jobs -rp | wc -l").output.splitlines()


def test_a_background_flood_does_not_hold_up_the_next_command(run: Run) -> None:
    run("yes & sleep 0.3")
    result = run("echo done", timeout_s=5)
    assert (result.timed_out, result.exit_code) == (False, 0)


def test_earlier_background_jobs_outlive_a_timeout(run: Run) -> None:
    run("sleep 60 & job=$!")
    time.sleep(0.3)
    assert run("sleep 60", timeout_s=0.3).timed_out
    assert run("kill -0 $job && echo alive").output.endswith(b"alive\n")


def test_tracing_shows_the_agent_s_own_commands_only(run: Run) -> None:
    assert run("set -x; echo a").output.splitlines()[-1] == b"a"
    traced = run("echo b").output
    assert traced.splitlines()[-1] == b"b"
    assert traced.count(b"echo b") == 1
    assert b"__c" not in traced
    assert b"printf" not in traced
    run("set +x")
    assert run("echo c").output == b"c\n"


ORPHANS = """
import os
for _ in range(40):
    if os.fork() == 0:
        os._exit(0 if os.fork() else 0)
    os.wait()
"""
ZOMBIES = "grep -l '^State:[[:space:]]*Z' /proc/[0-9]*/status 2>/dev/null | wc -l"


def test_orphans_are_reaped(run: Run) -> None:
    run(f"python3 -c '{ORPHANS}'")
    assert run(f"for n in $(seq 50); do [ $({ZOMBIES}) = 0 ] && break; sleep 0.1; done; {ZOMBIES}").output.strip() == b"0"


def test_after_stop_nothing_runs_and_files_stay(sandbox: Sandbox) -> None:
    sandbox.run("echo x >made; sleep 60 &", timeout_s=5, output_bytes=100)
    sandbox.stop()
    sandbox.stop()
    with pytest.raises(SandboxLost):
        sandbox.run("true", timeout_s=5, output_bytes=100)
    with pytest.raises(SandboxLost):
        sandbox.process(["true"], stdin=b"", timeout_s=5, output_bytes=100)
    assert len(sandbox.export()) == 64
    sandbox.close()
    sandbox.close()


def test_task_policies_are_in_the_session(make: Make) -> None:
    opened = make(timezone="Asia/Tokyo", locale="C", umask=0o077, hash_seed=42)
    command = "echo $TZ $LANG $LC_ALL $PYTHONHASHSEED; umask; date +%Z; echo $HOME $TMPDIR; touch new; stat -c %a new"
    assert opened.run(command, timeout_s=5, output_bytes=1000).output == (
        b"Asia/Tokyo C C 42\n0077\nJST\n/home/agent /tmp\n600\n"
    )


def test_the_environment_is_clean(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LC_ALL", "PYTHONHASHSEED"),
        *("PYTHONDONTWRITEBYTECODE", "PWD", "OLDPWD", "SHLVL", "_", "LD_LIBRARY_PATH"),
    }
    names = {line.partition(b"=")[0].decode() for line in run("env").output.splitlines()}
    assert names <= allowed


def test_signals_that_the_host_ignores_are_not_ignored_inside(tmp_path: Path) -> None:
    """As `nohup`, or a shell's background job, leaves them to the host."""
    code = f"""
import pathlib, signal
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
from factory.core.blobs import MemoryBlobs
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec
from sandboxes.backends import open_backend
blobs, backend = MemoryBlobs(), open_backend("bubblewrap", cache=pathlib.Path({str(tmp_path)!r}))
with backend.open(EnvironmentSpec(files=FileTree().save(blobs)), blobs) as sandbox:
    print(sandbox.run("grep SigIgn /proc/self/status", timeout_s=10, output_bytes=100).output.decode())
backend.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    ignored = int(done.stdout.split()[1], 16)
    assert [number for number in (1, 2, 3, 15) if ignored & 1 << number - 1] == []
