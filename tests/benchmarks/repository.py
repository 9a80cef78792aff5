"""Compare our validation of broken projects with swesmith's: the same candidate patches through both, in one run, in turn.

    python -m tests.benchmarks.repository [--limit 60] [--projects sqlparse,schedule] [--block 10] [--repeats 5] [--data
    data/bench-repository]

Candidates are what swesmith's procedural operators make of a project (seed 24), of which `--limit` are drawn (seed 0). Blocks
of them go to one validator and then to the other, who begins changes with each block; each has one worker. A further run of the
whole suite in a new interpreter for each candidate is what FAIL_TO_PASS lists are compared with.

What the words of the tables mean:

    screening       ours: the tests that the candidate can reach, until all have a state. swesmith has one run for all
    confirmed       with the confirming runs, where a test failed
    valid           ours: judged to make a task. swesmith: not timed out, FAIL_TO_PASS and PASS_TO_PASS not empty
    valid/min       over all time spent: start-up, hangs, the clean runs that each begins with (ours: triage), all blocks
    recall          share of the tests which fail in the new interpreter that FAIL_TO_PASS holds; precision the other way round;
                    over the candidates whose run there came to its end
    replays         share of repeated validations that give the verdict and both lists again

swesmith runs in an environment of its own in the data folder (made on first use), on copies of the tree and in processes
instead of containers, which saves it time. Projects are releases of the package index nearest to the commits of swesmith's
profiles. Prints tables, and as the last line one JSON object.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import git

from factory.core.files import FileTree
from generators.repository.dependencies import dependency_mount
from generators.repository.projects import Checkout, Fleet, Project, check_out, load_fleet
from generators.repository.runs import Run, RunResult, Suite
from generators.repository.triage import Profile, TriageConfig, triage
from generators.repository.validation import Judged, ValidationConfig, disagreement, judge, planned
from registry.blobs import FileBlobs
from sandboxes.backends import open_backend
from sandboxes.contract import Backend
from tests.benchmarks.measures import load, table
from tests.benchmarks.swesmith_peer import Peer, environment

SEED = 24
"""Of swesmith's generation."""
IMAGE = "python-3.11"
FLEET = Path(__file__).with_name("repository.toml")
PROFILES = {"sqlparse": "andialbrecht__sqlparse.e57923b3", "schedule": "dbader__schedule.82a43db1"}
FLOORS = {"sqlparse": (6, 3, 10), "schedule": (12, 4, 5)}
"""At least so many times swesmith: screening and confirmed (medians without hangs), valid tasks a minute."""


