"""Skills that act on the lines of files."""

from __future__ import annotations

from generators.names import Names
from generators.skill import Skill, Slots
from generators.terminal.state import Node, State, lines_of, some_file, text_file


def uneven_file(names: Names) -> Node:
    """Distinct lines, neither sorted nor in reverse order."""
    while True:
        node = some_file(names, least=3, most=6)
        lines = lines_of(node)
        if lines != sorted(lines) and lines != sorted(lines, reverse=True):
            return node


def file_with(word: str, names: Names) -> Node:
    """Lines of which one or two hold `word`, once each, and at least one does not; the first line does not."""
    others = [f"{names.word()} {names.word()}" for _ in range(names.rng.randint(1, 3))]
    holding = [f"{word} {names.word()}", f"{names.word()} {word}"][: names.rng.randint(1, 2)]
    rest = others[1:] + holding
    names.rng.shuffle(rest)
    return text_file(others[0], *rest)


class Append(Skill[Node]):
    name = "append"
    slots = ("word", "file")
    clauses = ("append {word} to {file}", "add the line {word} to {file}")
    sentence = "Add the line {word} at the end of the file {file}."
    command = "echo {word} >> {file}"
    loose = ("file",)
    near_misses = ("echo {word} > {file}", "echo {file} >> {word}", "echo -n {word} {word} >> {file}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["file"]: some_file(names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["file"]: text_file(*lines_of(state[slots["file"]]), slots["word"])}


class Replace(Skill[Node]):
    name = "replace"
    slots = ("old", "new", "file")
    clauses = ("replace {old} with {new} in {file}", "change {old} to {new} in {file}")
    sentence = "Replace the word {old} by {new} wherever it stands in the file {file}."
    command = "sed -i s/{old}/{new}/ {file}"
    near_misses = ("sed -i s/{new}/{old}/ {file}", "echo {new} > {file}", "sed -i s/{old}// {file}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["file"]: file_with(slots["old"], names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        lines = [
            " ".join(slots["new"] if word == slots["old"] else word for word in line.split(" "))
            for line in lines_of(state[slots["file"]])
        ]
        return {**state, slots["file"]: text_file(*lines)}


class Join(Skill[Node]):
    name = "join"
    slots = ("first", "second", "target")
    clauses = ("join {first} and {second} into {target}", "put {first} and {second} together in {target}")
    sentence = "Write the lines of the file {first}, followed by those of {second}, to the new file {target}."
    command = "cat {first} {second} > {target}"
    loose = ("target",)
    near_misses = ("cat {second} {first} > {target}", "cat {first} > {target}", "cat {first} >> {second}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        first = some_file(names)
        while (second := some_file(names)) == first:
            pass
        return {slots["first"]: first, slots["second"]: second}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        lines = [line for slot in ("first", "second") for line in lines_of(state[slots[slot]])]
        return {**state, slots["target"]: text_file(*lines)}


class Count(Skill[Node]):
    name = "count"
    slots = ("source", "target")
    clauses = ("count the lines of {source} into {target}", "write how many lines {source} has to {target}")
    sentence = "Write the number of lines of the file {source}, and nothing else, to the new file {target}."
    command = "wc -l < {source} > {target}"
    loose = ("target",)
    near_misses = ("wc -l {source} > {target}", "wc -c < {source} > {target}", "echo 1 > {target}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["source"]: some_file(names, most=9)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["target"]: text_file(str(len(lines_of(state[slots["source"]]))))}


class Sort(Skill[Node]):
    name = "sort"
    slots = ("source", "target")
    clauses = ("sort {source} into {target}", "write the sorted lines of {source} to {target}")
    sentence = "Write the lines of the file {source} in alphabetical order to the new file {target}."
    command = "sort {source} > {target}"
    loose = ("target",)
    near_misses = ("sort -r {source} > {target}", "cp {source} {target}", "sort {source} -o {source}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["source"]: uneven_file(names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["target"]: text_file(*sorted(lines_of(state[slots["source"]])))}


class Reverse(Skill[Node]):
    name = "reverse"
    slots = ("source", "target")
    clauses = ("reverse {source} into {target}", "write the lines of {source} backwards to {target}")
    sentence = "Write the lines of the file {source}, the last one first, to the new file {target}."
    command = "tac {source} > {target}"
    loose = ("target",)
    near_misses = ("rev {source} > {target}", "sort -r {source} > {target}", "cp {source} {target}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["source"]: uneven_file(names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["target"]: text_file(*reversed(lines_of(state[slots["source"]])))}


class Match(Skill[Node]):
    name = "match"
    slots = ("word", "source", "target")
    clauses = ("write the lines of {source} with {word} to {target}", "find {word} in {source} and keep its lines in {target}")
    sentence = "Write those lines of the file {source} that contain the word {word} to the new file {target}."
    command = "grep {word} {source} > {target}"
    loose = ("target",)
    near_misses = ("grep -v {word} {source} > {target}", "cp {source} {target}", "echo {word} > {target}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["source"]: file_with(slots["word"], names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        lines = [line for line in lines_of(state[slots["source"]]) if slots["word"] in line.split(" ")]
        return {**state, slots["target"]: text_file(*lines)}


class First(Skill[Node]):
    name = "first"
    slots = ("source", "target")
    clauses = ("write the first line of {source} to {target}", "keep the top line of {source} in {target}")
    sentence = "Write the first line of the file {source} to the new file {target}."
    command = "head -1 {source} > {target}"
    loose = ("target",)
    near_misses = ("tail -1 {source} > {target}", "head -2 {source} > {target}", "cp {source} {target}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["source"]: some_file(names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["target"]: text_file(lines_of(state[slots["source"]])[0])}
