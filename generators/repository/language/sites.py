"""The bugs that a language model writes for one project, by number: what is asked of which function, and what came of it."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from factory.agent.endpoint import Endpoint
from factory.core.errors import BudgetSpent, EndpointError
from factory.core.streams import stream, stream_seed
from generators.repository.language import modify, rewrite
from generators.repository.language.config import LanguageConfig
from generators.repository.language.edits import LanguageEdit, edit_of, form_of
from generators.repository.language.entities import Entity, Refused, entities_of

logger = logging.getLogger(__name__)

SEED_BITS = 31
"""Servers take seeds of this size."""


@dataclass(frozen=True)
class Plan:
    """One question: which kind of bug, of which function, for which time."""

    kind: str
    entity: Entity
    round: int


class LanguageSites:
    """The edits of one project in the order of one seed.

    Which question a number asks depends on the seed and the project alone, so that shards and processes need not know of
    each other; the endpoint's cache gives all of them the same answers. Safe for threads.
    """

    def __init__(
        self, texts: Mapping[str, str], config: LanguageConfig, endpoint: Endpoint, *, seed: int, project: str
    ) -> None:
        """`texts`: source files by path."""
        self._texts, self._config, self._endpoint = texts, config, endpoint
        self._seed, self._project = seed, project
        self.plans = list(self._planned())
        """What each number asks."""
        self.refused: Counter[tuple[str, str]] = Counter()
        """(kind, reason) of what was asked and made no edit."""
        self._lock = threading.Lock()

    def _planned(self) -> Iterator[Plan]:
        """Every kind and round of every function: functions take turns in a shuffled order, each with another kind."""
        config = self._config
        entities = [
            entity
            for path in sorted(self._texts)
            for entity in entities_of(path, self._texts[path])
            if config.min_lines <= entity.lines <= config.max_lines
        ]
        stream(self._seed, "repository language", self._project).shuffle(entities)
        for round in range(config.rounds):
            for turn in range(len(config.kinds)):
                for number, entity in enumerate(entities):
                    kind = config.kinds[(number + turn) % len(config.kinds)]
                    if self._worthwhile(kind, entity, round):
                        yield Plan(kind, entity, round)

    def _worthwhile(self, kind: str, entity: Entity, round: int) -> bool:
        """Whether a question may bring anything: a model at temperature 0 says the same every time."""
        if kind == "rewrite":
            return rewrite.serves(entity, self._config) and (round == 0 or self._config.rewrite_temperature > 0)
        return round == 0 or self._config.modify_temperature > 0

    def edit(self, number: int) -> LanguageEdit | Refused | None:
        """Edit `number` of the order, from 0; why it is none; None past the end. Raises EndpointError and UserError."""
        if number >= len(self.plans):
            return None
        plan = self.plans[number]
        found = self._asked(plan)
        if isinstance(found, LanguageEdit) and self._known(plan, number, found):
            found = Refused("duplicate")
        if isinstance(found, Refused):
            with self._lock:
                self.refused[plan.kind, found.reason] += 1
            logger.debug("%s:%s: %s refused: %s %s", plan.entity.path, plan.entity.qualname, plan.kind, *vars(found).values())
        return found

    def edits(self, numbers: Sequence[int]) -> list[LanguageEdit | Refused | None]:
        """Several at once, as many as the endpoint has connections. Where the endpoint gives no answer, that is the reason.

        Raises UserError when the endpoint's settings are wrong.
        """

        def one(number: int) -> LanguageEdit | Refused | None:
            try:
                return self.edit(number)
            except BudgetSpent as error:
                return Refused("budget", str(error))
            except EndpointError as error:
                return Refused("no answer", str(error))

        with ThreadPoolExecutor(self._endpoint.config.connections, thread_name_prefix="language") as pool:
            found = list(pool.map(one, numbers))
        failures = [each for each in found if isinstance(each, Refused) and each.reason in ("budget", "no answer")]
        if failures:
            logger.warning(
                "%s: %d of %d questions unanswered: %s", self._project, len(failures), len(found), failures[0].detail
            )
        return found

    def _asked(self, plan: Plan) -> LanguageEdit | Refused:
        entity, text, config = plan.entity, self._texts[plan.entity.path], self._config
        purpose = ("repository language", self._project, plan.kind, entity.path, entity.qualname, entity.first, plan.round)
        seed = stream_seed(self._seed, *purpose) % 2**SEED_BITS
        if plan.kind == "rewrite":
            answer = self._endpoint.ask(rewrite.question(entity, text, config, seed))
            return edit_of(entity, text, answer, rewrite.ASKED)
        question, kinds = modify.question(entity, text, config, stream(self._seed, *purpose), seed)
        answer = self._endpoint.ask(question)
        return edit_of(entity, text, answer, modify.asked(answer.text, kinds))

    def _known(self, plan: Plan, number: int, found: LanguageEdit) -> bool:
        """Whether an earlier number makes the same of the same function; answers to those are asked for or cached."""
        text = self._texts[plan.entity.path]
        form = form_of(plan.entity, text, found)
        for earlier in self.plans[:number]:
            if earlier.entity is plan.entity:
                try:
                    edit = self._asked(earlier)
                except EndpointError:
                    continue  # what was not answered made nothing yet
                if isinstance(edit, LanguageEdit) and form_of(plan.entity, text, edit) == form:
                    return True
        return False


def language_edits(
    texts: Mapping[str, str], config: LanguageConfig, endpoint: Endpoint, *, seed: int, project: str
) -> Iterator[LanguageEdit]:
    """All edits in the order of the seed, one question at a time. Raises EndpointError: BudgetSpent when the budget ends it."""
    sites = LanguageSites(texts, config, endpoint, seed=seed, project=project)
    for number in range(len(sites.plans)):
        found = sites.edit(number)
        if isinstance(found, LanguageEdit):
            yield found
