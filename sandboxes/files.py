"""Reading and writing single files as the agent: small processes inside the sandbox, so that its rights and links hold.

Whatever becomes of such a process once it started is the agent's doing: its files, locks and processes are all that it
can meet. One that cannot be started is the machine's fault, and `Sandbox.process` raises for it.
"""

from __future__ import annotations

from sandboxes.contract import FileRefused, ProcessResult

FILE_S = 20.0
"""Seconds that one file may take."""

_PROGRAM = r"""
import errno, os, stat, sys

STATUS = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP), 64),
    errno.EISDIR: 65,
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY, errno.ENXIO, errno.EIO), 66),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), 67),
    errno.EFBIG: 68,
    errno.EAGAIN: 69,
}


def check(status):
    if stat.S_ISDIR(status.st_mode):
        os._exit(65)
    if not stat.S_ISREG(status.st_mode):
        os._exit(66)


def opened(path, flags):
    try:
        check(os.stat(path))  # opening some special files does something
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    check(os.fstat(descriptor))  # it may have been exchanged
    return descriptor


def content(descriptor, limit=None):
    parts, left = [], 1 << 16 if limit is None else limit
    while left > 0 and (part := os.read(descriptor, min(left, 1 << 16))):
        parts.append(part)
        left -= 0 if limit is None else len(part)
    return b"".join(parts)


def put(data, write):
    view, place = memoryview(data), 0
    while place < len(view):
        place += write(view[place:], place)


try:
    path = sys.argv[2]
    if sys.argv[1] == "read":
        data = content(opened(path, os.O_RDONLY), int(sys.argv[3]))
        put(data, lambda part, place: os.write(1, part))
    else:
        data = content(0)
        descriptor = opened(path, os.O_WRONLY | os.O_CREAT)
        if data:
            os.posix_fallocate(descriptor, 0, len(data))  # with its room taken, the rest cannot fail half way
        put(data, lambda part, place: os.pwrite(descriptor, part, place))
        os.ftruncate(descriptor, len(data))
except OSError as error:
    os.write(2, str(error.strerror).encode())
    os._exit(STATUS.get(error.errno, 70))
os._exit(0)
"""
"""Reads or writes a file without waiting for anybody. Its exit status says what was wrong; then nothing was written, and
a file that was there is as it was."""

_REFUSALS = {67: "no room is left", 68: "it would be too large", 69: "another process keeps it from being opened"}


def read_argv(path: str, limit: int) -> list[str]:
    """Process that prints at most `limit` bytes of `path`."""
    return ["python3", "-I", "-S", "-c", _PROGRAM, "read", path, str(limit)]


def write_argv(path: str) -> list[str]:
    """Process that makes its standard input the content of `path`."""
    return ["python3", "-I", "-S", "-c", _PROGRAM, "write", path]


def read_result(result: ProcessResult, path: str) -> bytes:
    """What was read. Raises FileNotFoundError, IsADirectoryError, PermissionError or FileRefused."""
    _raise(result, path)
    return result.stdout


def write_result(result: ProcessResult, path: str) -> None:
    """Raises as `read_result` does."""
    _raise(result, path)


def _raise(result: ProcessResult, path: str) -> None:
    code = result.exit_code
    errors = {64: FileNotFoundError, 65: IsADirectoryError, 66: PermissionError}
    if code in errors:
        raise errors[code](path)
    if code is None:
        raise FileRefused(f"no answer within {FILE_S:.0f} s")
    if code > 128:
        raise FileRefused("the process that does it was killed")
    if code != 0:
        raise FileRefused(_REFUSALS.get(code, f"the process that does it ended with status {code}"))