@dataclass
class Contestant:
    """What one side spent and found."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    """Both of all that it did, start-up and hangs included."""
    walls: dict[str, dict[str, float]] = field(default_factory=dict)
    """By measure and candidate, seconds."""
    fail: dict[str, set[str]] = field(default_factory=dict)
    keep: dict[str, set[str]] = field(default_factory=dict)
    fates: dict[str, str] = field(default_factory=dict)
    seen: int = 0
    """Tests in its run of the clean project."""

    def note(self, measure: str, name: str, seconds: float) -> None:
        self.walls.setdefault(measure, {})[name] = seconds

    @property
    def valid(self) -> int:
        return sum(fate == "valid" for fate in self.fates.values())


class Ours:
    """Our validation of one project, one sandbox at a time."""

    def __init__(self, project: Project, fleet: Fleet, cache: Path, backend: Backend, blobs: FileBlobs) -> None:
        self.checkout = check_out(project, cache, blobs)
        mount = dependency_mount(fleet.locks[project.lock], cache, backend, IMAGE, blobs)
        self.suite = Suite(self.checkout, (mount,), backend, blobs, IMAGE)
        self.sources = {path: self.checkout.tree.read(blobs, path).decode() for path in self.checkout.source_files()}
        self.config = ValidationConfig()
        self.profile = Profile(tests={})
        self.side = Contestant()

    def triage(self) -> None:
        """The clean runs, on the clock."""
        started, before = time.monotonic(), self.suite.cpu_s
        self.profile = triage(self.suite, self.checkout.project.release, TriageConfig())
        self.side.wall_s += time.monotonic() - started
        self.side.cpu_s += self.suite.cpu_s - before
        self.side.seen = len(self.profile.tests) + len(self.profile.left_out)

    def block(self, candidates: Mapping[str, Mapping[str, str]]) -> None:
        """Validate some candidates, on the clock."""
        started, before = time.monotonic(), self.suite.cpu_s
        runs, planning = [], {}
        for name, files in candidates.items():
            began, used = time.perf_counter(), time.process_time()
            runs.append(self._run(name, files))
            planning[name] = time.perf_counter() - began, time.process_time() - used
        results = self._made(runs)
        for result in results:
            self._note(result, *planning[result.key])
        self.side.wall_s += time.monotonic() - started
        self.side.cpu_s += self.suite.cpu_s - before

    def verdicts(self, candidates: Mapping[str, Mapping[str, str]]) -> list[Judged]:
        """What validation says, off the clock."""
        results = self._made([self._run(name, files) for name, files in candidates.items()])
        return [judge(self.profile, result, self.config.kept) for result in results]

    def reference(self, candidates: Mapping[str, Mapping[str, str]]) -> dict[str, RunResult]:
        """The whole suite in a new interpreter for each, off the clock."""
        runs = [Run(key=name, files=files, how="fresh", plain=True) for name, files in candidates.items()]
        return {result.key: result for result in self.suite.run(runs, self.profile.limits())}

    def _run(self, name: str, files: Mapping[str, str]) -> Run:
        drawn = random.Random(f"confirmation {name}").random() < self.config.fresh_percent / 100
        return planned(name, files, profile=self.profile, sources=self.sources, config=self.config, drawn=drawn)

    def _made(self, runs: list[Run]) -> list[RunResult]:
        return self.suite.run(runs, self.profile.limits(), coverage=self.profile.coverage, kept=self.config.kept)

    def _note(self, result: RunResult, planning: float, planning_cpu: float) -> None:
        side, name = self.side, result.key
        judged = judge(self.profile, result, self.config.kept)
        side.fates[name] = judged.fault or "valid"
        side.fail[name], side.keep[name] = set(judged.fail), set(judged.keep)
        parts = (result, *result.again)
        side.note("screening", name, planning + result.wall_ms / 1000)
        side.note("confirmed", name, planning + sum(part.wall_ms for part in parts) / 1000)
        side.note("screening cpu", name, planning_cpu + result.cpu_ms / 1000)
        side.note("confirmed cpu", name, planning_cpu + sum(part.cpu_ms for part in parts) / 1000)
        side.note("tests", name, float(len(self.profile.tests) if result.asked is None else len(result.asked)))
        side.note(f"how {result.how}", name, 1.0)
        if result.why:
            side.note(f"why {result.why}", name, 1.0)
        differ = disagreement(self.profile, result)
        if differ is not None:
            side.note("disagreed", name, float(differ))


def main() -> int:
    """Entry of `python -m`. Returns 0 whether or not targets are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=60, help="candidates of each project")
    parser.add_argument("--projects", default=",".join(PROFILES), help=f"of {', '.join(PROFILES)}")
    parser.add_argument(
        "--block", type=int, default=10, help="candidates that one side validates before it is the other's turn"
    )
    parser.add_argument("--repeats", type=int, default=5, help="replays of a sixth of the candidates; 0 leaves them out")
    parser.add_argument("--scaling", action=argparse.BooleanOptionalAction, default=True, help="smaller suites and batches too")
    parser.add_argument(
        "--data", type=Path, default=Path("data/bench-repository"), help="environment of swesmith, archives, logs"
    )
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    data: Path = options.data.resolve()
    data.mkdir(parents=True, exist_ok=True)
    python = environment(data / "swesmith")
    backend = open_backend("bubblewrap", cache=data / "layers")
    result: dict[str, Any] = {
        "machine": _machine(),
        "load_before": load(),
        "limit": options.limit,
        "seed": SEED,
        "projects": {},
    }
    try:
        for name in options.projects.split(","):
            result["projects"][name] = _project(name, options, data, python, backend)
    finally:
        backend.close()
    result["load_after"] = load()
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


def _machine() -> dict[str, object]:
    return {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version(), "kernel": platform.release()}


