"""Runs of a project's suite in sandboxes: the same driver for triage and for validation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import GeneratorError
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Limits, Mount
from generators.repository.projects import Checkout
from sandboxes.contract import DEPENDENCIES, WORKSPACE, Backend
from sandboxes.verification.bundles import INSIDE

DRIVER = "/opt/driver"
"""Where the driver stands in a sandbox."""
TREE = "/tmp/tree"
"""Where the driver runs a project."""
AGAIN = " again"
"""What the key of a confirming run ends in."""
RESULT_BYTES = 128 << 20
"""Most bytes of results of one batch."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the suite to make."""

    key: str
    files: Mapping[str, str | None] = field(default_factory=dict)
    """Texts that stand in the place of the project's own, by path; None: without that file. Empty: the project as it is."""
    plain: bool = False
    """Without rewritten assertions, as graders run."""
    shuffle: int | None = None
    """Seed of the order."""
    confirm: tuple[str, ...] = ()
    """Ids that pass in the project as it is: a run in which some fail is made again, in another order."""


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """When a run is killed. CPU time decides; wall time is generous, for code that waits."""

    cpu_ms: dict[str, int]
    """CPU milliseconds of one test, by id."""
    other_ms: int = 10_000
    """CPU milliseconds of a test that is not named."""
    cpu_s: int = 60
    """CPU seconds of the whole suite."""
    wall_s: int = 120
    """Wall seconds of the whole suite."""


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
    """What one run of the suite showed."""

    key: str
    ended: str
    """`exit:<code>`, `signal:<number>`, `wall` or `events`."""
    finished: bool
    """Whether the run reported its end and exited by itself."""
    running: str | None
    """The test that had begun and did not end."""
    wall_ms: int
    errors: tuple[str, ...]
    """Collection errors, `id: text`."""
    states: dict[str, str]
    """One of the six states by test id."""
    ms: dict[str, int]
    """Duration by test id, milliseconds."""
    failures: dict[str, Failure]
    again: RunResult | None = None
    """The confirming run, where one was made."""

    @property
    def hung(self) -> bool:
        """Whether a limit of CPU or wall time ended the run (SIGPROF 27, SIGXCPU 24, or SIGKILL past the hard limit)."""
        return self.ended in ("wall", "signal:27", "signal:24", "signal:9")


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
        self._spec = EnvironmentSpec(
            image=image, files=checkout.tree.save(blobs), mounts=(*mounts, driver), limits=limits, tools=("bash",)
        )

    def run(self, runs: list[Run], limits: RunLimits, workers: int = 1) -> list[RunResult]:
        """Make the runs, shared out over `workers` sandboxes; results in the order of `runs`.

        Raises GeneratorError when a sandbox's batch does not come back whole.
        """
        shares = [share for share in (runs[index::workers] for index in range(workers)) if share]
        with ThreadPoolExecutor(max(1, len(shares))) as pool:
            found = {
                result.key: result for batch in pool.map(lambda share: self._batch(share, limits), shares) for result in batch
            }
        return [found[run.key] for run in runs]

    def _batch(self, runs: list[Run], limits: RunLimits) -> list[RunResult]:
        project = self._checkout.project
        job = {
            "root": WORKSPACE,
            "path": project.path,
            "late": [DEPENDENCIES],
            "files": project.tests,
            "options": project.options,
            "cpu_ms": limits.cpu_ms,
            "other_ms": limits.other_ms,
            "cpu_s": limits.cpu_s,
            "wall_s": limits.wall_s,
            "runs": [{**vars(run), "files": dict(run.files)} for run in runs],
        }
        with self._backend.open(self._spec, self._blobs) as sandbox:
            done = sandbox.process(
                ["python3", "-s", "-S", "-B", f"{DRIVER}/driver.py"],
                stdin=json.dumps(job).encode(),
                timeout_s=limits.wall_s * (2 * len(runs) + 3),
                output_bytes=RESULT_BYTES,
            )
        lines = [_result(json.loads(line)) for line in done.stdout.splitlines() if line.endswith(b"}")]
        confirming = {result.key.removesuffix(AGAIN): result for result in lines if result.key.endswith(AGAIN)}
        first = [result for result in lines if not result.key.endswith(AGAIN)]
        if done.exit_code == 0 and [result.key for result in first] == [run.key for run in runs]:
            return [replace(result, again=confirming.get(result.key)) for result in first]
        if lines and lines[0].key == "warm":
            raise GeneratorError(
                f"{project.release}: no test was collected ({lines[0].ended}) {'; '.join(lines[0].errors)[-500:]}"
            )
        said = done.stderr_tail.decode(errors="replace").strip()[-300:]
        raise GeneratorError(f"{project.release}: {len(lines)} of {len(runs)} runs came back, exit {done.exit_code}: {said}")


def _driver_tree(blobs: BlobStore) -> Digest:
    contents: dict[str, bytes | str] = {"driver.py": files("generators.repository").joinpath("inside/driver.py").read_text()}
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
    )


def _failure(value: dict[str, Any]) -> Failure:
    """A failure without what is different in every process."""
    message = re.sub(r"0x[0-9a-f]{6,}", "0x...", value["message"])
    return Failure(**{**value, "message": message.replace(f"{TREE}/", "").replace(TREE, ".")})
