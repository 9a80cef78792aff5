"""Small, whole candidates and trajectories to store."""

from __future__ import annotations

import math

from factory.core.action import Action, Observation
from factory.core.assessment import Assessment, Evidence
from factory.core.blobs import BlobStore, put_json
from factory.core.demonstration import Demonstration
from factory.core.files import FileTree
from factory.core.outcome import Check, CheckState, Outcome, OutcomeKind, ResourceUse, Termination, Verdict
from factory.core.policy import PolicyVersion
from factory.core.reward import RewardComponents
from factory.core.task import Candidate, EnvironmentSpec, Origin, SplitKeys, Task, TaskKind, VerifierSpec
from factory.core.trajectory import Owner, Tokens, Trajectory, Turn

POLICY = PolicyVersion(line="tiny", weights="a" * 64, step=0)
USE = ResourceUse(wall_s=0.25, output_bytes=12, cpu_s=0.125, memory_bytes=1 << 20, processes=3)
VALID = Evidence(filter="validity", rule="gold 3 of 3, no-op 0", passed=True, reason="", data={"gold": [True, True, True]})


def candidate(
    blobs: BlobStore,
    number: int = 0,
    *,
    keys: tuple[str, ...] | None = None,
    kind: TaskKind = TaskKind.TERMINAL,
    families: tuple[str, ...] = ("rename", "count"),
    seed: int = 7,
    source: str | None = None,
    operator: str | None = None,
    instruction: str | None = None,
) -> Candidate:
    """Candidate `number`; equal numbers are equal tasks, whatever their provenance."""
    files = FileTree.of(blobs, {"notes.txt": f"note {number}\n", "shared.txt": "the same in every task\n"}).save(blobs)
    bundle = FileTree.of(blobs, {"verify.py": f"print({number})\n"}).save(blobs)
    demonstration = Demonstration((Action("bash", {"command": f"rm note-{number}"}), Action("submit")))
    task = Task(
        kind=kind,
        instruction=f"Remove note {number}." if instruction is None else instruction,
        environment=EnvironmentSpec(files=files),
        verifier=VerifierSpec(bundle=bundle),
        held_out=None,
        solution=put_json(blobs, demonstration.manifest()),
    )
    origin = Origin(
        generator="material",
        generator_version="1",
        seed=seed,
        source=source,
        operator=operator,
        template="+".join(families),
        parameters={"number": number},
    )
    return Candidate(
        task=task,
        origin=origin,
        name=f"{kind.value}/{'+'.join(families)}/{number:04d}",
        families=families,
        keys=SplitKeys(keys=(f"signature:{number}", f"slots:{number}") if keys is None else keys),
        text=f"note {number}",
    )


def assessment(task: str, successes: int, rollouts: int = 8, policy: PolicyVersion = POLICY) -> Assessment:
    return Assessment(task=task, line=policy.line, policy=policy.weights, successes=successes, rollouts=rollouts, masked=1)


def trajectory(task: str, member: int = 0, *, solved: bool = True, policy: str = POLICY.name) -> Trajectory:
    """One turn: two prompt tokens, two sampled, one observed."""
    tokens = Tokens(
        ids=(5, 6, 40, 2, 9),
        owners=(Owner.SYSTEM, Owner.PROMPT, Owner.ACTION, Owner.ACTION, Owner.OBSERVATION),
        logprobs=(math.nan, math.nan, -0.25, -1.5, math.nan),
        versions=(-1, -1, 0, 0, -1),
    )
    state = CheckState.PASSED if solved else CheckState.FAILED
    verdict = Verdict(checks=(Check("gone", state, "said"),), verifier="b" * 64, start="c" * 64, end="d" * 64, wall_s=0.5)
    turn = Turn(
        start=2,
        end=4,
        action=Action("bash", {"command": "ls"}),
        observation=Observation(text="notes.txt\n", exit_code=0),
        finish="stop",
        decode_s=0.125,
        environment_s=0.25,
    )
    return Trajectory(
        task=task,
        group="step-1/" + task[:8],
        member=member,
        policies=(policy,),
        tokens=tokens,
        turns=(turn,),
        outcome=Outcome(kind=OutcomeKind.SCORED, reason=Termination.SUBMITTED, verdict=verdict, verify_s=0.75, use=USE),
        components=RewardComponents(
            outcome=float(solved), progress=float(solved), validity=1.0, tokens=2, calls=1, seconds=0.25
        ),
        seed=(1 << 62) + member,
        temperature=0.7,
        backend="bubblewrap",
        extra={"note": "one"},
    )
