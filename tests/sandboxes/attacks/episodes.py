"""Short episodes on real terminal and database tasks: an attacker's commands, with or without the reference solution."""

from __future__ import annotations

from functools import cache

from factory.agent.tools import TOOLS
from factory.core.blobs import MemoryBlobs, get_json
from factory.core.demonstration import Demonstration
from factory.core.task import Candidate
from generators.database import DatabaseConfig, DatabaseGenerator
from generators.terminal import TerminalConfig, TerminalGenerator
from sandboxes.contract import Backend
from sandboxes.verification.grade import grade

BLOBS = MemoryBlobs()
KINDS = ("terminal", "database")


@cache
def candidate(kind: str) -> Candidate:
    """A task of two skills of this kind."""
    if kind == "terminal":
        return next(
            TerminalGenerator(TerminalConfig(apart_percent=0, depth_weights=(0, 1))).generate(BLOBS, seed=3, start=0, count=1)
        )
    return next(
        DatabaseGenerator(DatabaseConfig(apart_percent=0, depth_weights=(0, 1))).generate(BLOBS, seed=3, start=0, count=1)
    )


def episode(backend: Backend, kind: str, command: str, *, solved: bool) -> frozenset[str]:
    """Solve the task or not, run the attacker's command, and grade what is left: names of the checks that passed.

    What was solved is graded by the held-out verifier, the rest by the first.
    """
    task = candidate(kind).task
    verifier = task.held_out if solved else task.verifier
    actions = Demonstration.from_manifest(get_json(BLOBS, task.solution)).actions if solved else ()
    assert verifier is not None
    with backend.open(task.environment, BLOBS) as sandbox:
        for action in actions:
            run = TOOLS[action.tool].run
            if run is not None:
                run(sandbox, action.arguments, task.environment.limits)
        if command:
            sandbox.run(command, timeout_s=1.5, output_bytes=1000)
        sandbox.stop()
        end = sandbox.export()
    (verdict,) = grade(backend, BLOBS, task.environment, [verifier], start=task.environment.files, end=end)
    return frozenset(check.name for check in verdict.checks if check.passed)


@cache
def honest(backend: Backend, kind: str, solved: bool) -> frozenset[str]:
    """The same without any attack."""
    return episode(backend, kind, "", solved=solved)
