"""The checker of databases: typed multisets, views on other data, and hostile files."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes.verification.checkers import load, load_module

check = load("database")
reader = load_module("database_reader")

SETUP = """
create table goods (label text, price integer);
insert into goods values ('pen', 2), ('pen', 2), ('ink', 7);
create table notes (body text, mark integer);
insert into notes values ('a', null), ('b', 5);
"""
SOLVED = (
    "insert into goods values ('cap', 9);"
    "create view sums as select label, sum(price) from goods group by label;"
    "create view line as select price from goods order by price;"
)
OTHER = "create table goods (label text, price integer); insert into goods values ('pen', 1), ('nib', 4), ('nib', 8);"


def shape(*columns: tuple[str, str]) -> dict[str, Any]:
    """What the library says of a table without constraints."""
    return {"columns": [[name, kind, 0, None, 0, 0] for name, kind in columns], "indexes": [], "references": []}


OBJECTS: dict[str, Any] = {
    "goods": {
        "type": "table",
        "sql": "create table goods (label text, price integer)",
        **shape(("label", "text"), ("price", "integer")),
        "rows": [["cap", 9], ["pen", 2], ["ink", 7], ["pen", 2]],
    },
    "notes": {
        "type": "table",
        "sql": "create table notes (body text, mark integer)",
        **shape(("body", "text"), ("mark", "integer")),
        "rows": [["a", None], ["b", 5]],
    },
    "sums": {"type": "view", "columns": ["label", None], "ordered": False, "rows": [["pen", 4], ["ink", 7], ["cap", 9]]},
    "line": {"type": "view", "columns": ["price"], "ordered": True, "rows": [[2], [2], [7], [9]]},
}
STEPS = [
    {"name": "1 insert", "objects": ["goods"]},
    {"name": "2 sums", "objects": ["sums"]},
    {"name": "3 line", "objects": ["line"]},
]
ON_OTHER = {"sums": [["nib", 12], ["pen", 1]], "line": [[1], [4], [8]]}
VIEWS = ("asked", "whole")


def run(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a submission that is as asked for, and a bundle with one other database."""
    for name in ("submission", "bundle", "scratch"):
        (tmp_path / name).mkdir()
    run(tmp_path / "submission" / "data.db", SETUP + SOLVED)
    run(tmp_path / "bundle" / "other.db", OTHER)
    return tmp_path


def graded(place: Path, view: str) -> list[dict[str, str]]:
    spec = {"view": view, "objects": OBJECTS, "steps": STEPS, "others": [{"file": "other.db", "rows": ON_OTHER}]}
    return check(spec, str(place / "submission"), str(place / "bundle"), str(place / "scratch"))


def states(place: Path, view: str) -> dict[str, str]:
    return {result["name"]: result["state"] for result in graded(place, view)}


def again(place: Path, script: str) -> None:
    """The submission anew, from the start and `script` alone."""
    (place / "submission" / "data.db").unlink()
    run(place / "submission" / "data.db", SETUP + script)


def test_each_view_names_its_checks_and_passes_the_asked_for_database(place: Path) -> None:
    assert states(place, "asked") == dict.fromkeys(
        ("1 insert", "2 sums", "3 line", "views on other data", "nothing else changed"), "passed"
    )
    assert states(place, "whole") == dict.fromkeys(("objects", "rows", "views", "health"), "passed")


def test_the_untouched_database_fails_what_was_asked_for_alone(place: Path) -> None:
    again(place, "")
    found = states(place, "asked")
    assert found.pop("nothing else changed") == "passed"
    assert set(found.values()) == {"failed"}


def test_another_way_of_writing_the_same_answer_passes(place: Path) -> None:
    again(
        place,
        """INSERT INTO "goods" (price, label) VALUES (9, 'cap'); CREATE VIEW line AS SELECT price FROM goods ORDER BY 1;
        CREATE VIEW sums AS WITH names AS (SELECT DISTINCT label FROM goods)
        SELECT label, (SELECT sum(price) FROM goods WHERE goods.label = names.label) AS s FROM names;""",
    )
    assert set(states(place, "asked").values()) | set(states(place, "whole").values()) == {"passed"}


SAME = {
    "quotes and spacing": 'CREATE TABLE "notes"(\n  [body]  TEXT,`mark`INTEGER)',
    "comments": "create table notes (body /* what, (it) says */ text, -- and\n mark integer)",
    "a column added": "create table notes (body text); alter table notes add column MARK Integer",
    "a column renamed": "create table notes (body text, number integer); alter table notes rename column number to mark",
    "a table renamed": "create table jots (body text, mark integer); alter table jots rename to notes",
}


@pytest.mark.parametrize("same", SAME)
def test_another_way_of_writing_the_same_table_passes(place: Path, same: str) -> None:
    again(place, f"{SOLVED} drop table notes; {SAME[same]}; insert into notes values ('a', null), ('b', 5);")
    assert set(states(place, "asked").values()) | set(states(place, "whole").values()) == {"passed"}


