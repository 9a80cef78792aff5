"""Grade a finished episode: a fresh sandbox, the agent's tree as data, the verdict over a pipe that only the harness holds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxError, VerifierError, VerifierTimeLimit
from factory.core.files import FileTree
from factory.core.outcome import Check, CheckState, Verdict
from factory.core.task import EnvironmentSpec, Mount, VerifierSpec
from sandboxes.contract import Backend, ProcessResult
from sandboxes.shell import fresh_nonce

SUBMISSION = "/submission"
VERIFIER = "/verifier"
VERDICT_BYTES = 1 << 22
"""The largest verdict, bytes."""
SCRATCH_BYTES = 256 << 20
"""What a verifier may at least write, bytes; more where the episode itself could."""

_ARGV = ["python3", "-I", "-S", f"{VERIFIER}/verify.py"]


def grade(
    backend: Backend,
    blobs: BlobStore,
    environment: EnvironmentSpec,
    verifier: VerifierSpec,
    *,
    start: Digest,
    end: Digest,
) -> Verdict:
    """What `verifier` says of the tree `end` of an episode that began with `start`.

    Raises VerifierTimeLimit when the harness runs past `verifier.wall_ms`, VerifierError for every other failure of
    the harness, its sandbox included: such an episode is masked.
    """
    nonce = fresh_nonce()
    mounts = (Mount(path=SUBMISSION, tree=end), Mount(path=VERIFIER, tree=verifier.bundle))
    try:
        with backend.open(_environment(blobs, environment, verifier), blobs, mounts) as sandbox:
            result = sandbox.process(_ARGV, stdin=nonce, timeout_s=verifier.wall_ms / 1000, output_bytes=VERDICT_BYTES)
    except SandboxError as error:
        raise VerifierError(f"the verifier's sandbox failed: {error}") from error
    if result.timed_out:
        raise VerifierTimeLimit(f"the verifier {verifier.bundle} ran past {verifier.wall_ms} ms")
    return Verdict(
        checks=_checks(_frame(result, nonce.decode())),
        verifier=verifier.bundle,
        start=start,
        end=end,
        wall_s=result.wall_s,
        cpu_s=result.cpu_s,
    )


def _environment(blobs: BlobStore, environment: EnvironmentSpec, verifier: VerifierSpec) -> EnvironmentSpec:
    """The task's own environment with an empty working directory and the verifier's limits."""
    scratch = max(environment.limits.disk_bytes, SCRATCH_BYTES)
    limits = replace(
        environment.limits,
        memory_bytes=verifier.memory_bytes,
        processes=verifier.processes,
        disk_bytes=scratch,
        file_bytes=scratch,
        episode_ms=verifier.wall_ms,
    )
    return replace(environment, files=FileTree().save(blobs), limits=limits)


def _frame(result: ProcessResult, nonce: str) -> dict[str, Any]:
    """The one frame on the channel. Raises VerifierError when there is another amount of bytes, or another nonce."""
    data = result.stdout
    if result.exit_code != 0 or len(data) < 4 or len(data) != 4 + int.from_bytes(data[:4], "big"):
        tail = result.stderr_tail.decode(errors="replace").strip()
        raise VerifierError(f"the verifier ended with {result.exit_code} and {len(data)} bytes of verdict: {tail[-500:]}")
    try:
        frame = json.loads(data[4:])
    except ValueError as error:
        raise VerifierError("the verdict is not JSON") from error
    if not isinstance(frame, dict) or frame.get("nonce") != nonce:
        raise VerifierError("the verdict does not carry this run's nonce")
    if "error" in frame:
        raise VerifierError(f"the checker failed: {frame['error']}")
    return frame


def _checks(frame: dict[str, Any]) -> tuple[Check, ...]:
    try:
        return tuple(
            Check(str(item["name"]), CheckState(item["state"]), str(item.get("detail", ""))) for item in frame["checks"]
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VerifierError(f"the checker's answer has another form: {error!r}") from error
