"""Sites: every edit that the operators offer in a file, as splices of its text, without equivalents and duplicates."""

from __future__ import annotations

import ast
import hashlib
import json
import types
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider

from factory.core.digest import digest_of
from factory.core.streams import stream
from generators.repository.operators import OPERATORS, Operator, Place

VERSION = 1
"""Of the operators and of how sites are listed; part of the cache's key."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One way to break one file: `text[:start] + new + text[end:]`."""

    operator: str
    path: str
    line: int
    """First line that changes, from 1."""
    qualname: str
    start: int
    """Offset in characters."""
    end: int
    new: str
    one_line: bool
    """Whether exactly one line changes and the number of lines stays: one call of the `edit` tool restores it."""
    function: tuple[int, int]
    """First and last line of the function around it, decorators included."""

    @property
    def site(self) -> str:
        return f"{self.path}:{self.line}:{self.qualname}"

    def applied(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


def project_edits(texts: dict[str, str], operators: tuple[str, ...], cache: Path | None = None) -> list[Edit]:
    """All edits of a project's files in a fixed order; remembered in `cache` by the digest of the texts."""
    record = None
    if cache is not None:
        versions = {"sites": VERSION, "libcst": cst.__version__} if hasattr(cst, "__version__") else {"sites": VERSION}
        record = cache / f"sites-{digest_of({'texts': texts, 'operators': operators, **versions})[:24]}.json"
        if record.exists():
            return [Edit(**{**row, "function": tuple(row["function"])}) for row in json.loads(record.read_text())]
    edits = [edit for path in sorted(texts) for edit in file_edits(path, texts[path], operators)]
    if record is not None:
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps([asdict(edit) for edit in edits]))
    return edits


def file_edits(path: str, text: str, operators: tuple[str, ...]) -> list[Edit]:
    """The edits of one file, each with a syntax tree and bytecode of its own; nothing for a file that does not parse."""
    try:
        tree = ast.parse(text)
        module = cst.parse_module(text)
    except (SyntaxError, ValueError, cst.ParserSyntaxError):
        return []
    if module.code != text:
        return []
    functions = _Functions(tree)
    seen: set[bytes] = set()
    edits = []
    for raw in _splices(module, text, operators):
        span = functions.around(raw.line)
        if span is None:
            continue
        edit = _placed(path, text, raw, functions.innermost(raw.line))
        before, after = _segment(text, span, 0), _segment(edit.applied(text), span, edit.new.count("\n") - _lines(text, edit))
        form = _normal_form(after)
        if form is None or form == _normal_form(before) or _bytecode(after) == _bytecode(before):
            continue
        key = hashlib.sha256(f"{span}".encode() + form).digest()
        if key not in seen:
            seen.add(key)
            edits.append(edit)
    return edits


def _lines(text: str, edit: Edit) -> int:
    return text.count("\n", edit.start, edit.end)


@dataclass(frozen=True)
class _Splice:
    operator: str
    qualname: str
    start: int
    end: int
    new: str
    line: int


def _splices(module: cst.Module, text: str, operators: tuple[str, ...]) -> Iterator[_Splice]:
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    positions = wrapper.resolve(WhitespaceInclusivePositionProvider)
    starts = [0]
    for line in text.splitlines(keepends=True) if "\f" not in text else []:
        starts.append(starts[-1] + len(line))
    walk = _Walk(tuple(OPERATORS[name] for name in operators))
    module.visit(walk)
    for operator, node, new, qualname in walk.found:
        span = positions[node]
        start = starts[span.start.line - 1] + span.start.column
        end = starts[span.end.line - 1] + span.end.column
        replacement = module.code_for_node(new)
        if module.code_for_node(node) != text[start:end]:  # indentation is not part of the node: rewrite the module
            whole = module.deep_replace(node, new).code  # type: ignore[arg-type]
            start, end, replacement = _difference(text, whole)
        start, end, replacement = _trimmed(text, start, end, replacement)
        if start < end or replacement:
            yield _Splice(operator.name, qualname, start, end, replacement, bisect_right(starts, start))


def _difference(text: str, other: str) -> tuple[int, int, str]:
    """The splice that makes `other` of `text`."""
    return _trimmed(text, 0, len(text), other)


def _trimmed(text: str, start: int, end: int, new: str) -> tuple[int, int, str]:
    """The same splice without what its ends have in common with the text."""
    while start < end and new and text[start] == new[0]:
        start, new = start + 1, new[1:]
    while start < end and new and text[end - 1] == new[-1]:
        end, new = end - 1, new[:-1]
    return start, end, new


