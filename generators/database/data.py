"""The seeded databases of one task, drawn until no near miss passes for the answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from factory.core.digest import Json
from factory.core.errors import GeneratorError
from factory.core.streams import stream
from generators.composition import Composition, Step
from generators.database.changes import some_rows, text_table
from generators.database.model import State, View, built, file_bytes, reaches
from generators.names import Names

DRAWS = 20
"""Draws of one database before the generator gives up."""


@dataclass(frozen=True)
class Database:
    """One seeded database with the states that the steps lead it through."""

    data: bytes
    states: tuple[State, ...]
    draws: int
    """How often it was drawn until every near miss showed."""


def seeded(composition: Composition, names: Names, *, seed: int, number: int, count: int) -> tuple[Database, ...]:
    """The task's own database first, then `count` others of the same tables.

    On the first every near miss of every step leads to another state than the step does; on the others
    that holds for the steps whose answer is a view, the only ones judged there. Raises GeneratorError
    when no such data come out.
    """
    around = (names.fresh(), names.fresh(), names.fresh())
    result = []
    for index in range(count + 1):
        for draw in range(DRAWS):
            fork = names.forked(stream(seed, "database", "data", number, index, draw))
            table, left, right = around
            bystander = text_table(left, right, rows=some_rows(fork, 2, 5), names=fork)
            states = composition.states({table: bystander, **composition.prepared(fork)})
            with closing(built(states[0])) as connection:
                if not any(_passes(connection, states, step) for step in judged(composition, states, others_only=index > 0)):
                    result.append(Database(file_bytes(connection), states, draw + 1))
                    break
        else:
            raise GeneratorError(f"database task {number} of seed {seed}: a near miss passes on each of {DRAWS} draws")
    return tuple(result)


def judged(composition: Composition, states: Sequence[State], *, others_only: bool) -> Iterator[Step]:
    """The steps that are judged on a database: all on the task's own, those with a view on the others."""
    for before, after, step in zip(states, states[1:], composition.steps, strict=False):
        if not others_only or any(isinstance(after[name], View) for name in after.keys() - before.keys()):
            yield step


def _passes(connection: sqlite3.Connection, states: Sequence[State], step: Step) -> bool:
    """Whether a near miss of `step` leads to what the step should lead to."""
    expected = step.skill.apply(step.slots, states[0])
    return any(reaches(connection, statement, expected) for statement in step.near_misses)


def evidence(composition: Composition, databases: tuple[Database, ...]) -> Json:
    """What was tried against the data: for each database how many near misses, and its number of draws."""
    return [
        {
            "near_misses": sum(
                len(step.near_misses) for step in judged(composition, database.states, others_only=database is not databases[0])
            ),
            "passing": 0,
            "draws": database.draws,
        }
        for database in databases
    ]
