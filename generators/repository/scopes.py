"""Names that a class gives to its methods, from its syntax tree: what `self.x` may mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from factory.core.syntax import parse_python

Function = ast.FunctionDef | ast.AsyncFunctionDef


class ClassNames:
    """Attributes and methods of one class. The text is parsed when it is first asked."""

    def __init__(self, text: str) -> None:
        """`text`: the class by itself, at any depth of indentation."""
        self._text = text

    @cached_property
    def attributes(self) -> dict[str, str]:
        """Kind of value by name, in the order of the first assignment: `int`, `str`, `list`, ..., the name of the class or
        function that is called, the annotation; empty where nothing tells. Properties have the kind of their annotation."""
        found: dict[str, str] = {}
        for statement in self._body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                for target in _targets(statement):
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, _kind(statement))
            elif isinstance(statement, Function) and _decorated(statement) == ["property"]:
                found.setdefault(statement.name, ast.unparse(statement.returns) if statement.returns else "")
        for method in self._functions:
            for name, kind in _assigned_on_self(method):
                found.setdefault(name, kind)
        return {name: kind for name, kind in found.items() if not name.startswith("__")}

    @cached_property
    def methods(self) -> dict[str, str]:
        """Shape of the signature by name: methods of the same shape take the same calls. Only plain methods."""
        return {
            function.name: _shape(function)
            for function in self._functions
            if not function.decorator_list and not function.name.startswith("__")
        }

    @cached_property
    def _body(self) -> list[ast.stmt]:
        text = self._text if self._text[:1] not in (" ", "\t") else "if 1:\n" + self._text
        try:
            tree = parse_python(text)
        except (SyntaxError, ValueError):
            return []
        return next((node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)), [])

    @property
    def _functions(self) -> list[Function]:
        return [statement for statement in self._body if isinstance(statement, Function)]


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _decorated(function: Function) -> list[str]:
    return [ast.unparse(decorator) for decorator in function.decorator_list]


def _assigned_on_self(method: Function) -> Iterator[tuple[str, str]]:
    first = method.args.args[0].arg if method.args.args else ""
    known = {arg.arg: ast.unparse(arg.annotation) for arg in method.args.args if arg.annotation}
    for node in ast.walk(method):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in _targets(node):
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == first:
                    kind = known.get(node.value.id, "") if isinstance(node.value, ast.Name) else _kind(node)
                    yield target.attr, kind


def _kind(statement: ast.Assign | ast.AnnAssign) -> str:
    if isinstance(statement, ast.AnnAssign):
        return ast.unparse(statement.annotation)
    value = statement.value
    if isinstance(value, ast.Constant):
        return "" if value.value is None else type(value.value).__name__
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id
    displays = {
        ast.List: "list",
        ast.ListComp: "list",
        ast.Dict: "dict",
        ast.DictComp: "dict",
        ast.Set: "set",
        ast.Tuple: "tuple",
    }
    return displays.get(type(value), "")


def _shape(function: Function) -> str:
    given = function.args
    return (
        f"{'async ' if isinstance(function, ast.AsyncFunctionDef) else ''}{len(given.posonlyargs) + len(given.args)} "
        f"{len(given.defaults)} {sorted(arg.arg for arg in given.kwonlyargs)} {bool(given.vararg)} {bool(given.kwarg)}"
    )
