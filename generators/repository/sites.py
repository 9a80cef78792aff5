"""Sites: every edit that the operators offer in a file, as splices of its text, without equivalents and duplicates."""

from __future__ import annotations

import ast
import hashlib
import types
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import libcst as cst
from libcst._nodes.internal import CodegenState
from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider

from factory.core.streams import stream
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
    """First and last line of the function around it, decorators included."""

    @property
    def site(self) -> str:
        return f"{self.path}:{self.line}:{self.qualname}"

    def applied(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


class ProjectSites:
    """The edits of one project in the order of one seed, judged as they are asked for.

    Operators take turns, so that rare ones are not drowned by frequent ones. An edit counts when the function around
    it compiles to something else than before, and no earlier edit of the order gave it the same syntax tree.
    """

    def __init__(self, texts: dict[str, str], operators: tuple[str, ...], seed: int, project: str) -> None:
        """`texts`: source files by path; those that do not parse offer nothing."""
        self._texts = texts
        self._functions: dict[str, _Functions] = {}
        edits = []
        for path in sorted(texts):
            if (parsed := _parsed(texts[path])) is not None:
                tree, module = parsed
                self._functions[path] = _Functions(tree)
                edits += [(path, splice) for splice in _splices(module, texts[path], operators)]
        self.offered = len(edits)
        self._waiting = iter(_ordered(edits, stream(seed, "repository sites", project)))
        self._accepted: list[Edit] = []
        self._seen: set[bytes] = set()

    def edit(self, number: int) -> Edit | None:
        """Edit `number` of the order, from 0; None past the end."""
        while len(self._accepted) <= number:
            found = next(self._waiting, None)
            if found is None:
                return None
            edit = self._judged(*found)
            if edit is not None:
                self._accepted.append(edit)
        return self._accepted[number]

    def _judged(self, path: str, splice: _Splice) -> Edit | None:
        text, functions = self._texts[path], self._functions[path]
        span = functions.around(splice.line)
        if span is None:
            return None
        edit = _placed(path, text, splice, functions.innermost(splice.line))
        grown = edit.new.count("\n") - text.count("\n", edit.start, edit.end)
        before, after = _segment(text, span, 0), _segment(edit.applied(text), span, grown)
        form = _normal_form(after)
        if form is None or form == _normal_form(before) or _bytecode(after) == _bytecode(before):
            return None
        key = hashlib.sha256(f"{path} {span}".encode() + form).digest()
        if key in self._seen:
            return None
        self._seen.add(key)
        return edit


def _parsed(text: str) -> tuple[ast.Module, cst.Module] | None:
    try:
        tree, module = ast.parse(text), cst.parse_module(text)
    except (SyntaxError, ValueError, cst.ParserSyntaxError):
        return None
    return (tree, module) if module.code == text and "\f" not in text else None


def _ordered(edits: list[tuple[str, _Splice]], random: Random) -> list[tuple[str, _Splice]]:
    """Each operator's edits shuffled, then one of each operator in turn."""
    queues: dict[str, list[tuple[str, _Splice]]] = {}
    for edit in edits:
        queues.setdefault(edit[1].operator, []).append(edit)
    names = sorted(queues)
    random.shuffle(names)
    for name in names:
        random.shuffle(queues[name])
    longest = max((len(queue) for queue in queues.values()), default=0)
    return [queues[name][turn] for turn in range(longest) for name in names if turn < len(queues[name])]


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
            yield _Splice(found.operator, found.qualname, start, end, new, bisect_right(starts, start))


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
    constants = tuple(
        _code_form(item) if isinstance(item, types.CodeType) else (type(item).__name__, repr(item)) for item in code.co_consts
    )
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable)
