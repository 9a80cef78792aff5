"""One episode in the making: its tokens, its turns, its end."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import Literal

from factory.agent.contract import ActionFormat, Completion, Parsed, Request, Sampling
from factory.agent.environment import Environment, Step, fault_outcome
from factory.core.digest import Digest
from factory.core.errors import FactoryError, PolicyError
from factory.core.outcome import Outcome, OutcomeKind, Termination
from factory.core.reward import RewardComponents
from factory.core.streams import stream_seed
from factory.core.task import Task
from factory.core.trajectory import Tokens, Trajectory, Turn

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RolloutRequest:
    """One episode to run."""

    task: Task
    group: str
    """Key of the group of rollouts that share a baseline."""
    member: int
    """Number in the group."""
    seed: int
    """Seed of this episode alone; each turn samples from a stream of its own."""


class Episode:
    """One attempt at a request. Used by one thread at a time; `step` and `finish` are the slow parts."""

    def __init__(self, request: RolloutRequest, opening: Tokens, environment: Environment, format: ActionFormat) -> None:
        self.request, self.tokens, self.environment, self.format = request, opening, environment, format
        self.turns: list[Turn] = []
        self.valid = 0
        """Turns whose action was a valid call."""
        self.sampled = 0
        """Tokens that the policy produced."""
        self.queue_s = 0.0
        self.limit = ""
        """Which token limit cut the last completion: `turn`, `episode` or `context`."""
        self.reason: Termination | None = None
        """Why the episode is over."""
        self.outcome: Outcome | None = None
        """Set by `finish`, or at once by a fault."""
        self._parsed: Parsed | None = None
        self._submitted_at = 0.0
        environment.reset(request.seed)

    @property
    def over(self) -> bool:
        return self.reason is not None

    def ask(self, sampling: Sampling, max_context: int) -> Request | None:
        """The next request to the policy; None when no token is left, and then the episode is over."""
        rooms = {
            "turn": sampling.max_tokens,
            "episode": self.request.task.environment.limits.tokens - len(self.tokens),
            "context": max_context - len(self.tokens),
        }
        self.limit = min(rooms, key=lambda name: rooms[name])
        if rooms[self.limit] < 1:
            self.reason = Termination.TOKEN_LIMIT
            return None
        seed = stream_seed(self.request.seed, "turn", len(self.turns))
        return Request(prompt=self.tokens.ids, seed=seed, max_tokens=rooms[self.limit])

    def take(self, completion: Completion, decode_s: float, invalid_calls: Literal["continue", "end"]) -> None:
        """Read one completion. One that was cut at a token limit ends the episode: half a call is no call."""
        if completion.error:
            self.fail(PolicyError(completion.error))
            return
        parsed = self.format.parse(completion.ids, completion.logprobs, 0, self.request.task)
        start = len(self.tokens)
        self.tokens += parsed.tokens
        self.sampled += len(parsed.tokens)
        self.turns.append(
            Turn(
                start=start,
                end=len(self.tokens),
                action=parsed.action,
                observation=None,
                finish=completion.finish,
                decode_s=decode_s,
            )
        )
        self._parsed, self._submitted_at = parsed, time.perf_counter()
        if completion.finish == "length":
            self.reason = Termination.TOKEN_LIMIT
        elif parsed.action is None and invalid_calls == "end":
            self.reason = Termination.PARSER_REJECTION

    def step(self) -> Step | Exception:
        """Take the action just read in the environment; a fault is returned."""
        parsed = self._parsed
        assert parsed is not None
        self.queue_s += time.perf_counter() - self._submitted_at
        if parsed.action is None:
            return self.environment.refuse(parsed.error)
        try:
            return self.environment.step(parsed.action)
        except Exception as error:  # noqa: BLE001 (the boundary: an unknown fault masks the episode)
            return error

    def after(self, step: Step | Exception, environment_s: float, invalid_calls: Literal["continue", "end"]) -> None:
        """Record what the action did and, while the episode goes on, what the policy reads next."""
        if isinstance(step, Exception):
            self.fail(step)
            return
        self.valid += step.valid
        self.reason = step.reason
        if not step.valid and self.turns[-1].action is not None and invalid_calls == "end":
            self.reason = Termination.INVALID_TOOL_CALL
        started = time.perf_counter()
        if step.observation is not None and not self.over:
            self.tokens += self.format.observation(step.observation)
        observe_s = time.perf_counter() - started
        self.turns[-1] = replace(self.turns[-1], observation=step.observation, environment_s=environment_s, observe_s=observe_s)

    def fail(self, error: Exception) -> None:
        """End the attempt masked (or the task as invalid) because of `error`."""
        self.outcome = fault_outcome(error, Termination.TOOL_FAILURE)
        self.reason = self.outcome.reason

    def finish(self, *, held_out: bool) -> None:
        """Grade, unless a fault already decided, and remove the sandbox."""
        assert self.reason is not None
        if self.outcome is None:
            self.outcome = self.environment.finish(self.reason, held_out=held_out)
        self.close()

    def close(self) -> None:
        """Remove the sandbox; a sandbox that can not be removed is logged, the outcome stands. Idempotent."""
        try:
            self.environment.close()
        except FactoryError:
            logger.exception("a sandbox was not removed")

    def trajectory(
        self, *, policy: str, temperature: float, task: Digest, environment: Digest, image: Digest, attempt: int
    ) -> Trajectory:
        """The record of the episode. The digests are those of the task, its environment and its resolved image."""
        assert self.outcome is not None
        extra = {"attempt": str(attempt)}
        if self.outcome.reason is Termination.TOKEN_LIMIT:
            extra["token_limit"] = self.limit
        return Trajectory(
            task=task,
            group=self.request.group,
            member=self.request.member,
            policies=(policy,),
            tokens=self.tokens,
            turns=tuple(self.turns),
            outcome=self.outcome,
            components=self.components(),
            seed=self.request.seed,
            temperature=temperature,
            backend=self.environment.backend.name,
            image=image,
            environment=environment,
            reset_s=self.environment.reset_s,
            queue_s=self.queue_s,
            extra=extra,
        )

    def components(self) -> RewardComponents | None:
        """What the episode earned; None unless it is scored."""
        assert self.outcome is not None
        if self.outcome.kind is not OutcomeKind.SCORED or self.outcome.verdict is None:
            return None
        return RewardComponents(
            outcome=float(self.outcome.verdict.passed),
            progress=self.outcome.verdict.progress,
            validity=self.valid / len(self.turns) if self.turns else 0.0,
            tokens=self.sampled,
            calls=self.valid,
            seconds=self.environment.used_s,
        )
