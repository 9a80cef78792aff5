"""The tools that a policy can call: a table of names to schemas and functions.

A tool talks to the sandbox alone. What goes wrong for the agent (no such file, a wrong query, a
limit) is an observation; a `SandboxError` is the infrastructure's and is not caught here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from factory.core.action import Action, Observation, bounded_text
from factory.core.task import Limits
from sandboxes.contract import WORKSPACE, FileRefused, Sandbox

ARGUMENT_BYTES = 64 << 10
"""The longest argument that a tool takes, bytes; a shell refuses longer single words anyway."""
DATABASE = f"{WORKSPACE}/data.db"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool. All arguments are strings and all are required."""

    name: str
    description: str
    """One line for the policy."""
    arguments: tuple[str, ...]
    run: Callable[[Sandbox, Mapping[str, str], Limits], Observation] | None
    """None: the call ends the episode. `episode_ms` of the limits is what is left of it."""
    check: Callable[[Mapping[str, str]], str] = lambda arguments: ""
    """What is wrong with arguments that fit the schema; empty when nothing is."""

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"


def problem(offered: tuple[str, ...], action: Action) -> str:
    """Why `action` is no valid call of an offered tool, in one line for the policy; empty when it is one."""
    if action.tool not in offered:
        return f"no tool {action.tool[:40]!r}; tools: {', '.join(offered)}"
    tool = TOOLS[action.tool]
    if set(action.arguments) != set(tool.arguments):
        return f"wrong arguments; expected {tool.signature}"
    for name, value in action.arguments.items():
        if "\0" in value:
            return f"{name} holds a NUL character"
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            return f"{name} holds a lone surrogate"
        if size > ARGUMENT_BYTES:
            return f"{name} is longer than {ARGUMENT_BYTES} bytes"
    return tool.check(action.arguments)


def _bash(sandbox: Sandbox, arguments: Mapping[str, str], limits: Limits) -> Observation:
    result = sandbox.run(arguments["command"], timeout_s=limits.command_ms / 1000, output_bytes=limits.output_bytes)
    text, omitted = bounded_text(result.output, limits.output_bytes, result.omitted_bytes)
    if result.timed_out:
        text = _stopped(text, limits)
    return Observation(text=text, omitted_bytes=omitted, exit_code=result.exit_code, timed_out=result.timed_out)


def _stopped(text: str, limits: Limits) -> str:
    """`text` with the harness's word on which limit it was: the command's own, or what was left of the episode's."""
    line = "" if not text or text.endswith("\n") else "\n"
    own = limits.command_ms < limits.episode_ms
    why = f" at its limit of {limits.command_ms} ms" if own else ": the episode's time is over"
    return f"{text}{line}[command stopped{why}]"


def _edit(sandbox: Sandbox, arguments: Mapping[str, str], limits: Limits) -> Observation:
    """Replace one line; its line end, and the rest of the file byte for byte, are kept."""
    path = arguments["path"] if arguments["path"].startswith("/") else f"{WORKSPACE}/{arguments['path']}"
    number = int(arguments["line"])
    try:
        data = sandbox.read_file(path, limits.file_bytes + 1)
        if len(data) > limits.file_bytes:
            return _refused(f"{arguments['path']}: too large to edit")
        lines = data.split(b"\n")
        count = len(lines) - (lines[-1] == b"")
        if number > count:
            return _refused(f"{arguments['path']} has {count} lines")
        ending = b"\r" if lines[number - 1].endswith(b"\r") else b""
        lines[number - 1] = arguments["text"].removesuffix("\n").encode() + ending
        sandbox.write_file(path, b"\n".join(lines))
    except FileNotFoundError:
        return _refused(f"{arguments['path']}: no such file")
    except IsADirectoryError:
        return _refused(f"{arguments['path']}: is a directory")
    except PermissionError:
        return _refused(f"{arguments['path']}: permission denied")
    except FileRefused as error:
        return _refused(f"{arguments['path']}: {error}")
    return Observation(text="", exit_code=0)


def _edit_check(arguments: Mapping[str, str]) -> str:
    line = arguments["line"]
    if not (line.isascii() and line.isdigit() and 1 <= len(line) <= 9 and int(line) >= 1):
        return "line is a number from 1"
    return "" if arguments["path"] else "path is empty"


def _refused(text: str, code: int = 1) -> Observation:
    return Observation(text=text, exit_code=code)


SQL_PROGRAM = r"""
import os, sqlite3, sys

limit = int(sys.argv[2])
head, tail, total = bytearray(), bytearray(), 0


def show(line):
    global tail, total
    data = (line + "\n").encode("utf-8", "backslashreplace")
    total += len(data)
    room = (limit + 1) // 2 - len(head)
    head.extend(data[:room])
    tail.extend(data[room:] if room < len(data) else b"")
    del tail[: max(0, len(tail) - limit // 2)]


def cell(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return "x'" + value[:limit].hex() + "'"
    text = str(value)[:limit]
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def statements(text):
    start = at = 0
    while (at := text.find(";", at) + 1) > 0:
        if sqlite3.complete_statement(text[start:at]):
            yield text[start:at]
            start = at
    if text[start:].strip():
        yield text[start:]


query, code = sys.stdin.buffer.read().decode(), 0
try:
    connection = sqlite3.connect("file:" + sys.argv[1] + "?mode=rw", uri=True, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    for statement in statements(query):
        for row in connection.execute(statement):
            show("\t".join(map(cell, row)))
    if connection.in_transaction:
        connection.commit()
    connection.close()
except Exception as error:  # a hostile file makes the library raise almost anything, UnicodeDecodeError for one
    show("error: " + str(error))
    code = 1
os.write(1, b"%d %d\n" % (code, total - len(head) - len(tail)) + head + tail)
"""
"""Runs the statements on standard input, each committed as it ends; rows are tab separated.

Prints `exit code, bytes omitted from the middle`, a newline, then at most the asked-for bytes. A cell's
tab, line ends and backslashes are escaped, so that one line is one row.
"""


def _sql(sandbox: Sandbox, arguments: Mapping[str, str], limits: Limits) -> Observation:
    result = sandbox.process(
        ["python3", "-I", "-S", "-c", SQL_PROGRAM, DATABASE, str(limits.output_bytes)],
        stdin=arguments["query"].encode(),
        timeout_s=limits.command_ms / 1000,
        output_bytes=limits.output_bytes + 64,
    )
    if result.timed_out:
        return Observation(text=_stopped("", limits), timed_out=True)
    if result.exit_code is not None and result.exit_code > 128:
        return _refused("the query was killed, as for too much memory", result.exit_code)
    header, separator, body = result.stdout.partition(b"\n")
    if not separator:  # it started: no room, no memory or no process more are what the agent left it
        return _refused(f"the query was not answered: its process ended with status {result.exit_code}")
    code, dropped = map(int, header.split())
    text, omitted = bounded_text(body, limits.output_bytes, dropped)
    return Observation(text=text, omitted_bytes=omitted, exit_code=code)


TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        tool.name: tool
        for tool in (
            Tool(name="bash", description="run a shell command", arguments=("command",), run=_bash),
            Tool(
                name="edit",
                description="replace one line of a file by its number",
                arguments=("path", "line", "text"),
                run=_edit,
                check=_edit_check,
            ),
            Tool(name="sql", description="query the SQLite database data.db", arguments=("query",), run=_sql),
            Tool(name="submit", description="end and hand in the work", arguments=(), run=None),
        )
    }
)
"""Every tool by name. A task offers some of them."""
