"""The terminal generator: a series of composed tasks from a seed."""

from __future__ import annotations

from collections.abc import Iterator

from factory.core.blobs import BlobStore, put_json
from factory.core.streams import stream
from factory.core.task import Candidate, EnvironmentSpec, Task, TaskKind, VerifierSpec
from generators.composition import compose
from generators.terminal.config import TerminalConfig
from generators.terminal.state import as_tree, bystanders
from generators.terminal.verifiers import asked, whole
from sandboxes.verification.bundles import bundle


class TerminalGenerator:
    """Candidates over generated file trees; the expected state is folded on a pure model, never run."""

    name = "terminal"
    version = "1"

    def __init__(self, config: TerminalConfig | None = None) -> None:
        self.config = config or TerminalConfig()

    def generate(self, blobs: BlobStore, *, seed: int, start: int, count: int) -> Iterator[Candidate]:
        """Candidates `start` to `start + count - 1` of the series of `seed`; every number gives one."""
        for number in range(start, start + count):
            rng = stream(seed, "terminal", "task", number)
            composition, names = compose(self.config, self.config.space.draw(rng), rng)
            states = composition.states({**bystanders(names), **composition.prepared(names)})
            task = Task(
                kind=TaskKind.TERMINAL,
                instruction=composition.instruction,
                environment=EnvironmentSpec(files=as_tree(states[0], blobs).save(blobs), limits=self.config.limits),
                verifier=VerifierSpec(bundle=bundle(blobs, checker="files", spec=asked(composition, states))),
                held_out=VerifierSpec(bundle=bundle(blobs, checker="files", spec=whole(composition, states))),
                solution=put_json(blobs, composition.demonstration.manifest()),
            )
            yield composition.candidate(task, version=self.version, seed=seed, number=number, evidence={})
