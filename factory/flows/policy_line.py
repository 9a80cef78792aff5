"""The policy line: its first version, its warm start, and clients that sample it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factory.agent.contract import Sampling, TokenClient
from factory.agent.rollout import RolloutConfig
from factory.core.policy import PolicyVersion
from factory.core.streams import stream_seed
from factory.core.task import TaskKind
from factory.flows.workshop import Workshop
from factory.settings import section
from registry.policies import PolicyRow

if TYPE_CHECKING:
    from trainer.warmstart.demonstrations import Source

TOKENIZER_TEXTS = 4000
"""Demonstrations of each source that the tiny tokenizer counts words in."""
TRAIN = "train"


def ensure_policy(
    shop: Workshop, *, seed: int, withheld: frozenset[str], note: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Give the settings' line its first version where it has none, warm started unless servers serve it.

    `withheld` are split keys of the holdout: no demonstration carries any of them. Returns what was done.
    A killed warm start goes on from its checkpoint. `note` is told a line at every measurement.
    """
    line, served = shop.settings.policy.line, bool(shop.settings.policy.servers)
    held = shop.registry.latest_policy(line)
    if held is not None and (served or held.parent is not None):  # no parent: killed before its warm start was registered
        return {"policy": held.version.name, "made": False}
    version, folder = _first(shop, seed, withheld)
    if served:
        _register(shop, version, folder, parent=None)
        return {"policy": version.name, "made": True, "warm_started": False}
    return _warm_start(shop, version, folder, seed, withheld, note)


def _first(shop: Workshop, seed: int, withheld: frozenset[str]) -> tuple[PolicyVersion, Path]:
    settings = shop.settings.policy
    if settings.source == "tiny":
        from generators.names import SYLLABLES, WORDS
        from trainer.policies.tiny import TinyConfig, make_tiny
        from trainer.policies.tiny_tokenizer import TokenizerConfig

        names = TokenizerConfig(syllables=SYLLABLES, reserved=tuple(sorted(WORDS)))
        texts = _texts(sources(shop, withheld), seed)
        return make_tiny(texts, TinyConfig(tokenizer=names, seed=seed), root=shop.policies, line=settings.line)
    if settings.source == "smollm2":
        from trainer.policies.smollm2 import make_smollm2

        return make_smollm2(root=shop.policies, line=settings.line, cache=shop.cache / "wheels")
    from trainer.policies.storage import import_model

    return import_model(settings.source, settings.line, root=shop.policies)


def _texts(found: list[Source], seed: int) -> Iterator[str]:
    for number, source in enumerate(found):
        stream = source.demonstrator.demonstrate(seed=stream_seed(seed, "tokenizer", number), count=TOKENIZER_TEXTS)
        for instruction, demonstration, observations in islice(stream, TOKENIZER_TEXTS):
            yield instruction
            yield from observations
            for action in demonstration.actions:
                yield from action.arguments.values()


def sources(shop: Workshop, withheld: frozenset[str]) -> list[Source]:
    """A demonstrator for each kind that the settings generate, none of them with a key of the holdout."""
    from generators.database import DatabaseDemonstrator
    from generators.terminal import TerminalDemonstrator
    from trainer.warmstart.demonstrations import Source

    counts, shares = shop.settings.generate, shop.settings.policy.shares
    made: list[Source] = []
    if counts.terminal and shares.terminal:
        terminal = TerminalDemonstrator(shop.terminal, withheld=withheld)
        made.append(Source(demonstrator=terminal, kind=TaskKind.TERMINAL, tools=("bash", "submit"), share=shares.terminal))
    if counts.database and shares.database:
        database = DatabaseDemonstrator(shop.database, withheld=withheld)
        made.append(Source(demonstrator=database, kind=TaskKind.DATABASE, tools=("sql", "submit"), share=shares.database))
    if counts.repository and shares.repository:
        from generators.repository.demonstrations import RepositoryDemonstrator

        demonstrator = RepositoryDemonstrator(shop.repository, cache=shop.cache / "projects", withheld=withheld)
        tools = ("bash", "edit", "submit")
        made.append(Source(demonstrator=demonstrator, kind=TaskKind.REPOSITORY, tools=tools, share=shares.repository))
    return made


def _warm_start(
    shop: Workshop,
    version: PolicyVersion,
    folder: Path,
    seed: int,
    withheld: frozenset[str],
    note: Callable[[str], None],
) -> dict[str, Any]:
    from trainer.warmstart.config import WarmStartConfig
    from trainer.warmstart.training import WarmStart

    config = section(WarmStartConfig, {"seed": seed, **shop.settings.warmstart}, "warmstart")
    run = WarmStart(config, sources(shop, withheld), root=shop.policies, start=folder)
    progress = run.train(lambda measured: note(measured.line))
    warmed, warmed_folder = run.save()
    _register(shop, version, folder, parent=None)
    _register(shop, warmed, warmed_folder, parent=version)
    last = progress.curve[-1] if progress.curve else None
    return {
        "policy": warmed.name,
        "made": True,
        "warm_started": True,
        "ended": progress.ended,
        "steps": progress.step,
        "seconds": round(progress.seconds, 1),
        "pass_rate": last and last.pass_rate,
        "by_depth": last and last.by_depth,
    }


def _register(shop: Workshop, version: PolicyVersion, folder: Path, parent: PolicyVersion | None) -> None:
    from trainer.policies.storage import load_record

    path = folder.resolve().relative_to(shop.settings.data.resolve())
    shop.registry.add_policy(
        version, path=str(path), format=load_record(folder).format, parent=parent.weights if parent else None
    )


def folder_of(shop: Workshop, policy: PolicyRow) -> Path:
    """Where a version's weights are; paths in the registry are relative to the data folder."""
    return shop.settings.data / policy.path


def rollout_config(shop: Workshop, *, held_out: bool) -> RolloutConfig:
    """How the settings' policy is rolled out, with the held-out verifiers or without."""
    policy, sandbox = shop.settings.policy, shop.settings.sandbox
    return RolloutConfig(
        sampling=Sampling(temperature=policy.temperature, max_tokens=policy.max_tokens),
        invalid_calls=policy.invalid_calls,
        max_context=policy.max_context,
        workers=sandbox.workers,
        held_out=held_out,
    )


@contextmanager
def client_of(shop: Workshop, policy: PolicyRow) -> Iterator[TokenClient]:
    """A client that samples `policy`: the settings' servers, or vLLM in this process."""
    settings, folder = shop.settings.policy, folder_of(shop, policy)
    if settings.servers:
        from factory.agent.clients.http import ServerClient, ServerConfig
        from trainer.policies.storage import vocabulary

        config = ServerConfig(addresses=settings.servers, vocabulary=vocabulary(folder), max_context=settings.max_context)
        server = ServerClient(config, policy.version)
        try:
            yield server
        finally:
            server.close()
        return
    from factory.agent.clients.local import LocalClient, LocalConfig

    local = LocalClient(
        folder,
        policy.version,
        LocalConfig(dtype=settings.dtype, kv_cache_gib=settings.kv_cache_gib, max_context=settings.max_context),
    )
    try:
        yield local
    finally:
        local.close()
