"""Splits a change into parts that each their own tests tell, by taking its pieces back one at a time.

The suite is that of the project after the change, its tests too. A run with every piece taken back is the code
before: what fails there and not after the change is FAIL_TO_PASS. A piece whose absence alone fails none of those is not
what they test: it stays in. Pieces that fail a common test belong together; what is left are groups that have nothing to
do with each other, a task each. A piece without which modules can not be imported tells nothing about tests: it goes to
the one group with which it can go, else all such pieces are a part of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from generators.repository.candidates import Judged, judge
from generators.repository.history.config import HistoryConfig
from generators.repository.history.pieces import FileChange, Piece, changed_count, patch, pieces_of, texts
from generators.repository.runs import Run, RunResult
from generators.repository.triage import Profile

RunMany = Callable[[list[Run]], list[RunResult]]
"""Makes runs of the suite of the project after the change, in order."""


@dataclass(frozen=True)
class Part:
    """Pieces of a change that are one task."""

    broken: Mapping[str, str | None]
    """Files as the agent finds them."""
    fixed: Mapping[str, str | None]
    """The same files after the change."""
    judged: Judged
    result: RunResult


@dataclass(frozen=True)
class Split:
    """What became of a change."""

    parts: tuple[Part, ...]
    fates: tuple[str, ...]
    """Why each part that is no task is none; `survived` for a change that no test tells."""


def split(files: Mapping[str, FileChange], profile: Profile, config: HistoryConfig, run: RunMany) -> Split:
    """The parts of a change that are tasks."""
    pieces = pieces_of(files, config.max_pieces)
    if len(pieces) > config.max_pieces:
        return Split((), ("too many pieces",))
    stable = tuple(profile.tests)
    alone = (
        [Run(key=str(number), files=texts(files, [piece])) for number, piece in enumerate(pieces)] if len(pieces) > 1 else []
    )
    whole, *single = run([Run(key="whole", files=texts(files, pieces), confirm=stable), *alone])
    judged = judged_whole(profile, whole, config)
    if judged.fault:
        return Split((), (judged.fault,))
    groups = _groups(files, pieces, single, judged.fail, run) if single else [frozenset(pieces)]
    known = {} if whole.errors else {frozenset(pieces): whole}  # that run was confirmed already
    return _confirmed(files, groups, known, profile, config, run)


def judged_whole(profile: Profile, result: RunResult, config: HistoryConfig) -> Judged:
    """`judge`, but for code that some tests can not even import, where the settings take those for failing."""
    judged = judge(profile, result)
    if judged.fault != "import" or not config.uncollected:
        return judged
    finished = result.finished and (result.again is None or result.again.finished)
    keep = tuple(name for name in profile.tests if name not in judged.fail) if result.again is None else judged.keep
    fault = "crash" if not finished else "survived" if not judged.fail else "" if keep else "nothing passes"
    return Judged(judged.fail, keep, fault)


def _groups(
    files: Mapping[str, FileChange], pieces: Sequence[Piece], single: Sequence[RunResult], fail: Sequence[str], run: RunMany
) -> list[frozenset[Piece]]:
    seen = {piece: frozenset(_missed(result, fail)) for piece, result in zip(pieces, single, strict=True)}
    imports = {piece for piece, result in zip(pieces, single, strict=True) if result.errors}
    groups = joined({piece: names for piece, names in seen.items() if names and piece not in imports})
    glue = [piece for piece in pieces if piece in imports and seen[piece]]
    if not groups and not glue:  # each alone is enough: only together do they show
        return [frozenset(pieces)]
    pairs = [(piece, index) for piece in glue for index in range(len(groups))]
    runs = [Run(key=str(key), files=texts(files, [*groups[index], piece])) for key, (piece, index) in enumerate(pairs)]
    wanted = [frozenset(name for piece in group for name in seen[piece]) for group in groups]
    fits: dict[Piece, list[int]] = {piece: [] for piece in glue}
    for (piece, index), result in zip(pairs, run(runs) if runs else [], strict=True):
        if not result.errors and wanted[index].issuperset(_missed(result, fail)):
            fits[piece].append(index)
    grown = [set(group) for group in groups]
    for piece, indices in fits.items():
        if len(indices) == 1:
            grown[indices[0]].add(piece)
    apart = {piece for piece, indices in fits.items() if not indices}
    found = [*grown, *([apart] if apart else [])]
    if len(found) == 1:  # no test needs a file to be gone, but who looks for what moved finds it where it was
        found[0] |= {piece for piece in pieces if files[piece.path].after is None}
    return [*map(frozenset, found)]


def joined(seen: Mapping[Piece, frozenset[str]]) -> list[frozenset[Piece]]:
    """Pieces in groups: two that share a test are in one. In the order of their first pieces."""
    groups: list[tuple[set[Piece], set[str]]] = []
    for piece in sorted(seen):
        touching = [group for group in groups if not group[1].isdisjoint(seen[piece])]
        merged = ({piece}.union(*(group[0] for group in touching)), set(seen[piece]).union(*(group[1] for group in touching)))
        groups = [group for group in groups if group not in touching] + [merged]
    return [frozenset(pieces) for pieces, _ in sorted(groups, key=lambda group: min(group[0]))]


def _confirmed(
    files: Mapping[str, FileChange],
    groups: Sequence[frozenset[Piece]],
    known: Mapping[frozenset[Piece], RunResult],
    profile: Profile,
    config: HistoryConfig,
    run: RunMany,
) -> Split:
    """Run each group that was not by itself, twice; those within the bounds that tests tell are parts."""
    fates: list[str] = []
    small: list[tuple[dict[str, str | None], RunResult | None]] = []
    for group in groups:
        broken = texts(files, group)
        fixed = _fixed(files, broken)
        long = changed_count(broken, fixed) > config.max_lines or len(patch(broken, fixed)) > config.max_characters
        if long or len(broken) > config.max_files:
            fates.append("too big")
        elif moved(broken, fixed):
            fates.append("moved")
        else:
            small.append((broken, known.get(group)))
    fresh = iter(twice([broken for broken, held in small if held is None], profile, run))
    parts = []
    for broken, held in small:
        result = held or next(fresh)
        judged = judged_whole(profile, result, config)
        if judged.fault:
            fates.append(judged.fault)
        else:
            parts.append(Part(broken, _fixed(files, broken), judged, result))
    return Split(tuple(parts), tuple(fates))


def moved(broken: Mapping[str, str | None], fixed: Mapping[str, str | None]) -> bool:
    """Whether a new file is for the most part one that the change removed: the agent has the text already, and is not told
    where it should be."""
    gone = {line for path, text in broken.items() if text and fixed[path] is None for line in _lines(text)}
    added = [_lines(text) for path, text in fixed.items() if text and broken[path] is None]
    return any(lines and 2 * sum(line in gone for line in lines) >= len(lines) for lines in added)


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _fixed(files: Mapping[str, FileChange], broken: Mapping[str, str | None]) -> dict[str, str | None]:
    return {path: files[path].after for path in broken}


def twice(versions: Sequence[Mapping[str, str | None]], profile: Profile, run: RunMany) -> list[RunResult]:
    """A run of each version with some files replaced, and where tests fail or are not collected a second in another order."""
    if not versions:
        return []
    stable = tuple(profile.tests)
    first = run([Run(key=str(number), files=files, confirm=stable) for number, files in enumerate(versions)])
    open_ = [number for number, result in enumerate(first) if result.errors and result.again is None]
    again = run([Run(key=str(number), files=versions[number], shuffle=1) for number in open_]) if open_ else []
    second = dict(zip(open_, again, strict=True))
    return [replace(result, again=second.get(number, result.again)) for number, result in enumerate(first)]


def _missed(result: RunResult, names: Iterable[str]) -> list[str]:
    return [name for name in names if result.states.get(name) != "passed"]
