"""All that a task ships against the reference sets: what it says, its files, its reference solution, its verifiers.

A file is screened once for each screen and content: the files of real projects, mounts and checkers are those of many
tasks. Short texts of one task are also compared together, since a reference may be spread over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from factory.core.assessment import Evidence
from factory.core.blobs import BlobStore, get_json
from factory.core.demonstration import Demonstration
from factory.core.digest import Digest, digest_of
from factory.core.errors import InvalidTask
from factory.core.files import EntryKind, FileTree
from factory.core.task import Candidate, Task
from filters.contamination.reading import FILE_BYTES, NOTATIONS, READER, Content, of_text, read
from filters.contamination.screen import ContaminationScreen, Findings, Match

SHOWN_UNREAD = 5
"""Most unread files that evidence names."""
OWN = "files"
"""The place of the environment's own tree."""
TOGETHER = "together"
"""The name of all that is too short on its own."""


@dataclass(frozen=True)
class Place:
    """One shipped file: the tree that it stands in, and its path there."""

    tree: str
    """`files`, a mount's path, `verifier` or `held-out verifier`."""
    path: str
    content: Digest

    def __str__(self) -> str:
        return f"{self.tree}/{self.path}"


@dataclass(frozen=True)
class FileFindings:
    """What the screen says of one file."""

    findings: Findings
    unread: str
    """What of it was not read, and why; empty when all was."""
    short: str
    """Its text where that is too short to judge on its own."""


@dataclass(kw_only=True)
class Judgement:
    """What the screen says of one task."""

    texts: dict[str, Findings] = field(default_factory=dict)
    """Of `text`, `instruction`, `solution`, and of all that is too short on its own `together`."""
    matched: list[tuple[Place, Findings]] = field(default_factory=list)
    """Files that match, or are for review."""
    screened: Counter[str] = field(default_factory=Counter)
    """Files read, by tree."""
    unread: list[tuple[Place, str]] = field(default_factory=list)
    """Files not read, or not wholly, with what and why."""
    judged: set[str] = field(default_factory=set)
    """Views in which the task's own content (not mounts, not verifiers) is long enough to say anything."""

    @property
    def too_short(self) -> bool:
        """Only exact forms could be compared: of what it says, its files and its solution, also taken together."""
        return not self.judged

    @property
    def found(self) -> list[tuple[str, Match]]:
        """Every match with where it is; those that reject first."""
        places = [*self.texts.items(), *((str(place), findings) for place, findings in self.matched)]
        matches = [(name, match) for name, findings in places for match in findings.matches]
        return sorted(matches, key=lambda one: not one[1].rejects)


class TaskScreen:
    """Screens tasks; findings of a file are kept for the life of this object. For one thread."""

    def __init__(self, screen: ContaminationScreen, blobs: BlobStore) -> None:
        self.screen, self.blobs = screen, blobs
        self.digest = digest_of({"screen": screen.digest, "reader": READER, "file_bytes": FILE_BYTES})
        self._known: dict[tuple[Digest, str], FileFindings] = {}

    @property
    def rule(self) -> str:
        """The rule in words."""
        return (
            f"{self.screen.rule}; of the instruction, the compared text, the solution and every shipped file that can be read"
        )

    @property
    def files(self) -> dict[str, int]:
        """How many different files were screened, and how many of them not read."""
        unread = sum(bool(one.unread) for one in self._known.values())
        return {"different": len(self._known), "different_unread": unread}

    def evidence(self, candidate: Candidate) -> Evidence:
        """Judge a candidate; any rejecting match of anything that it ships fails. Raises what `judge` raises."""
        judgement = self.judge(candidate)
        rejecting = [(name, match) for name, match in judgement.found if match.rejects]
        reason = ""
        if rejecting:
            name, best = rejecting[0]
            reason = (
                f"{name} matches {best.reference} {best.problem} ({best.part}) by {best.view}: Jaccard {best.jaccard:.2f}, "
                f"{best.contained:.2f} of the reference is in it"
            )
        data: dict[str, object] = {
            "screen": self.digest,
            "references": {reference.name: reference.digest for reference in self.screen.references},
            "too_short_to_judge": judgement.too_short,
            "judged": sorted(judgement.judged),
            "matches": [{"in": name, **match.record()} for name, match in judgement.found[: self.screen.config.shown]],
            "texts_too_short": [name for name, findings in judgement.texts.items() if findings.too_short],
            "files": dict(judgement.screened),
            "unread": dict(Counter(why for _, why in judgement.unread)),
            "unread_shown": [str(place) for place, _ in judgement.unread[:SHOWN_UNREAD]],
        }
        return Evidence(filter="contamination", rule=self.rule, passed=not rejecting, reason=reason, data=data)

    def judge(self, candidate: Candidate) -> Judgement:
        """Screen everything that `candidate` ships.

        Raises NotFound for content that is not stored, RegistryError for damaged, InvalidTask for what is no tree or solution.
        """
        task, judgement = candidate.task, Judgement()
        said = {"text": candidate.text, "instruction": task.instruction, "solution": self._solution(task)}
        judgement.texts = {name: self._findings(of_text(text)) for name, text in said.items()}
        short = [said[name] for name, findings in judgement.texts.items() if findings.too_short]
        for findings in judgement.texts.values():
            judgement.judged |= findings.judged
        for place in self._places(task):
            found = self._file(place)
            if found.unread:
                judgement.unread.append((place, found.unread))
            judgement.screened[place.tree] += found.findings is not UNREAD
            if found.findings.matches:
                judgement.matched.append((place, found.findings))
            if place.tree == OWN:
                judgement.judged |= found.findings.judged
                short += [found.short] if found.short else []
        if len(short) > 1:
            judgement.texts[TOGETHER] = together = self.screen.findings("\n\n".join(short))
            judgement.judged |= together.judged
        return judgement

    def _file(self, place: Place) -> FileFindings:
        ending = place.path.rpartition(".")[2].lower()
        key = place.content, ending if ending in NOTATIONS else ""
        if key not in self._known:
            content = read(self.blobs.get(place.content), place.path)
            findings = self._findings(content) if content.texts or content.values else UNREAD
            short = "\n".join(content.texts) if findings.too_short else ""
            self._known[key] = FileFindings(findings, content.unread, short)
        return self._known[key]

    def _findings(self, content: Content) -> Findings:
        return Findings.together([*map(self.screen.findings, content.texts), *map(self.screen.same, content.values)])

    def _solution(self, task: Task) -> str:
        with _reading("the solution"):
            actions = Demonstration.from_manifest(get_json(self.blobs, task.solution)).actions
            return "\n".join(value for action in actions for value in action.arguments.values())

    def _places(self, task: Task) -> Iterator[Place]:
        """Every file that the task ships."""
        trees = {OWN: task.environment.files}
        trees |= {mount.path: mount.tree for mount in task.environment.mounts}
        trees["verifier"] = task.verifier.bundle
        if task.held_out is not None:
            trees["held-out verifier"] = task.held_out.bundle
        for name, digest in trees.items():
            with _reading(f"the tree of {name}"):
                tree = FileTree.load(self.blobs, digest)
            for path, entry in tree.items():
                if entry.kind is EntryKind.FILE and entry.content is not None:
                    yield Place(name, path, entry.content)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """A stored value of another form than its task says is a fault of the task."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise InvalidTask(f"{what} cannot be read: {error}") from None


UNREAD = Findings.of((), ())
"""Of a file of which nothing could be read."""
