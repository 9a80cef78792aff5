"""Start of every verifier (`verify.py` in its bundle): guards the verdict's channel, then lets the checker look.

Copied into a sandbox, never imported by the host: standard library only, and little of it, since this
runs at the end of every episode. The verdict is one frame on the pipe that was standard output: four
bytes of length, big-endian, then JSON with the nonce that came on standard input. After the nonce and a line end,
standard input can hold a list of checks that passed and are to be audited: then the frame tells what speaks against them.

The C parts of `json` and `ctypes` are used without the Python around them: importing the whole modules was measured at
10 ms, a third of what grading a small tree takes.
"""

import _ctypes
import _json
import os
import sys

SUBMISSION = "/submission"
PR_SET_DUMPABLE = 4


def main() -> None:
    channel = os.dup(1)  # not inherited by programs that the checker starts
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    nonce, _, passed = sys.stdin.buffer.read().decode().partition("\n")
    os.dup2(null, 0)
    # Processes of the same user could reach the channel through /proc/PID/fd: not those of a process that is not dumpable.
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None: this process
    if _ctypes.call_function(prctl, (PR_SET_DUMPABLE, 0, 0, 0, 0)) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE) failed")
    try:
        frame = {"nonce": nonce, **_look(passed)}
    except Exception as error:  # noqa: BLE001  (the boundary: what a checker raises is told to the harness, which masks the episode)
        frame = {"nonce": nonce, "error": f"{type(error).__name__}: {error}"}
    _send(channel, _dumps(frame).encode())


def _look(passed: str) -> dict[str, object]:
    """What the checker says: {checks, audit}, or {fault} where checks that passed are given."""
    bundle = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(bundle, "spec.json"), encoding="utf-8") as stream:
        spec = _loads(stream.read())
    sys.path.insert(0, bundle)
    import checker  # the bundle's own

    scratch = os.path.join(os.environ.get("TMPDIR", "/tmp"), "scratch")
    os.mkdir(scratch, 0o700)
    if passed:
        return {"fault": checker.audit(spec, SUBMISSION, bundle, scratch, _loads(passed))}
    audited = checker.audited(spec) if hasattr(checker, "audited") else []
    return {"checks": checker.check(spec, SUBMISSION, bundle, scratch), "audit": audited}


class _Decoder:
    """What the scanner of `_json` asks of a decoder; the same as the defaults of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _loads(text: str) -> object:
    """Canonical JSON, which begins with its first value."""
    return _json.make_scanner(_Decoder)(text, 0)[0]  # type: ignore[arg-type]


def _dumps(value: object) -> str:
    """JSON of text, lists and objects, which is all that a frame holds."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_dumps(str(key))}:{_dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_dumps, value)) + "]"
    return _json.encode_basestring_ascii(str(value))


def _send(channel: int, data: bytes) -> None:
    data = len(data).to_bytes(4, "big") + data
    while data:
        data = data[os.write(channel, data) :]


if __name__ == "__main__":
    main()
