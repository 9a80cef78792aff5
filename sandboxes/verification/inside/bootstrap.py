"""Start of every verifier (`verify.py` in its bundle): guards the verdict's channel, then lets the checker look.

Copied into a sandbox, never imported by the host: standard library only, and little of it, since this
runs at the end of every episode. The verdict is one frame on the pipe that was standard output: four
bytes of length, big-endian, then JSON with the nonce that came on standard input. After the nonce and a line end,
standard input can hold JSON: a list of checks that passed and are to be audited, then the frame tells what speaks against
them; or {"also": [folder]}, further bundles with the same sources, of which the frame tells the checks under "also".
What a checker that runs graded code compares with comes after another line end, and stands in no file: a line of JSON,
[[path, bytes, or null for an empty folder]], then the contents one after the other.

The C parts of `json` and `ctypes` are used without the Python around them: importing the whole modules was measured at
10 ms, a third of what grading a small tree takes. So is leaving without taking the interpreter apart.
"""

import _ctypes
import os
import sys

BUNDLE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, BUNDLE)

import codec  # noqa: E402  (beside this file, which is no place that an isolated interpreter looks at)

SUBMISSION = "/submission"
PR_SET_DUMPABLE = 4


def main() -> None:
    channel = os.dup(1)  # not inherited by programs that the checker starts
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    nonce, _, rest = sys.stdin.buffer.read().partition(b"\n")
    asked, _, rest = rest.partition(b"\n")
    os.dup2(null, 0)
    # Processes of the same user could reach the channel through /proc/PID/fd: not those of a process that is not dumpable.
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None: this process
    if _ctypes.call_function(prctl, (PR_SET_DUMPABLE, 0, 0, 0, 0)) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE) failed")
    try:
        frame = {"nonce": nonce.decode(), **_look(codec.loads(asked.decode()) if asked else {}, _sealed(rest))}
    except Exception as error:  # noqa: BLE001  (the boundary: what a checker raises is told to the harness, which masks the episode)
        frame = {"nonce": nonce.decode(), "error": f"{type(error).__name__}: {error}"}
    _send(channel, codec.dumps(frame).encode())


def _look(asked, sealed):
    """What the checker says: {checks, audit, also}, or {fault} where `asked` is a list of checks that passed."""
    import checker  # the bundle's own

    spec, bundle = (_spec(BUNDLE), BUNDLE) if not sealed else _opened(sealed)
    if isinstance(asked, list):
        return {"fault": checker.audit(spec, SUBMISSION, bundle, _scratch(0), asked)}
    also = [_checked(checker, _spec(folder), folder, number) for number, folder in enumerate(asked.get("also", []), 1)]
    return {**_checked(checker, spec, bundle, 0), "also": also}


def _checked(checker, spec, bundle, number):
    """The checks of one bundle, and which of them can be audited."""
    audited = checker.audited(spec) if hasattr(checker, "audited") else []
    return {"checks": checker.check(spec, SUBMISSION, bundle, _scratch(number)), "audit": audited}


def _opened(sealed):
    """The specification and the further files of what is sealed."""
    files = {path.partition("/")[2]: data for path, data in sealed.items() if path != "spec.json"}
    return codec.loads(sealed["spec.json"].decode()), files


def _sealed(rest):
    """{path: bytes, or None for an empty folder} of what came on standard input."""
    if not rest:
        return {}
    head, _, rest = rest.partition(b"\n")
    found, start = {}, 0
    for path, size in codec.loads(head.decode()):
        found[path] = None if size is None else rest[start : start + size]
        start += size or 0
    return found


def _spec(bundle):
    with open(os.path.join(bundle, "spec.json"), encoding="utf-8") as stream:
        return codec.loads(stream.read())


def _scratch(number):
    """An empty folder of its own for each bundle."""
    scratch = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"scratch-{number}" if number else "scratch")
    os.mkdir(scratch, 0o700)
    return scratch


def _send(channel: int, data: bytes) -> None:
    data = len(data).to_bytes(4, "big") + data
    while data:
        data = data[os.write(channel, data) :]


if __name__ == "__main__":
    main()
    os._exit(0)
