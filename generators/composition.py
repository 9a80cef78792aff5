"""Tasks composed of skills: slots, words, commands, and the states that they lead through."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

from factory.core.action import Action
from factory.core.demonstration import Demonstration
from factory.core.digest import Json
from factory.core.errors import UserError
from factory.core.streams import stream
from factory.core.task import Candidate, Limits, Origin, SplitKeys, Task
from generators.names import Names
from generators.signatures import Signature, SignatureSpace, pick
from generators.skill import Skill, Slots

STYLES = ("plain", "full")


@dataclass(frozen=True)
class Room:
    """What the kinds of synthesized task differ in."""

    name: str
    skills: Mapping[str, Skill[Any]]
    """In the fixed order that gives each family its reserve of names."""
    tool: str
    argument: str
    """The tool of the reference solution and the argument that takes a command."""
    joint: str
    """What joins commands into one."""
    closing: str
    """Last sentence of an instruction in full sentences."""


@dataclass(frozen=True, kw_only=True)
class CompositionConfig:
    """Which skills, how deep, in what words.

    `pools` decides which names are held out together: keep it for as long as a registry has sealed splits.
    """

    room: ClassVar[Room]

    families: tuple[str, ...]
    """Skills that are composed with each other."""
    apart: tuple[str, ...] = ()
    """Skills with names of their own, for the holdout of whole families; at most one in a task."""
    apart_percent: int = 0
    """Share of tasks that exercise a skill set apart, percent."""
    depth_weights: tuple[int, ...] = (1, 2)
    """Relative weight of tasks of 1, 2, ... skills."""
    pools: int = 8
    """Pools of names among which the signatures are spread."""
    style: str = "plain"
    """`plain` words for a tiny vocabulary, `full` sentences for larger models."""
    joined: bool = False
    """Whether the reference solution is one call for all skills, not one call for each."""
    turns: int = 6
    """Actions in one episode."""
    command_ms: int = 5_000
    """Wall time of one command, milliseconds."""

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise UserError(f"{self.room.name}.style", self.style, " or ".join(STYLES))
        if self.turns < len(self.depth_weights) + 1:
            raise UserError(f"{self.room.name}.turns", self.turns, "room for one call per skill and the submission")
        assert self.space

    @cached_property
    def space(self) -> SignatureSpace:
        """The signatures of this configuration. Raises UserError where a field is not right."""
        return SignatureSpace(
            room=self.room.name,
            table=tuple(self.room.skills),
            families=self.families,
            apart=self.apart,
            apart_percent=self.apart_percent,
            depth_weights=self.depth_weights,
            pools=self.pools,
        )

    @property
    def limits(self) -> Limits:
        """The limits of every task of the series."""
        return Limits(turns=self.turns, command_ms=self.command_ms)


@dataclass(frozen=True)
class Step:
    """One skill with its slots filled and the wording chosen."""

    skill: Skill[Any]
    slots: Slots
    wording: int

    @property
    def command(self) -> str:
        """The reference command."""
        return self.skill.command.format_map(self.slots)

    @property
    def near_misses(self) -> tuple[str, ...]:
        """Commands that look right and are not."""
        return tuple(text.format_map(self.slots) for text in self.skill.near_misses)

    def manifest(self) -> Json:
        return {"skill": self.skill.name, "slots": dict(self.slots), "wording": self.wording}


@dataclass(frozen=True)
class Composition:
    """The steps of one task in order. No two of them share a name, so that only their effects add up."""

    config: CompositionConfig
    signature: Signature
    steps: tuple[Step, ...]

    @property
    def instruction(self) -> str:
        """`plain`: lower case, single spaces, `a and then b`. `full`: whole sentences."""
        if self.config.style == "plain":
            return " and then ".join(step.skill.clauses[step.wording].format_map(step.slots) for step in self.steps)
        sentences = [step.skill.sentence.format_map(step.slots) for step in self.steps]
        return " ".join([*sentences, self.config.room.closing])

    @property
    def demonstration(self) -> Demonstration:
        """The reference: one call for each step, or one for all of them, and `submit`."""
        room = self.config.room
        commands = [step.command for step in self.steps]
        if self.config.joined:
            commands = [room.joint.join(commands)]
        return Demonstration((*(Action(room.tool, {room.argument: command}) for command in commands), Action("submit")))

    def prepared(self, names: Names) -> dict[str, Any]:
        """The part of the starting state that the steps speak of."""
        start: dict[str, Any] = {}
        for step in self.steps:
            start |= step.skill.prepare(step.slots, names)
        return start

    def states(self, start: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
        """`start`, and the state after each step."""
        states = [start]
        for step in self.steps:
            states.append(step.skill.apply(step.slots, states[-1]))
        return tuple(states)

    def candidate(self, task: Task, *, version: str, seed: int, number: int, evidence: dict[str, Json]) -> Candidate:
        """`task` with its provenance, name and split keys; `evidence` joins the origin's parameters."""
        room, signature = self.config.room.name, self.signature
        parameters: dict[str, Json] = {
            "number": number,
            "pool": signature.pool,
            "pools": self.config.pools,
            "style": self.config.style,
            "joined": self.config.joined,
            "steps": [step.manifest() for step in self.steps],
        }
        origin = Origin(
            generator=room, generator_version=version, seed=seed, template=str(signature), parameters=parameters | evidence
        )
        return Candidate(
            task=task,
            origin=origin,
            name=f"{room}/{signature}/{number:04d}",
            families=signature.skills,
            keys=SplitKeys(keys=signature.keys),
            text="\n".join(step.command for step in self.steps),
        )


def compose(config: CompositionConfig, signature: Signature, rng: random.Random) -> tuple[Composition, Names]:
    """Fill the slots of `signature`; the names that come back know which ones are taken."""
    names = Names(signature.names, rng)
    steps = []
    for family in signature.skills:
        skill = config.room.skills[family]
        slots = {slot: names.fresh() for slot in skill.slots}
        steps.append(Step(skill, slots, int(rng.random() * len(skill.clauses))))
    return Composition(config, signature, tuple(steps)), names


class SkillDemonstrator:
    """Oracle demonstrations from a stream of their own, clear of what a split withholds.

    Slots and words only: no state is built and nothing is stored. `withheld` holds split keys
    (`signature:copy+sort`, `slots:terminal-3`): no demonstration has any of them. Families set apart are
    never shown. Any signature draws from all the names that are left, not from its own pool alone: what
    is shown is how to copy a name, not which names go with which skills.
    """

    def __init__(self, config: CompositionConfig, *, withheld: frozenset[str] = frozenset()) -> None:
        self.config = config
        self._signatures = config.space.allowed(withheld)
        if not self._signatures:
            raise UserError("withheld", sorted(withheld), "split keys that leave at least one signature to demonstrate")
        self._cumulative = tuple(accumulate(weight for _, weight in self._signatures))
        self._names = tuple(sorted({name for signature, _ in self._signatures for name in signature.names}))

    def demonstrate(self, *, seed: int, count: int) -> Iterator[tuple[str, Demonstration, tuple[str, ...]]]:
        """Instruction, reference actions, and what the sandbox shows between them: nothing, as each command is silent."""
        for number in range(count):
            rng = stream(seed, self.config.room.name, "demonstration", number)
            signature = replace(pick(rng, self._cumulative, self._signatures), names=self._names)
            composition, _ = compose(self.config, signature, rng)
            demonstration = composition.demonstration
            yield composition.instruction, demonstration, ("",) * (len(demonstration.actions) - 1)
