"""One run of a verifier for all episodes that left the same files."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future

from factory.agent.environment import Grade
from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.outcome import Verdict
from factory.core.task import EnvironmentSpec, VerifierSpec
from sandboxes.contract import Backend
from sandboxes.verification.bundles import shares_process

_Key = tuple[EnvironmentSpec, VerifierSpec, Digest, Digest]


class SharedGrade:
    """Grades equal (environment, verifier, start, end) once; a fault is raised to who waited and then forgotten.

    A verdict is a function of these four, and rollouts of one group often leave the same tree (an
    untouched one, for a start). Safe for several threads. `rollout` makes one for each wave.
    """

    def __init__(self, grade: Grade, *, most: int = 100_000) -> None:
        """`most` is the number of verdicts kept; the one longest unused makes room."""
        self._grade, self._most = grade, most
        self._lock = threading.Lock()
        self._verdicts: OrderedDict[_Key, Future[Verdict]] = OrderedDict()
        self.runs = 0
        """Verifiers that really ran."""

    def __call__(
        self,
        backend: Backend,
        blobs: BlobStore,
        environment: EnvironmentSpec,
        verifiers: Sequence[VerifierSpec],
        *,
        start: Digest,
        end: Digest,
    ) -> tuple[Verdict, ...]:
        keys = [(environment, verifier, start, end) for verifier in verifiers]
        with self._lock:
            mine = [key for key in dict.fromkeys(keys) if key not in self._verdicts]
            futures = {key: self._future(key) for key in keys}
            while len(self._verdicts) > self._most:
                self._verdicts.popitem(last=False)
        if mine:
            asked = [verifier for _, verifier, _, _ in mine]
            try:
                verdicts = self._grade(backend, blobs, environment, asked, start=start, end=end)
            except BaseException as error:
                self._forget(mine, error, futures)
                raise
            for key, verdict in zip(mine, verdicts, strict=True):
                futures[key].set_result(verdict)
        return tuple(futures[key].result() for key in keys)

    def _future(self, key: _Key) -> Future[Verdict]:
        """The verdict known or under way, the longest unused first; a new one counts as a run."""
        if key not in self._verdicts:
            self._verdicts[key] = Future()
            self.runs += 1
        self._verdicts.move_to_end(key)
        return self._verdicts[key]

    def _forget(self, keys: Sequence[_Key], error: BaseException, futures: dict[_Key, Future[Verdict]]) -> None:
        with self._lock:
            for key in keys:
                self._verdicts.pop(key, None)
        for key in keys:
            futures[key].set_exception(error)


class LastingGrade:
    """Shares the verdicts of verifiers that only look (trees, databases) for as long as it lives; others run each time.

    What runs graded code may differ from run to run, so only a wave shares its verdicts (`SharedGrade`). A policy that learns
    solves its tasks in the same way again and again: a trainer keeps one of these over its steps.
    """

    def __init__(self, grade: Grade) -> None:
        self._grade, self.shared = grade, SharedGrade(grade)

    def __call__(
        self,
        backend: Backend,
        blobs: BlobStore,
        environment: EnvironmentSpec,
        verifiers: Sequence[VerifierSpec],
        *,
        start: Digest,
        end: Digest,
    ) -> tuple[Verdict, ...]:
        looks = shares_process(blobs, [verifier.bundle for verifier in verifiers])
        chosen: Grade = self.shared if looks else self._grade
        return chosen(backend, blobs, environment, verifiers, start=start, end=end)
