"""Demonstrations of terminal tasks for the warm start: slots and words only, no tree and no blob."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from factory.core.demonstration import Demonstration
from factory.core.errors import UserError
from factory.core.streams import stream
from generators.signatures import pick
from generators.terminal.composition import compose
from generators.terminal.config import TerminalConfig


class TerminalDemonstrator:
    """Oracle demonstrations from a stream of their own, clear of what a split withholds.

    `withheld` holds split keys (`signature:copy+sort`, `slots:terminal-3`): no demonstration has any of
    them. Families set apart are never shown.
    """

    def __init__(self, config: TerminalConfig, *, withheld: frozenset[str] = frozenset()) -> None:
        self.config = config
        self._signatures = config.space.allowed(withheld)
        if not self._signatures:
            raise UserError("withheld", sorted(withheld), "split keys that leave at least one signature to demonstrate")

    def demonstrate(self, *, seed: int, count: int) -> Iterator[tuple[str, Demonstration, tuple[str, ...]]]:
        """Instruction, reference actions, and what the sandbox shows between them: nothing, as each command is silent."""
        cumulative = tuple(accumulate(weight for _, weight in self._signatures))
        for number in range(count):
            rng = stream(seed, "terminal", "demonstration", number)
            composition, _ = compose(pick(rng, cumulative, self._signatures), rng)
            demonstration = composition.demonstration(joined=self.config.joined)
            yield composition.instruction(self.config.style), demonstration, ("",) * (len(demonstration.actions) - 1)
