"""Grade a finished episode: a fresh sandbox, the agent's tree as data, the verdict over a pipe that only the harness holds."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
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

    Checks that passed and that the checker can audit are audited in another sandbox; when something speaks against
    them, every check has failed.

    Raises VerifierTimeLimit when the harness runs past `verifier.wall_ms`, VerifierError for every other failure of
    the harness, its sandbox included: such an episode is masked.
    """
    sandbox = _Verifier(backend, blobs, _environment(blobs, environment, verifier), verifier, end)
    frame = sandbox.ask("")
    checks = _checks(frame)
    doubtful = [check.name for check in checks if check.passed and check.name in frame.get("audit", ())]
    if doubtful and (fault := sandbox.ask(json.dumps(doubtful))["fault"]):
        checks = tuple(Check(check.name, CheckState.FAILED, _shown(f"audit: {fault}")) for check in checks)
    return Verdict(checks=checks, verifier=verifier.bundle, start=start, end=end, wall_s=sandbox.wall_s, cpu_s=sandbox.cpu_s)


@dataclass
class _Verifier:
    """Runs the verifier, each time in a fresh sandbox, and adds up what that takes."""

    backend: Backend
    blobs: BlobStore
    environment: EnvironmentSpec
    spec: VerifierSpec
    end: Digest
    wall_s: float = 0.0
    cpu_s: float = 0.0

    def ask(self, passed: str) -> dict[str, Any]:
        """The frame of one run: the checks, or, of those that passed, what speaks against them."""
        nonce = fresh_nonce()
        mounts = (Mount(path=SUBMISSION, tree=self.end), Mount(path=VERIFIER, tree=self.spec.bundle))
        stdin, limit = nonce + b"\n" + passed.encode(), self.spec.wall_ms / 1000
        try:
            with self.backend.open(self.environment, self.blobs, mounts) as sandbox:
                result = sandbox.process(_ARGV, stdin=stdin, timeout_s=limit, output_bytes=VERDICT_BYTES)
        except SandboxError as error:
            raise VerifierError(f"the verifier's sandbox failed: {error}") from error
        if result.timed_out:
            raise VerifierTimeLimit(f"the verifier {self.spec.bundle} ran past {self.spec.wall_ms} ms")
        self.wall_s += result.wall_s
        self.cpu_s += result.cpu_s
        return _frame(result, nonce.decode())


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
            Check(str(item["name"]), CheckState(item["state"]), _shown(str(item.get("detail", "")))) for item in frame["checks"]
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VerifierError(f"the checker's answer has another form: {error!r}") from error


def _shown(detail: str) -> str:
    """Text that any terminal, file and database takes: graded code words it, so what does not print is escaped."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else letter.encode("unicode_escape").decode() for letter in detail
    )
