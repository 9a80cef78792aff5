from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.agent.tools import ARGUMENT_BYTES, TOOLS, problem
from factory.core.action import Action, Observation
from factory.core.blobs import MemoryBlobs
from factory.core.task import Limits
from sandboxes.contract import Backend, Sandbox
from tests.factory.agent.samples import task

Use = Callable[..., Observation]


def database(path: Path) -> bytes:
    connection = sqlite3.connect(path)
    connection.executescript("create table t (a integer, b text); insert into t values (1, 'x'), (2, null), (3, 'p\tq');")
    connection.close()
    return path.read_bytes()


@pytest.fixture
def sandbox(backend: Backend, blobs: MemoryBlobs, tmp_path: Path):
    files = {
        "a.txt": "one\ntwo\nthree\n",
        "b.txt": b"x\r\ny",
        "d/e.txt": b"\xff\n2\n",
        "data.db": database(tmp_path / "data.db"),
    }
    with backend.open(task(blobs, files=files).environment, blobs) as sandbox:
        yield sandbox


def use(sandbox: Sandbox, tool: str, limits: Limits = Limits(), **arguments: str) -> Observation:  # noqa: B008
    run = TOOLS[tool].run
    assert run is not None
    assert not problem((tool,), Action(tool, arguments))
    return run(sandbox, arguments, limits)


def test_bash_shows_output_and_exit_code(sandbox: Sandbox) -> None:
    assert use(sandbox, "bash", command="cat a.txt; exit_code() { return 3; }; exit_code") == Observation(
        text="one\ntwo\nthree\n", exit_code=3
    )


def test_long_output_keeps_head_and_tail(sandbox: Sandbox) -> None:
    seen = use(sandbox, "bash", Limits(output_bytes=100), command="seq 1 1000")
    whole = "".join(f"{number}\n" for number in range(1, 1001))
    assert seen.omitted_bytes == len(whole) - 100
    assert seen.text == f"{whole[:50]}\n[... {len(whole) - 100} bytes omitted ...]\n{whole[-50:]}"


def test_a_command_at_its_limit_says_so_and_the_session_goes_on(sandbox: Sandbox) -> None:
    seen = use(sandbox, "bash", Limits(command_ms=300), command="echo begun; sleep 60")
    assert seen.timed_out
    assert seen.exit_code is None
    assert seen.text.startswith("begun\n")
    assert seen.text.endswith("\n[command stopped at its limit of 300 ms]")
    assert use(sandbox, "bash", command="echo again").text == "again\n"


@pytest.mark.parametrize(
    ("path", "line", "text", "after"),
    [
        ("a.txt", "2", "TWO", b"one\nTWO\nthree\n"),
        ("/workspace/a.txt", "3", "3\n", b"one\ntwo\n3\n"),
        ("a.txt", "1", "", b"\ntwo\nthree\n"),
        ("a.txt", "1", "x\ny", b"x\ny\ntwo\nthree\n"),
        ("b.txt", "1", "X", b"X\r\ny"),
        ("b.txt", "2", "Y", b"x\r\nY"),
        ("d/e.txt", "2", "ü", b"\xff\n\xc3\xbc\n"),
    ],
)
def test_edit_replaces_one_line_and_nothing_else(sandbox: Sandbox, path: str, line: str, text: str, after: bytes) -> None:
    assert use(sandbox, "edit", path=path, line=line, text=text) == Observation(text="", exit_code=0)
    assert sandbox.read_file(path if path.startswith("/") else f"/workspace/{path}", 1000) == after


def test_paths_and_texts_are_data_for_every_shell_and_interpreter(sandbox: Sandbox) -> None:
    hostile = "'; touch /workspace/made; $(touch made) `touch made` __import__('os').system('touch made') %s {0} \\n -n"
    sandbox.write_file("/workspace/$(touch made); -n", b"one\n")
    assert use(sandbox, "edit", path="$(touch made); -n", line="1", text=hostile) == Observation(text="", exit_code=0)
    assert sandbox.read_file("/workspace/$(touch made); -n", 1000) == hostile.encode() + b"\n"
    quoted = hostile.replace("'", "''")
    assert use(sandbox, "sql", query=f"select '{quoted}'").text == hostile.replace("\\", "\\\\") + "\n"
    with pytest.raises(FileNotFoundError):
        sandbox.read_file("/workspace/made", 1)


@pytest.mark.parametrize(
    ("path", "line", "error"),
    [
        ("a.txt", "4", "a.txt has 3 lines"),
        ("b.txt", "3", "b.txt has 2 lines"),
        ("c.txt", "1", "c.txt: no such file"),
        ("d", "1", "d: is a directory"),
        ("/etc/passwd", "1", "/etc/passwd: permission denied"),
    ],
)
def test_an_edit_that_can_not_be_is_told(sandbox: Sandbox, path: str, line: str, error: str) -> None:
    assert use(sandbox, "edit", path=path, line=line, text="x") == Observation(text=error, exit_code=1)
    assert sandbox.read_file("/workspace/a.txt", 1000) == b"one\ntwo\nthree\n"


def test_sql_rows_are_tab_separated_with_nulls_and_escapes(sandbox: Sandbox) -> None:
    seen = use(sandbox, "sql", query="select a, b from t order by a; select x'00ff', 1.5")
    assert seen == Observation(text="1\tx\n2\tNULL\n3\tp\\tq\nx'00ff'\t1.5\n", exit_code=0)


