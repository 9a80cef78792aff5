"""Loads a checker the way a bundle does: from its file, without its package."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

INSIDE = Path(__file__).parents[3] / "sandboxes" / "verification" / "inside"


Check = Callable[[dict[str, Any], str, str, str], list[dict[str, str]]]


def load_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"checker_{name}", INSIDE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(INSIDE))  # as the bootstrap does with the bundle
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(INSIDE))
    return module


def load(name: str) -> Check:
    check: Check = load_module(name).check
    return check
