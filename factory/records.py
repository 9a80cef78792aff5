"""Small JSON records in files, each whole or absent: a kill leaves no half of one. Every room may import this."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def read_record(path: Path) -> Any:
    """The record's value; None where there is none."""
    return json.loads(path.read_text()) if path.exists() else None


def write_record(path: Path, value: Any) -> None:
    """Write a record, replacing an earlier one; its folder is made. Fields keep their order: for some readers it counts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps(value))
    partial.replace(path)
