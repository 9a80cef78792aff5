"""Processes beside the session."""

from __future__ import annotations

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import ImageError
from sandboxes.contract import Backend, Sandbox
from tests.sandboxes.conftest import Run


def test_streams_and_exit_code(sandbox: Sandbox) -> None:
    result = sandbox.process(
        ["sh", "-c", 'read word; echo "got $word"; echo bad >&2; exit 3'], stdin=b"hello\n", timeout_s=10, output_bytes=1000
    )
    assert (result.exit_code, result.stdout, result.stderr_tail, result.timed_out) == (3, b"got hello\n", b"bad\n", False)


def test_large_input_and_output(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 8000
    assert sandbox.process(["cat"], stdin=data, timeout_s=20, output_bytes=1 << 22).stdout == data
    assert sandbox.process(["cat"], stdin=data, timeout_s=20, output_bytes=1000).stdout == data[:1000]


def test_input_that_is_not_read(sandbox: Sandbox) -> None:
    assert sandbox.process(["true"], stdin=b"x" * 1_000_000, timeout_s=10, output_bytes=10).exit_code == 0


def test_arguments_are_not_read_by_a_shell(sandbox: Sandbox) -> None:
    argv = ["printf", "%s|", "$HOME", "a b", "", "*", "-n", "'"]
    assert sandbox.process(argv, stdin=b"", timeout_s=10, output_bytes=100).stdout == b"$HOME|a b||*|-n|'|"


def test_a_missing_program(sandbox: Sandbox) -> None:
    assert sandbox.process(["no-such-program"], stdin=b"", timeout_s=10, output_bytes=100).exit_code == 127


def test_the_whole_group_dies_at_the_limit(sandbox: Sandbox, run: Run) -> None:
    script = "trap '' TERM; (setsid sleep 61 &) ; echo begun; sleep 60"
    result = sandbox.process(["sh", "-c", script], stdin=b"", timeout_s=0.5, output_bytes=100)
    assert (result.timed_out, result.exit_code, result.stdout) == (True, None, b"begun\n")
    assert 0.5 <= result.wall_s < 6
    assert run("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 6[01]'").output.strip() == b"0"


def test_cpu_time_is_reported(sandbox: Sandbox) -> None:
    burn = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    result = sandbox.process(["python3", "-I", "-S", "-c", burn], stdin=b"", timeout_s=20, output_bytes=100)
    assert 0.25 <= result.cpu_s < 1.5
    assert sandbox.process(["sleep", "0.3"], stdin=b"", timeout_s=20, output_bytes=100).cpu_s < 0.2


def test_the_session_goes_on_beside_processes(sandbox: Sandbox, run: Run) -> None:
    run("kept=1; sleep 60 &")
    sandbox.process(["sleep", "60"], stdin=b"", timeout_s=0.2, output_bytes=10)
    assert run("echo $kept; jobs -rp | wc -l").output == b"1\n1\n"


def test_resolved_images(backend: Backend, sandbox: Sandbox) -> None:
    image = backend.resolve("python-3.11")
    assert image == backend.resolve("python-3.11") == sandbox.image
    assert len(image.digest) == 64
    told = sandbox.process(
        ["python3", "-c", "import platform; print(platform.python_version())"], stdin=b"", timeout_s=9, output_bytes=99
    )
    assert told.stdout.decode().strip() == image.versions["python"]
    with pytest.raises(ImageError, match="python-3"):
        backend.resolve("python-2.7")


def test_two_sandboxes_at_once_are_apart(
    make: object, backend: Backend, blobs: MemoryBlobs, sandbox: Sandbox, run: Run
) -> None:
    other = make()  # type: ignore[operator]
    run("echo mine >f; export V=1; sleep 77 &")
    told = other.run(
        "cat f 2>&1; echo $V; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 7[7]'", timeout_s=9, output_bytes=999
    )
    assert b"mine" not in told.output
    assert told.output.endswith(b"\n\n0\n")
