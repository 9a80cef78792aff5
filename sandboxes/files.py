"""Reading and writing single files as the agent: small processes inside the sandbox, so that its rights and links hold."""

from __future__ import annotations

from factory.core.errors import SandboxError
from sandboxes.contract import ProcessResult

_READ = """
[ -e "$1" ] || { LC_ALL=C ls -dL -- "$1" 2>&1 | grep -q 'Permission denied' && exit 66; exit 64; }
[ -d "$1" ] && exit 65
[ -f "$1" ] && [ -r "$1" ] || exit 66
head -c "$2" -- "$1" 2>/dev/null || exit 66
"""
_WRITE = """
[ -d "$1" ] && exit 65
[ -e "$1" ] && ! [ -f "$1" ] && exit 66
parent=${1%/*}
[ -d "${parent:-/}" ] || { LC_ALL=C ls -dL -- "$parent" 2>&1 | grep -q 'Permission denied' && exit 66; exit 64; }
{ cat >"$1"; } 2>/dev/null || exit 66
"""


def read_argv(path: str, limit: int) -> list[str]:
    """Process that prints at most `limit` bytes of `path`."""
    return ["/bin/sh", "-c", _READ, "read", path, str(limit)]


def write_argv(path: str) -> list[str]:
    """Process that makes its standard input the content of `path`."""
    return ["/bin/sh", "-c", _WRITE, "write", path]


def read_result(result: ProcessResult, path: str) -> bytes:
    """What was read. Raises FileNotFoundError, IsADirectoryError, PermissionError, or SandboxError for other failures."""
    _raise(result, path)
    return result.stdout


def write_result(result: ProcessResult, path: str) -> None:
    """Raises as `read_result` does."""
    _raise(result, path)


def _raise(result: ProcessResult, path: str) -> None:
    errors = {64: FileNotFoundError, 65: IsADirectoryError, 66: PermissionError}
    if result.exit_code in errors:
        raise errors[result.exit_code](path)
    if result.exit_code != 0:
        raise SandboxError(f"a file helper ended with {result.exit_code}: {result.stderr_tail.decode(errors='replace')}")
