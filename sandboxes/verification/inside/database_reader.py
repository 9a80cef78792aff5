"""Reads a database that may be hostile: a copy, read-only, in a child process, under an authorizer.

What the file can do is bounded: the child's memory and processor time, the library's memory, steps and
sizes; nothing but reading tables and views is allowed, and, on a further database, creating one view.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # without the Python around it, which takes as long to import as all the rest
import os
import resource
import stat

import codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FILE = "data.db"
FILE_BYTES = 16 << 20
"""A larger database fails: no task asks for one."""
MEMORY_BYTES = 256 << 20
"""Address space that the child may add to what it has, bytes."""
HEAP_BYTES = 64 << 20
"""Memory of the SQLite library, bytes."""
CPU_S = 5
"""Processor time of the child, seconds."""
STEPS = 2_000_000
"""Virtual-machine steps of one connection."""


def copy(submission: str, target: str) -> str:
    """Copy the one regular file that the submission should consist of; what is wrong with it, or nothing."""
    folder = os.open(submission, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if entry.name != FILE or count:
                    return "there are other files beside the database"
        try:
            status = os.lstat(FILE, dir_fd=folder)
        except FileNotFoundError:
            return "there is no database"
        if not stat.S_ISREG(status.st_mode):
            return "the database is no plain file"
        if status.st_size > FILE_BYTES:
            return "the database is too large"
        descriptor = os.open(FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as source, open(target, "wb") as copied:
            copied.write(source.read(FILE_BYTES))
    finally:
        os.close(folder)
    return ""


# The child: a crash or a limit in it is the submitted file's doing.


def in_child(work: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """Run `work` in a forked process with limits and return its JSON answer; a killed child is a fault of the file."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _confine(writer)
            answer = codec.dumps(work(*arguments)).encode()
            while answer:
                answer = answer[os.write(writer, answer) :]
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        import signal

        return {"fault": f"reading the database ended with {signal.Signals(os.WTERMSIG(status)).name}"}
    if os.WEXITSTATUS(status) != 0:
        raise RuntimeError("the child that reads the database failed")
    report: dict[str, Any] = codec.loads(answer.decode())
    return report


def _confine(writer: int) -> None:
    os.closerange(3, writer)
    os.closerange(writer + 1, 1024)
    with open("/proc/self/statm", encoding="ascii") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    ceiling = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = used + MEMORY_BYTES if ceiling == resource.RLIM_INFINITY else min(used + MEMORY_BYTES, ceiling)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


_FAULTS = (sqlite3.Error, sqlite3.Warning, MemoryError, OverflowError, UnicodeError, ValueError)
"""What a hostile file or view can make the library raise."""


def read(spec: dict[str, Any], path: str, others: list[str]) -> dict[str, Any]:
    """Everything that is compared, from the submitted file and from the other databases."""
    report: dict[str, Any] = {"fault": "", "objects": {}, "others": [{} for _ in others], "health": ""}
    texts: dict[str, str] = {}
    try:
        with _opened(f"file:{path}?mode=ro&immutable=1") as connection:
            _allow(connection, _READING)
            for name, kind, text in _schema(connection):
                thing: dict[str, Any] = {"type": kind}
                report["objects"][name] = thing
                expected = spec["objects"].get(name, {})
                if kind == "view":
                    texts[name] = text
                if kind == expected.get("type") == "table":
                    thing["as_defined"] = _as_defined(connection, name, text, expected)
                if kind == expected.get("type") and thing.get("as_defined", True):
                    thing.update(_shown(connection, name, len(expected["rows"])))
        report["health"] = _health(path)
    except _FAULTS as error:
        return report | {"fault": f"the database cannot be read: {_word(error)}", "objects": {}}
    for other, file, shown in zip(spec["others"], others, report["others"], strict=True):
        for view, rows in other["rows"].items():
            if view in texts:
                shown[view] = _evaluated(texts[view], view, file, len(rows))
    return report


