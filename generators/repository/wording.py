"""Wordings of instructions: several for each part, so that no policy learns one sentence by heart."""

from __future__ import annotations

OPENING = (
    "There is a bug in {release}.",
    "Something is wrong in {release}.",
    "I have a problem with {release}.",
    "{release} does not do what it should.",
)
SESSION = ("This session shows it:\n{session}", "To see it:\n{session}", "Try this:\n{session}")
"""Of a failure that can be repeated in an interpreter."""
EXPECTED = ("I expected {expected}.", "It should be {expected}.", "The right result is {expected}.")
EXPECTED_NO_ERROR = ("It should not fail.", "I expected no error.", "This used to work.")
EXPECTED_ERROR = (
    "It should raise {expected}.",
    "I expected {expected} to be raised.",
    "There is no {expected}, and there should be.",
)
FAILS = (
    "This fails:\n{statement}\nwith\n{error}",
    "Running\n{statement}\nends in\n{error}",
    "I get\n{error}\nfrom\n{statement}",
)
ALSO = ("This fails too:", "The same with:", "Also wrong:")
MORE = ("{count} other {checks} too.", "In all, {count} more {checks}.", "Beside it {count} other {checks}.")
MISBEHAVES = ("{function} does not do what it should.", "{function} gives wrong results.", "{function} is broken.")
"""Where nothing was run."""
PLACE = ("The mistake is {where}.", "It comes from a mistake {where}.", "The cause is {where}.")
LINE = ("Line {line} is wrong:\n{text}", "The wrong line is {line}:\n{text}")
CLOSING = (
    "Correct the source and submit.",
    "Please correct the source, then submit.",
    "Find the cause, correct it in the source and submit.",
)
