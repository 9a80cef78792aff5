"""Ctrl-C at any moment: one line, exit code 130, no traceback. Imported before anything that takes time to import.

Python ends a process that was interrupted inside an import or inside code made at run time by the signal itself, so the
exit code is set by the last of the exit handlers: this one, registered before those of everything else.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import TracebackType
from typing import Any

CODE = 130
"""Exit code of an interrupted command; Typer's too."""
LINE = "factory: interrupted; the same command resumes"
AGAIN_S = 0.05
"""Seconds after which an interrupt that met a callback, where Python only reports it, is delivered again."""

_report, _report_ignored = sys.excepthook, sys.unraisablehook
_interrupted = False


def tell() -> None:
    """Say that the command was interrupted, and end with `CODE`; one more Ctrl-C does not wait for what is being ended."""
    global _interrupted
    _interrupted = True
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(CODE))
    sys.stderr.write(f"{LINE}\n")


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        tell()
    else:
        _report(kind, error, trace)


def _ignored(report: Any) -> None:
    if not issubclass(report.exc_type, KeyboardInterrupt):
        _report_ignored(report)
        return
    from threading import Timer

    again = Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
    again.daemon = True
    again.start()


def _last() -> None:
    if _interrupted:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(CODE)


atexit.register(_last)
sys.excepthook, sys.unraisablehook = _uncaught, _ignored
