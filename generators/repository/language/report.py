"""Issue texts by a language model: the symptom in a user's words, from what failing tests show and nothing else."""

from __future__ import annotations

import re
import textwrap

from factory.agent.endpoint import Question
from generators.repository.evidence import Evidence
from generators.repository.language.config import LanguageConfig
from generators.repository.language.edits import THOUGHT

VERSION = "report-1"
"""Of the prompt; part of provenance."""
LONGEST = 1500
"""Longest text that is taken, characters."""
_SYSTEM = (
    "You report bugs of Python libraries as a user does who has not read their source: what was done, what came of it, and "
    "what was expected. You are short and exact, you guess no cause, and you propose no change."
)
_USER = """\
{release} has a bug. {failing} of its checks fail. One of them:

{statement}

It ends with:

{error}
{others}
Write the text of an issue about it, at most 120 words, without a title. Quote the call and the values that matter. Name no
file, no line, and no function that is not in the above. Do not speak of tests.
"""


def question(release: str, shown: Evidence, failing: int, config: LanguageConfig, seed: int) -> Question:
    """What is asked: the evidence alone, neither the edit nor the source."""
    statement = f"{shown.setup}\n{shown.statement}" if shown.setup else shown.statement
    others = [f"{other.statement}\n{other.error}" for other in shown.others]
    user = _USER.format(
        release=release.replace("==", " "),
        failing=failing,
        statement=textwrap.indent(statement, "    "),
        error=textwrap.indent(shown.error, "    "),
        others="\nAlso:\n\n" + textwrap.indent("\n\n".join(others), "    ") + "\n" if others else "",
    )
    temperature = config.issue_temperature
    return Question(system=_SYSTEM, user=user, temperature=temperature, max_tokens=config.issue_tokens, seed=seed)


def said(answer: str) -> str:
    """The text of an answer, without what a model thought aloud, runs of blank lines and blanks at line ends."""
    text = THOUGHT.sub("", answer).strip()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.split("\n")))
