"""One run of a verifier for all episodes that left the same files."""

from __future__ import annotations

import threading
from collections import OrderedDict
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
    untouched one, for a start). Safe for several threads. `rollout` makes one for each wave; a trainer can
    keep one over its steps where verifiers only look (trees, databases) and do not run what was left.
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
                if len(self._verdicts) > self._most:
                    self._verdicts.popitem(last=False)
            else:
                self._verdicts.move_to_end(key)
        if known is not None:
            return known.result()
        try:
            verdict = self._grade(backend, blobs, environment, verifier, start=start, end=end)
        except BaseException as error:
            with self._lock:
                self._verdicts.pop(key, None)
            future.set_exception(error)
            raise
        future.set_result(verdict)
        return verdict
