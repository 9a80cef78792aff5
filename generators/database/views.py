"""Skills whose answer is a saved view: judged by what it shows on this database and on others like it."""

from __future__ import annotations

from collections import Counter

from generators.database.changes import table_at, text_table
from generators.database.model import Row, State, Table, View
from generators.names import Names
from generators.skill import Skill, Slots


class Pick(Skill[Table | View]):
    name = "pick"
    slots = ("view", "column", "table", "key", "word")
    clauses = (
        "make the view {view} of {column} in {table} where {key} is {word}",
        "save the {column} of {table} where {key} is {word} as the view {view}",
    )
    sentence = "Create a view {view} that shows the column {column} of those rows of {table} where {key} is '{word}'."
    command = "create view {view} as select {column} from {table} where {key} = '{word}'"
    near_misses = (
        "create view {view} as select {column} from {table}",
        "create view {view} as select distinct {column} from {table} where {key} = '{word}'",
        "create view {view} as select {key} from {table} where {key} = '{word}'",
        "create view {view} as select {column} from {table} where {key} <> '{word}'",
        "create table {view} as select {column} from {table} where {key} = '{word}'",
        "create view {view} as select * from {table} where {key} = '{word}'",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        word, twice = slots["word"], names.word()
        rows: list[Row] = [(word, twice), (word, twice), (word, names.word())]
        rows += [(names.word(), names.word()) for _ in range(names.rng.randint(2, 4))]
        return {slots["table"]: text_table(slots["key"], slots["column"], rows=rows, names=names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        rows = tuple((value,) for key, value in table_at(state, slots["table"]).rows if key == slots["word"])
        return {**state, slots["view"]: View((slots["column"],), rows)}


class Total(Skill[Table | View]):
    name = "total"
    slots = ("view", "amount", "key", "table")
    clauses = (
        "make the view {view} of {key} and the sum of {amount} in {table}",
        "save each {key} of {table} with its sum of {amount} as the view {view}",
    )
    sentence = "Create a view {view} that shows each {key} of the table {table} once, with the sum of its {amount} beside it."
    command = "create view {view} as select {key}, sum({amount}) from {table} group by {key}"
    near_misses = (
        "create view {view} as select {key}, count({amount}) from {table} group by {key}",
        "create view {view} as select {key}, max({amount}) from {table} group by {key}",
        "create view {view} as select {key}, total({amount}) from {table} group by {key}",
        "create view {view} as select {key}, sum({amount}) from {table}",
        "create view {view} as select {key}, {amount} from {table}",
        "create view {view} as select sum({amount}), {key} from {table} group by {key}",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        keys = [names.fresh() for _ in range(3)]
        rows: list[Row] = [(key, names.rng.randint(2, 99)) for key in keys for _ in range(names.rng.randint(1, 3))]
        rows.append((keys[0], names.rng.randint(2, 99)))
        names.rng.shuffle(rows)
        return {slots["table"]: Table(((slots["key"], "text"), (slots["amount"], "integer")), tuple(rows))}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        sums: Counter[str] = Counter()
        for key, amount in table_at(state, slots["table"]).rows:
            assert isinstance(key, str) and isinstance(amount, int)
            sums[key] += amount
        return {**state, slots["view"]: View((slots["key"], None), tuple(sums.items()))}


class Tally(Skill[Table | View]):
    name = "tally"
    slots = ("view", "key", "table", "other")
    clauses = (
        "make the view {view} of {key} and the count of rows in {table}",
        "save each {key} of {table} with its count of rows as the view {view}",
    )
    sentence = "Create a view {view} that shows each {key} of the table {table} once, with the number of its rows beside it."
    command = "create view {view} as select {key}, count(*) from {table} group by {key}"
    near_misses = (
        "create view {view} as select {key}, count({other}) from {table} group by {key}",
        "create view {view} as select {key}, count(distinct {other}) from {table} group by {key}",
        "create view {view} as select {key}, count(*) from {table}",
        "create view {view} as select {key} from {table} group by {key}",
        "create view {view} as select count(*), {key} from {table} group by {key}",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        keys = [names.fresh() for _ in range(3)]
        rows: list[Row] = [(key, names.word()) for key in keys for _ in range(names.rng.randint(1, 3))]
        rows.append((keys[0], None))
        return {slots["table"]: text_table(slots["key"], slots["other"], rows=rows, names=names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        counts = Counter(row[0] for row in table_at(state, slots["table"]).rows)
        return {**state, slots["view"]: View((slots["key"], None), tuple(counts.items()))}


class Pairs(Skill[Table | View]):
    name = "pairs"
    slots = ("view", "left", "right", "first", "second", "key")
    clauses = (
        "make the view {view} of {left} and {right} in {first} and {second} with the same {key}",
        "save {left} and {right} of {first} and {second} joined on {key} as the view {view}",
    )
    sentence = (
        "Create a view {view} that shows {left} of the table {first} beside {right} of the table {second} "
        "for every two rows with the same {key}."
    )
    command = "create view {view} as select {left}, {right} from {first} join {second} using ({key})"
    near_misses = (
        "create view {view} as select {left}, {right} from {first}, {second}",
        "create view {view} as select {left}, {right} from {first} left join {second} using ({key})",
        "create view {view} as select {left}, {right} from {second} left join {first} using ({key})",
        "create view {view} as select {right}, {left} from {first} join {second} using ({key})",
        "create view {view} as select distinct {left}, {right} from {first} join {second} using ({key})",
        "create view {view} as select * from {first} join {second} using ({key})",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        shared, only_first, only_second = ([names.fresh() for _ in range(count)] for count in (2, 1, 1))
        left: list[Row] = [(key, names.word()) for key in (*shared, *only_first)]
        right: list[Row] = [(key, names.word()) for key in (*shared, shared[0], *only_second)]
        left.append(left[1])
        return {
            slots["first"]: text_table(slots["key"], slots["left"], rows=left, names=names),
            slots["second"]: text_table(slots["key"], slots["right"], rows=right, names=names),
        }

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        first, second = (table_at(state, slots[slot]).rows for slot in ("first", "second"))
        rows = tuple((left, right) for key, left in first for other, right in second if key == other)
        return {**state, slots["view"]: View((slots["left"], slots["right"]), rows)}


class Ranked(Skill[Table | View]):
    name = "ranked"
    slots = ("view", "column", "table", "other")
    clauses = (
        "make the view {view} of the sorted {column} in {table}",
        "save {column} of {table} in order as the view {view}",
    )
    sentence = "Create a view {view} that shows the column {column} of the table {table} in alphabetical order."
    command = "create view {view} as select {column} from {table} order by {column}"
    near_misses = (
        "create view {view} as select {column} from {table}",
        "create view {view} as select {column} from {table} order by {column} desc",
        "create view {view} as select {column} from {table} order by {other}",
        "create view {view} as select distinct {column} from {table} order by {column}",
        "create view {view} as select {other} from {table} order by {column}",
    )

    def prepare(self, slots: Slots, names: Names) -> dict[str, Table | View]:
        rows: list[Row] = [(names.word(), names.word()) for _ in range(names.rng.randint(4, 6))]
        rows.append((names.word(), rows[0][1]))
        return {slots["table"]: text_table(slots["other"], slots["column"], rows=rows, names=names)}

    def apply(self, slots: Slots, state: State) -> dict[str, Table | View]:
        values = sorted(str(row[1]) for row in table_at(state, slots["table"]).rows)
        return {**state, slots["view"]: View((slots["column"],), tuple((value,) for value in values), ordered=True)}
