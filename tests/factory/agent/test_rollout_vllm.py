"""Rollouts with the real engine: what the learner gets is what the engine sampled, over several turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.agent.clients.local import LocalClient, LocalConfig
from factory.agent.contract import Sampling
from factory.agent.formats.chat import ChatFormat
from factory.agent.rollout import RolloutConfig, RolloutRequest, rollout
from factory.core.blobs import MemoryBlobs
from factory.core.outcome import OutcomeKind, Termination
from factory.core.trajectory import SAMPLED
from sandboxes.contract import Backend
from tests.factory.agent.clients.llamas import CONTEXT, make_llama, torch_logprobs
from tests.factory.agent.samples import VERSION, chat_policy, task, tree_verifier

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def test_every_sampled_token_of_every_turn_has_the_learners_logprob(
    backend: Backend, blobs: MemoryBlobs, tmp_path: Path
) -> None:
    model = make_llama(tmp_path, tied=True)
    format = ChatFormat(chat_policy(tmp_path))
    format.stop |= set(range(100))  # so that a policy that says anything ends its turns soon
    wanted = task(blobs, files={"a": "1\n"}, tools=("submit",), verifier=tree_verifier(blobs, {"a": b"1\n"}), turns=3)
    client = LocalClient(tmp_path, VERSION, LocalConfig(max_context=CONTEXT, kv_cache_gib=0.25))
    config = RolloutConfig(sampling=Sampling(temperature=0.7, max_tokens=100), max_context=CONTEXT)
    requests = [RolloutRequest(task=wanted, group="g", member=member, seed=member) for member in range(8)]
    made = rollout(requests, client=client, format=format, backend=backend, blobs=blobs, config=config)
    client.close()
    assert {trajectory.outcome.kind for trajectory in made} == {OutcomeKind.SCORED}
    assert Termination.TURN_LIMIT in {trajectory.outcome.reason for trajectory in made}
    assert len({trajectory.tokens.ids for trajectory in made}) == 8
    for trajectory in made:
        expected = [0.0, *torch_logprobs(model, trajectory.tokens.ids, 0.7)]
        for owner, logprob, learner in zip(trajectory.tokens.owners, trajectory.tokens.logprobs, expected, strict=True):
            if owner in SAMPLED:
                assert logprob == pytest.approx(learner, abs=1e-4)
