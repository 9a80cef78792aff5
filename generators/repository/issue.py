"""The instruction of a task: by a language model where there is one, else by template, through the same gates."""

from __future__ import annotations

import logging
from collections.abc import Iterable
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
    wrong, right = changed_lines(broken, original)
    secret = gates.secret_of(wrong, right, [broken, *known], shown.text)
    refused: list[str] = []

    def whole(symptom: str) -> str:
        return instruction(
            release,
            edit,
            broken,
            explicitness=explicitness,
            failing=failing,
            shown=shown,
            excerpt_lines=excerpt_lines,
            seed=seed,
            symptom=symptom,
        )

    def refusal(symptom: str) -> str:
        """Why a symptom may not stand in the instruction; empty when it may."""
        if not symptom:
            return "empty"
        leaked = gates.leak(whole(symptom), secret)
        if leaked:
            return f"leak: {leaked}"
        if gates.names_place(symptom, edit, wrong, shown):
            return "place"
        return "" if gates.shows(symptom, shown) else "no symptom"

    for attempt in range(writer.config.issue_attempts if writer else 0):
        assert writer is not None
        number = stream_seed(seed, "repository report", release, edit.operator, edit.site, edit.new, attempt) % 2**SEED_BITS
        try:
            answer = writer.endpoint.ask(report.question(release, shown, failing, writer.config, number))
        except EndpointError as error:
            logger.warning("%s: a template stands in for the issue text: %s", release, error)
            refused.append("no answer")
            break
        symptom = report.said(answer.text)
        reason = _form(symptom, answer) or refusal(symptom)
        if not reason:
            return Issue(whole(symptom), tuple(refused), _told(answer, refused))
        refused.append(reason)
    symptom = reported(release, edit, failing=failing, shown=shown, seed=seed)
    reason = refusal(symptom)
    if reason:
        return Issue("", (*refused, reason))
    return Issue(whole(symptom), tuple(refused), {"by": "template", **({"refused": [*refused]} if refused else {})})


def _form(symptom: str, answer: Answer) -> str:
    if answer.finish == "length":
        return "cut off"
    return "too long" if len(symptom) > report.LONGEST else ""


def _told(answer: Answer, refused: list[str]) -> dict[str, Json]:
    """Who wrote an instruction."""
    told: dict[str, Json] = {"by": "model", "model": answer.model, "prompt": report.VERSION, "request": answer.request}
    return {**told, "refused": [*refused]} if refused else told
