"""Normal forms: what two texts have in common that mean the same."""

from __future__ import annotations

import ast
import hashlib
import types
from collections.abc import Sequence
from dataclasses import dataclass

from factory.core.syntax import compile_python, parse_python

PURE = {"property", "classmethod", "staticmethod", "abstractmethod", "cached_property", "override", "final"}
"""Decorators that do nothing when the class is made but give another object."""


@dataclass(frozen=True)
class Form:
    """Digests of one text."""

    tree: str
    """Of the syntax tree without positions, methods whose order means nothing sorted by name."""
    code: str
    """Of what the interpreter runs for that tree, without line numbers."""


def form_of(text: str) -> Form | None:
    """The form of a module's text; None when it does not compile."""
    try:
        tree = parse_python(text)
        classes = ast.walk(tree) if "class" in text else ()
        for node in classes:
            if isinstance(node, ast.ClassDef):
                node.body = _canonical(node.body)
        code = compile_python(tree)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return Form(_digest(ast.dump(tree)), _digest(repr(_code_form(code))))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _code_form(code: types.CodeType) -> tuple[object, ...]:
    constants = tuple(_constant(item) for item in code.co_consts)
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable, code.co_flags)


def _constant(value: object) -> object:
    """A constant with its type, since 1 == True == 1.0, and in an order that no hash decides."""
    if isinstance(value, types.CodeType):
        return _code_form(value)
    if isinstance(value, tuple):
        return ("tuple", *map(_constant, value))
    if isinstance(value, frozenset):
        return ("frozenset", *sorted(repr(_constant(item)) for item in value))
    return type(value).__name__, repr(value)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _canonical(body: list[ast.stmt]) -> list[ast.stmt]:
    """A class body with each run of methods that may change places in one order for all of them."""
    found: list[ast.stmt] = []
    run: list[Function] = []
    for statement in [*body, None]:
        if isinstance(statement, Function) and _is_pure(statement):
            run.append(statement)
            continue
        found += _sorted(run)
        run = []
        if statement is not None:
            found.append(statement)
    return found


def _is_pure(function: Function) -> bool:
    """Whether making the function runs nothing of the project: no call in its decorators, defaults and annotations."""
    decorators = [
        decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
        for decorator in function.decorator_list
    ]
    setters = ("setter", "getter", "deleter")
    if not all(name in PURE or name in setters for name in decorators):
        return False
    return not any(isinstance(node, (ast.Call, ast.NamedExpr)) for part in _evaluated(function) for node in ast.walk(part))


def _evaluated(function: Function) -> list[ast.expr]:
    """What making the function evaluates."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    annotations = [arg.annotation for arg in every if arg is not None and arg.annotation is not None]
    defaults = [*given.defaults, *(default for default in given.kw_defaults if default is not None)]
    return [*function.decorator_list, *defaults, *annotations, *([function.returns] if function.returns else [])]


def _sorted(run: Sequence[Function]) -> list[ast.stmt]:
    """The first order by name, of those that keep every two apart that may not change places."""
    names = {function.name for function in run}
    needs = [
        names & {node.id for part in _evaluated(function) for node in ast.walk(part) if isinstance(node, ast.Name)}
        for function in run
    ]
    if len(names) == len(run) and not any(needs):
        return [*sorted(run, key=lambda function: function.name)]
    left = list(range(len(run)))
    order: list[ast.stmt] = []
    while left:
        free = [one for at, one in enumerate(left) if not any(_tied(run, needs, before, one) for before in left[:at])]
        first = min(free, key=lambda one: run[one].name)
        order.append(run[first])
        left.remove(first)
    return order


def _tied(run: Sequence[Function], needs: Sequence[set[str]], first: int, second: int) -> bool:
    one, other = run[first].name, run[second].name
    return one == other or one in needs[second] or other in needs[first]
