"""One composed terminal task: slots, words, commands, and the states before and after."""

from __future__ import annotations

import random
from dataclasses import dataclass

from factory.core.action import Action
from factory.core.demonstration import Demonstration
from factory.core.digest import Json
from generators.names import Names
from generators.signatures import Signature
from generators.terminal.skill import Slots, some_file
from generators.terminal.skills import SKILLS
from generators.terminal.state import FOLDER, Node, State

STYLES = ("plain", "full")


@dataclass(frozen=True)
class Step:
    """One skill with its slots filled and the wording chosen."""

    skill: str
    slots: Slots
    wording: int

    @property
    def command(self) -> str:
        """The reference command."""
        return SKILLS[self.skill].command.format_map(self.slots)

    def near_misses(self) -> tuple[str, ...]:
        """Commands that look right and are not."""
        return tuple(text.format_map(self.slots) for text in SKILLS[self.skill].near_misses)

    def manifest(self) -> Json:
        return {"skill": self.skill, "slots": dict(self.slots), "wording": self.wording}


@dataclass(frozen=True)
class Composition:
    """The steps of one task in order. No two of them share a name, so that only their effects add up."""

    signature: Signature
    steps: tuple[Step, ...]

    def instruction(self, style: str) -> str:
        """`plain`: lower case, single spaces, `a and then b`. `full`: whole sentences."""
        if style == "plain":
            return " and then ".join(SKILLS[step.skill].clauses[step.wording].format_map(step.slots) for step in self.steps)
        sentences = [SKILLS[step.skill].sentence.format_map(step.slots) for step in self.steps]
        return " ".join([*sentences, "Change nothing else in the working directory."])

    def demonstration(self, *, joined: bool) -> Demonstration:
        """The reference: one `bash` call for each step, or one for all of them, and `submit`."""
        commands = [step.command for step in self.steps]
        if joined:
            commands = [" && ".join(commands)]
        return Demonstration((*(Action("bash", {"command": command}) for command in commands), Action("submit")))

    def states(self, names: Names) -> tuple[State, ...]:
        """The state before the first step and after each; what no step speaks of stands around it."""
        start = _bystanders(names)
        for step in self.steps:
            start |= SKILLS[step.skill].prepare(step.slots, names)
        states: list[State] = [start]
        for step in self.steps:
            states.append(SKILLS[step.skill].apply(step.slots, states[-1]))
        return tuple(states)


def compose(signature: Signature, rng: random.Random) -> tuple[Composition, Names]:
    """Fill the slots of `signature`; the names go on to draw contents from the same stream."""
    names = Names(signature.names, rng)
    steps = []
    for skill in signature.skills:
        kind = SKILLS[skill]
        slots = {slot: names.fresh() for slot in kind.slots}
        steps.append(Step(skill, slots, int(rng.random() * len(kind.clauses))))
    return Composition(signature, tuple(steps)), names


def _bystanders(names: Names) -> dict[str, Node]:
    """Two to four files and a folder with a file: what a task must leave alone."""
    files: dict[str, Node] = {names.fresh(): some_file(names) for _ in range(names.rng.randint(2, 4))}
    folder = names.fresh()
    return {**files, folder: FOLDER, f"{folder}/{names.fresh()}": some_file(names)}
