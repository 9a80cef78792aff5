"""Write the hash-checked locks beside this file: `python requirements/lock.py cpu|gpu|cuda`.

The resolver is pip's own (a dry run with a report); the hashes of every file of each chosen version
come from the package index's JSON listing, plus the hash of the file that pip chose itself, since a
machine may offer a build of its own (torch for CPUs). The lock is installed with `--no-deps`:
packages in LEFT_OUT are declared by others but unused by text-only vLLM, and beside a CPU torch
their builds break the import of transformers. `cuda.lock` holds what the index's own build of torch
needs beside it, for machines where that build is what `cpu.lock` brings. `torch-cpu.lock` is the build for CPUs by its full
version: pip prefers files whose hashes an index lists, so that a build in a folder is taken only when it is asked for.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

LEFT_OUT = frozenset({"torchvision", "torchaudio", "torchcodec", "envfactory"})
ROOT = Path(__file__).resolve().parent
TOOLS = ["hatchling", "editables"]
REQUIREMENTS = {
    "cpu": [f"{ROOT.parent}[cpu,dev,postgres]", *TOOLS],
    "gpu": [f"{ROOT.parent}[gpu,dev,postgres]", *TOOLS],
    "cuda": ["torch==2.13.0"],
}
CUDA_PARTS = re.compile(r"nvidia-.*|cuda-.*|triton")
PLATFORM = re.compile(r"(py3|cp31[123]|abi3)[-.].*(linux|any)|py2\.py3-none-any|\.tar\.gz$|\.zip$")
"""Files worth listing: source, pure Python, and Linux builds for the interpreters that we support."""

log = logging.getLogger("lock")


def normal_name(name: str) -> str:
    """PEP 503 form of a project's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(requirements: list[str], own_builds: bool) -> dict[str, tuple[str, set[str]]]:
    """Name to (version, hashes of the chosen file), as pip would install them into an empty environment.

    Without `own_builds` the machine's own pip settings (extra places to find builds) are ignored.
    """
    pip = [sys.executable, "-m", "pip", *([] if own_builds else ["--isolated"])]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run(
            [*pip, "install", "--quiet", "--dry-run", "--ignore-installed", f"--report={report}", *requirements],
            check=True,
        )
        items = json.loads(report.read_text())["install"]
    chosen = {}
    for item in items:
        hashes = item["download_info"].get("archive_info", {}).get("hashes", {})
        chosen[normal_name(item["metadata"]["name"])] = (
            item["metadata"]["version"],
            {hashes["sha256"]} if "sha256" in hashes else set(),
        )
    return chosen


def index_address() -> str:
    """The package index that pip is configured with."""
    found = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    from pip._internal.models.index import PyPI

    return found.stdout.strip() or PyPI.simple_url


def listed_hashes(index: str, name: str, version: str) -> set[str]:
    """SHA-256 of every file of `name` at `version` that the index lists."""
    request = urllib.request.Request(f"{index.rstrip('/')}/{name}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        files = json.load(answer)["files"]
    public = version.split("+")[0]
    return {
        file["hashes"]["sha256"]
        for file in files
        if not file.get("yanked")
        and PLATFORM.search(file["filename"])
        and file_version(file["filename"], name) in (version, public)
        and "sha256" in file["hashes"]
    }


def file_version(filename: str, name: str) -> str | None:
    """The version in a wheel's or sdist's file name."""
    from pip._vendor.packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        parse_sdist_filename,
        parse_wheel_filename,
    )
    from pip._vendor.packaging.version import InvalidVersion

    try:
        if filename.endswith(".whl"):
            return str(parse_wheel_filename(filename)[1])
        return str(parse_sdist_filename(filename)[1])
    except (InvalidSdistFilename, InvalidVersion, InvalidWheelFilename):
        return None


def lines(chosen: dict[str, tuple[str, set[str]]], index: str) -> str:
    """The lock's text: one pinned requirement with its hashes a paragraph."""
    text = []
    for name, (version, own) in sorted(chosen.items()):
        hashes = sorted(own | listed_hashes(index, name, version))
        text.append(" \\\n    ".join([f"{name}=={version.split('+')[0]}", *(f"--hash=sha256:{item}" for item in hashes)]))
    return "\n".join(text) + "\n"


def own_build(version: str, own: set[str]) -> str:
    """The lock of torch's CPU build, by its full version: where it is offered it is taken, else the index's own."""
    return " \\\n    ".join([f"torch=={version}", *(f"--hash=sha256:{item}" for item in sorted(own))]) + "\n"


def main(kind: str) -> None:
    chosen = {n: v for n, v in resolve(REQUIREMENTS[kind], own_builds=kind == "cpu").items() if n not in LEFT_OUT}
    if kind == "cuda":
        chosen = {name: version for name, version in chosen.items() if CUDA_PARTS.fullmatch(name)}
    if kind == "cpu" and "+" in chosen["torch"][0]:
        (ROOT / "torch-cpu.lock").write_text(own_build(*chosen["torch"]))
    (ROOT / f"{kind}.lock").write_text(lines(chosen, index_address()))
    log.info("%s.lock: %d packages", kind, len(chosen))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if len(sys.argv) != 2 or sys.argv[1] not in REQUIREMENTS:
        sys.exit("usage: python requirements/lock.py cpu|gpu|cuda")
    main(sys.argv[1])
