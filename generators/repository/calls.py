"""Which function calls which, as far as names tell it for certain: through imports, and through `self`.

A name counts when its module binds it once and the calling function does not bind it itself. What is told at run time (a
variable that holds a function, an attribute of an object, a method that a subclass replaces) is not followed.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from factory.core.syntax import parse_python

DEEPEST = 8
"""Most imports, or bases, that are followed from one name."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Routine:
    """A function or method of a project."""

    path: str
    qualname: str


@dataclass
class _Module:
    path: str
    package: str
    """What a relative import starts from."""
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Module and name by bound name; an empty name: the module itself."""
    definitions: dict[str, Definition] = field(default_factory=dict)


def call_edges(texts: Mapping[str, str], roots: Sequence[str] = (".",)) -> list[tuple[Routine, Routine]]:
    """Pairs (caller, callee), each once, in the order of the files and their text. `roots` are the folders that modules
    are imported from; files that do not parse call nothing."""
    modules = {name: module for path in sorted(texts) for name, module in _parsed(path, texts[path], roots)}
    resolver = _Resolver(modules)
    edges: dict[tuple[Routine, Routine], None] = {}
    for module in {id(module): module for module in modules.values()}.values():
        for caller, function, owner in _functions(module):
            bound = _bound_in(function)
            for node in ast.walk(function):
                callee = resolver.called(module, node.func, owner, bound) if isinstance(node, ast.Call) else None
                if callee is not None and callee != caller:
                    edges[caller, callee] = None
    return list(edges)


def _parsed(path: str, text: str, roots: Sequence[str]) -> Iterator[tuple[str, _Module]]:
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for root in roots:
        base = PurePosixPath(root)
        if root != "." and not PurePosixPath(path).is_relative_to(base):
            continue
        parts = PurePosixPath(path).relative_to(base).with_suffix("").parts
        package = parts[:-1]
        name = ".".join(package if parts[-1] == "__init__" else parts)
        yield name, _bindings(tree, _Module(path, ".".join(package)))
        return


def _bindings(tree: ast.Module, module: _Module) -> _Module:
    """The module with what each name stands for that is bound once."""
    counts: Counter[str] = Counter()
    for node in _in_scope(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for bound, target in _imported(node, module.package):
                counts[bound] += module.imports.get(bound) != target
                module.imports[bound] = target
        elif isinstance(node, Definition):
            counts[node.name] += 1
            module.definitions[node.name] = node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] += 1
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            counts.update(dict.fromkeys(node.names, 2))
    for name in [name for name, count in counts.items() if count > 1]:
        module.imports.pop(name, None)
        module.definitions.pop(name, None)
    return module


def _in_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of one scope, without what is inside functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, SCOPES):
            yield from _in_scope(child)


def _imported(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, (alias.name, "")) if alias.asname else (top, (top, ""))
        return
    above = package.split(".") if package else []
    base = above[: len(above) - node.level + 1] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        yield alias.asname or alias.name, (source, alias.name)


def _functions(module: _Module) -> Iterator[tuple[Routine, Function, ast.ClassDef | None]]:
    """Functions at module level and methods of classes there, those of which the name is bound once."""
    for name, definition in module.definitions.items():
        if isinstance(definition, Function):
            yield Routine(module.path, name), definition, None
        else:
            for method in _methods(definition).values():
                yield Routine(module.path, f"{name}.{method.name}"), method, definition


def _methods(node: ast.ClassDef) -> dict[str, Function]:
    counts = Counter(child.name for child in node.body if isinstance(child, Definition))
    return {child.name: child for child in node.body if isinstance(child, Function) and counts[child.name] == 1}


def _bound_in(function: Function) -> set[str]:
    """Every name that a function binds anywhere in it, the functions inside included."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        elif (isinstance(node, Definition) and node is not function) or (isinstance(node, ast.ExceptHandler) and node.name):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
    return names


class _Resolver:
    """What a name means in a module of the project."""

    def __init__(self, modules: Mapping[str, _Module]) -> None:
        self._modules = modules

    def called(self, module: _Module, func: ast.expr, owner: ast.ClassDef | None, bound: set[str]) -> Routine | None:
        """The function that a call in a function of `module` reaches."""
        words = _words(func)
        if not words:
            return None
        if words[0] == "self":
            return self._method(module, owner, words[1], DEEPEST) if owner is not None and len(words) == 2 else None
        if words[0] in bound:
            return None
        found = self._named(module, words, DEEPEST)
        if found is None:
            return None
        where, definition = found
        if isinstance(definition, ast.ClassDef):
            return self._method(where, definition, "__init__", DEEPEST)
        return Routine(where.path, definition.name)

    def _named(self, module: _Module, words: list[str], depth: int) -> tuple[_Module, Definition] | None:
        """The definition of a dotted name as a module sees it."""
        if depth == 0:
            return None
        first, rest = words[0], words[1:]
        if first in module.definitions:
            return (module, module.definitions[first]) if not rest else None
        if first not in module.imports:
            return None
        source, name = module.imports[first]
        if not name:
            return self._inside(source, rest, depth)
        if f"{source}.{name}" in self._modules:
            return self._inside(f"{source}.{name}", rest, depth)
        return self._inside(source, [name, *rest], depth)

    def _inside(self, source: str, words: list[str], depth: int) -> tuple[_Module, Definition] | None:
        """The definition of a dotted name inside a module."""
        while words and f"{source}.{words[0]}" in self._modules:
            source, words = f"{source}.{words[0]}", words[1:]
        module = self._modules.get(source)
        return self._named(module, words, depth - 1) if module is not None and words else None

    def _method(self, module: _Module, owner: ast.ClassDef, name: str, depth: int) -> Routine | None:
        """The method that an instance of a class has: its own, or that of its only base."""
        if depth == 0:
            return None
        if name in _methods(owner):
            return Routine(module.path, f"{owner.name}.{name}")
        if len(owner.bases) != 1 or any(isinstance(child, Definition) and child.name == name for child in owner.body):
            return None
        words = _words(owner.bases[0])
        found = self._named(module, words, DEEPEST) if words else None
        if found is None or not isinstance(found[1], ast.ClassDef):
            return None
        return self._method(found[0], found[1], name, depth - 1)


def _words(node: ast.expr) -> list[str]:
    """`a.b.c` as its words; nothing for what is no dotted name."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        before = _words(node.value)
        return [*before, node.attr] if before else []
    return []
