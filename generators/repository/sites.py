"""Sites: every edit that the operators offer in a file, as splices of its text, without equivalents and duplicates."""

from __future__ import annotations

import ast
import types
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst
from libcst._nodes.internal import CodegenState
from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider

from factory.core.streams import stream
from factory.core.syntax import parse_python
from generators.repository.operators import OPERATORS, Operator, Place


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
    """First and last line of the outermost function around it, decorators included."""

    @property
    def site(self) -> str:
        return f"{self.path}:{self.line}:{self.qualname}"

    def applied(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


class ProjectSites:
    """The edits of one project in the order of one seed, found as they are asked for.

    Functions take turns in a shuffled order, and each gives the edit whose operator was used least so far: neither long
    functions nor frequent operators drown the others. An edit counts when the function compiles to something else than
    before, and no earlier edit gave it the same syntax tree.
    """

    def __init__(self, texts: dict[str, str], operators: tuple[str, ...], seed: int, project: str) -> None:
        """`texts`: source files by path; those that do not parse offer nothing."""
        self._texts, self._operators = texts, operators
        self._random = stream(seed, "repository sites", project)
        functions = [(path, function) for path in sorted(texts) for function in functions_of(texts[path])]
        self._random.shuffle(functions)
        self.functions = len(functions)
        """Functions and methods of the project, nested ones counted with the one around them."""
        self._found = self._edits(functions)
        self._accepted: list[Edit] = []

    def edit(self, number: int) -> Edit | None:
        """Edit `number` of the order, from 0; None past the end."""
        while len(self._accepted) <= number:
            found = next(self._found, None)
            if found is None:
                return None
            self._accepted.append(found)
        return self._accepted[number]

    def _edits(self, functions: list[tuple[str, Function]]) -> Iterator[Edit]:
        used = dict.fromkeys(self._operators, 0)
        opened: dict[int, FunctionSites] = {}
        waiting = list(range(len(functions)))
        while waiting:
            for index in list(waiting):
                if index not in opened:
                    path, function = functions[index]
                    opened[index] = FunctionSites(path, self._texts[path], function, self._operators)
                    self._random.shuffle(opened[index].splices)
                edit = opened[index].take(used)
                if edit is None:
                    waiting.remove(index)
                    continue
                used[edit.operator] += 1
                yield edit


@dataclass(frozen=True)
class Function:
    """An outermost function or method of a file."""

    qualname: str
    """Names of the classes around it, and its own."""
    first: int
    """First line, decorators included."""
    last: int


def functions_of(text: str) -> list[Function]:
    """The outermost functions of a file; none when it does not parse or has form feeds (which count as line ends to some)."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        return []
    return [] if "\f" in text or "\r" in text.replace("\r\n", "\n") else list(_outermost(tree, ""))


def _outermost(node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            yield Function(prefix + child.name, first, child.end_lineno or first)
        elif isinstance(child, ast.ClassDef):
            yield from _outermost(child, f"{prefix}{child.name}.")
        elif not isinstance(child, ast.expr):
            yield from _outermost(child, prefix)


class FunctionSites:
    """The edits of one function, judged when taken."""

    def __init__(self, path: str, text: str, function: Function, operators: tuple[str, ...]) -> None:
        lines = text.splitlines(keepends=True)
        segment = "".join(lines[function.first - 1 : function.last])
        self._header = "if 1:\n" if segment[:1] in (" ", "\t") else ""  # an indented function parses by itself under an `if`
        self._path, self._function, self._original = path, function, self._header + segment
        self._offset = sum(map(len, lines[: function.first - 1])) - len(self._header)
        self._prefix = function.qualname.rpartition(".")[0]
        self._known = {_normal_form(self._original)}
        self._bytecode = _bytecode(self._original)
        self.splices = list(_splices(self._original, operators))

    def take(self, used: Mapping[str, int]) -> Edit | None:
        """The first remaining edit of an operator least used so far; None when none is left."""
        while self.splices:
            splice = min(self.splices, key=lambda one: used[one.operator])
            self.splices.remove(splice)
            broken = self._original[: splice.start] + splice.new + self._original[splice.end :]
            form = _normal_form(broken)
            if form is not None and form not in self._known and _bytecode(broken) != self._bytecode:
                self._known.add(form)
                return self._edit(splice)
        return None

    def _edit(self, splice: Splice) -> Edit:
        return Edit(
            operator=splice.operator,
            path=self._path,
            line=self._function.first - 1 + splice.line - bool(self._header),
            qualname=f"{self._prefix}.{splice.qualname}" if self._prefix else splice.qualname,
            start=splice.start + self._offset,
            end=splice.end + self._offset,
            new=splice.new,
            one_line="\n" not in self._original[splice.start : splice.end] and "\n" not in splice.new,
            function=(self._function.first, self._function.last),
        )


@dataclass(frozen=True)
class Splice:
    operator: str
    qualname: str
    start: int
    end: int
    new: str
    line: int


def _splices(text: str, operators: tuple[str, ...]) -> Iterator[Splice]:
    """What the operators offer in a text; nothing where LibCST can not parse it."""
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError:
        return
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    positions = wrapper.resolve(WhitespaceInclusivePositionProvider)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    walk = _Walk(tuple(OPERATORS[name] for name in operators))
    module.visit(walk)
    for found in walk.found:
        span = positions[found.node]
        start = starts[span.start.line - 1] + span.start.column
        end = starts[span.end.line - 1] + span.end.column
        if _code(module, found.node, found.indents) != text[start:end]:
            continue  # no exact place in the text
        start, end, new = _trimmed(text, start, end, _code(module, found.new, found.indents))
        if start < end or new:
            yield Splice(found.operator, found.qualname, start, end, new, bisect_right(starts, start))


def _code(module: cst.Module, node: cst.CSTNode, indents: tuple[str, ...]) -> str:
    """The node's text where it stands: `Module.code_for_node` with the indentation of the blocks around it."""
    state = CodegenState(default_indent=module.default_indent, default_newline=module.default_newline)
    for indent in indents:
        state.increase_indent(indent)
    node._codegen(state)
    return "".join(state.tokens)


def _trimmed(text: str, start: int, end: int, new: str) -> tuple[int, int, str]:
    """The same splice without what its ends have in common with the text."""
    while start < end and new and text[start] == new[0]:
        start, new = start + 1, new[1:]
    while start < end and new and text[end - 1] == new[-1]:
        end, new = end - 1, new[:-1]
    return start, end, new


@dataclass(frozen=True)
class _Found:
    operator: str
    node: cst.CSTNode
    new: cst.CSTNode
    qualname: str
    indents: tuple[str, ...]
    """Indentation of the blocks around the node, outermost first."""


class _Walk(cst.CSTVisitor):
    """Collects what the operators offer inside functions; types, decorators and docstrings are left alone."""

    def __init__(self, operators: tuple[Operator, ...]) -> None:
        super().__init__()
        self.found: list[_Found] = []
        self._by_type: dict[type[cst.CSTNode], list[Operator]] = {}
        for operator in operators:
            for kind in operator.nodes:
                self._by_type.setdefault(kind, []).append(operator)
        self._stack: list[cst.CSTNode] = []
        self._names: list[str] = []
        self._functions: list[cst.FunctionDef] = []
        self._indents: list[str] = []
        self._default_indent = "    "

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.Annotation, cst.Decorator)):
            return False
        if isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString)):
            return False
        operators = self._by_type.get(type(node), ()) if self._functions else ()
        if operators:
            place = Place(tuple(self._stack), self._functions[-1])
            qualname, indents = ".".join(self._names), tuple(self._indents)
            for operator in operators:
                self.found += [_Found(operator.name, node, new, qualname, indents) for new in operator.changes(node, place)]
        self._enter(node)
        return True

    def _enter(self, node: cst.CSTNode) -> None:
        self._stack.append(node)
        if isinstance(node, cst.Module):
            self._default_indent = node.default_indent
        elif isinstance(node, cst.IndentedBlock):
            self._indents.append(self._default_indent if node.indent is None else node.indent)
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            self._names.append(node.name.value)
            if isinstance(node, cst.FunctionDef):
                self._functions.append(node)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if not self._stack or self._stack[-1] is not original_node:
            return  # it was not entered
        self._stack.pop()
        if isinstance(original_node, cst.IndentedBlock):
            self._indents.pop()
        elif isinstance(original_node, (cst.FunctionDef, cst.ClassDef)):
            self._names.pop()
            if isinstance(original_node, cst.FunctionDef):
                self._functions.pop()

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        """Nothing is done per attribute: overriding the base's look-up makes the walk twice as fast."""

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        """See `on_visit_attribute`."""


def _normal_form(segment: str) -> bytes | None:
    """The syntax tree without positions; None when the segment does not compile."""
    try:
        return ast.dump(parse_python(segment)).encode(errors="surrogatepass")
    except (SyntaxError, ValueError):
        return None


def _bytecode(segment: str) -> object:
    """What the interpreter runs, without line numbers; None when it does not compile."""
    try:
        return _code_form(compile(segment, "segment", "exec", dont_inherit=True))
    except (SyntaxError, ValueError):
        return None


def _code_form(code: types.CodeType) -> tuple[object, ...]:
    constants = tuple(
        _code_form(item) if isinstance(item, types.CodeType) else (type(item).__name__, repr(item)) for item in code.co_consts
    )
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable)
