"""Start of every verifier (`verify.py` in its bundle): guards the verdict's channel, then lets the checker look.

Copied into a sandbox, never imported by the host: standard library only, and little of it, since this
runs at the end of every episode. The verdict is one frame on the pipe that was standard output: four
bytes of length, big-endian, then JSON with the nonce that came on standard input.
"""

import ctypes
import json
import os
import sys

SUBMISSION = "/submission"
PR_SET_DUMPABLE = 4


def main() -> None:
    channel = os.dup(1)  # not inherited by programs that the checker starts
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    nonce = sys.stdin.buffer.read().decode()
    os.dup2(null, 0)
    # Processes of the same user could reach the channel through /proc/PID/fd: not those of a process that is not dumpable.
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    try:
        frame = {"nonce": nonce, "checks": _check()}
    except Exception as error:  # noqa: BLE001  (the boundary: what a checker raises is told to the harness, which masks the episode)
        frame = {"nonce": nonce, "error": f"{type(error).__name__}: {error}"}
    _send(channel, json.dumps(frame).encode())


def _check() -> list[dict[str, str]]:
    bundle = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(bundle, "spec.json"), encoding="utf-8") as stream:
        spec = json.load(stream)
    sys.path.insert(0, bundle)
    import checker  # the bundle's own

    scratch = os.path.join(os.environ.get("TMPDIR", "/tmp"), "scratch")
    os.mkdir(scratch, 0o700)
    checks: list[dict[str, str]] = checker.check(spec, SUBMISSION, bundle, scratch)
    return checks


def _send(channel: int, data: bytes) -> None:
    data = len(data).to_bytes(4, "big") + data
    while data:
        data = data[os.write(channel, data) :]


if __name__ == "__main__":
    main()
