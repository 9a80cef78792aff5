"""Who made a folder or container: names that tell, after a crash, whether the maker still runs."""

from __future__ import annotations

import logging
import os
import re
import shutil
from pathlib import Path

logger = logging.getLogger(__name__)

_CLAIM = re.compile(r"\.claimed-(\d+)-(\d+)-[a-z0-9-]+")


def start_time(pid: int) -> int | None:
    """When process `pid` started, in clock ticks since boot; None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def claim_name(suffix: str) -> str:
    """A folder name that carries this process's id and start time."""
    return f".claimed-{os.getpid()}-{start_time(os.getpid())}-{suffix}"


def alive(pid: int, started: int) -> bool:
    """Whether the process that had `pid` and `started` still runs (a reused id has another start time)."""
    return start_time(pid) == started


def reclaim(folder: Path) -> int:
    """Remove the claimed folders below `folder` whose makers are gone; return their number."""
    removed = 0
    for entry in list(folder.iterdir()):
        match = _CLAIM.fullmatch(entry.name)
        if match and not alive(int(match[1]), int(match[2])):
            shutil.rmtree(entry, ignore_errors=True)
            logger.info("removed %s, left by process %s", entry, match[1])
            removed += 1
    return removed
