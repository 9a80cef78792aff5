"""A small real world: terminal tasks in a registry, a warm-started tiny policy, its assessments; and a child that trains in it.

Run as a module it is that child: `python -m tests.trainer.frontier WORLD OUT STEPS` prints the digest of the trained weights.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from factory.agent.clients.local import LocalClient, LocalConfig
from factory.agent.contract import Sampling
from factory.agent.formats import load_format
from factory.agent.rollout import RolloutConfig
from factory.core.assessment import Assessment, Evidence, TaskStatus
from factory.core.task import TaskKind
from generators.names import SYLLABLES
from generators.terminal import TerminalConfig, TerminalDemonstrator, TerminalGenerator
from registry.store import Registry
from sandboxes.backends import open_backend
from sandboxes.contract import Backend
from trainer.evaluate import EvaluationConfig, evaluate
from trainer.grpo import GrpoConfig
from trainer.policies.storage import latest_version, load_version
from trainer.policies.tiny import TinyConfig, make_tiny
from trainer.policies.tiny_tokenizer import TokenizerConfig
from trainer.train import TrainResult, train
from trainer.warmstart.config import WarmStartConfig
from trainer.warmstart.demonstrations import Source
from trainer.warmstart.training import warm_start

TASKS = TerminalConfig(families=("make", "write", "delete"), apart=("store",), apart_percent=20, depth_weights=(1,), pools=2)
ENGINE = LocalConfig(max_context=256, kv_cache_gib=0.1)
ROLLOUT = RolloutConfig(max_context=256, held_out=False, invalid_calls="end", sampling=Sampling(max_tokens=24))
GRPO = GrpoConfig(seed=5, steps=3, groups=8, samples=6, rounds=2, rollout=ROLLOUT)


@dataclass(frozen=True)
class World:
    """What stands under one folder."""

    root: Path

    @property
    def policies(self) -> Path:
        return self.root / "policies"

    @property
    def policy(self) -> Path:
        """Folder of the warm-started version."""
        return Path((self.root / "policy").read_text())

    def registry(self) -> Registry:
        return Registry.open(f"sqlite:///{self.root}/registry.db", self.root / "blobs")

    def backend(self) -> Backend:
        return open_backend("bubblewrap", cache=self.root / "cache")

    def train(self, out: Path, config: GrpoConfig, *, run: str | None = None) -> TrainResult:
        with self.registry() as registry:
            backend = self.backend()
            try:
                return train(
                    config,
                    registry=registry,
                    backend=backend,
                    policy_dir=self.policy,
                    policies=self.policies,
                    out=out,
                    engine=ENGINE,
                    run=run,
                )
            finally:
                backend.close()


def build(root: Path, *, tasks: int = 30) -> World:
    """Register tasks, warm start, and assess the training part with four rollouts each."""
    world = World(root)
    root.mkdir(parents=True, exist_ok=True)
    with world.registry() as registry:
        candidates = list(TerminalGenerator(TASKS).generate(registry.blobs, seed=1, start=0, count=tasks))
        registry.register_many(candidates)
        parts = {one.task.digest: "holdout-families" if "store" in one.families else "train" for one in candidates}
        registry.seal_split("main", parts)
        proof = Evidence(filter="validity", rule="gold passes, the no-op fails", passed=True, reason="", data={})
        registry.add_evidence_many([(digest, proof) for digest in parts])
        registry.set_status_many([(digest, TaskStatus.ACCEPTED, "valid") for digest in parts])
        folder = _warm(world)
        (root / "policy").write_text(str(folder))
        version = load_version(folder)
        registry.add_policy(version, path=str(folder), format="tiny")
        backend, client = world.backend(), LocalClient(folder, version, ENGINE)
        found, _ = evaluate(
            [(registry.task(digest), part) for digest, part in parts.items() if part == "train"],
            client=client,
            format=load_format(folder),
            backend=backend,
            blobs=registry.blobs,
            config=EvaluationConfig(samples=4, rollout=ROLLOUT),
        )
        client.close()
        backend.close()
        registry.add_assessments(
            Assessment(task=one.task, line="tiny", policy=version.weights, successes=one.solved, rollouts=one.scored)
            for one in found.tasks
        )
    return world


def _warm(world: World) -> Path:
    demonstrator = TerminalDemonstrator(TASKS)
    texts = []
    for instruction, demonstration, _ in demonstrator.demonstrate(seed=9, count=200):
        texts += [instruction, *(value for action in demonstration.actions for value in action.arguments.values())]
    _, start = make_tiny(texts, TinyConfig(tokenizer=TokenizerConfig(syllables=SYLLABLES)), root=world.policies)
    source = Source(demonstrator=demonstrator, kind=TaskKind.TERMINAL, tools=("bash", "submit"))
    warm_start(WarmStartConfig(gate=0.3, gate_every=10, max_seconds=90), [source], root=world.policies, start=start)
    latest = latest_version(world.policies, "tiny")
    assert latest is not None
    return latest[1]


STEADY = 6
"""A seed under which the policy writes no command that races with itself (`mkdir &mi` does: its two messages come in either
order), so that a run's bits depend on the run alone."""

if __name__ == "__main__":
    result = World(Path(sys.argv[1])).train(Path(sys.argv[2]), replace(GRPO, seed=STEADY, steps=int(sys.argv[3])))
    sys.stdout.write(f"{result.version.weights}\n")
