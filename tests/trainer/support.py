"""Parts for the trainer's tests: random tiny models, hand-made trajectories, and a token client on plain torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from factory.agent.contract import Completion, Request
from factory.agent.rollout import RolloutRequest
from factory.core.outcome import Check, CheckState, Outcome, OutcomeKind, Termination, Verdict
from factory.core.policy import PolicyVersion
from factory.core.reward import RewardComponents
from factory.core.streams import stream_seed
from factory.core.task import EnvironmentSpec, Task, TaskKind, VerifierSpec
from factory.core.trajectory import Owner, Tokens, Trajectory, Turn

ZERO = "0" * 64
VERSION = PolicyVersion(line="random", weights=ZERO)


def tiny_llama(*, tied: bool = True, vocabulary: int = 32, seed: int = 0, layers: int = 1) -> LlamaForCausalLM:
    """A random model with two heads of 32, spread enough that its distributions are not flat."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        intermediate_size=96,
        max_position_embeddings=512,
        tie_word_embeddings=tied,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = LlamaForCausalLM(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, parameter in sorted(model.named_parameters()):
            if parameter.dim() == 2:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model.eval()


def perturb(model: torch.nn.Module, seed: int) -> None:
    """Change every matrix strongly, keeping its scale."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, parameter in sorted(model.named_parameters()):
            if parameter.dim() == 2:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * parameter.std() * 0.7).div_(1.22)


def make_task(number: int) -> Task:
    return Task(
        kind=TaskKind.TERMINAL,
        instruction=f"task {number}",
        environment=EnvironmentSpec(files=ZERO),
        verifier=VerifierSpec(bundle=ZERO),
        held_out=None,
        solution=ZERO,
    )


def verdict(*, passed: bool) -> Verdict:
    return Verdict(
        checks=(Check("one", CheckState.PASSED if passed else CheckState.FAILED),), verifier=ZERO, start=ZERO, end=ZERO
    )


def outcome(solved: bool | None, *, held_out: bool | None = None) -> Outcome:
    """Scored, or masked when `solved` is None."""
    if solved is None:
        return Outcome(kind=OutcomeKind.MASKED, reason=Termination.ENVIRONMENT_LOST, fault="the sandbox is gone")
    return Outcome(
        kind=OutcomeKind.SCORED,
        reason=Termination.SUBMITTED,
        verdict=verdict(passed=solved),
        held_out=None if held_out is None else verdict(passed=held_out),
    )


def make_trajectory(
    *,
    prompt: Sequence[int],
    sampled: Sequence[int],
    logprobs: Sequence[float],
    solved: bool | None,
    progress: float | None = None,
    group: str = "g",
    member: int = 0,
    task: str = ZERO,
    held_out: bool | None = None,
) -> Trajectory:
    tokens = Tokens.given(list(prompt), Owner.PROMPT) + Tokens(
        ids=tuple(sampled),
        owners=(Owner.ACTION,) * len(sampled),
        logprobs=tuple(logprobs),
        versions=(0,) * len(sampled),
    )
    components = None
    if solved is not None:
        share = float(solved) if progress is None else progress
        components = RewardComponents(
            outcome=float(solved), progress=share, validity=1.0, tokens=len(sampled), calls=1, seconds=0.0
        )
    return Trajectory(
        task=task,
        group=group,
        member=member,
        policies=(VERSION.name,),
        tokens=tokens,
        turns=(Turn(start=len(prompt), end=len(tokens), action=None, observation=None, finish="length"),),
        outcome=outcome(solved, held_out=held_out),
        components=components,
        seed=0,
        temperature=1.0,
    )


class TorchClient:
    """A token client on its own copy of a torch model, with the engine calls that the weight sync makes.

    `broken` leaves a part of the sync out: `weights` keeps the old ones.
    """

    def __init__(self, model: LlamaForCausalLM, *, broken: str = "") -> None:
        self.model = LlamaForCausalLM(model.config).eval()
        self.model.load_state_dict(model.state_dict())
        self.version = VERSION
        self.engine = self
        self.elsewhere = False
        self.broken = broken

    def collective_rpc(self, method: str, timeout: float | None = None, args: tuple[Any, ...] = (), kwargs: Any = None) -> None:
        assert method == "reload_weights"
        if self.broken != "weights":
            self.model.load_state_dict(dict(kwargs["weights_iterator"]), strict=False)

    def apply_model(self, func: Any) -> list[Any]:
        return []

    def reset_prefix_cache(self) -> bool:
        return True

    def set_version(self, version: PolicyVersion) -> None:
        self.version = version

    @torch.no_grad()
    def complete(self, requests: Sequence[Request], *, temperature: float, stop: frozenset[int]) -> list[Completion]:
        completions = []
        for request in requests:
            generator = torch.Generator().manual_seed(request.seed)
            ids, logprobs = list(request.prompt), []
            while len(logprobs) < request.max_tokens and not (logprobs and ids[-1] in stop):
                logits = self.model(torch.tensor([ids])).logits[0, -1] / temperature
                token = int(torch.multinomial(logits.softmax(-1), 1, generator=generator))
                logprobs.append(float(logits.log_softmax(-1)[token]))
                ids.append(token)
            sampled = tuple(ids[len(request.prompt) :])
            finish = "stop" if sampled[-1] in stop else "length"
            completions.append(Completion(ids=sampled, logprobs=tuple(logprobs), finish=finish))
        return completions

    @torch.no_grad()
    def score(self, sequences: Sequence[tuple[int, ...]], *, temperature: float) -> list[list[float]]:
        scores = []
        for sequence in sequences:
            table = (self.model(torch.tensor([sequence])).logits[0] / temperature).log_softmax(-1)
            scores.append([float(table[index, token]) for index, token in enumerate(sequence[1:])])
        return scores


class ToyRollouts:
    """Episodes of one turn without a sandbox: solved when at least half of the sampled ids are even.

    The prompt names the task by its number, so that tasks differ; every `mask_every`-th rollout is masked.
    """

    def __init__(
        self, client: Any, numbers: dict[str, int], *, temperature: float, tokens: int = 4, mask_every: int = 0
    ) -> None:
        self.client, self.numbers, self.temperature, self.tokens, self.mask_every = (
            client,
            numbers,
            temperature,
            tokens,
            mask_every,
        )
        self.calls: list[list[RolloutRequest]] = []

    def __call__(self, requests: Sequence[RolloutRequest]) -> list[Trajectory]:
        self.calls.append(list(requests))
        digests = [request.task.digest for request in requests]
        prompts = [(1, 2 + self.numbers[digest]) for digest in digests]
        asked = [
            Request(prompt=prompt, seed=stream_seed(request.seed, "turn", 0), max_tokens=self.tokens)
            for prompt, request in zip(prompts, requests, strict=True)
        ]
        completions = self.client.complete(asked, temperature=self.temperature, stop=frozenset())
        result = []
        for number, (request, digest, prompt, completion) in enumerate(
            zip(requests, digests, prompts, completions, strict=True)
        ):
            even = sum(token % 2 == 0 for token in completion.ids)
            masked = self.mask_every and number % self.mask_every == 0
            result.append(
                make_trajectory(
                    prompt=prompt,
                    sampled=completion.ids,
                    logprobs=completion.logprobs,
                    solved=None if masked else even * 2 >= self.tokens,
                    group=request.group,
                    member=request.member,
                    task=digest,
                )
            )
        return result