def _schema(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """(name, type, text) of every object; more than any task holds is refused."""
    rows = connection.execute("select name, type, sql from sqlite_schema").fetchmany(101)
    if len(rows) > 100:
        raise ValueError("more than 100 objects")
    names = [name for name, _, _ in rows]
    if len(set(names)) != len(names) or not all(isinstance(value, str) for row in rows for value in row[:2]):
        raise ValueError("the schema is not well formed")
    return [(name, kind, text if isinstance(text, str) else "") for name, kind, text in rows]


def _as_defined(connection: sqlite3.Connection, name: str, text: str, expected: dict[str, Any]) -> bool:
    """Whether a table is what it should be: by its text, and by what the library itself made of it."""
    if _tokens(text) != _tokens(expected["sql"]):
        return False
    _allow(connection, _TELLING)
    try:
        return _told(connection, name) == {part: expected[part] for part in ("columns", "indexes", "references")}
    finally:
        _allow(connection, _READING)


def _told(connection: sqlite3.Connection, name: str) -> dict[str, list[Any]]:
    """What the library says of a table, names and types without case:

    columns     [name, type, not null, default, place in the primary key, hidden] of each
    indexes     [unique, origin, partial, [[column, descending, collation, key], ...]] of each
    references  what each foreign key tells
    """

    def ask(pragma: str, of: str) -> list[tuple[Any, ...]]:
        quoted = of.replace('"', '""')
        return connection.execute(f'pragma {pragma}("{quoted}")').fetchall()

    columns = [
        [str(column).lower(), " ".join(str(kind).lower().split()), *rest] for _, column, kind, *rest in ask("table_xinfo", name)
    ]
    indexes = [
        [unique, origin, partial, [list(part[2:]) for part in ask("index_xinfo", index)]]
        for _, index, unique, origin, partial in ask("index_list", name)
    ]
    return {"columns": columns, "indexes": indexes, "references": [list(row) for row in ask("foreign_key_list", name)]}


_CLOSING = {'"': '"', "`": "`", "[": "]", "'": "'"}


def _tokens(text: str) -> list[str]:
    """A definition's words without case, its quoted names likewise and without their quotes, its marks, and its literals as
    they are: what a rewrite by the library keeps. A quoted name is one token, whatever stands in it."""
    tokens, at = [], 0
    while at < len(text):
        start, mark = at, text[at]
        at += 1
        if mark in _CLOSING:
            at = _closed(text, at, _CLOSING[mark])
            tokens.append(text[start:at] if mark == "'" else text[start + 1 : at - 1].lower())
        elif text.startswith(("--", "/*"), start):
            end = text.find("\n" if mark == "-" else "*/", start + 2)
            at = len(text) if end < 0 else end + (1 if mark == "-" else 2)
        elif _in_word(mark):
            while at < len(text) and _in_word(text[at]):
                at += 1
            tokens.append(text[start:at].lower())
        elif not mark.isspace():
            tokens.append(mark)
    return tokens


def _closed(text: str, at: int, mark: str) -> int:
    """Where a quoted part that began before `at` is over; its mark twice stands for itself, but for a bracket."""
    while (end := text.find(mark, at)) >= 0:
        if mark == "]" or text[end + 1 : end + 2] != mark:
            return end + 1
        at = end + 2
    return len(text)


def _in_word(mark: str) -> bool:
    return mark.isalnum() or mark in "_$" or mark > "\x7f"


def _shown(connection: sqlite3.Connection, name: str, rows: int) -> dict[str, Any]:
    """Columns and typed rows of a table or view, at most one row more than expected; or the fault."""
    try:
        cursor = connection.execute(f'select * from "{name}"')
        columns = [column[0] for column in cursor.description]
        found = [[_portable(value) for value in row] for row in cursor.fetchmany(rows + 1)]
    except _FAULTS as error:
        return {"fault": f"cannot be read: {_word(error)}"}
    return {"columns": columns, "rows": found}


def _portable(value: object) -> tuple[str, object]:
    if isinstance(value, bytes):
        return "bytes", value.hex()
    if isinstance(value, float):
        return "float", repr(value)
    return type(value).__name__, value


def _evaluated(text: str, view: str, file: str, rows: int) -> dict[str, Any]:
    """What the stored text of `view` shows on another database."""
    with _opened(":memory:") as connection:
        with open(file, "rb") as stream:
            connection.deserialize(stream.read())
        try:
            _allow(connection, _CREATING)
            connection.execute(text)
            _allow(connection, _READING)
            if [row[:2] for row in _schema(connection) if row[0] == view] != [(view, "view")]:
                return {"fault": "is no view"}
            return _shown(connection, view, rows)
        except _FAULTS as error:
            return {"fault": f"cannot be evaluated: {_word(error)}"}


def _health(path: str) -> str:
    """What the library's own check of the file finds; nothing when it is sound."""
    with _opened(f"file:{path}?mode=ro&immutable=1") as connection:
        found = connection.execute("pragma integrity_check(1)").fetchone()[0]
    return "" if found == "ok" else f"the file is damaged: {found!a}"


class _Closing:
    """Closes a connection; `contextlib` has the same and takes longer to import."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _opened(address: str) -> _Closing:
    """A connection that is bounded in memory, steps and sizes, and trusts nothing of the file."""
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace") if _decodes(raw) else "\0" + raw.hex()
    for setting in ("trusted_schema = off", "cell_size_check = on", "temp_store = memory", f"hard_heap_limit = {HEAP_BYTES}"):
        connection.execute(f"pragma {setting}").fetchall()
    for limit, value in ((sqlite3.SQLITE_LIMIT_LENGTH, FILE_BYTES), (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000)):
        connection.setlimit(limit, value)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    left = iter(range(STEPS // 1000))
    connection.set_progress_handler(lambda: next(left, None) is None, 1000)
    return _Closing(connection)


def _decodes(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_TELLING = _READING | {sqlite3.SQLITE_PRAGMA}
_PRAGMAS = {"table_xinfo", "index_list", "index_xinfo", "foreign_key_list"}
_CREATING = _READING | {sqlite3.SQLITE_CREATE_VIEW, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE}
_REFUSED_FUNCTIONS = {"load_extension", "fts3_tokenizer", "random", "randomblob", "zeroblob"}


def _allow(connection: sqlite3.Connection, actions: set[int]) -> None:
    """Refuse every action but `actions`; writing reaches the schema table alone."""

    def decide(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
        allowed = action in actions
        if action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE):
            allowed = allowed and first in ("sqlite_master", "sqlite_schema")
        if action == sqlite3.SQLITE_PRAGMA:
            allowed = allowed and first in _PRAGMAS
        if action == sqlite3.SQLITE_FUNCTION:
            allowed = allowed and str(second).lower() not in _REFUSED_FUNCTIONS
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(decide)


def _word(error: BaseException) -> str:
    return ascii(str(error))[:120]
