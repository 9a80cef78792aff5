"""Grade a finished episode: a fresh sandbox, the agent's tree as data, the verdict over a pipe that only the harness holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from sandboxes.verification.bundles import envelope, shares_process

SUBMISSION = "/submission"
VERIFIER = "/verifier"
ALSO = "/verifier-{}"
"""Where the second and further bundles of one process stand."""
VERDICT_BYTES = 1 << 22
"""The largest verdict, bytes."""
SCRATCH_BYTES = 256 << 20
"""What a verifier may at least write, bytes; more where the episode itself could."""

_ARGV = ["python3", "-I", "-S", f"{VERIFIER}/verify.py"]


def grade(
    backend: Backend,
    blobs: BlobStore,
    environment: EnvironmentSpec,
    verifiers: Sequence[VerifierSpec],
    *,
    start: Digest,
    end: Digest,
) -> tuple[Verdict, ...]:
    """What each of `verifiers` says of the tree `end` of an episode that began with `start`.

    Verifiers that only look and have the same sources and limits share a sandbox and a process, half of what a small verdict
    takes; where that goes wrong, and for all others, each has a sandbox of its own. Checks that passed and that the checker
    can audit are audited in another sandbox; when something speaks against them, every check has failed.

    Raises VerifierTimeLimit when the harness runs past a verifier's `wall_ms`, VerifierError for every other failure of
    the harness, its sandbox included: such an episode is masked.
    """
    if len(verifiers) > 1 and _alike(verifiers) and shares_process(blobs, [verifier.bundle for verifier in verifiers]):
        try:
            return _together(_Sandbox(backend, blobs, environment, verifiers, end), start)
        except VerifierError as error:  # each by itself tells whose fault it was, unless it was the machine's
            if isinstance(error.__cause__, SandboxError):
                raise
    return tuple(_alone(_Sandbox(backend, blobs, environment, (verifier,), end), start) for verifier in verifiers)


def _alike(verifiers: Sequence[VerifierSpec]) -> bool:
    return len({replace(verifier, bundle="") for verifier in verifiers}) == 1


def _together(sandbox: _Sandbox, start: Digest) -> tuple[Verdict, ...]:
    """The verdicts of verifiers that only look; each has its share of the time."""
    asked = {"also": [ALSO.format(number) for number in range(1, len(sandbox.verifiers))]}
    frame = sandbox.ask(json.dumps(asked))
    frames = [frame, *frame.get("also", ())]
    if len(frames) != len(sandbox.verifiers):
        raise VerifierError("another number of verdicts than of verifiers")
    return tuple(
        sandbox.verdict(verifier, _checks(one), start) for verifier, one in zip(sandbox.verifiers, frames, strict=True)
    )


def _alone(sandbox: _Sandbox, start: Digest) -> Verdict:
    frame = sandbox.ask("")
    checks = _checks(frame)
    doubtful = [check.name for check in checks if check.passed and check.name in frame.get("audit", ())]
    if doubtful and (fault := sandbox.ask(json.dumps(doubtful))["fault"]):
        checks = tuple(Check(check.name, CheckState.FAILED, _shown(f"audit: {fault}")) for check in checks)
    return sandbox.verdict(sandbox.verifiers[0], checks, start)


@dataclass
class _Sandbox:
    """Runs verifiers of one process, each time in a fresh sandbox, and adds up what that takes."""

    backend: Backend
    blobs: BlobStore
    environment: EnvironmentSpec
    verifiers: Sequence[VerifierSpec]
    end: Digest
    wall_s: float = 0.0
    cpu_s: float = 0.0

    def ask(self, asked: str) -> dict[str, Any]:
        """The frame of one run: the checks, or, of those that passed, what speaks against them."""
        nonce = fresh_nonce()
        places = [VERIFIER, *(ALSO.format(number) for number in range(1, len(self.verifiers)))]
        halves = [envelope(self.blobs, one.bundle) for one in self.verifiers]  # type: ignore[arg-type]  # hashed by identity
        trees, sealed = zip(*halves, strict=True)
        bundles = [Mount(path=place, tree=tree) for place, tree in zip(places, trees, strict=True)]
        mounts = (Mount(path=SUBMISSION, tree=self.end), *bundles)
        environment = _environment(self.blobs, self.environment, self.verifiers[0])
        stdin, limit_ms = b"\n".join([nonce, asked.encode(), sealed[0]]), sum(one.wall_ms for one in self.verifiers)
        try:
            with self.backend.open(environment, self.blobs, mounts) as sandbox:
                result = sandbox.process(_ARGV, stdin=stdin, timeout_s=limit_ms / 1000, output_bytes=VERDICT_BYTES)
        except SandboxError as error:
            raise VerifierError(f"the verifier's sandbox failed: {error}") from error
        if result.timed_out:
            raise VerifierTimeLimit(f"the verifier {self.verifiers[0].bundle} ran past {limit_ms} ms")
        self.wall_s += result.wall_s
        self.cpu_s += result.cpu_s
        return _frame(result, nonce.decode())

    def verdict(self, verifier: VerifierSpec, checks: tuple[Check, ...], start: Digest) -> Verdict:
        share = len(self.verifiers)
        wall_s, cpu_s = self.wall_s / share, self.cpu_s / share
        return Verdict(checks=checks, verifier=verifier.bundle, start=start, end=self.end, wall_s=wall_s, cpu_s=cpu_s)


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
