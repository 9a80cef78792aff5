"""One run of a verifier for all episodes that left the same files."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from factory.agent.environment import Grade
from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.outcome import Verdict
from factory.core.task import EnvironmentSpec, VerifierSpec
from sandboxes.contract import Backend

_Key = tuple[EnvironmentSpec, VerifierSpec, Digest, Digest]


class SharedGrade:
    """Grades equal (environment, verifier, start, end) once; a fault is raised to who waited and then forgotten.

    A verdict is a function of these four, and rollouts of one group often leave the same tree (an
    untouched one, for a start). Safe for several threads. For one batch of rollouts, then dropped.
    """

    def __init__(self, grade: Grade) -> None:
        self._grade = grade
        self._lock = threading.Lock()
        self._verdicts: dict[_Key, Future[Verdict]] = {}
        self.runs = 0
        """Verifiers that really ran."""

    def __call__(
        self,
        backend: Backend,
        blobs: BlobStore,
        environment: EnvironmentSpec,
        verifier: VerifierSpec,
        *,
        start: Digest,
        end: Digest,
    ) -> Verdict:
        key = (environment, verifier, start, end)
        with self._lock:
            known = self._verdicts.get(key)
            if known is None:
                future = self._verdicts[key] = Future()
                self.runs += 1
        if known is not None:
            return known.result()
        try:
            verdict = self._grade(backend, blobs, environment, verifier, start=start, end=end)
        except BaseException as error:
            with self._lock:
                del self._verdicts[key]
            future.set_exception(error)
            raise
        future.set_result(verdict)
        return verdict