def _project(name: str, options: argparse.Namespace, data: Path, python: Path, backend: Backend) -> dict[str, Any]:
    fleet, blobs = load_fleet(FLEET), FileBlobs(data / "blobs")
    ours = Ours(fleet.named(name), fleet, data / "cache", backend, blobs)
    folder = data / name
    repository = _git(ours.checkout, folder / "checkout", blobs)
    work = folder / f"work-{os.getpid()}"
    with Peer(python, PROFILES[name], folder / "checkout", work, SEED) as peer:
        made = peer.ask("generate")["patches"]
        candidates = _texts(made, repository)
        names = sorted(candidates)
        random.Random(0).shuffle(names)
        candidates = {one: candidates[one] for one in names[: options.limit]}
        theirs = Contestant()
        ours.triage()
        answer = peer.ask("reference")
        theirs.wall_s, theirs.cpu_s, theirs.seen = answer["wall_s"], answer["cpu_s"], answer["seen"]
        _compare(candidates, options.block, ours, peer, theirs)
    reference = ours.reference(candidates)
    found: dict[str, Any] = {
        "release": ours.checkout.project.release,
        "profile": PROFILES[name],
        "candidates": len(candidates),
        "of": len(made),
        "suite_ms": ours.profile.suite_ms,
        "ours": _summary(ours.side, ours.profile, reference),
        "swesmith": _summary(theirs, ours.profile, reference),
    }
    if options.repeats:
        found["replays"] = _replays(ours, dict(list(candidates.items())[:: max(1, len(candidates) // 10)]), options.repeats)
    if options.scaling:
        found["scaling"] = _scaling(ours, fleet, data, backend, blobs, candidates)
    found["targets"] = _targets(name, ours.side, theirs)
    _print(name, found)
    return found


def _git(checkout: Checkout, folder: Path, blobs: FileBlobs) -> git.Repo:
    """The project's files in a repository with one commit, as swesmith's steps want them."""
    if (folder / ".git").exists():
        return git.Repo(folder)
    tree: FileTree = checkout.tree
    for path in tree:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(tree.read(blobs, path))
    repository = git.Repo.init(folder)
    with repository.config_writer() as config:
        config.set_value("user", "name", "benchmark").set_value("user", "email", "benchmark@example.org")
    repository.git.add("--all", "--force")
    repository.git.commit("-m", checkout.project.release)
    return repository


def _texts(patches: list[dict[str, Any]], repository: git.Repo) -> dict[str, dict[str, str]]:
    """The changed texts of each candidate by path."""
    root = Path(str(repository.working_tree_dir))
    file = root.parent / "one.patch"
    found = {}
    for patch in patches:
        file.write_text(patch.get("patch") or patch["model_patch"])
        repository.git.apply(str(file))
        changed = repository.git.diff("--name-only").splitlines()
        found[patch["instance_id"]] = {path: (root / path).read_bytes().decode() for path in changed}
        repository.git.checkout("--", ".")
    return found


def _compare(candidates: Mapping[str, Mapping[str, str]], size: int, ours: Ours, peer: Peer, theirs: Contestant) -> None:
    names = list(candidates)
    for number, start in enumerate(range(0, len(names), size)):
        block = {name: candidates[name] for name in names[start : start + size]}
        turns = [lambda block=block: ours.block(block), lambda block=block: _block(peer, theirs, block)]
        for turn in reversed(turns) if number % 2 else turns:
            turn()
        logging.info("%d of %d candidates", min(start + size, len(names)), len(names))


def _block(peer: Peer, side: Contestant, block: Mapping[str, object]) -> None:
    for name in block:
        answer = peer.ask("validate", id=name)
        side.wall_s += answer["wall_s"]
        side.cpu_s += answer["cpu_s"]
        side.fail[name], side.keep[name] = set(answer["fail"]), set(answer["keep"])
        valid = side.fail[name] and side.keep[name]
        side.fates[name] = "hang" if answer["timed_out"] else "valid" if valid else "not valid"
        for measure, value in (
            ("screening", "wall_s"),
            ("confirmed", "wall_s"),
            ("screening cpu", "cpu_s"),
            ("confirmed cpu", "cpu_s"),
        ):
            side.note(measure, name, answer[value])


def _summary(side: Contestant, profile: Profile, reference: Mapping[str, RunResult]) -> dict[str, Any]:
    ended = [name for name in side.fates if side.fates[name] != "hang"]
    fates = sorted(set(side.fates.values()))
    found: dict[str, Any] = {
        "fates": {fate: list(side.fates.values()).count(fate) for fate in fates},
        "wall_s": round(side.wall_s, 1),
        "cpu_s": round(side.cpu_s, 1),
        "valid_per_minute": round(60 * side.valid / side.wall_s, 2),
        "tests_seen": side.seen,
        "tests_collected": len(profile.tests) + len(profile.left_out),
    }
    for measure in ("screening", "confirmed", "screening cpu", "confirmed cpu", "tests"):
        values = [side.walls[measure][name] for name in ended if name in side.walls.get(measure, {})]
        if values:
            found[f"{measure} median"] = round(statistics.median(values), 4)
    found |= {name: len(values) for name, values in side.walls.items() if name.startswith(("how ", "why "))}
    compared = list(side.walls.get("disagreed", {}).values())
    if compared:
        found["fresh_runs"], found["fresh_runs_that_disagree"] = len(compared), sum(value > 0 for value in compared)
    return found | _agreement(side, profile, reference)


def _agreement(side: Contestant, profile: Profile, reference: Mapping[str, RunResult]) -> dict[str, Any]:
    """Recall and precision of all FAIL_TO_PASS lists against the runs in a new interpreter."""
    both = told = real = candidates = exact = 0
    for name, result in reference.items():
        if result.breakage in ("hang", "crash") or side.fates[name] == "hang":
            continue
        failed = {test for test in profile.tests if result.states.get(test) != "passed"}
        both, told, real = both + len(failed & side.fail[name]), told + len(side.fail[name]), real + len(failed)
        candidates, exact = candidates + 1, exact + (failed == side.fail[name])
    return {
        "compared": candidates,
        "same_lists": exact,
        "recall": round(both / real, 4) if real else None,
        "precision": round(both / told, 4) if told else None,
    }


def _replays(ours: Ours, candidates: Mapping[str, Mapping[str, str]], repeats: int) -> dict[str, int]:
    first = ours.verdicts(candidates)
    same = total = 0
    for _ in range(repeats):
        again = ours.verdicts(candidates)
        same += sum(one == other for one, other in zip(first, again, strict=True))
        total += len(first)
    return {"repeats": repeats, "validations": total, "same": same}


def _scaling(
    ours: Ours, fleet: Fleet, data: Path, backend: Backend, blobs: FileBlobs, candidates: Mapping[str, Mapping[str, str]]
) -> dict[str, list[dict[str, float]]]:
    """Seconds a candidate for parts of the suite, and for batches of other sizes with their start-up."""
    project = ours.checkout.project
    files = list(dict.fromkeys(name.partition("::")[0] for name in ours.profile.tests))
    few = dict(list(candidates.items())[:10])
    suites = []
    for count in sorted({max(1, len(files) // 4), max(1, len(files) // 2), len(files)}):
        part = Ours(replace(project, tests=tuple(files[:count])), fleet, data / "cache", backend, blobs)
        part.config = ours.config
        part.triage()
        part.block(few)
        ended = [name for name, fate in part.side.fates.items() if fate != "hang"]
        medians = {
            measure: round(statistics.median(part.side.walls[measure][name] for name in ended), 4)
            for measure in ("screening", "confirmed")
        }
        suites.append({"tests": float(len(part.profile.tests)), **medians})
    batches = []
    for count in (1, 5, 20):
        some = dict(list(candidates.items())[:count])
        started = time.monotonic()
        ours.verdicts(some)
        batches.append({"candidates": float(len(some)), "seconds_each": round((time.monotonic() - started) / len(some), 3)})
    return {"suites": suites, "batches": batches}


def _targets(name: str, ours: Contestant, theirs: Contestant) -> list[dict[str, Any]]:
    ended = [one for one in ours.fates if "hang" not in (ours.fates[one], theirs.fates[one])]
    ratios = [
        statistics.median(theirs.walls[measure][one] for one in ended)
        / statistics.median(ours.walls[measure][one] for one in ended)
        for measure in ("screening", "confirmed")
    ]
    minutes = (ours.valid / ours.wall_s) / (theirs.valid / theirs.wall_s) if theirs.valid else 0.0
    words = ("screening, times swesmith", "confirmed, times swesmith", "valid tasks a minute, times swesmith")
    return [
        {"target": word, "measured": round(value, 2), "at_least": floor}
        for word, value, floor in zip(words, (*ratios, minutes), FLOORS[name], strict=True)
    ]


def _print(name: str, found: dict[str, Any]) -> None:
    keys = list(dict.fromkeys([*found["ours"], *found["swesmith"]]))
    rows = [[key, *(_cell(found[side].get(key)) for side in ("ours", "swesmith"))] for key in keys]
    title = f"{found['release']} for {found['profile']}: {found['candidates']} of {found['of']} candidates"
    sys.stdout.write(f"{title}\n\n{table([name, 'ours', 'swesmith'], rows)}\n\n")
    for key, what in found.get("scaling", {}).items():
        header = list(what[0])
        sys.stdout.write(table(header, [[str(row[column]) for column in header] for row in what]) + f"   ({key})\n\n")
    rows = [[row["target"], str(row["measured"]), str(row["at_least"])] for row in found["targets"]]
    sys.stdout.write(table(["target", "measured", "at least"], rows) + "\n\n")


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items())
    return "" if value is None else str(value)


if __name__ == "__main__":
    sys.exit(main())
