"""`--json` prints JSON alone on stdout, for every command that lists, shows or reports; what it says is so."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from factory.cli.main import app
from factory.cli.reference import commands

from ..small import DAY, Small
from .command import ROOT, Inside, environment, process

READING: dict[str, tuple[str, ...]] = {
    "tasks list": (),
    "tasks show": ("chosen",),
    "tasks why": ("chosen",),
    "tasks diff": ("chosen", "{1}"),
    "tasks lineage": ("chosen",),
    "tasks replay": ("chosen", "--times", "1"),
    "tasks verify": (),
    "tasks gc": ("--dry-run",),
    "trajectories list": (),
    "trajectories show": ("1",),
    "alias log": (),
    "split show": (),
    "split check": (),
    "audit contamination": (),
    "audit show": (),
    "report": (),
    "doctor": (),
}
"""Commands that look, with the arguments that they need."""
WORKING = {"nightly", "generate", "assess", "warmstart", "train", "evaluate"}
"""Commands that work long and tell their result as JSON too; tests/factory/flows runs them."""


def ask(factory: Inside, small: Small, name: str, *more: str) -> Any:
    words = [word.format(*small.digests) for word in READING[name]]
    done = factory(*name.split(), *words, *more, *small.options, "--json")
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def select(small: Small, statement: str) -> list[Any]:
    connection = sqlite3.connect(small.data / "registry.db")
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_every_command_with_json_is_looked_at() -> None:
    found = {
        path.removeprefix("factory "): command
        for path, command in commands(typer.main.get_command(app), "factory")
        if any("--json" in one.opts for one in command.params)
    }
    assert set(found) == set(READING) | WORKING


@pytest.mark.parametrize("name", sorted(set(READING) - {"audit contamination", "doctor"}))
def test_json_alone_on_stdout(name: str, factory: Inside, small: Small) -> None:
    ask(factory, small, name)


@pytest.mark.parametrize("name", sorted(set(READING) - {"audit contamination", "doctor", "report", "tasks replay"}))
def test_the_same_for_people_is_text(name: str, factory: Inside, small: Small) -> None:
    words = [word.format(*small.digests) for word in READING[name]]
    done = factory(*name.split(), *words, *small.options)
    assert done.code == 0
    assert done.out or done.err
    assert "\x1b" not in done.out + done.err
    with pytest.raises(json.JSONDecodeError):
        json.loads(done.out)


def test_tasks_list(factory: Inside, small: Small) -> None:
    rows = ask(factory, small, "tasks list", "--status", "accepted")
    known = dict(select(small, "SELECT digest, name FROM tasks WHERE status = 'accepted'"))
    assert {row["digest"]: row["name"] for row in rows} == known
    for row in rows:
        assert {"digest", "kind", "name", "status", "state", "split"} <= row.keys()
        assert row["kind"] == "terminal" and row["status"] == "accepted" and row["split"] == "main"
        expected = "too hard" if row["k"] == 0 else "mastered" if row["k"] == row["n"] else "frontier"
        assert row["state"] == expected
    assert len(ask(factory, small, "tasks list", "--limit", "2")) == 2
    frontier = ask(factory, small, "tasks list", "--state", "frontier")
    assert frontier == [row for row in rows if row["state"] == "frontier"] != []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FACTORY_POLICY__LINE", "another")
        assert ask(factory, small, "tasks list", "--line", "tiny", "--status", "accepted") == rows
        assert {row["state"] for row in ask(factory, small, "tasks list")} == {"unassessed"}
    assert ask(factory, small, "tasks list", "--status", "withdrawn") == []


def test_tasks_show_by_digest_prefix_name_and_alias(factory: Inside, small: Small) -> None:
    shown = ask(factory, small, "tasks show")
    assert shown["digest"] == small.digests[0]
    assert shown["solution_actions"][-1]["tool"] == "submit"
    assert shown["origin"]["generator"] == "terminal"
    for reference in (shown["digest"], shown["digest"][:12], shown["name"]):
        done = factory("tasks", "show", reference, *small.options, "--json")
        assert json.loads(done.out) == shown


def test_tasks_why(factory: Inside, small: Small) -> None:
    told = ask(factory, small, "tasks why")
    assert told["status"] == "accepted"
    evidence = {one["filter"]: one for one in told["evidence"]}
    assert {"validity", "loopholes", "contamination", "duplicates"} <= evidence.keys()
    assert [gold["passed"] for gold in evidence["validity"]["data"]["gold"]] == [True, True, True]
    first = evidence["validity"]["data"]["gold"][0]
    assert all(len(one["verifier"]) == 64 and {*one["checks"]} == {"passed"} for one in first["verifiers"])
    assert first["use"]["processes"] >= 2 and len(first["start"]) == len(first["end"]) == 64
    (assessment,) = told["assessments"]
    assert assessment["policy"].startswith("tiny@") and assessment["n"] == 3
    low, high = assessment["interval"]
    assert 0 <= low <= assessment["k"] / 3 <= high <= 1
    assert [event["to"] for event in told["history"]] == ["candidate", "accepted"]
    assert {event["run"] for event in told["history"]} == {f"nightly/{DAY}"}


def test_tasks_diff_names_what_differs_and_only_that(factory: Inside, small: Small) -> None:
    found = ask(factory, small, "tasks diff")
    first, second = (json.loads(factory("tasks", "show", one, *small.options, "--json").out) for one in small.digests[:2])
    assert found["instruction"] == {"first": first["instruction"], "second": second["instruction"]}
    assert "kind" not in found and "environment.image" not in found
    same = factory("tasks", "diff", small.digests[0], "chosen", *small.options, "--json")
    assert json.loads(same.out) == {}


def test_tasks_replay(factory: Inside, small: Small) -> None:
    told = ask(factory, small, "tasks replay")
    assert told["agrees"] is True and told["backend"] == "bubblewrap"
    assert [one["solved"] for one in told["gold"]] == [True] and told["noop"]["solved"] is False


def test_trajectories(factory: Inside, small: Small) -> None:
    rows = ask(factory, small, "trajectories list")
    assert len(rows) == 3 * len(small.digests)
    assert [row["id"] for row in rows] == sorted((row["id"] for row in rows), reverse=True)
    solved = ask(factory, small, "trajectories list", "--solved")
    assert [row["id"] for row in solved] == [row["id"] for row in rows if row["solved"]]
    of_task = ask(factory, small, "trajectories list", "--task", "chosen", "--limit", "2")
    assert [row["task"] for row in of_task] == [small.digests[0]] * 2
    shown = ask(factory, small, "trajectories show")
    tokens = shown["tokens"]
    assert len(tokens["ids"]) == len(tokens["owners"]) == len(tokens["logprobs"]) == len(tokens["versions"])
    for owner, logprob in zip(tokens["owners"], tokens["logprobs"], strict=True):
        assert (logprob is not None) == (owner in ("action", "reasoning"))


def test_trajectories_export_is_read_by_pandas(factory: Inside, small: Small, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is an extra of the developers")
    path = tmp_path / "solved.parquet"
    done = factory("trajectories", "export", str(path), "--solved", *small.options)
    assert (done.code, done.out) == (0, "")
    frame = pandas.read_parquet(path)
    assert len(frame) == select(small, "SELECT count(*) FROM trajectories WHERE solved")[0][0] > 0
    assert frame["solved"].all()


def test_splits_and_audit(factory: Inside, small: Small) -> None:
    (split,) = ask(factory, small, "split show")
    assert sum(split["parts"].values()) == len(small.digests)
    assert ask(factory, small, "split check") == {"main": []}
    trail = ask(factory, small, "audit show", "--limit", "500")
    assert trail["broken"] is False
    assert len(trail["entries"]) == select(small, "SELECT count(*) FROM audit")[0][0]
    one = ask(factory, small, "audit show", "--subject", small.digests[0])
    assert {entry["subject"] for entry in one["entries"]} == {small.digests[0]}


def test_a_changed_trail_is_told(factory: Inside, small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    connection = sqlite3.connect(copy.data / "registry.db")
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type='trigger' AND tbl_name='audit'").fetchall():
        connection.execute(f'DROP TRIGGER "{trigger}"')
    connection.execute("UPDATE audit SET subject = 'another' WHERE seq = 3")
    connection.commit()
    connection.close()
    done = factory("audit", "show", "--json", *copy.options)
    assert done.code == 1 and json.loads(done.out)["broken"] is True


def test_a_damaged_blob_is_told(factory: Inside, small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    (digest,) = select(small, f"SELECT text FROM tasks WHERE digest = '{small.digests[0]}'")[0]
    (blob,) = [path for path in (copy.data / "blobs").rglob("*") if path.is_file() and digest[2:] in str(path)]
    blob.chmod(0o644)
    blob.write_bytes(b"another content")
    done = factory("tasks", "verify", "--json", *copy.options)
    problems = json.loads(done.out)["problems"]
    assert done.code == 1 and any(digest in problem for problem in problems)


def test_withdrawn_tasks_leave_the_lists(factory: Inside, small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    done = factory("tasks", "withdraw", "chosen", "--reason", "made in error", *copy.options)
    assert (done.code, done.out) == (0, "") and small.digests[0] in done.err
    listed = json.loads(factory("tasks", "list", "--json", *copy.options).out)
    assert small.digests[0] not in {row["digest"] for row in listed} and len(listed) == len(small.digests) - 1
    (row,) = json.loads(factory("tasks", "list", "--status", "withdrawn", "--json", *copy.options).out)
    assert (row["digest"], row["reason"]) == (small.digests[0], "made in error")
    assert json.loads(factory("tasks", "show", small.digests[0], "--json", *copy.options).out)["digest"] == small.digests[0]


def test_aliases_move_by_compare_and_set(factory: Inside, small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    refused = factory("alias", "set", "chosen", small.digests[1], *copy.options)
    assert refused.code == 1 and "Conflict" in refused.err and refused.err.count("\n") == 1
    moved = factory("alias", "set", "chosen", small.digests[1], "--expected", small.digests[0], *copy.options)
    assert moved.code == 0
    log = json.loads(factory("alias", "log", "chosen", "--json", *copy.options).out)
    assert [(move["old"], move["new"]) for move in log] == [(None, small.digests[0]), (small.digests[0], small.digests[1])]


@pytest.mark.slow
def test_the_audit_of_contamination_says_what_it_could_have_found(factory: Inside, small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    done = factory("audit", "contamination", "--json", *copy.options)
    told = json.loads(done.out)
    assert done.code == (0 if told["certified"] else 1)
    assert told["tasks"]["screened"] == len(small.digests) and told["tasks"]["matched"] == []
    assert all(one["planted"] > 0 for one in told["planted"].values())
    figures = json.loads(factory("report", "--json", *copy.options).out)
    assert figures["contamination"]["audit"]["certified"] == told["certified"]


def test_doctor(factory: Inside, small: Small) -> None:
    done = factory("doctor", *small.options, "--json")
    found = json.loads(done.out)
    assert all({"part", "name", "holds", "detail", "needed"} == one.keys() for one in found)
    by_name = {(one["part"], one["name"]): one for one in found}
    assert by_name["bubblewrap", "usable"]["needed"] and not by_name["docker", "usable"]["needed"]
    assert by_name["bubblewrap", "no network"]["holds"]
    assert f"{len(small.digests)} tasks" in by_name["registry", "database"]["detail"]
    assert done.code == (1 if any(one["needed"] and not one["holds"] for one in found) else 0)


@pytest.mark.slow
def test_doctor_says_what_to_do_about_a_server_that_does_not_answer(small: Small, tmp_path: Path) -> None:
    done = process("doctor", "--json", *small.options, cwd=tmp_path, FACTORY_POLICY__SERVERS='["http://127.0.0.1:9"]')
    (server,) = [one for one in json.loads(done.out) if one["name"] == "http://127.0.0.1:9"]
    assert done.code == 1 and done.err == ""
    assert server["needed"] and not server["holds"] and "vllm serve" in server["detail"]


def test_a_closed_pipe_ends_in_silence(small: Small) -> None:
    """As in `factory audit show | head -1`."""
    command = [sys.executable, "-m", "factory.cli.main", "audit", "show", "--limit", "100000", "--json", *small.options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=ROOT) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 1
