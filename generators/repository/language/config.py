"""What is asked of the language model that helps the repository generator."""

from __future__ import annotations

from dataclasses import dataclass

from factory.core.errors import UserError

KINDS = ("modify", "rewrite")
"""Kinds of bugs that need nothing but the project; a mirror also needs a historical change."""


@dataclass(frozen=True, kw_only=True)
class LanguageConfig:
    """Bugs and issue texts written by a language model, where `endpoint` names one."""

    kinds: tuple[str, ...] = KINDS
    """`modify`: a function with a mistake put in; `rewrite`: its body written anew from signature and docstring."""
    mistakes: int = 3
    """Kinds of mistakes proposed for one `modify`, drawn from the list."""
    modify_temperature: float = 1.0
    """Sampling temperature of `modify`."""
    rewrite_temperature: float = 0.0
    """Sampling temperature of `rewrite`, whose mistakes are honest ones."""
    mirror_temperature: float = 0.0
    """Sampling temperature of mirrors of historical changes."""
    max_tokens: int = 2048
    """Most tokens of one answer."""
    min_lines: int = 4
    """Fewest lines of a function that is given to the model, decorators and docstring included."""
    max_lines: int = 80
    """Most lines of a function that is given to the model."""
    min_docstring: int = 20
    """Fewest characters of a docstring from which a body can be written."""
    rounds: int = 2
    """How often each kind is asked of each function, every time with another seed."""
    issue_attempts: int = 2
    """How often the model is asked for the text of an issue before a template stands in; 0: templates alone."""
    issue_temperature: float = 0.7
    """Sampling temperature of issue texts."""
    issue_tokens: int = 400
    """Most tokens of an issue text."""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise UserError("repository.language.kinds", kind, f"one of {', '.join(KINDS)}")
        for name in ("mistakes", "max_tokens", "rounds", "issue_tokens"):
            if getattr(self, name) < 1:
                raise UserError(f"repository.language.{name}", getattr(self, name), "at least 1")
        if not 1 <= self.min_lines <= self.max_lines:
            raise UserError("repository.language.min_lines", self.min_lines, f"1 to max_lines, {self.max_lines}")
        if self.issue_attempts < 0:
            raise UserError("repository.language.issue_attempts", self.issue_attempts, "0 or more")
        for name in ("modify_temperature", "rewrite_temperature", "mirror_temperature", "issue_temperature"):
            if not 0 <= getattr(self, name) <= 2:
                raise UserError(f"repository.language.{name}", getattr(self, name), "0 to 2")
