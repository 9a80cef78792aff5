"""Values of columns that JSON has no form for: kept with their type, as `{"$type": name, "value": text}`."""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from factory.core.errors import UserError

TAG = "$type"
_READ: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {
        "datetime": datetime.datetime.fromisoformat,
        "date": datetime.date.fromisoformat,
        "time": datetime.time.fromisoformat,
        "bytes": base64.b64decode,
        "decimal": decimal.Decimal,
    }
)


def encoded(value: Any) -> Any:
    """`value` as what JSON has. Raises UserError for a type that it can not keep."""
    if isinstance(value, Mapping):
        return {str(name): encoded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes):
        return _tagged("bytes", base64.b64encode(value).decode())
    if isinstance(value, decimal.Decimal):
        return _tagged("decimal", str(value))
    for kind in (datetime.datetime, datetime.date, datetime.time):  # a datetime is a date too
        if isinstance(value, kind):
            return _tagged(kind.__name__, value.isoformat())
    raise UserError("column", type(value).__name__, "text, numbers, lists, tables, times or bytes")


def decoded(value: Any) -> Any:
    """What `encoded` was given. A tag that does not fit stays as it is."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {TAG, "value"} and all(isinstance(item, str) for item in value.values()) and value[TAG] in _READ:
        try:
            return _READ[value[TAG]](value["value"])
        except (ValueError, ArithmeticError):
            return value
    return {name: decoded(item) for name, item in value.items()}


def _tagged(kind: str, text: str) -> dict[str, str]:
    return {TAG: kind, "value": text}
