"""Real texts that no evaluation holds, from Python's standard library: negatives, and filler around what is planted."""

from __future__ import annotations

import ast
import functools
import importlib.util
import textwrap
from dataclasses import dataclass
from pathlib import Path

from factory.core.syntax import parse_python
from filters.contamination.normalise import words

MODULES = (
    "argparse",
    "ast",
    "calendar",
    "configparser",
    "csv",
    "difflib",
    "fractions",
    "heapq",
    "imaplib",
    "ipaddress",
    "locale",
    "mailbox",
    "optparse",
    "pdb",
    "shutil",
    "statistics",
    "tarfile",
    "textwrap",
    "turtle",
    "zipfile",
)
"""Standard library modules whose functions and docstrings are negatives and filler."""


@dataclass(frozen=True)
class Library:
    """Real texts that no evaluation holds."""

    functions: tuple[str, ...]
    prose: tuple[str, ...]


@functools.cache
def library() -> Library:
    """Functions of at least six lines and docstrings of at least 30 words, from the installed standard library."""
    functions, prose = [], []
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            continue
        source = Path(spec.origin).read_text(encoding="utf-8")
        lines = source.split("\n")
        for node in ast.walk(parse_python(source)):
            if isinstance(node, ast.FunctionDef):
                text = textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
                functions += [text] if text.count("\n") >= 6 else []
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                doc = ast.get_docstring(node) or ""
                prose += [doc] if len(words(doc)) >= 30 else []
    return Library(tuple(functions), tuple(prose))
