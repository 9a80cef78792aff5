"""Compare our sandboxes with containers driven plainly through the docker SDK, in one run, in turn.

    python -m tests.benchmarks.sandboxes [--repeats 40] [--live 1,16,64,256,1000] [--resets 100] [--only bubblewrap]

What the words of the tables mean:

    reset           a fresh sandbox is opened, its tree compared with its digest, one command answered in its live shell
    command         `true` in a live shell; program: `cat` of a file there
    snapshot        files and shell state into the blob store; "10 MB": after the episode wrote 100 files of 105 kB
    fork            from that snapshot to a sibling that has answered a command, its tree compared; "first": the first
                    sibling of a state, for which the difference is laid out; the others share it
    verification    a verifier's fresh sandbox on a copy of the files, the verdict read, all removed
    docker run      create, start and wait for `true`, without the removal; docker exec: `true` in a running container

Live sandboxes: that many wait with a live shell while further ones are reset and closed, one at a time. Memory is what the
machine has less available, the kernel's and (docker) the engine's share included, for each sandbox; a few MiB of noise for one.
Prints tables, and as the last line one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from factory.core.errors import SandboxError
from registry.blobs import FileBlobs
from sandboxes.contract import Sandbox
from sandboxes.docker.base_image import NAME
from tests.benchmarks.contestants import Ours, Plain, ours
from tests.benchmarks.measures import Times, available_bytes, load, percentile, table

PER_ROUND = {"bubblewrap": 5, "docker": 1, "docker SDK": 1}
"""Measurements of each contestant in one round: the quick one gets more, for its percentiles."""
MOST_LIVE = {"bubblewrap": 1000, "docker": 64}
WHAT = (
    *("reset", "command", "program", "snapshot", "snapshot 10 MB", "first fork 10 MB", "fork 10 MB", "verification", "close"),
    *("docker run", "docker exec"),
)
MIB = 1 << 20


def main() -> int:
    """Entry of `python -m`. Returns 0 whether or not targets are met, 2 when nothing can be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40, help="rounds; 0 leaves the comparison out")
    parser.add_argument("--live", default="1,16,64,256,1000", help="numbers of live sandboxes; empty leaves them out")
    parser.add_argument("--resets", type=int, default=100, help="resets measured at each number of live sandboxes")
    parser.add_argument("--only", choices=["bubblewrap", "docker"], help="one back end of ours, without the plain containers")
    parser.add_argument("--image", default=os.environ.get("FACTORY_TEST_DOCKER_IMAGE", NAME), help="docker's base image")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        return _measure(options, Path(folder))


def _measure(options: argparse.Namespace, folder: Path) -> int:
    times, blobs = Times(), FileBlobs(folder / "blobs")
    mine: list[Ours] = []
    for name in [options.only] if options.only else ["bubblewrap", "docker"]:
        try:
            mine.append(ours(name, folder / "cache", options.image, blobs, times))
        except SandboxError as error:
            sys.stderr.write(f"without {name}: {error}\n")
    if not mine:
        return 2
    plain = Plain(options.image, times) if not options.only and any(one.name == "docker" for one in mine) else None
    result: dict[str, Any] = {"machine": _machine(), "load_before": load(), "repeats": options.repeats}
    try:
        _compare(options.repeats, mine, plain)
        result["milliseconds"] = _times_table(times)
        result["live"] = _live_table([int(count) for count in options.live.split(",") if count], options.resets, mine)
    finally:
        if plain is not None:
            plain.close()
        for one in mine:
            one.backend.close()
    result["load_after"] = load()
    result["targets"] = _targets(result)
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


def _machine() -> dict[str, object]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cores": len(os.sched_getaffinity(0)), "memory_gib": round(memory / 2**30, 1), "kernel": platform.release()}


def _compare(repeats: int, mine: list[Ours], plain: Plain | None) -> None:
    """Rounds in which every contestant has its turn; the first one warms up and is not counted."""
    contestants = [*mine, *([plain] if plain else [])]
    for number in range(repeats + 1 if repeats else 0):
        for contestant in contestants[number % len(contestants) :] + contestants[: number % len(contestants)]:
            contestant.round(PER_ROUND[contestant.name] if number else 1)
        if number == 0:
            mine[0].times.taken.clear()
        _progress(f"round {number} of {repeats}")


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")


