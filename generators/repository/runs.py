"""Runs of a project's suite in sandboxes: the same driver for triage and for validation."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import GeneratorError
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Limits, Mount
from generators.repository.coverage import Coverage
from generators.repository.projects import Checkout
from sandboxes.contract import DEPENDENCIES, WORKSPACE, Backend
from sandboxes.verification.bundles import INSIDE

DRIVER = "/opt/driver"
"""Where the driver stands in a sandbox."""
TREE = "/tmp/tree"
"""Where the driver runs a project."""
PARTS = 5
"""Most parts of one run: four and what is run after a stop."""
RESULT_BYTES = 128 << 20
"""Most bytes of results of one batch."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the suite to make."""

    key: str
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts that replace those of files, by path; empty: the project as it is."""
    how: str = "forked"
    """What makes it: `forked` (the project is imported in the fork), `collected` (forked with the tests collected; the
    sandbox falls back to `forked` where that is not sound), `fresh` (a new interpreter) or `traced`."""
    plain: bool = False
    """Without rewritten assertions, as graders run."""
    shuffle: int | None = None
    """Seed of the order."""
    wanted: tuple[str, ...] | None = None
    """Ids to run; None: all."""
    confirm: tuple[str, ...] = ()
    """Ids that pass in the project as it is: when some of those that were run fail, they are run again in another order,
    with those that were not wanted."""
    whole: bool = False
    """Confirm by all of `confirm`, not only by what failed and what was not run."""
    fresh: bool = False
    """Confirm by all of them in a new interpreter too."""


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """When a run is killed. CPU time decides; wall time is generous, for code that waits."""

    cpu_ms: dict[str, int]
    """CPU milliseconds of one test, by id."""
    other_ms: int = 10_000
    """CPU milliseconds of a test that is not named."""
    import_ms: int = 60_000
    """CPU milliseconds up to the first test."""
    cpu_s: int = 60
    """CPU seconds of the whole suite."""
    wall_s: int = 120
    """Wall seconds of the whole suite."""
    stall_s: int = 30
    """Seconds for which no process of a run wants the processor."""
    stops: int = 2
    """Tests that may end their process before the rest is given up."""


@dataclass(frozen=True)
class Failure:
    """How a test failed, as its exception says."""

    type: str
    message: str
    file: str
    """The test's file."""
    line: int
    """Line of that file which the failure passed through; 0 when it did not."""


@dataclass(frozen=True)
class RunResult:
    """What one run of the suite showed. A test that ended its process is in `stopped`; what follows it was run in another."""

    key: str
    ended: str
    """`exit:<code>`, `signal:<number>`, `wall`, `stall`, `events`, or `none` when there was nothing to run: of the first
    process."""
    finished: bool
    """Whether the run reported its end and exited by itself."""
    running: str | None
    """The test that had begun and did not end."""
    wall_ms: int
    """With what comes before and after it in the sandbox, milliseconds."""
    errors: tuple[str, ...]
    """Collection errors, `id: text`."""
    states: dict[str, str]
    """One of the six states by test id."""
    ms: dict[str, int]
    """Duration by test id, milliseconds."""
    failures: dict[str, Failure]
    again: tuple[RunResult, ...] = ()
    """The confirming runs."""
    part: str = "first"
    """Which run it is: `first`, `again`, `newly` (of tests that failed only then) or `fresh`."""
    how: str = "forked"
    """What made it, as in `Run`."""
    why: str = ""
    """Why it was not made as it was asked."""
    asked: tuple[str, ...] | None = None
    """Ids that were to be run; None: all."""
    stopped: dict[str, str] = field(default_factory=dict)
    """Tests that ended their process, and how it ended."""
    breakage: str = ""
    """What broke beside tests: `import` (something was not collected), `hang` (a limit of CPU, waiting, wall time or memory)
    or `crash`."""
    cpu_ms: int = 0
    """Of the processes that ran tests, milliseconds."""
    trace: dict[str, Any] | None = None
    """Of a traced run, what `inside/suite_tracing.py` tells."""


