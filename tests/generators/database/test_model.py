"""Each skill's meaning on the pure model against SQLite itself, and the bytes of a database."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from generators.database.model import Table, View, built, file_bytes, reaches
from generators.database.skills import SKILLS
from generators.names import Names, partition

TABLES = {
    "goods": Table((("label", "text"), ("price", "integer")), (("pen", 2), ("ink", None), ("pen", 2))),
    "empty": Table((("label", "text"),), ()),
}


def instance(family: str, number: int) -> tuple[dict[str, str], dict[str, Table | View]]:
    skill = SKILLS[family]
    names = Names(partition("database", 8)[0][0], random.Random(f"{family} {number}"))
    slots = {slot: names.fresh() for slot in skill.slots}
    return slots, skill.prepare(slots, names)


@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("family", SKILLS)
def test_the_reference_statement_reaches_the_modelled_state(family: str, number: int) -> None:
    skill = SKILLS[family]
    slots, start = instance(family, number)
    with closing(built(start)) as connection:
        assert reaches(connection, skill.command.format_map(slots), skill.apply(slots, start))
        assert not reaches(connection, "select 1", skill.apply(slots, start))


@pytest.mark.parametrize(
    ("statement", "reached"),
    [
        ("insert into empty values ('x')", True),
        ("insert into empty values (x'78')", False),
        ("insert into empty values ('x'), ('x')", False),
        ("insert into empty values ('y')", False),
        ("insert into empty values ('x'); select 1", False),
        ("create view empty2 as select 'x'", False),
        ("no sql at all", False),
    ],
)
def test_reaching_is_typed_exact_and_leaves_nothing_behind(statement: str, reached: bool) -> None:
    expected = {**TABLES, "empty": Table((("label", "text"),), (("x",),))}
    with closing(built(TABLES)) as connection:
        before = connection.serialize()
        assert reaches(connection, statement, expected) is reached
        assert connection.execute("select count(*) from empty").fetchone() == (0,)
        assert not connection.in_transaction and len(connection.serialize()) == len(before)


@pytest.mark.parametrize(
    ("statement", "reached"),
    [
        ("alter table empty add size integer", True),
        ('alter table empty add column "size" INTEGER', True),
        ('alter table empty add "size integer"', False),
        ('alter table empty add size "big integer"', False),
        ("alter table empty add size integer default 1", False),
        ("alter table empty add size integer check (size > 0)", False),
    ],
)
def test_a_column_is_what_sqlite_says_it_is(statement: str, reached: bool) -> None:
    expected = {**TABLES, "empty": Table((("label", "text"), ("size", "integer")), ())}
    with closing(built(TABLES)) as connection:
        assert reaches(connection, statement, expected) is reached


def test_an_ordered_view_is_compared_as_a_list() -> None:
    expected = {**TABLES, "line": View(("label",), (("ink",), ("pen",), ("pen",)), ordered=True)}
    with closing(built(TABLES)) as connection:
        assert reaches(connection, "create view line as select label from goods order by label", expected)
        assert not reaches(connection, "create view line as select label from goods order by label desc", expected)


def test_the_bytes_are_a_database_that_depends_on_the_state_alone(tmp_path: Path) -> None:
    with closing(built(TABLES)) as one, closing(built(dict(reversed(TABLES.items())))) as two:
        data = file_bytes(one)
        assert file_bytes(two) == data
    path = tmp_path / "data.db"
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        assert connection.execute("pragma page_size").fetchone() == (1024,)
        assert connection.execute("select * from goods").fetchall() == [("pen", 2), ("ink", None), ("pen", 2)]


def test_every_name_of_the_room_can_be_a_table_and_a_column() -> None:
    shared, reserved = partition("database", 8)
    with closing(sqlite3.connect(":memory:")) as connection:
        for name in (name for kind in (shared, reserved) for pool in kind for name in pool):
            connection.execute(f"create table {name} ({name} text)")
