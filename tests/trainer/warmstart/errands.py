"""A small language for tests: errands with two names each, and their oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from factory.core.action import Action
from factory.core.demonstration import Demonstration
from factory.core.streams import stream
from factory.core.task import TaskKind
from trainer.policies.tiny import TinyConfig, make_tiny
from trainer.policies.tiny_tokenizer import TokenizerConfig
from trainer.warmstart.demonstrations import Source

SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmn" for vowel in "aeiou")
VERBS = {"copy": "cp", "rename": "mv", "link": "ln -s"}


@dataclass(frozen=True)
class Errands:
    """`depth` errands, one command each; `names` limits how many different names occur."""

    depth: int = 1
    names: int = 1600
    observation: str = ""

    def demonstrate(self, *, seed: int, count: int) -> Iterator[tuple[str, Demonstration, tuple[str, ...]]]:
        rng = stream(seed, "errands")
        pool = [first + second for first in SYLLABLES for second in SYLLABLES][: self.names]
        for _ in range(count):
            wishes, actions = [], []
            for _ in range(self.depth):
                verb = rng.choice(sorted(VERBS))
                source, target = rng.sample(pool, 2)
                wishes.append(f"{verb} {source} to {target}")
                actions.append(Action("bash", {"command": f"{VERBS[verb]} {source} {target}"}))
            yield " and then ".join(wishes), Demonstration((*actions, Action("submit"))), (self.observation,) * self.depth


def errand_source(demonstrator: Errands) -> Source:
    return Source(demonstrator=demonstrator, kind=TaskKind.TERMINAL, tools=("bash", "submit"))


def texts(demonstrator: Errands, count: int = 100) -> Iterator[str]:
    for instruction, demonstration, observations in demonstrator.demonstrate(seed=99, count=count):
        yield instruction
        yield from observations
        for action in demonstration.actions:
            yield from action.arguments.values()


def errand_policy(root: Path, seed: int = 0, width: int = 64) -> Path:
    """An untrained tiny policy that knows the words of errands."""
    config = TinyConfig(tokenizer=TokenizerConfig(syllables=SYLLABLES), seed=seed, width=width, feed_forward=2 * width)
    return make_tiny(texts(Errands()), config, root=root)[1]
