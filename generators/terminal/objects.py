"""Skills that act on files and folders as wholes."""

from __future__ import annotations

from dataclasses import replace

from factory.core.files import EntryKind
from generators.names import Names
from generators.skill import Skill, Slots, without
from generators.terminal.state import FOLDER, Node, State, some_file, text_file


class Make(Skill[Node]):
    name = "make"
    slots = ("folder",)
    clauses = ("make the folder {folder}", "create a folder {folder}")
    sentence = "Make an empty folder with the name {folder}."
    command = "mkdir {folder}"
    near_misses = ("touch {folder}", "mkdir -p {folder}/{folder}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["folder"]: FOLDER}


class Write(Skill[Node]):
    name = "write"
    slots = ("word", "file")
    clauses = ("write {word} to the file {file}", "create {file} with the line {word}")
    sentence = "Create the file {file} with one line that reads {word}."
    command = "echo {word} > {file}"
    loose = ("file",)
    near_misses = ("echo {file} > {word}", "touch {file}", "echo {word} {word} > {file}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["file"]: text_file(slots["word"])}


class Copy(Skill[Node]):
    name = "copy"
    slots = ("source", "target")
    clauses = ("copy {source} to {target}", "duplicate {source} as {target}")
    sentence = "Copy the file {source} to the new file {target}."
    command = "cp {source} {target}"
    near_misses = ("mv {source} {target}", "ln -s {source} {target}", "touch {target}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["source"]: some_file(names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["target"]: state[slots["source"]]}


class Rename(Skill[Node]):
    name = "rename"
    slots = ("source", "target")
    clauses = ("rename {source} to {target}", "move {source} to {target}")
    sentence = "Rename the file {source} to {target}."
    command = "mv {source} {target}"
    near_misses = ("cp {source} {target}", "mkdir {target} && mv {source} {target}", "rm {source}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["source"]: some_file(names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**without(state, slots["source"]), slots["target"]: state[slots["source"]]}


class Delete(Skill[Node]):
    name = "delete"
    slots = ("file",)
    clauses = ("delete {file}", "remove the file {file}")
    sentence = "Delete the file {file}."
    command = "rm {file}"
    near_misses = ("echo -n > {file}", "mv {file} {file}.old", "rm -f *")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["file"]: some_file(names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return without(state, slots["file"])


class Run(Skill[Node]):
    name = "run"
    slots = ("file",)
    clauses = ("make {file} executable", "let {file} be run")
    sentence = "Make the file {file} executable."
    command = "chmod +x {file}"
    near_misses = ("chmod +w {file}", "echo >> {file} && chmod +x {file}", "chmod +x *")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["file"]: some_file(names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["file"]: replace(state[slots["file"]], executable=True)}


class Link(Skill[Node]):
    name = "link"
    slots = ("file", "link")
    clauses = ("link {link} to {file}", "make {link} a link to {file}")
    sentence = "Make {link} a symbolic link to the file {file}."
    command = "ln -s {file} {link}"
    near_misses = (
        "ln -s {link} {file}",
        "cp {file} {link}",
        "ln {file} {link}",
        "ln -sf {link} {link}",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["file"]: some_file(names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        return {**state, slots["link"]: Node(EntryKind.LINK, target=slots["file"])}


class Store(Skill[Node]):
    name = "store"
    slots = ("file", "folder")
    clauses = ("move {file} to the folder {folder}", "put {file} into the folder {folder}")
    sentence = "Move the file {file} into the folder {folder}, which is there already."
    command = "mv {file} {folder}"
    near_misses = ("cp {file} {folder}", "rm {file}", "mv {file} {folder}/{folder}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        return {slots["file"]: some_file(names), slots["folder"]: FOLDER}

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        file, folder = slots["file"], slots["folder"]
        return {**without(state, file), f"{folder}/{file}": state[file]}
