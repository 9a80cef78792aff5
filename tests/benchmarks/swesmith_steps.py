"""Drives swesmith's own candidate generation and validation on a local copy of a project; runs in swesmith's own environment.

    python swesmith_steps.py PROFILE CHECKOUT WORK SEED

Reads commands as JSON lines and answers each with one: {"do": "generate"}, {"do": "reference"}, {"do": "validate", "id": ID}.
What swesmith fetches from a mirror is copied from CHECKOUT instead, and what it runs in a container of its own runs in a
process on a copy of the tree: both save it time. Everything else (generation, patches, test command, log parser, report, time
limit) is its own.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROFILE, CHECKOUT, WORK, SEED = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve(), int(sys.argv[4])
RUN = "bench"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what swesmith prints is no answer
    WORK.mkdir(parents=True, exist_ok=True)
    os.chdir(WORK)
    peer = Peer()
    for line in sys.stdin:
        command = json.loads(line)
        answer = getattr(peer, command.pop("do"))(**command)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class Peer:
    """swesmith with its two seams replaced."""

    def __init__(self) -> None:
        logging.disable(logging.CRITICAL)
        import swesmith.profiles.base as base
        from swesmith.harness import valid
        from swesmith.profiles import registry

        base.RepoProfile.clone = _clone
        base.RepoProfile._mirror_exists = lambda self: True
        base.RepoProfile._is_repo_private = lambda self: False
        valid.run_patch_in_container = self._in_a_process
        self._valid, self._registry = valid, registry
        self._patches: dict[str, dict[str, Any]] = {}
        self._used = {"wall_s": 0.0, "cpu_s": 0.0}

    def generate(self) -> dict[str, Any]:
        """All candidates that its procedural operators make, in its order."""
        from swesmith.bug_gen import collect_patches
        from swesmith.bug_gen.procedural import generate
        from swesmith.constants import LOG_DIR_BUG_GEN

        started = time.monotonic()
        generate.main(PROFILE, max_bugs=-1, seed=SEED)
        collect_patches.main(LOG_DIR_BUG_GEN / PROFILE)
        file = LOG_DIR_BUG_GEN / f"{PROFILE}_all_patches.json"
        patches = json.loads(file.read_text())
        self._patches = {patch["instance_id"]: patch for patch in patches}
        return {"wall_s": time.monotonic() - started, "patches": patches}

    def reference(self) -> dict[str, Any]:
        """The run of the project as it is, which all reports are compared with."""
        from swesmith.constants import REF_SUFFIX

        name, limit = f"{PROFILE}{REF_SUFFIX}", self._registry.get(PROFILE).timeout_ref
        self._timed(lambda: self._in_a_process({"instance_id": name}, PROFILE, self._folder(), limit))
        text = (self._folder() / PROFILE / name / "test_output.txt").read_text()
        return {**self._used, "seen": len(self._parsed(text))}

    def validate(self, id: str) -> dict[str, Any]:
        """One candidate, from its patch to its report."""
        instance = {**self._patches[id]}
        instance.setdefault("patch", instance.get("model_patch"))
        self._timed(lambda: self._valid.run_validation(instance))
        report = json.loads((self._folder() / PROFILE / id / "report.json").read_text())
        return {
            **self._used,
            "timed_out": "timed_out" in report,
            "fail": report.get("FAIL_TO_PASS", []),
            "keep": report.get("PASS_TO_PASS", []),
        }

    def _folder(self) -> Path:
        return Path(self._valid.LOG_DIR_RUN_VALIDATION)

    def _parsed(self, text: str) -> dict[str, str]:
        found: dict[str, str] = self._registry.get(PROFILE).log_parser(text)
        return found

    def _timed(self, do: Any) -> None:
        started, before = time.monotonic(), _cpu_s()
        do()
        self._used = {"wall_s": time.monotonic() - started, "cpu_s": _cpu_s() - before}

    def _in_a_process(
        self, instance: dict[str, Any], run_id: str, log_dir: Path, timeout: int, patch: str | None = None, **_: Any
    ) -> tuple[logging.Logger, bool]:
        """In place of its container: a fresh copy of the tree, the patch, its test command, its limit."""
        out = log_dir / run_id / instance["instance_id"]
        out.mkdir(parents=True, exist_ok=True)
        logger = logging.getLogger(instance["instance_id"])
        with tempfile.TemporaryDirectory(prefix="peer") as folder:
            tree = Path(folder) / "testbed"
            shutil.copytree(CHECKOUT, tree, symlinks=True)
            if patch:
                (out / "patch.diff").write_text(patch)
                subprocess.run(["git", "apply", str((out / "patch.diff").resolve())], cwd=tree, check=True, capture_output=True)
            output, timed_out = self._tests(instance, tree, timeout)
        (out / "test_output.txt").write_text(output)
        return logger, timed_out

    def _tests(self, instance: dict[str, Any], tree: Path, timeout: int) -> tuple[str, bool]:
        from swesmith.constants import TEST_OUTPUT_END, TEST_OUTPUT_START

        profile = self._registry.get(PROFILE)
        command, _ = profile.get_test_cmd({"repo": PROFILE, **instance})
        command = command.split(";")[-1].strip().replace("pytest", f"{sys.executable} -m pytest -p no:cacheprovider", 1)
        script = f"set -uxo pipefail\ncd {tree}\n: '{TEST_OUTPUT_START}'\n{command}\n: '{TEST_OUTPUT_END}'\n"
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            ["bash", "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            output, timed_out = process.communicate(timeout=timeout)[0], False
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output, timed_out = process.communicate()[0], True
        return output.decode(errors="replace"), timed_out


def _clone(self: Any, dest: str | None = None) -> tuple[str, bool]:
    target = dest or self.repo_name
    if Path(target).exists():
        return target, False
    shutil.copytree(CHECKOUT, target, symlinks=True)
    return target, True


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
