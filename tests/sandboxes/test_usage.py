"""What a sandbox says that it used, against what its commands were told to use."""

from __future__ import annotations

from dataclasses import asdict

from sandboxes.contract import Backend
from tests.sandboxes.conftest import Make

HOLD = "python3 -c 'import time; held = bytearray(b\"x\") * (60 << 20); time.sleep(0.5)'"
BURN = "python3 -c 'import time\nwhile time.process_time() < 0.5: pass'"


def test_what_was_used_is_told(make: Make, backend: Backend) -> None:
    """60 MiB in each of two processes at once, half a second of processor time twice, 5 MB of files, 100,000 bytes printed."""
    sandbox = make()
    sandbox.run(f"{HOLD} & {HOLD} & sleep 60 & wait %1 %2", timeout_s=20, output_bytes=100)
    sandbox.run(f"{BURN}; head -c 100000 /dev/zero", timeout_s=20, output_bytes=100)
    sandbox.process(["sh", "-c", BURN], stdin=b"", timeout_s=20, output_bytes=100)
    sandbox.run("head -c 3000000 /dev/zero >/tmp/x; head -c 2000000 /dev/zero >y", timeout_s=20, output_bytes=100)
    before = sandbox.usage()
    assert before.output_bytes == 100_000 and before.wall_s >= 1.5
    sandbox.stop()
    used = sandbox.usage()
    assert (used.wall_s, used.output_bytes) == (before.wall_s, 100_000)
    assert used.cpu_s is not None and 1.0 <= used.cpu_s < 20
    assert used.memory_bytes is not None and 120 << 20 <= used.memory_bytes < 400 << 20
    if backend.name == "docker":
        assert (used.processes, used.disk_bytes) == (None, None)
        return
    assert used.processes is not None and 4 <= used.processes <= 8
    assert used.disk_bytes is not None and 5_000_000 <= used.disk_bytes < 5_200_000


def test_what_was_not_used_is_zero_and_what_is_not_known_is_absent(make: Make) -> None:
    sandbox = make()
    assert asdict(sandbox.usage()) == {
        "wall_s": 0.0,
        "output_bytes": 0,
        "cpu_s": None,
        "memory_bytes": None,
        "processes": None,
        "disk_bytes": None,
    }
    sandbox.close()
    assert sandbox.usage().cpu_s is None
