"""The error tree."""

from __future__ import annotations

import pickle
import re

import pytest

from factory.core import errors
from factory.core.errors import FactoryError, PolicyError, RegistryError, SandboxError, SandboxLost, UserError, VerifierError


def tree(root: type[Exception] = FactoryError) -> list[type[Exception]]:
    """Every error of the module, roots first."""
    return [root, *(one for child in root.__subclasses__() if child.__module__ == errors.__name__ for one in tree(child))]


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling(kind: type[Exception]) -> None:
    arguments = ("train.steps", -1, "a positive number") if issubclass(kind, UserError) else ("what failed", 3)
    error = kind(*arguments)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and again.args == error.args and str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_persons_mistake_is_one_line() -> None:
    error = UserError("nightly.date", "tomorrow", "a date like 2026-11-30")
    assert str(error) == "nightly.date: 'tomorrow' is not right; expected a date like 2026-11-30"
    assert (error.field, error.value, error.expected) == ("nightly.date", "tomorrow", "a date like 2026-11-30")
    assert isinstance(error, ValueError)


def test_the_drawing_shows_the_tree() -> None:
    """Every class once, as deep as it stands below the root."""
    drawn = re.findall(r"^ {4}(│?[ │├└─]*)(\w+)", (errors.__doc__ or ""), re.MULTILINE)
    depths = {name: len(prefix) // 4 for prefix, name in drawn}
    assert depths == {kind.__name__: kind.__mro__.index(FactoryError) for kind in tree()}


def test_what_masks_is_told_apart_from_what_is_refused() -> None:
    assert issubclass(SandboxLost, SandboxError)
    for kind in (SandboxError, VerifierError, PolicyError):
        assert not issubclass(kind, RegistryError | UserError)
