"""Checkpoints that are there whole or not at all, and refuse to continue another run.

Layout: `<out>/checkpoints/step-000012/` with `state.pt` (tensors) and `meta.json` (the rest). A checkpoint is written
beside its place, flushed to the disk, and renamed; a kill at any moment leaves the one before it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from factory.core.digest import Digest, Json, digest_of
from factory.core.errors import UserError

NAME = re.compile(r"step-(\d{6,})")
KEPT = 2
"""Checkpoints that stay: the newest, and one before it."""


@dataclass(frozen=True, kw_only=True)
class RunIdentity:
    """What must not change between a checkpoint and the run that continues it."""

    config: Digest
    """Of all settings that the mathematics depends on."""
    policy: Digest
    """Weights that the run began from."""
    tasks: Digest
    """Of the sorted digests of the pool."""
    engine: str
    """Number format of the sampling engine: it decides what is sampled."""
    threads: int
    """Threads of the learner: sums in another order differ in the last bit."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """All that the next step depends on. Random streams are functions of (seed, step) and need no state."""

    step: int
    """Steps finished."""
    learner: dict[str, Any]
    curriculum: dict[str, Any]
    progress: dict[str, Any]
    """Counters and times of the run so far (JSON)."""


def settings_digest(settings: Mapping[str, Any]) -> Digest:
    """Digest of a settings object as plain values; floats stand as their shortest exact text."""
    return digest_of(_plain(settings))


def _plain(value: Any) -> Json:
    if isinstance(value, float):
        return f"float:{value!r}"
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def save_checkpoint(root: Path, checkpoint: Checkpoint, identity: RunIdentity) -> Path:
    """Write atomically and durably, then drop all but the newest `KEPT`. Returns the checkpoint's folder."""
    root.mkdir(parents=True, exist_ok=True)
    for left in root.glob(".*"):
        shutil.rmtree(left)
    target = root / f"step-{checkpoint.step:06d}"
    scratch = root / f".writing-{target.name}"
    scratch.mkdir()
    with (scratch / "state.pt").open("wb") as file:
        torch.save(checkpoint.learner, file)
        file.flush()
        os.fsync(file.fileno())
    meta = {
        "step": checkpoint.step,
        "identity": asdict(identity),
        "curriculum": checkpoint.curriculum,
        "progress": checkpoint.progress,
    }
    with (scratch / "meta.json").open("wb") as file:
        file.write(json.dumps(meta, sort_keys=True).encode())
        file.flush()
        os.fsync(file.fileno())
    _flush_folder(scratch)
    _remove(target)
    scratch.rename(target)
    _flush_folder(root)
    for _, old in _found(root)[:-KEPT]:
        _remove(old)
    return target


def load_checkpoint(root: Path, identity: RunIdentity) -> Checkpoint | None:
    """The newest checkpoint, or None. Raises UserError when it belongs to another run, naming what differs."""
    found = _found(root)
    if not found:
        return None
    step, folder = found[-1]
    meta = json.loads((folder / "meta.json").read_text())
    for name, value in asdict(identity).items():
        held = meta["identity"].get(name)
        if held != value:
            raise UserError(f"resume.{name}", str(value)[:12], f"{str(held)[:12]}, as in {folder}; or a new output folder")
    state = torch.load(folder / "state.pt", map_location="cpu", weights_only=True)
    return Checkpoint(step=step, learner=state, curriculum=meta["curriculum"], progress=meta["progress"])


def _found(root: Path) -> list[tuple[int, Path]]:
    if not root.is_dir():
        return []
    matches = [(NAME.fullmatch(path.name), path) for path in root.iterdir()]
    return sorted((int(match.group(1)), path) for match, path in matches if match)


def _remove(path: Path) -> None:
    if path.exists():
        doomed = path.with_name(f".removing-{path.name}")
        path.rename(doomed)
        shutil.rmtree(doomed)


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