OTHER_TABLES = {
    "a name that holds the type": 'create table notes (body text, "mark integer")',
    "a name that holds all": 'create table notes (body text); alter table notes add "mark integer"',
    "a type that holds the type": 'create table notes (body text, mark "big integer")',
    "two types in one": 'create table notes ("body text", mark integer)',
    "a name that holds two columns": 'create table notes ("body text, mark integer")',
    "a default": "create table notes (body text, mark integer default 5)",
    "not null": "create table notes (body text not null, mark integer)",
    "a key": "create table notes (body text primary key, mark integer)",
    "a reference": "create table notes (body text references goods, mark integer)",
    "a check": "create table notes (body text, mark integer check (mark <> 7))",
    "a collation": "create table notes (body text collate nocase, mark integer)",
    "strict": "create table notes (body text, mark integer) strict",
}


@pytest.mark.attack
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("other", OTHER_TABLES)
def test_a_table_that_is_another_one_fails(place: Path, other: str, view: str) -> None:
    values = "('b') , ('a')" if "two columns" in other else "('b', 5), ('a', null)"
    if other == "not null":
        values = "('b', 5), ('a', 5)"
    again(place, f"{SOLVED} drop table notes; {OTHER_TABLES[other]}; insert into notes values {values};")
    found = states(place, view)
    assert found["nothing else changed" if view == "asked" else "objects"] == "failed"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('create table "A b" ([c D] text)', ["create", "table", "a b", "(", "c d", "text", ")"]),
        ("x DEFAULT 'A  b''\"c'", ["x", "default", "'A  b''\"c'"]),
        ("'a' 'A'", ["'a'", "'A'"]),
        ('"a""b" `c``d` [e""f]', ['a""b', "c``d", 'e""f']),
        ("a -- b ' c\n/* d \" e */ f--", ["a", "f"]),
        ("a||b<=-1.5e3", ["a", "|", "|", "b", "<", "=", "-", "1", ".", "5e3"]),
        ("'open", ["'open"]),
        ("", []),
    ],
)
def test_the_parts_of_a_definition(text: str, tokens: list[str]) -> None:
    assert reader._tokens(text) == tokens


def test_journal_modes_do_not_matter(place: Path) -> None:
    run(place / "submission" / "data.db", "pragma journal_mode = wal; vacuum;")
    assert set(states(place, "asked").values()) == {"passed"}


SUMS = "create view sums as select label, sum(price) from goods group by label;"
LINE = "create view line as select price from goods order by price;"
CAP = "insert into goods values ('cap', 9);"
WRONG = {
    "answers written down": CAP + LINE + "create view sums as values ('pen', 4), ('ink', 7), ('cap', 9);",
    "a table in place of a view": CAP + LINE + "create table sums as select label, sum(price) from goods group by label;",
    "sums as floating numbers": CAP + LINE + "create view sums as select label, total(price) from goods group by label;",
    "sums as text": CAP + LINE + "create view sums as select label, cast(sum(price) as text) from goods group by label;",
    "one column more": CAP + LINE + "create view sums as select label, sum(price), 1 from goods group by label;",
    "another column's name": CAP + LINE + "create view sums as select label as name, sum(price) from goods group by label;",
    "duplicates dropped": CAP + SUMS + "create view line as select distinct price from goods order by price;",
    "no order": CAP + SUMS + "create view line as select price from goods order by price desc;",
    "a row twice": CAP + CAP + SUMS + LINE,
    "a number as text": CAP + SUMS + LINE + "update notes set mark = '5x' where body = 'b';",
    "a blob for a text": CAP + SUMS + LINE + "update notes set body = x'61' where body = 'a';",
    "a bystander's row": CAP + SUMS + LINE + "update notes set mark = 6 where mark = 5;",
    "a null for a value": CAP + SUMS + LINE + "update notes set mark = 0 where mark is null;",
    "data and answer emptied together": "delete from goods;" + SUMS + LINE,
    "data changed to fit a wrong answer": CAP
    + "delete from goods where rowid = 2; update goods set price = 4 where label = 'pen';"
    + "create view sums as select label, price from goods;"
    + LINE,
    "an extra table": CAP + SUMS + LINE + "create table extra (a);",
    "an extra view": CAP + SUMS + LINE + "create view extra as select 1;",
    "an extra index": CAP + SUMS + LINE + "create index extra on notes (body);",
    "a trigger": CAP + SUMS + LINE + "create trigger t after insert on notes begin delete from goods; end;",
    "statistics": CAP + SUMS + LINE + "create index i on notes (body); analyze; drop index i;",
    "a constraint": CAP
    + SUMS
    + LINE
    + "drop table notes; create table notes (body text unique, mark integer); insert into notes values ('a', null), ('b', 5);",
    "a generated column": CAP
    + SUMS
    + LINE
    + "drop table notes; create table notes (body text, mark integer, more text as (body));"
    + "insert into notes values ('a', null), ('b', 5);",
    "a virtual table": CAP
    + SUMS
    + LINE
    + "drop table notes; create virtual table notes using fts5(body, mark); insert into notes values ('a', null), ('b', 5);",
    "an endless view": CAP
    + LINE
    + "create view sums as with recursive n(i) as (select 1 union all select i + 1 from n) select i, count(*) from n;",
    "a greedy view": CAP
    + LINE
    + "create view sums as with recursive n(i) as (select 'x' union select i || i from n) select i, 1 from n;",
    "a view of large blobs": CAP
    + LINE
    + "create view sums as select zeroblob(15000000), zeroblob(15000000) from goods, goods;",
    "chance": CAP + LINE + "create view sums as select label, sum(price) + random() * 0 from goods group by label;",
    "a view on what only this file has": CAP
    + LINE
    + "create view sums as select label, sum(price) from goods, (select count(*) from notes) group by label;",
    "a view on itself": CAP + LINE + "create view sums as select * from line2; create view line2 as select * from sums;",
}