def test_sql_statements_are_committed(sandbox: Sandbox, tmp_path: Path) -> None:
    query = """insert into t values (4, ';'); create trigger r after insert on t begin delete from t where a = 1; end;
    begin; insert into t values (5, 'last') -- not ended"""
    assert use(sandbox, "sql", query=query) == Observation(text="", exit_code=0)
    (tmp_path / "after.db").write_bytes(sandbox.read_file("/workspace/data.db", 1 << 20))
    with sqlite3.connect(tmp_path / "after.db") as connection:
        rows = connection.execute("select a from t order by a").fetchall()
    connection.close()
    assert rows == [(2,), (3,), (4,), (5,)]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("select * from missing", "error: no such table: missing"),
        ("selec 1", 'error: near "selec": syntax error'),
        ("select zeroblob(999999999)", "error:"),
        ("select load_extension('x')", "error: not authorized"),
    ],
)
def test_a_wrong_query_is_told(sandbox: Sandbox, query: str, error: str) -> None:
    seen = use(sandbox, "sql", query=query)
    assert seen.exit_code == 1
    assert seen.text.startswith(error)


@pytest.mark.parametrize(
    "queries",
    [
        ["select json_extract('{}', cast(x'ff' as text))"],
        [
            "pragma writable_schema = on; insert into sqlite_schema values ('view', 'v', 'v', 0, "
            "cast('create view v as select 1 as \"' || cast(x'ff' as text) || '\"' as text))",
            "select * from v",
        ],
        ["select " + "(" * 5000 + "1" + ")" * 5000],
        ["pragma hard_heap_limit = 1; select 1"],
    ],
)
def test_whatever_a_query_makes_the_library_raise_is_told(sandbox: Sandbox, queries: list[str]) -> None:
    told = [use(sandbox, "sql", query=query) for query in queries]
    assert told[-1].exit_code == 1
    assert told[-1].text.startswith("error: ")


def test_a_query_whose_process_ends_without_an_answer_is_told(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a shell that the agent left no process more cannot even start Python."""
    started = sandbox.process
    monkeypatch.setattr(sandbox, "process", lambda argv, **options: started(["sh", "-c", "exit 2"], **options))
    told = "the query was not answered: its process ended with status 2"
    assert use(sandbox, "sql", query="select 1") == Observation(text=told, exit_code=1)


def test_a_failed_statement_leaves_the_earlier_ones(sandbox: Sandbox) -> None:
    assert use(sandbox, "sql", query="delete from t; select nothing").exit_code == 1
    assert use(sandbox, "sql", query="select count(*) from t").text == "0\n"


def test_a_missing_database_is_told_and_not_made(sandbox: Sandbox) -> None:
    use(sandbox, "bash", command="rm data.db")
    assert use(sandbox, "sql", query="select 1").text == "error: unable to open database file\n"
    with pytest.raises(FileNotFoundError):
        sandbox.read_file("/workspace/data.db", 1)


def test_endless_and_huge_queries_are_bounded(sandbox: Sandbox) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n"
    seen = use(sandbox, "sql", Limits(command_ms=500), query=endless)
    assert seen.timed_out
    assert seen.text == "[command stopped at its limit of 500 ms]"
    seen = use(sandbox, "sql", Limits(output_bytes=60), query=endless + " limit 1000")
    whole = "".join(f"{number}\n" for number in range(1, 1001))
    assert seen.text == f"{whole[:30]}\n[... {len(whole) - 60} bytes omitted ...]\n{whole[-30:]}"
    assert seen.omitted_bytes == len(whole) - 60


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (Action("bash", {"command": "ls"}), "^$"),
        (Action("sql", {"query": "x"}), "no tool 'sql'; tools: bash, edit, submit"),
        (Action("x" * 100), "no tool 'xxxx"),
        (Action("bash", {}), "expected bash\\(command\\)"),
        (Action("submit", {"now": "yes"}), "expected submit\\(\\)"),
        (Action("bash", {"command": "a\0b"}), "NUL"),
        (Action("bash", {"command": "\ud800"}), "surrogate"),
        (Action("bash", {"command": "x" * (ARGUMENT_BYTES + 1)}), "longer than"),
        (Action("edit", {"path": "a", "line": "0", "text": ""}), "number from 1"),
        (Action("edit", {"path": "a", "line": "-1", "text": ""}), "number from 1"),
        (Action("edit", {"path": "a", "line": "1.0", "text": ""}), "number from 1"),
        (Action("edit", {"path": "a", "line": "²", "text": ""}), "number from 1"),
        (Action("edit", {"path": "", "line": "1", "text": ""}), "path is empty"),
    ],
)
def test_calls_are_checked_against_the_offered_tools(action: Action, error: str) -> None:
    found = problem(("bash", "edit", "submit"), action)
    assert re.search(error, found)
    assert bool(found) == (error != "^$")
    assert "\n" not in found


@given(st.sampled_from([*TOOLS, "other"]), st.dictionaries(st.sampled_from(["command", "path", "line", "text"]), st.text()))
def test_any_call_is_judged_in_one_line(tool: str, arguments: dict[str, str]) -> None:
    found = problem(tuple(TOOLS), Action(tool, arguments))
    assert "\n" not in found
    assert found or (sorted(arguments) == sorted(TOOLS[tool].arguments) and "\0" not in "".join(arguments.values()))