class _Walk(cst.CSTVisitor):
    """Collects (operator, node, replacement, qualified name) inside functions; types, decorators and docstrings are left alone."""

    def __init__(self, operators: tuple[Operator, ...]) -> None:
        super().__init__()
        self.found: list[tuple[Operator, cst.CSTNode, cst.CSTNode, str]] = []
        self._by_type: dict[type[cst.CSTNode], list[Operator]] = {}
        for operator in operators:
            for kind in operator.nodes:
                self._by_type.setdefault(kind, []).append(operator)
        self._stack: list[cst.CSTNode] = []
        self._names: list[str] = []
        self._functions: list[cst.FunctionDef] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.Annotation, cst.Decorator)):
            return False
        if isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString)):
            return False
        if self._functions:
            place = Place(tuple(self._stack), self._functions[-1])
            for operator in self._by_type.get(type(node), ()):
                for new in operator.changes(node, place):
                    self.found.append((operator, node, new, ".".join(self._names)))
        self._stack.append(node)
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            self._names.append(node.name.value)
        if isinstance(node, cst.FunctionDef):
            self._functions.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if not self._stack or self._stack[-1] is not original_node:
            return  # it was not entered
        self._stack.pop()
        if isinstance(original_node, (cst.FunctionDef, cst.ClassDef)):
            self._names.pop()
        if isinstance(original_node, cst.FunctionDef):
            self._functions.pop()


class _Functions:
    """Line spans of functions: outermost ones (methods included) and innermost ones."""

    def __init__(self, tree: ast.Module) -> None:
        self._outer: list[tuple[int, int]] = []
        self._all: list[tuple[int, int]] = []
        self._collect(tree, inside=False)
        self._outer.sort()

    def _collect(self, node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            if function:
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])  # type: ignore[attr-defined]
                span = (first, child.end_lineno or first)  # type: ignore[attr-defined]
                self._all.append(span)
                if not inside:
                    self._outer.append(span)
            self._collect(child, inside or function)

    def around(self, line: int) -> tuple[int, int] | None:
        index = bisect_right(self._outer, (line, 1 << 60)) - 1
        return self._outer[index] if index >= 0 and self._outer[index][1] >= line else None

    def innermost(self, line: int) -> tuple[int, int]:
        return min((span for span in self._all if span[0] <= line <= span[1]), key=lambda span: span[1] - span[0])


def _placed(path: str, text: str, raw: _Splice, function: tuple[int, int]) -> Edit:
    removed, added = text.count("\n", raw.start, raw.end), raw.new.count("\n")
    return Edit(
        operator=raw.operator,
        path=path,
        line=raw.line,
        qualname=raw.qualname,
        start=raw.start,
        end=raw.end,
        new=raw.new,
        one_line=removed == 0 and added == 0,
        function=function,
    )


def _segment(text: str, span: tuple[int, int], grown: int) -> str:
    """The lines of a function under an `if`, so that an indented one parses by itself."""
    lines = text.split("\n")[span[0] - 1 : span[1] + grown]
    indented = lines[0][:1] in (" ", "\t")
    return "\n".join(["if 1:", *lines] if indented else lines) + "\n"


def _normal_form(segment: str) -> bytes | None:
    """The syntax tree without positions; None when the segment does not compile."""
    try:
        return ast.dump(ast.parse(segment)).encode(errors="surrogatepass")
    except (SyntaxError, ValueError):
        return None


def _bytecode(segment: str) -> object:
    """What the interpreter runs, without line numbers; None when it does not compile."""
    try:
        return _code_form(compile(segment, "segment", "exec", dont_inherit=True))
    except (SyntaxError, ValueError):
        return None


def _code_form(code: types.CodeType) -> tuple[object, ...]:
    constants = tuple(_code_form(item) if isinstance(item, types.CodeType) else (type(item).__name__, repr(item)) for item in code.co_consts)
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable)


def ordered(edits: list[Edit], seed: int, project: str) -> list[Edit]:
    """A shuffled order in which operators take turns, so that rare ones are not drowned by frequent ones."""
    random = stream(seed, "repository sites", project)
    queues: dict[str, list[Edit]] = {}
    for edit in edits:
        queues.setdefault(edit.operator, []).append(edit)
    names = sorted(queues)
    random.shuffle(names)
    for name in names:
        random.shuffle(queues[name])
    longest = max((len(queue) for queue in queues.values()), default=0)
    return [queues[name][turn] for turn in range(longest) for name in names if turn < len(queues[name])]
