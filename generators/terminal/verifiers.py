"""The two specifications of a terminal task's verifiers, from its states before and after."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from factory.core.digest import Json
from factory.core.files import EntryKind
from generators.composition import Composition
from generators.skill import changed
from generators.terminal.state import Node, State


def asked(composition: Composition, states: Sequence[State]) -> dict[str, Json]:
    """The verifier for training: each step's own paths, and that nothing else changed."""
    steps: list[Json] = [
        {"name": f"{number} {step.skill.name}", "paths": list(changed(states[number - 1], states[number]))}
        for number, step in enumerate(composition.steps, start=1)
    ]
    return {"view": "asked", "tree": _tree(composition, states[-1]), "steps": steps}


def whole(composition: Composition, states: Sequence[State]) -> dict[str, Json]:
    """The held-out verifier: the listing as a whole, blind to the request."""
    return {"view": "whole", "tree": _tree(composition, states[-1])}


def _tree(composition: Composition, state: State) -> dict[str, Json]:
    loose = {step.slots[slot] for step in composition.steps for slot in step.skill.loose}
    return {path: _entry(path, node, loose=path in loose) for path, node in state.items()}


def _entry(path: str, node: Node, *, loose: bool) -> Json:
    if node.kind is EntryKind.LINK:
        return {"kind": "link", "target": node.target, "folder": path.rpartition("/")[0]}
    if node.kind is EntryKind.DIRECTORY:
        return {"kind": "directory"}
    data = node.text.encode()
    entry: dict[str, Json] = {"kind": "file", "size": len(data), "executable": node.executable, "loose": loose}
    entry["sha256"] = hashlib.sha256(data).hexdigest()
    if loose:
        entry["sha256_open"] = hashlib.sha256(data.removesuffix(b"\n")).hexdigest()
    return entry
