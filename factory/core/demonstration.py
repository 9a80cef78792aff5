"""Demonstrations: the actions that solve a task, in the agent's own action format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from factory.core.action import Action
from factory.core.digest import Digest, Json, digest_of


@dataclass(frozen=True)
class Demonstration:
    """Reference actions in order; the last one is `submit`."""

    actions: tuple[Action, ...]

    def manifest(self) -> list[Json]:
        return [{"tool": action.tool, "arguments": dict(action.arguments)} for action in self.actions]

    @property
    def digest(self) -> Digest:
        return digest_of(self.manifest())

    @classmethod
    def from_manifest(cls, value: list[Any]) -> Demonstration:
        return cls(tuple(Action(item["tool"], item["arguments"]) for item in value))
