"""Skills that change tables: judged by the full state of the database that the agent leaves."""

from __future__ import annotations

from generators.database.model import Row, State, Table, View
from generators.names import Names
from generators.skill import Skill, Slots, without


def text_table(*columns: str, rows: list[Row], names: Names) -> Table:
    """A table of text columns with its rows shuffled."""
    names.rng.shuffle(rows)
    return Table(tuple((column, "text") for column in columns), tuple(rows))


def some_rows(names: Names, least: int, most: int) -> list[Row]:
    """Rows of two words that no slot names."""
    return [(names.word(), names.word()) for _ in range(names.rng.randint(least, most))]


def table_at(state: State, name: str) -> Table:
    """The table of that name."""
    table = state[name]
    assert isinstance(table, Table)
    return table


class Update(Skill[Table | View]):
    name = "update"
    slots = ("table", "column", "value", "key", "word")
    clauses = (
        "set {column} to {value} in {table} where {key} is {word}",
        "in {table} where {key} is {word} change {column} to {value}",
    )
    sentence = "In the table {table}, set {column} to '{value}' in the rows where {key} is '{word}'."
    command = "update {table} set {column} = '{value}' where {key} = '{word}'"
    near_misses = (
        "update {table} set {column} = '{value}'",
        "update {table} set {key} = '{value}' where {key} = '{word}'",
        "update {table} set {column} = '{value}' where {key} <> '{word}'",
        "update {table} set {column} = '{word}' where {key} = '{word}'",
        "delete from {table} where {key} = '{word}'",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        rows = some_rows(names, 3, 5) + [(slots["word"], names.word()) for _ in range(names.rng.randint(1, 2))]
        return {slots["table"]: text_table(slots["key"], slots["column"], rows=rows, names=names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        table = table_at(state, slots["table"])
        rows = tuple((key, slots["value"] if key == slots["word"] else value) for key, value in table.rows)
        return {**state, slots["table"]: Table(table.columns, rows)}


class Remove(Skill[Table | View]):
    name = "remove"
    slots = ("table", "key", "word", "other")
    clauses = ("remove the rows of {table} where {key} is {word}", "delete from {table} where {key} is {word}")
    sentence = "Delete the rows of the table {table} where {key} is '{word}'."
    command = "delete from {table} where {key} = '{word}'"
    near_misses = (
        "delete from {table}",
        "delete from {table} where {key} <> '{word}'",
        "delete from {table} where {other} = '{word}'",
        "update {table} set {key} = null where {key} = '{word}'",
        "drop table {table}",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        word = slots["word"]
        rows = [*some_rows(names, 2, 4), (names.word(), word)]
        rows += [(word, names.word()) for _ in range(names.rng.randint(1, 2))]
        return {slots["table"]: text_table(slots["key"], slots["other"], rows=rows, names=names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        table = table_at(state, slots["table"])
        return {**state, slots["table"]: Table(table.columns, tuple(row for row in table.rows if row[0] != slots["word"]))}


class Insert(Skill[Table | View]):
    name = "insert"
    slots = ("table", "first", "second", "left", "right")
    clauses = ("insert {first} and {second} into {table}", "add the row {first} and {second} to {table}")
    sentence = "Add one row to the table {table}: '{first}' in its first column and '{second}' in its second."
    command = "insert into {table} values ('{first}', '{second}')"
    near_misses = (
        "insert into {table} values ('{second}', '{first}')",
        "insert into {table} values ('{first}', '{second}'), ('{first}', '{second}')",
        "insert into {table} ({left}) values ('{first}')",
        "update {table} set {left} = '{first}', {right} = '{second}'",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        return {slots["table"]: text_table(slots["left"], slots["right"], rows=some_rows(names, 2, 5), names=names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        table = table_at(state, slots["table"])
        return {**state, slots["table"]: Table(table.columns, (*table.rows, (slots["first"], slots["second"])))}


class Column(Skill[Table | View]):
    name = "column"
    slots = ("table", "column", "left", "right")
    clauses = ("add the text column {column} to {table}", "give {table} a text column {column}")
    sentence = "Add a column {column} of type text, without values, to the table {table}."
    command = "alter table {table} add {column} text"
    near_misses = (
        "alter table {table} add {column} integer",
        'alter table {table} add "{column} text"',
        "alter table {table} add {column} text default '{table}'",
        "alter table {table} rename {right} to {column}",
        "create table {column} as select * from {table}",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        return {slots["table"]: text_table(slots["left"], slots["right"], rows=some_rows(names, 2, 5), names=names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        table = table_at(state, slots["table"])
        rows = tuple((*row, None) for row in table.rows)
        return {**state, slots["table"]: Table((*table.columns, (slots["column"], "text")), rows)}


class Retitle(Skill[Table | View]):
    name = "retitle"
    slots = ("table", "title", "left", "right")
    clauses = ("rename the table {table} to {title}", "give the table {table} the title {title}")
    sentence = "Rename the table {table} to {title}."
    command = "alter table {table} rename to {title}"
    near_misses = (
        "create table {title} as select * from {table}",
        "create view {title} as select * from {table}",
        "alter table {table} rename {left} to {title}",
        "drop table {table}",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        return {slots["table"]: text_table(slots["left"], slots["right"], rows=some_rows(names, 2, 5), names=names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        return {**without(state, slots["table"]), slots["title"]: state[slots["table"]]}


class Drop(Skill[Table | View]):
    name = "drop"
    slots = ("table", "left", "right")
    clauses = ("drop the table {table}", "remove the table {table}")
    sentence = "Remove the table {table} from the database."
    command = "drop table {table}"
    near_misses = ("delete from {table}", "alter table {table} drop {left}", "alter table {table} rename to old_{table}")

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        return {slots["table"]: text_table(slots["left"], slots["right"], rows=some_rows(names, 2, 5), names=names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        return without(state, slots["table"])
