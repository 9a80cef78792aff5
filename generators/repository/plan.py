"""The order in which a project's mutations are dealt out: single edits and such that belong together, in a stated mix."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from factory.core.streams import stream
from generators.repository.calls import Routine, call_edges
from generators.repository.composition import RELATIONS, Mix, Mutation, composed
from generators.repository.edits import Edit
from generators.repository.sites import ProjectSites

TRIES = 6
"""Units in which a partner of an edit is looked for."""


class MutationPlan:
    """The mutations of one project in the order of one seed, found as they are asked for.

    Each number draws a relation by the mix, an edit, and its partners. No edit is dealt twice; where there are no partners that
    go with it, it is a mutation by itself.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        operators: tuple[str, ...],
        seed: int,
        project: str,
        mix: Mix | None = None,
        roots: Sequence[str] = (".",),
    ) -> None:
        """`texts`: source files by path; `roots`: folders that modules are imported from."""
        self.mix = mix or Mix()
        self._texts, self._roots = texts, roots
        self._sites = ProjectSites(texts, operators, seed, project, import_share=self.mix.import_time)
        self._random = stream(seed, "repository mutations", project)
        self._spare: deque[Edit] = deque()
        self._edges: deque[tuple[int, int]] | None = None
        self._known: set[str] = set()
        self._accepted: list[Mutation] = []

    def mutation(self, number: int) -> Mutation | None:
        """Mutation `number` of the order, from 0; None past the end."""
        while len(self._accepted) <= number:
            found = self._next()
            if found is None:
                return None
            self._accepted.append(found)
        return self._accepted[number]

    def _next(self) -> Mutation | None:
        weights = [getattr(self.mix, name) for name in RELATIONS]
        relation = self._random.choices(RELATIONS, weights)[0]
        wanted = self._random.randint(2, self.mix.most)
        found = self._across_a_call() if relation == "call" else None
        while found is None:
            first = self._spare.popleft() if self._spare else self._sites.next()
            if first is None:
                return None
            found = (
                self._new([first], "single") if relation in ("single", "call") else self._with_partners(first, relation, wanted)
            )
        self._known.add(found.form)
        return found

    def _new(self, edits: Sequence[Edit], relation: str) -> Mutation | None:
        """The edits as a mutation that was not dealt yet."""
        made = composed(edits, relation, self._texts)
        return made if made is not None and made.form not in self._known else None

    def _with_partners(self, first: Edit, relation: str, wanted: int) -> Mutation | None:
        """The edit with up to `wanted - 1` others; what was drawn and does not go with it is dealt later."""
        edits = [first]
        made = self._new(edits, "single")
        for index in self._partners(first, relation):
            if len(edits) == wanted:
                break
            other = self._sites.take(index)
            if other is None:
                continue
            more = self._new([*edits, other], relation) if self._belongs(other, edits, relation) else None
            if more is None:
                self._spare.append(other)
            else:
                edits, made = [*edits, other], more
        return made

    def _partners(self, first: Edit, relation: str) -> list[int]:
        """Units in which partners of an edit are looked for."""
        found = [index for index, (path, unit) in enumerate(self._sites.units) if self._near(first, path, relation)]
        if relation == "function":
            own = [
                index
                for index in found
                if self._span(index) == first.function and self._sites.units[index][1].kind == "function"
            ]
            return own * TRIES
        others = [index for index in found if (self._sites.units[index][0], self._span(index)) != (first.path, first.function)]
        return self._random.sample(others, min(TRIES, len(others)))

    def _near(self, first: Edit, path: str, relation: str) -> bool:
        if relation == "package":
            return path != first.path and PurePosixPath(path).parent == PurePosixPath(first.path).parent
        return path == first.path

    def _span(self, index: int) -> tuple[int, int]:
        unit = self._sites.units[index][1]
        return unit.first, unit.last

    @staticmethod
    def _belongs(other: Edit, edits: Sequence[Edit], relation: str) -> bool:
        if relation == "package":
            return all(other.path != edit.path for edit in edits)
        if relation == "file":
            return all(other.function != edit.function for edit in edits)
        return True

    def _across_a_call(self) -> Mutation | None:
        """An edit of a caller with one of what it calls in another module; None when no such pair is left."""
        if self._edges is None:
            self._edges = deque(self._call_units())
            self._random.shuffle(self._edges)
        while self._edges:
            caller, callee = self._edges.popleft()
            pair = [edit for edit in (self._sites.take(caller), self._sites.take(callee)) if edit is not None]
            made = self._new(pair, "call") if len(pair) == 2 else None
            if made is not None:
                self._edges.append((caller, callee))
                return made
            self._spare += pair
        return None

    def _call_units(self) -> Iterator[tuple[int, int]]:
        """Units of callers and callees in different modules."""
        places = [Routine(path, unit.qualname) for path, unit in self._sites.units]
        counts = Counter(places)
        index = {place: number for number, place in enumerate(places) if counts[place] == 1}
        for caller, callee in call_edges(self._texts, self._roots):
            if caller.path != callee.path and caller in index and callee in index:
                yield index[caller], index[callee]