@pytest.mark.attack
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_database_fails_a_check(place: Path, wrong: str, view: str) -> None:
    again(place, WRONG[wrong])
    before = time.monotonic()
    assert "failed" in states(place, view).values()
    assert time.monotonic() - before < 8


def test_answers_written_down_fail_on_the_other_data_alone(place: Path) -> None:
    again(place, WRONG["answers written down"].replace("as values", "as select 'x' label, 1 where 0 union all values"))
    found = states(place, "asked")
    assert {name for name, state in found.items() if state == "failed"} == {"views on other data"}


def forged(script: str) -> Callable[[Path], None]:
    def forge(path: Path) -> None:
        run(path, f"pragma writable_schema = on; {script}")

    return forge


def corrupted(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for place in range(100, len(data), 7):
        data[place] ^= 0xA5
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


HOSTILE: dict[str, Callable[[Path], object]] = {
    "a corrupted file": corrupted,
    "a cut file": cut,
    "no database at all": lambda path: path.write_bytes(b"hello" * 1000),
    "an empty file": lambda path: path.write_bytes(b""),
    "a missing file": lambda path: path.unlink(),
    "a sparse giant": lambda path: os.truncate(path, 1 << 36),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a FIFO": lambda path: (path.unlink(), os.mkfifo(path)),
    "a link to the right file": lambda path: (path.rename(path.parents[1] / "right.db"), path.symlink_to("../right.db")),
    "a journal beside it": lambda path: (path.parent / "data.db-journal").write_bytes(b"x"),
    "another file beside it": lambda path: (path.parent / "notes.txt").write_bytes(b"x"),
    "a view that is no view": forged("update sqlite_schema set sql = 'create table sums (a)' where name = 'sums';"),
    "a view that attaches": forged("update sqlite_schema set sql = 'attach ''/tmp/x.db'' as x' where name = 'sums';"),
    "two objects of one name": forged(
        "insert into sqlite_schema select type, name, tbl_name, rootpage, sql from sqlite_schema where name = 'notes';"
    ),
    "a table on another's pages": forged(
        "update sqlite_schema set rootpage = (select rootpage from sqlite_schema where name = 'goods') where name = 'notes';"
    ),
    "a name that is a blob": forged("update sqlite_schema set name = x'00ff' where name = 'notes';"),
    "an undecodable text": lambda path: run(path, "update notes set body = cast(x'ff' as text) where body = 'a';"),
    "a thousand tables": lambda path: run(path, "".join(f"create table t{number} (a);" for number in range(1000))),
}


@pytest.mark.attack
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_file_fails_and_never_raises(place: Path, hostile: str, view: str) -> None:
    HOSTILE[hostile](place / "submission" / "data.db")
    results = graded(place, view)
    assert "failed" in {result["state"] for result in results}
    assert all(len(result["detail"]) <= 300 and result["detail"].isascii() for result in results)


@pytest.mark.attack
def test_the_submission_and_the_bundle_stay_as_they_are(place: Path) -> None:
    files = [place / "submission" / "data.db", place / "bundle" / "other.db"]
    before = [file.read_bytes() for file in files]
    graded(place, "asked")
    assert [file.read_bytes() for file in files] == before
    assert [path.name for path in (place / "submission").iterdir()] == ["data.db"]
    assert [path.name for path in (place / "bundle").iterdir()] == ["other.db"]


def test_a_reader_that_is_killed_is_the_files_fault_and_one_that_raises_is_ours() -> None:
    killed = reader.in_child(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    assert killed == {"fault": "reading the database ended with SIGSEGV"}
    with pytest.raises(RuntimeError):
        reader.in_child(lambda: 1 // 0)
    assert reader.in_child(lambda: {"fault": ""}) == {"fault": ""}


@pytest.mark.attack
def test_the_reader_meets_limits_of_memory_and_processor_time() -> None:
    def greedy() -> dict[str, str]:
        try:
            bytearray(1 << 30)
        except MemoryError:
            return {"fault": "no memory"}
        return {"fault": ""}

    def endless() -> None:
        while True:
            pass

    assert reader.in_child(greedy) == {"fault": "no memory"}
    reader.CPU_S = 1
    try:
        assert reader.in_child(endless) == {"fault": "reading the database ended with SIGXCPU"}
    finally:
        reader.CPU_S = 5
