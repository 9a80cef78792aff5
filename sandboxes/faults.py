"""The boundary of the room: faults of the machine under it become SandboxError, whatever they were."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from factory.core.errors import SandboxError

P = ParamSpec("P")
R = TypeVar("R")


def machine_faults(*kinds: type[Exception]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: exceptions of `kinds` (no descriptors left, no memory, an engine that is gone) become SandboxError."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def translated(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except kinds as error:
                raise SandboxError(f"{function.__name__}: {type(error).__name__}: {error}") from error

        return translated

    return decorate
