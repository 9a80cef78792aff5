"""Whole or not at all, and never another run's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from factory.core.errors import UserError
from trainer.checkpoints import Checkpoint, RunIdentity, load_checkpoint, save_checkpoint, settings_digest
from trainer.metrics import MetricsLog, read_metrics

IDENTITY = RunIdentity(config="a" * 64, policy="b" * 64, tasks="c" * 64, engine="float32", threads=1)


def checkpoint(step: int) -> Checkpoint:
    learner = {"model": {"w": torch.tensor([1 / 3, step])}, "optimiser": {"state": {}}, "steps": step}
    return Checkpoint(step=step, learner=learner, curriculum={"t": {"successes": 1 / 3}}, progress={"elapsed_s": 0.1})


def test_round_trip_is_exact_and_old_ones_go(tmp_path: Path) -> None:
    for step in (1, 2, 3, 10):
        save_checkpoint(tmp_path, checkpoint(step), IDENTITY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000003", "step-000010"]
    found = load_checkpoint(tmp_path, IDENTITY)
    assert found is not None
    assert found.step == 10 and found.learner["steps"] == 10
    assert torch.equal(found.learner["model"]["w"], torch.tensor([1 / 3, 10]))
    assert found.curriculum == {"t": {"successes": 1 / 3}} and found.progress == {"elapsed_s": 0.1}


def test_nothing_to_resume(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path / "absent", IDENTITY) is None


def test_what_a_kill_leaves_half_done_is_ignored_and_swept(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, checkpoint(1), IDENTITY)
    for name in (".writing-step-000002", ".removing-step-000000"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.pt").write_bytes(b"half")
    found = load_checkpoint(tmp_path, IDENTITY)
    assert found is not None and found.step == 1
    save_checkpoint(tmp_path, checkpoint(2), IDENTITY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000001", "step-000002"]


@pytest.mark.parametrize("name", ["config", "policy", "tasks", "threads"])
def test_another_run_is_refused_by_name(tmp_path: Path, name: str) -> None:
    save_checkpoint(tmp_path, checkpoint(1), IDENTITY)
    other = replace(IDENTITY, **{name: 2 if name == "threads" else "d" * 64})
    with pytest.raises(UserError, match=rf"resume\.{name}"):
        load_checkpoint(tmp_path, other)


def test_settings_digest_tells_floats_apart() -> None:
    assert settings_digest({"a": 0.1, "b": (1, None)}) == settings_digest({"b": [1, None], "a": 0.1})
    assert settings_digest({"a": 0.1}) != settings_digest({"a": 0.1 + 1e-17 + 2e-17})
    assert settings_digest({"a": 1.0}) != settings_digest({"a": 1})


def test_metrics_resume_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, after=0)
    for step in (1, 2, 3):
        log.append({"step": step, "loss": float("inf")})
    path.write_text(path.read_text() + '{"step": 4, "lo')  # a kill in the middle of a line
    MetricsLog(path, after=2).append({"step": 3, "loss": 1.0})
    assert read_metrics(path) == [{"step": 1, "loss": None}, {"step": 2, "loss": None}, {"step": 3, "loss": 1.0}]
    assert all(json.loads(line) for line in path.read_text().splitlines())