def _times_table(times: Times) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    rows = []
    for what in WHAT:
        for who, done in times.taken:
            if done == what:
                summary = found.setdefault(who, {})[what] = times.summary(who, what)
                rows.append(
                    [f"{what} ({who})", *(f"{summary[name]:.2f}" for name in ("p50", "p95", "p99")), f"{summary['n']:.0f}"]
                )
    if rows:
        sys.stdout.write(table(["milliseconds", "p50", "p95", "p99", "n"], rows) + "\n\n")
    return found


def _live_table(counts: list[int], resets: int, mine: list[Ours]) -> dict[str, list[dict[str, float]]]:
    """Numbers of live sandboxes, the back ends in turn at each."""
    found: dict[str, list[dict[str, float]]] = {}
    for count in counts:
        for one in mine:
            if count <= MOST_LIVE[one.name]:
                found.setdefault(one.name, []).append(_at(count, resets if one.name == "bubblewrap" else min(resets, 20), one))
                _progress(f"{count} live on {one.name}")
    names = ["memory_mib_each", "memory_mib", "resets_per_s", "reset_p50_ms", "reset_p99_ms"]
    rows = [
        [f"{row['live']:.0f} live ({who})", *(f"{row[name]:.2f}" for name in names)]
        for who, live in found.items()
        for row in live
    ]
    if rows:
        header = ["", "MiB each", "MiB all", "resets/s", "reset p50 ms", "reset p99 ms"]
        sys.stdout.write(table(header, rows) + "\n\n")
    return found


def _at(count: int, resets: int, one: Ours) -> dict[str, float]:
    before = available_bytes()
    live: list[Sandbox] = []
    try:
        for _ in range(count):
            live.append(one.ready())
        memory = before - available_bytes()
        taken: list[float] = []
        whole = time.perf_counter()
        for _ in range(resets):
            started = time.perf_counter()
            sandbox = one.ready()
            taken.append(time.perf_counter() - started)
            sandbox.close()
        whole = time.perf_counter() - whole
    finally:
        for sandbox in live:
            sandbox.close()
    return {
        "live": count,
        "memory_mib": round(memory / MIB, 1),
        "memory_mib_each": round(memory / MIB / count, 2),
        "resets_per_s": round(resets / whole, 1),
        "reset_p50_ms": round(1000 * percentile(taken, 0.5), 2),
        "reset_p99_ms": round(1000 * percentile(taken, 0.99), 2),
    }


def _targets(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The aims for bubblewrap on two cores that this run can speak to: limit and measured value."""
    times, live = result["milliseconds"], result["live"].get("bubblewrap", [])
    own, sdk = times.get("bubblewrap", {}), times.get("docker SDK", {})
    aims: list[tuple[str, float | None, float]] = [
        ("reset p50, ms", _p50(own, "reset"), 8),
        ("reset of docker run, ratio", _ratio(_p50(own, "reset"), _p50(sdk, "docker run")), 1 / 20),
        ("command p50, ms", _p50(own, "command"), 2),
        ("command of docker exec, ratio", _ratio(_p50(own, "command"), _p50(sdk, "docker exec")), 1 / 20),
        ("fork of 10 MB p50, ms", _p50(own, "fork 10 MB"), 10),
    ]
    at = {row["live"]: row for row in live}
    if 1000 in at:
        aims.append(("memory of 1000 live, MiB", at[1000]["memory_mib"], 6144))
    if 1000 in at and 1 in at:
        aims.append(("time of a reset and close at 1000 live over at 1", at[1]["resets_per_s"] / at[1000]["resets_per_s"], 2))
    found = [{"target": name, "measured": value, "at_most": limit} for name, value, limit in aims if value is not None]
    if found:
        rows = [
            [
                row["target"],
                f"{row['measured']:.3g}",
                f"{row['at_most']:.3g}",
                "yes" if row["measured"] <= row["at_most"] else "no",
            ]
            for row in found
        ]
        sys.stdout.write(table(["target", "measured", "at most", "met"], rows) + "\n\n")
    return found


def _p50(summaries: dict[str, dict[str, float]], what: str) -> float | None:
    return summaries[what]["p50"] if what in summaries else None


def _ratio(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value / other


if __name__ == "__main__":
    sys.exit(main())
