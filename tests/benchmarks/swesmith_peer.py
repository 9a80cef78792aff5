"""The other contestant of the repository benchmark: swesmith in an environment of its own, made in the data folder."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PACKAGES = ("swebench==4.1.0",)
ALONE = ("swesmith==0.0.9",)
"""Installed without what it depends on: the validation needs less."""
FURTHER = (
    *("libcst", "astor", "unidiff", "python-dotenv", "rich", "tqdm", "pytest", "tree-sitter>=0.25"),
    *("tree-sitter-c", "tree-sitter-cpp", "tree-sitter-c-sharp", "tree-sitter-go", "tree-sitter-java"),
    *("tree-sitter-javascript", "tree-sitter-php", "tree-sitter-ruby", "tree-sitter-rust", "tree-sitter-typescript"),
)
STEPS = Path(__file__).with_name("swesmith_steps.py")


def environment(folder: Path) -> Path:
    """The interpreter of the environment in `folder`, which is made when it is not whole: some minutes and 1 GB."""
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        venv.create(folder, with_pip=True, clear=True)
        for options in (PACKAGES, ("--no-deps", *ALONE), FURTHER):
            command = [str(python), "-m", "pip", "install", "--quiet", "--progress-bar", "off", *options]
            subprocess.run(command, check=True)
        ready.touch()
    return python


class Peer:
    """swesmith on one project, in a process of its own."""

    def __init__(self, python: Path, profile: str, checkout: Path, work: Path, seed: int) -> None:
        with (work.with_suffix(".log")).open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), str(STEPS), profile, str(checkout), str(work), str(seed)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one command of `swesmith_steps`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"swesmith ended with {self._process.wait()}: see its log in the data folder")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
