"""Tool calls as text: one JSON object between two tags. Strict in what it says, lenient in how it is spaced."""

from __future__ import annotations

import json

from factory.core.action import Action

BEGIN = "<tool_call>"
END = "</tool_call>"


def write_call(action: Action) -> str:
    """The text of one call."""
    value = {"name": action.tool, "arguments": dict(action.arguments)}
    return f"{BEGIN}{json.dumps(value, ensure_ascii=False)}{END}"


def read_call(text: str) -> Action:
    """The one call in `text`; any text may stand before it, only white space after it.

    The object has exactly the keys `name` (a string) and `arguments` (an object of strings; a whole
    number stands for its digits). Raises ValueError with one line for the policy.
    """
    before, begin, rest = text.partition(BEGIN)
    body, end, after = rest.partition(END)
    if not begin:
        raise ValueError(f"no {BEGIN} in the answer")
    if not end:
        raise ValueError(f"no {END} after {BEGIN}")
    if END in before or BEGIN in body or after.strip():
        raise ValueError("give exactly one call and nothing after it")
    try:
        value = json.loads(body, strict=False, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise ValueError("the call is not a JSON object without repeated keys") from None
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        raise ValueError('the call needs exactly the keys "name" and "arguments"')
    name, arguments = value["name"], value["arguments"]
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ValueError('"name" is a string and "arguments" an object')
    if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in arguments.values()):
        raise ValueError("every argument is a string")
    return Action(name, {key: str(item) for key, item in arguments.items()})


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is repeated")
    return value
