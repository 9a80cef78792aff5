"""Makes tests that must fail out of tests that pass, by the smallest change of their text.

What a test asserts of a literal, it asserts of another literal; another assertion is negated; a test without any raises
at its end. The rest of the text and its line numbers stay as they were. If the test in its own form passes, then
in its new form it fails whatever the code under test is, as long as equality means something.
"""

import ast
import math
import re
import secrets
import string

OPPOSITES = {
    "assertEqual": "assertNotEqual",
    "assertTrue": "assertFalse",
    "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone",
    "assertIn": "assertNotIn",
    "assertIsInstance": "assertNotIsInstance",
    "assertAlmostEqual": "assertNotAlmostEqual",
    "assertRegex": "assertNotRegex",
    "assertGreater": "assertLessEqual",
    "assertLess": "assertGreaterEqual",
}
OPPOSITES |= {right: left for left, right in OPPOSITES.items()}
EQUALITIES = ("assertEqual", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual", "assertMultiLineEqual")
_random = secrets.SystemRandom()


def sabotaged(source, names):
    """(new source, {name: whether a literal was changed}) for the names that must now fail.

    `source` is bytes, a name is a tuple of classes and a function.
    """
    try:
        source.decode()  # positions of a tree count the bytes of UTF-8
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return source, {}
    starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", source))]
    edits, changed = {}, {}
    for name in names:
        for function in found(module.body, module.body, name):
            *edits[function.lineno], changed[name] = edit(function, source, starts)
    new = source
    for begin, end, text in sorted(edits.values(), reverse=True):
        new = new[:begin] + text.encode() + new[end:]
    try:
        compile(new, "sabotaged", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return source, {}
    return new, changed


def found(module, body, name):
    """The definitions of a test below `body`; in a class of the same module that its class inherits, where it has none."""
    first, *rest = name
    if not rest:
        return [node for node in statements(body) if is_function(node) and node.name == first]
    classes = [node for node in statements(body) if isinstance(node, ast.ClassDef) and node.name == first]
    own = [function for node in classes for function in found(module, node.body, rest)]
    bases = [base.id for node in classes for base in node.bases if isinstance(base, ast.Name) and base.id != first]
    return own or [function for base in bases for function in found(module, module, (base, *rest))]


def statements(body):
    """The statements of a body and of the blocks in it that are no definitions."""
    for node in body:
        yield node
        if not is_function(node) and not isinstance(node, ast.ClassDef):
            for block in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, block, []))


def is_function(node):
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def edit(function, source, starts):
    """(begin, end, text, whether that is a literal): the change of the source that makes this test fail."""

    def place(line, column):
        return starts[line - 1] + column

    def text(node):
        return source[place(node.lineno, node.col_offset) : place(node.end_lineno, node.end_col_offset)].decode()

    literal: list = []
    other: list = []
    for statement in always_reached(function.body):
        for node, new, is_literal in changes(statement, text):
            change = (place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset), new)
            (literal if is_literal else other).append(change)
    if literal or other:
        return *_random.choice(literal or other), bool(literal)
    return *raising(function, place), False


def raising(function, place):
    """(begin, end, text): raise after all statements, or before them where they may leave the function early."""
    failing = f"raise AssertionError({secrets.token_hex(4)!r})"
    node = function.body[0] if leaves(function.body) else function.body[-1]
    between = "; " if isinstance(node, SIMPLE) else "\n" + " " * node.col_offset
    if leaves(function.body):
        begin = place(node.lineno, node.col_offset)
        return begin, begin, failing + between
    end = place(node.end_lineno, node.end_col_offset)
    return end, end, between + failing


SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Assert, ast.Pass, ast.Delete, ast.Import, ast.ImportFrom)


def always_reached(body):
    """The statements that run whenever the test ends well: those before anything that may leave it early."""
    for node in body:
        if leaves([node]):
            return
        yield node


def leaves(body):
    """Whether something in these statements may end the function without an error, or is a generator's."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
            return True
        if not is_function(node) and not isinstance(node, ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return False


def changes(statement, text):
    """[(node, its new text, whether it is a literal)] for one statement, each of which makes the assertion fail."""
    if isinstance(statement, ast.Assert):
        test = statement.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            sides = [(side, value_of(side)) for side in (test.left, test.comparators[0])]
            if found := [(side, written(value[0]), True) for side, value in sides if value]:
                return found
        return [(test, f"not ({text(test)})", False)]
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or text(call.func.value) != "self":
        return []
    name, found = call.func.attr, []
    if name in EQUALITIES and len(call.args) >= 2:
        sides = [(side, value_of(side)) for side in call.args[:2]]
        found = [(side, written(value[0]), True) for side, value in sides if value]
    if not found and name in OPPOSITES:
        found = [(call.func, f"self.{OPPOSITES[name]}", False)]
    return found


def value_of(node):
    """(value,) of a literal; nothing for another expression."""
    try:
        return (ast.literal_eval(node),)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ()


def written(value):
    """Source of a value of the same type that is not equal to `value`."""
    return repr(other(value))


def other(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + _random.randrange(1, 10)
    if isinstance(value, float) and math.isfinite(value + 1.5) and value + 1.5 != value:
        return value + 1.5
    if isinstance(value, str):
        return value + _random.choice(string.ascii_lowercase)
    if isinstance(value, bytes):
        return value + _random.choice(string.ascii_lowercase).encode()
    if isinstance(value, list | tuple) and value:
        place = _random.randrange(len(value))
        return type(value)([*value[:place], other(value[place]), *value[place + 1 :]])
    if isinstance(value, dict) and value:
        key = _random.choice(list(value))
        return {**value, key: other(value[key])}
    if isinstance(value, set):
        return {*value, secrets.token_hex(4)}
    if isinstance(value, list | tuple):
        return type(value)([0])
    return {"other": 0} if isinstance(value, dict) else secrets.token_hex(4)
