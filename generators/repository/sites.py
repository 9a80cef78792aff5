"""Sites: every edit that the operators offer in a project, without equivalents and duplicates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from factory.core.streams import stream
from generators.repository.edits import MODULE, Edit
from generators.repository.forms import form_of
from generators.repository.scopes import ClassNames
from generators.repository.splices import Splice, splices_of
from generators.repository.units import Segment, Unit, lines_of, units_of

__all__ = ["Edit", "ProjectSites"]

IMPORT_SHARE = 0.15
"""Share of edits that are looked for in class bodies and at module level, as long as functions offer some too."""


class ProjectSites:
    """The edits of one project in the order of one seed, found as they are asked for.

    Units (functions, class bodies, statements of modules) take turns in a shuffled order, and each gives the edit whose
    operator was used least so far: neither long functions nor frequent operators drown the others. An edit counts when its unit
    compiles to something else than before, and no earlier edit gave that unit the same syntax tree.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        operators: tuple[str, ...],
        seed: int,
        project: str,
        *,
        import_share: float = IMPORT_SHARE,
    ) -> None:
        """`texts`: source files by path; those that do not parse offer nothing. `import_share`: see `IMPORT_SHARE`."""
        self.units = [(path, unit) for path in sorted(texts) for unit in units_of(texts[path])]
        self.functions = sum(unit.kind == "function" for _, unit in self.units)
        """Functions and methods of the project, nested ones counted with the one around them."""
        self._texts, self._operators, self._share = texts, operators, import_share
        self._random = stream(seed, "repository sites", project)
        order = list(range(len(self.units)))
        self._random.shuffle(order)
        self._turns = {
            importing: deque(index for index in order if (self.units[index][1].kind != "function") is importing)
            for importing in (False, True)
        }
        self._used = dict.fromkeys(operators, 0)
        self._opened: dict[int, UnitSites] = {}
        self._names: dict[tuple[str, tuple[int, int]], ClassNames] = {}
        self._given = [0, 0]
        self._accepted: list[Edit] = []

    def edit(self, number: int) -> Edit | None:
        """Edit `number` of the order, from 0; None past the end."""
        while len(self._accepted) <= number:
            found = self.next()
            if found is None:
                return None
            self._accepted.append(found)
        return self._accepted[number]

    def next(self) -> Edit | None:
        """The next edit that was not taken; None when all were."""
        given, importing = self._given
        first = importing + 1 <= self._share * (given + 1)
        for turn in (first, not first):
            units = self._turns[turn]
            while units:
                edit = self.take(units[0])
                if edit is None:
                    units.popleft()
                    continue
                units.rotate(-1)
                self._given = [given + 1, importing + turn]
                return edit
        return None

    def take(self, index: int) -> Edit | None:
        """The next edit of unit `index` that was not taken; None when all were."""
        if index not in self._opened:
            path, unit = self.units[index]
            opened = UnitSites(path, self._texts[path], unit, self._operators, self._owner(path, unit))
            self._random.shuffle(opened.splices)
            self._opened[index] = opened
        edit = self._opened[index].take(self._used)
        if edit is not None:
            self._used[edit.operator] += 1
        return edit

    def _owner(self, path: str, unit: Unit) -> ClassNames | None:
        if unit.owner is None:
            return None
        if (path, unit.owner) not in self._names:
            first, last = unit.owner
            self._names[path, unit.owner] = ClassNames("".join(lines_of(self._texts[path])[first - 1 : last]))
        return self._names[path, unit.owner]


class UnitSites:
    """The edits of one unit, judged when taken."""

    def __init__(self, path: str, text: str, unit: Unit, operators: Iterable[str], owner: ClassNames | None) -> None:
        self._path, self._text, self._unit = path, text, unit
        self._segment = Segment(text, unit)
        original = form_of(self._segment.text)
        self._code = original.code if original else ""
        self._known = {original.tree} if original else set()
        self.splices = list(splices_of(self._segment, unit, tuple(operators), owner)) if original else []

    def take(self, used: Mapping[str, int]) -> Edit | None:
        """The first remaining edit of an operator least used so far; None when none is left."""
        while self.splices:
            splice = min(self.splices, key=lambda one: used[one.operator])
            self.splices.remove(splice)
            original = self._segment.text
            form = form_of(original[: splice.start] + splice.new + original[splice.end :])
            if form is None or form.tree in self._known or form.code == self._code:
                continue
            edit = self._edit(splice, form.tree)
            if edit is not None:
                self._known.add(form.tree)
                return edit
        return None

    def _edit(self, splice: Splice, form: str) -> Edit | None:
        """The edit of the file; None where no tool call restores it: above the first line, or at the end of the last."""
        start, end, new = _trimmed(self._text, *self._segment.in_file(splice.start, splice.end, splice.new))
        line = self._text.count("\n", 0, start) + 1
        one_line = "\n" not in self._text[start:end] and "\n" not in new
        left = new or self._text[:start]
        at_end = end == len(self._text) and left.endswith("\n") != self._text.endswith("\n")
        if at_end or (line == 1 and not one_line):
            return None
        return Edit(
            operator=splice.operator,
            path=self._path,
            line=line,
            qualname=self._qualname(splice.qualname),
            start=start,
            end=end,
            new=new,
            one_line=one_line,
            function=(self._unit.first, self._unit.last),
            variant=splice.variant,
            import_time=self._unit.kind != "function" or splice.outside,
            form=form,
        )

    def _qualname(self, inner: str) -> str:
        """The unit's name with those of what is around the edit inside it."""
        if self._unit.kind == "module":
            return MODULE
        own = self._unit.qualname.rpartition(".")[2]
        rest = inner.removeprefix(own).removeprefix(".")
        return f"{self._unit.qualname}.{rest}" if rest else self._unit.qualname


def _trimmed(text: str, start: int, end: int, new: str) -> tuple[int, int, str]:
    """The same splice without what its ends have in common with the text, as far down in the text as it can stand."""
    first = 0
    while start + first < end and first < len(new) and text[start + first] == new[first]:
        first += 1
    start, new = start + first, new[first:]
    last = 0
    while start < end - last and last < len(new) and text[end - 1 - last] == new[-1 - last]:
        last += 1
    end, new = end - last, new[: len(new) - last]
    while end < len(text) and (text[start] == text[end] if not new else start == end and new[0] == text[start]):
        start, end, new = start + 1, end + 1, new[1:] + new[:1]
    return start, end, new
