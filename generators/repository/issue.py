"""The instruction of a task: by a language model where there is one, else by template, through the same gates."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from factory.agent.endpoint import Answer, Endpoint
from factory.core.digest import Json
from factory.core.errors import EndpointError
from factory.core.streams import stream_seed
from generators.repository import gates
from generators.repository.evidence import Evidence
from generators.repository.instruction import instruction, reported
from generators.repository.language import report
from generators.repository.language.config import LanguageConfig
from generators.repository.sites import Edit
from generators.repository.solution import changed_lines

logger = logging.getLogger(__name__)

SEED_BITS = 31


@dataclass(frozen=True)
class Writer:
    """A model that writes issue texts, and how it is asked."""

    endpoint: Endpoint
    config: LanguageConfig


@dataclass(frozen=True)
class Issue:
    """An instruction that may be given, or why there is none."""

    text: str
    """Empty when the template is refused too."""
    refused: tuple[str, ...] = ()
    """Reasons of every text that was refused, in order: `empty`, `too long`, `cut off`, `leak: line`, `leak: name`,
    `leak: value`, `leak: turn`, `place`, `no symptom`, `no answer`."""
    parameters: dict[str, Json] = field(default_factory=dict)
    """For the origin of the task: who wrote it."""


def issue(
    release: str,
    edit: Edit,
    broken: str,
    original: str,
    *,
    explicitness: str,
    failing: int,
    shown: Evidence,
    excerpt_lines: int,
    seed: int,
    known: Iterable[str] = (),
    writer: Writer | None = None,
) -> Issue:
    """The instruction of an edit with what its failing tests show.

    `broken` and `original` are the edited file after and before, `known` further files of the broken tree, whose lines and
    names are no secret. A model's text stands for the symptom alone; the place, the excerpt and the request are always by
    template. Raises UserError when the endpoint's settings are wrong.
    """
    frame = _Frame(release, edit, broken, explicitness, failing, shown, excerpt_lines, seed)
    wrong, right = changed_lines(broken, original)
    secret = gates.secret_of(wrong, right, [broken, *known], shown.text)
    refused: list[str] = []
    for attempt in range(writer.config.issue_attempts if writer else 0):
        assert writer is not None
        try:
            answer = frame.ask(writer, attempt)
        except EndpointError as error:
            logger.warning("%s: a template stands in for the issue text: %s", release, error)
            refused.append("no answer")
            break
        symptom = report.said(answer.text)
        reason = _form(symptom, answer) or frame.refusal(symptom, wrong, secret)
        if not reason:
            by: dict[str, Json] = {"by": "model", "model": answer.model, "prompt": report.VERSION, "request": answer.request}
            return Issue(frame.whole(symptom), tuple(refused), _told(by, refused))
        refused.append(reason)
    symptom = reported(release, edit, failing=failing, shown=shown, seed=seed)
    reason = frame.refusal(symptom, wrong, secret)
    if reason:
        return Issue("", (*refused, reason))
    return Issue(frame.whole(symptom), tuple(refused), _told({"by": "template"}, refused))


@dataclass(frozen=True)
class _Frame:
    """An instruction but for its symptom."""

    release: str
    edit: Edit
    broken: str
    explicitness: str
    failing: int
    shown: Evidence
    excerpt_lines: int
    seed: int

    def ask(self, writer: Writer, attempt: int) -> Answer:
        """The model's answer to one attempt. Raises EndpointError and UserError."""
        edit = self.edit
        purpose = ("repository report", self.release, edit.operator, edit.site, edit.new, attempt)
        number = stream_seed(self.seed, *purpose) % 2**SEED_BITS
        return writer.endpoint.ask(report.question(self.release, self.shown, self.failing, writer.config, number))

    def whole(self, symptom: str) -> str:
        """The instruction with a symptom."""
        return instruction(
            self.release,
            self.edit,
            self.broken,
            explicitness=self.explicitness,
            failing=self.failing,
            shown=self.shown,
            excerpt_lines=self.excerpt_lines,
            seed=self.seed,
            symptom=symptom,
        )

    def refusal(self, symptom: str, wrong: Sequence[str], secret: gates.Secret) -> str:
        """Why a symptom may not stand in the instruction; empty when it may."""
        if not symptom:
            return "empty"
        leaked = gates.leak(self.whole(symptom), secret)
        if leaked:
            return f"leak: {leaked}"
        if gates.names_place(symptom, self.edit, wrong, self.shown):
            return "place"
        return "" if gates.shows(symptom, self.shown) else "no symptom"


def _form(symptom: str, answer: Answer) -> str:
    if answer.finish == "length":
        return "cut off"
    return "too long" if len(symptom) > report.LONGEST else ""


def _told(by: dict[str, Json], refused: list[str]) -> dict[str, Json]:
    """Who wrote an instruction, and what was refused before."""
    return {**by, "refused": [*refused]} if refused else by
