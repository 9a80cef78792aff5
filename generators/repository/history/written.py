"""Tests for a change that brought none: asked of a language model, kept only when they tell the old code from the new.

A proposal is a whole pytest file. It counts when it parses, reads no source text and starts nothing, and when the same of its
tests pass in every run of the new code and in none of the old, in shuffled order. The model's word counts for nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from factory.core.digest import digest_bytes
from factory.core.streams import stream_seed
from factory.core.syntax import parse_python
from generators.repository.history.pieces import patch
from generators.repository.runs import Run, RunResult

SOURCE = 6_000
"""Most characters of the changed files' new text in a prompt."""
DIFF = 8_000
"""Most characters of the change in a prompt."""
EXAMPLE = 2_000
"""Most characters of one of the project's own test files in a prompt."""
PROPOSAL = 40_000
"""Most characters of a proposal."""
READING = frozenset(
    {"inspect", "ast", "linecache", "tokenize", "dis", "subprocess", "socket", "multiprocessing", "pathlib", "os"}
)
"""Modules that a proposal may not import: with them it could look at the text of the code, or leave its process."""

Texts = Mapping[str, str | None]


class Complete(Protocol):
    """A language model as text in, text out."""

    def __call__(self, prompt: str, *, seed: int) -> str:
        """The answer to one prompt; equal seeds and prompts may be answered from a cache. Raises GeneratorError."""
        ...


@dataclass(frozen=True, kw_only=True)
class Written:
    """A test file that tells old from new."""

    path: str
    text: str
    tests: dict[str, int]
    """Its tests that do: id to the shortest duration seen on the new code, milliseconds."""


RunFiles = Callable[[str, str, list[Run]], list[RunResult]]
"""Makes runs of the project after the change with one more test file (path, text)."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a proposal is asked for."""

    project: str
    broken: Texts
    """The changed files before the change."""
    fixed: Texts
    """The same files after it."""
    folder: str
    """Folder of the test file, relative; empty for the project's root."""
    example: str
    """A test file of the project."""


def written_tests(asked: Asked, complete: Complete, run: RunFiles, *, seed: int, most: int, repeats: int) -> Written | None:
    """The first of at most `most` proposals that has a test which tells the two sides apart. Raises what `complete` raises."""
    for number in range(most):
        answer = complete(prompt(asked), seed=stream_seed(seed, "written tests", asked.project, number))
        text = proposal(answer)
        if text is None:
            continue
        name = f"test_change_{digest_bytes(text.encode())[:12]}.py"
        path = f"{asked.folder}/{name}" if asked.folder else name
        tests = _telling(path, text, asked.broken, run, repeats)
        if tests:
            return Written(path=path, text=text, tests=tests)
    return None


def _telling(path: str, text: str, broken: Texts, run: RunFiles, repeats: int) -> dict[str, int]:
    """Tests of the file that pass in all runs of the new code and in no run of the old, which must all end by themselves."""
    orders = [None, *range(1, repeats)]
    runs = [
        Run(key=f"{side} {order}", files=files, shuffle=order)
        for side, files in (("new", {}), ("old", broken))
        for order in orders
    ]
    results = run(path, text, runs)
    if not all(result.finished for result in results):
        return {}
    new, old = results[:repeats], results[repeats:]
    own = [name for name in new[0].states if name.partition("::")[0] == path]
    telling = [
        name
        for name in own
        if all(one.states.get(name) == "passed" for one in new) and not any(one.states.get(name) == "passed" for one in old)
    ]
    return {name: min(one.ms[name] for one in new) for name in telling}


def prompt(asked: Asked) -> str:
    """What the model is asked."""
    diff = patch(asked.broken, asked.fixed)[:DIFF]
    sources = "\n\n".join(f"# {path}\n{text}" for path, text in asked.fixed.items() if text)[:SOURCE]
    return "\n".join(
        [
            f"Write one pytest file for the Python project {asked.project}. A change was made to it:",
            f"```diff\n{diff}\n```",
            f"The changed files afterwards:\n```python\n{sources}\n```",
            f"One of the project's own test files begins like this:\n```python\n{asked.example[:EXAMPLE]}\n```",
            "Test only behaviour that a caller sees and that this change made right: each test must fail on the code before "
            "the change and pass after it. Compare values; read no source code, file or clock, and start no process. Use "
            "what the project exports, imported at the top.",
            "Answer with the file alone, in one ```python block.",
        ]
    )


def proposal(answer: str) -> str | None:
    """The test file in an answer; None when there is none that may be run."""
    blocks = re.findall(r"```(?:python|py)?[ \t]*\n(.*?)```", answer, re.DOTALL)
    text = max(blocks, key=len) if blocks else answer
    text = text.replace("\r\n", "\n").strip() + "\n"
    if len(text) > PROPOSAL:
        return None
    try:
        text.encode()
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes = list(ast.walk(tree))
    tests = any(isinstance(node, ast.FunctionDef) and node.name.startswith("test") for node in nodes)
    return text if tests and not any(map(_reads, nodes)) else None


def _reads(node: ast.AST) -> bool:
    """Whether a node imports or names what could look at source text or leave the process."""
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in READING for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] in READING
    return isinstance(node, ast.Name) and node.id in ("open", "exec", "eval", "__import__", "__file__")