class Suite:
    """A project's tests, ready to be run in sandboxes of one back end."""

    def __init__(self, checkout: Checkout, mounts: tuple[Mount, ...], backend: Backend, blobs: BlobStore, image: str) -> None:
        self._checkout, self._backend, self._blobs = checkout, backend, blobs
        limits = Limits(
            memory_bytes=2 << 30,
            processes=128,
            disk_bytes=512 << 20,
            file_bytes=128 << 20,
            open_files=512,
            command_ms=3_600_000,
            episode_ms=3_600_000,
        )
        driver = Mount(path=DRIVER, tree=_driver_tree(blobs))
        self.cpu_s = 0.0
        """Processor time of all its batches so far, seconds; without what was killed."""
        self._lock = threading.Lock()
        self._spec = EnvironmentSpec(
            image=image, files=checkout.tree.save(blobs), mounts=(*mounts, driver), limits=limits, tools=("bash",)
        )

    def run(
        self,
        runs: list[Run],
        limits: RunLimits,
        workers: int = 1,
        *,
        coverage: Coverage | None = None,
        kept: Sequence[str] = (),
    ) -> list[RunResult]:
        """Make the runs, shared out over `workers` sandboxes; results in the order of `runs`.

        `coverage` tells what ran on import: without it, or when nothing was traced, no code is exchanged. `kept` are the
        breakages with which a run is confirmed all the same.

        Raises GeneratorError when a sandbox's batch does not come back whole.
        """
        shares = [share for share in (runs[index::workers] for index in range(workers)) if share]
        with ThreadPoolExecutor(max(1, len(shares))) as pool:
            found = {
                result.key: result
                for batch in pool.map(lambda share: self._batch(share, limits, coverage, kept), shares)
                for result in batch
            }
        return [found[run.key] for run in runs]

    def _batch(self, runs: list[Run], limits: RunLimits, coverage: Coverage | None, kept: Sequence[str]) -> list[RunResult]:
        project = self._checkout.project
        job = {
            "root": WORKSPACE,
            "path": project.path,
            "late": [DEPENDENCIES],
            "files": project.tests,
            "options": project.options,
            "sources": self._checkout.source_files(),
            **vars(limits),
            "kept": list(kept),
            "imported": coverage.imported if coverage is not None and coverage.tests else None,
            "risky": [] if coverage is None else list(coverage.always),
            "runs": [{**vars(run), "files": dict(run.files)} for run in runs],
        }
        with self._backend.open(self._spec, self._blobs) as sandbox:
            done = sandbox.process(
                ["python3", "-s", "-S", "-B", f"{DRIVER}/driver.py"],
                stdin=json.dumps(job).encode(),
                timeout_s=limits.wall_s * (PARTS * len(runs) + 3),
                output_bytes=RESULT_BYTES,
            )
        with self._lock:
            self.cpu_s += done.cpu_s
        lines = [_result(json.loads(line)) for line in done.stdout.splitlines() if line.endswith(b"}")]
        first = [result for result in lines if result.part == "first"]
        if done.exit_code == 0 and [result.key for result in first] == [run.key for run in runs]:
            later: dict[str, list[RunResult]] = {}
            for result in lines:
                if result.part != "first":
                    later.setdefault(result.key, []).append(result)
            return [replace(result, again=tuple(later.get(result.key, ()))) for result in first]
        if lines and lines[0].key == "warm":
            raise GeneratorError(
                f"{project.release}: no test was collected ({lines[0].ended}) {'; '.join(lines[0].errors)[-500:]}"
            )
        said = done.stderr_tail.decode(errors="replace").strip()[-300:]
        raise GeneratorError(f"{project.release}: {len(first)} of {len(runs)} runs came back, exit {done.exit_code}: {said}")


def _driver_tree(blobs: BlobStore) -> Digest:
    folder = files("generators.repository").joinpath("inside")
    names = ("driver.py", "suite_servers.py", "suite_swaps.py", "suite_tracing.py", "suite_tree.py")
    contents: dict[str, bytes | str] = {name: folder.joinpath(name).read_text() for name in names}
    for name in ("pytest_plugin.py", "pytest_runs.py", "pytest_guard.py"):
        contents[name] = (INSIDE / name).read_text()
    return FileTree.of(blobs, contents).save(blobs)


def _result(value: dict[str, Any]) -> RunResult:
    return RunResult(
        key=value["key"],
        ended=value["ended"],
        finished=value["finished"],
        running=value["running"],
        wall_ms=value["wall_ms"],
        errors=tuple(f"{error['id']}: {error['text']}" for error in value["errors"]),
        states={name: state for name, (state, _) in value["states"].items()},
        ms={name: ms for name, (_, ms) in value["states"].items()},
        failures={name: _failure(failure) for name, failure in value["failures"].items()},
        asked=None if value["asked"] is None else tuple(value["asked"]),
        **{name: value[name] for name in ("part", "how", "why", "stopped", "breakage", "cpu_ms", "trace")},
    )


def _failure(value: dict[str, Any]) -> Failure:
    """A failure without what is different in every process."""
    message = re.sub(r"0x[0-9a-f]{6,}", "0x...", value["message"])
    return Failure(**{**value, "message": message.replace(f"{TREE}/", "").replace(TREE, ".")})
