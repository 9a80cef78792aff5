"""An edit: one way to break one file, as a splice of its text."""

from __future__ import annotations

from dataclasses import dataclass

from factory.core.digest import Json

MODULE = "<module>"
"""Qualified name of what stands outside functions and classes."""


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
    """First and last line of the outermost function around it, decorators included; of the class or of the module's statement
    where it is in none."""
    variant: int = 0
    """Which of the versions that the operator makes of this place, from 0."""
    import_time: bool = False
    """Whether importing the module runs what changes: class bodies, module level, decorators, defaults."""
    form: str = ""
    """Digest of the normal form of that function, class or statement with the edit."""

    @property
    def site(self) -> str:
        return f"{self.path}:{self.line}:{self.qualname}"

    @property
    def where(self) -> str:
        """The place for people: `in Box.total in box.py`, `at the top level of box.py`."""
        return f"at the top level of {self.path}" if self.qualname == MODULE else f"in {self.qualname} in {self.path}"

    @property
    def parameters(self) -> dict[str, Json]:
        """What makes this edit again, with the text and the operators."""
        return {"operator": self.operator, "site": self.site, "variant": self.variant, "import_time": self.import_time}

    def applied(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]
