"""What a model is told of the file around a function: imports, classes and signatures, no bodies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from factory.core.syntax import parse_python
from generators.repository.language.entities import Entity

MOST_LINES = 40
"""Most lines of an outline."""


def outline(text: str, entity: Entity) -> str:
    """Imports, class lines and the signatures of the other functions of the entity's file, in order."""
    return "\n".join(list(_lines(parse_python(text), "", entity))[:MOST_LINES])


def _lines(node: ast.AST, indent: str, entity: Entity) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield indent + ast.unparse(child)
        elif isinstance(child, ast.ClassDef):
            bases = ", ".join(ast.unparse(base) for base in child.bases)
            yield f"{indent}class {child.name}{f'({bases})' if bases else ''}:"
            yield from _lines(child, indent + "    ", entity)
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and child.end_lineno != entity.last:
            kind = "async def" if isinstance(child, ast.AsyncFunctionDef) else "def"
            yield f"{indent}{kind} {child.name}({ast.unparse(child.args)}): ..."
