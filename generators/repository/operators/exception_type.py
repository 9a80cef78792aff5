"""A handler that catches, or a statement that raises, another built-in exception."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place

OTHERS = {
    "Exception": "ValueError",
    "ValueError": "KeyError",
    "TypeError": "ValueError",
    "KeyError": "IndexError",
    "IndexError": "KeyError",
    "AttributeError": "KeyError",
    "StopIteration": "IndexError",
    "RuntimeError": "LookupError",
    "NotImplementedError": "LookupError",
    "OverflowError": "LookupError",
    "ZeroDivisionError": "OverflowError",
    "OSError": "ValueError",
    "FileNotFoundError": "FileExistsError",
    "UnicodeDecodeError": "UnicodeEncodeError",
}


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Name)
    if node.value not in OTHERS:
        return
    parent = place.parent
    caught = isinstance(parent, cst.ExceptHandler) and parent.type is node
    raised = isinstance(parent, cst.Raise) or (isinstance(parent, cst.Call) and isinstance(place.ancestors[-2], cst.Raise))
    if caught or (raised and getattr(parent, "func", node) is node):
        yield node.with_changes(value=OTHERS[node.value])


OPERATOR = Operator("exception_type", (cst.Name,), changes, "the type of an exception")
