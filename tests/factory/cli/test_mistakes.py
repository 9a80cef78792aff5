"""A user's mistake is one line and exit code 2, never a traceback."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ..small import Small
from .command import Inside, environment, process


def one_line(done: object, *words: str) -> None:
    """Exit code 2, nothing on stdout, one line on stderr with these words."""
    code, out, err = vars(done).values()
    assert (code, out) == (2, "")
    assert err.startswith("factory: ") and err.count("\n") == 1, err
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tasks", "list", "--statsu", "accepted"), ("--statsu", "--status")),
        (("tasks", "list", "--limit", "-1"), ("--limit", "0")),
        (("tasks", "list", "--limit", "many"), ("--limit", "integer")),
        (("tasks", "show"), ("TASK",)),
        (("tasks", "list", "--limit", "9" * 23), ("--limit", "2147483647")),
        (("trajectories", "show", "9" * 23), ("ID", "2147483647")),
        (("taks",), ("taks",)),
        (("nightly", "--date", "tomorrow"), ("--date", "tomorrow", "YYYY-MM-DD")),
        (("nightly", "--date", "2026-02-30"), ("--date", "2026-02-30")),
        (("nightly", "--date", ""), ("--date", "YYYY-MM-DD")),
        (("generate", "poems"), ("KIND", "poems", "database, repository, terminal")),
        (("generate", "repository", "--fleet", "nowhere.toml"), ("fleet", "nowhere.toml", "default, wide")),
        (("generate", "terminal", "--fleet", "wide"), ("--fleet", "KIND repository")),
        (("generate", "toolworld"), ("KIND", "toolworld", "database, repository, terminal\n")),
        (("tasks", "list", "--config", "nowhere.toml"), ("--config", "nowhere.toml")),
        (("tasks", "list", "--data", "nowhere"), ("--data", "nowhere", "factory nightly")),
        (("doctor", "--config", "nowhere.toml"), ("--config", "nowhere.toml")),
        (("trajectories", "show", "first"), ("ID", "integer")),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_mistakes_without_a_data_folder(arguments: tuple[str, ...], words: tuple[str, ...], factory: Inside) -> None:
    one_line(factory(*arguments), *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tasks", "list", "--status", "good"), ("--status", "good", "accepted")),
        (("tasks", "list", "--state", "hard"), ("--state", "hard", "too hard")),
        (("tasks", "list", "--kind", "poem"), ("--kind", "poem", "database")),
        (("tasks", "show", "no-such-task"), ("TASK", "no-such-task", "alias")),
        (("tasks", "show", "0000"), ("TASK", "0000", "8 digits")),
        (("tasks", "why", "0" * 64), ("TASK", "0" * 64)),
        (("tasks", "diff", "chosen", "no-such-task"), ("SECOND", "no-such-task")),
        (("tasks", "lineage", "no-such-node"), ("TASK", "no-such-node", "policy")),
        (("tasks", "replay", "no-such-task"), ("TASK", "no-such-task")),
        (("tasks", "replay", "chosen", "--backend", "moon"), ("sandbox.backend", "moon", "bubblewrap")),
        (("tasks", "withdraw", "no-such-task", "--reason", "x"), ("TASK", "no-such-task")),
        (("trajectories", "list", "--task", "no-such-task"), ("--task", "no-such-task")),
        (("trajectories", "show", "999999"), ("ID", "999999")),
        (("trajectories", "export", "nowhere/all.parquet"), ("PATH", "nowhere/all.parquet")),
        (("alias", "set", "name", "no-such-task"), ("TARGET", "no-such-task")),
        (("alias", "set", "abcdef0123", "chosen"), ("alias", "abcdef0123")),
        (("split", "check", "no-such-split"), ("NAME", "no-such-split", "main")),
        (("tasks", "list", "--split", "no-such-split"), ("--split", "no-such-split", "main")),
        (("trajectories", "export", "/dev/null"), ("PATH", "/dev/null")),
        (("trajectories", "export", "/tmp"), ("PATH", "/tmp")),
        (("trajectories", "export", ""), ("PATH",)),
        (("report", "--out", "/dev/null"), ("--out", "/dev/null")),
        (("report", "--out", "x" * 5000), ("--out",)),
        (("tasks", "list", "--part", "trian"), ("--part", "trian", "holdout-families", "did you mean 'train'")),
        (("tasks", "list", "--part", ""), ("--part", "train")),
        (("tasks", "list", "--source", "\udcff"), ("'\\udcff'", "UTF-8")),
        (("evaluate", "--policy", "\udcff"), ("'\\udcff'", "UTF-8")),
        (("assess", "--limit", "9" * 30), ("--limit", "2147483647")),
        (("generate", "terminal", "--count", "9" * 30), ("--count", "2147483647")),
        (("tasks", "list", "--split", ""), ("--split", "main")),
        (("tasks", "list", "--line", "tinny"), ("--line", "tinny", "'tiny'")),
        (("tasks", "list", "--line", ""), ("--line", "tiny")),
        (("tasks", "why", "chosen", "--line", "tinny"), ("--line", "tinny", "'tiny'")),
        (("tasks", "list", "--family", "mak"), ("--family", "mak", "'make'")),
        (("tasks", "list", "--source", "sqlparse"), ("--source", "sqlparse")),
        (("trajectories", "list", "--purpose", "assses"), ("--purpose", "assses", "train", "'assess'")),
        (("trajectories", "export", "x.parquet", "--purpose", "none"), ("--purpose", "none", "evaluate")),
        (("trajectories", "list", "--task", ""), ("--task", "8 digits")),
        (("alias", "log", "chose"), ("NAME", "chose", "'chosen'")),
        (("audit", "show", "--subject", "nobody"), ("--subject", "nobody")),
        (("audit", "show", "--limit", "9" * 23), ("--limit", "2147483647")),
        (("audit", "show", "--head", "1234"), ("--head", "1234", "64")),
        (("tasks", "verify", "--head", "A" * 64), ("--head", "64 lower-case")),
        (("tasks", "withdraw", "chosen", "--reason", ""), ("--reason", "in words")),
        (("tasks", "withdraw", "chosen", "--reason", " "), ("--reason", "in words")),
        (("tasks", "replay", "chosen", "--backend", ""), ("sandbox.backend", "bubblewrap")),
        (("alias", "set", "", "chosen"), ("alias", "printable")),
        (("alias", "set", "two\nlines", "chosen"), ("alias", "printable")),
        (("alias", "set", "x" * 201, "chosen"), ("alias", "200")),
        (("alias", "set", "ABCDEF01", "chosen"), ("alias", "digest")),
        (("alias", "set", "tiny@abcdef01", "chosen"), ("alias", "policy version")),
        (("alias", "set", "chosen", "chosen", "--expected", "no-such"), ("--expected", "no-such")),
        (("report", "--out", ""), ("--out",)),
        (("report", "--out", "/dev/null/report.html"), ("--out", "/dev/null/report.html")),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_mistakes_on_a_data_folder(arguments: tuple[str, ...], words: tuple[str, ...], factory: Inside, small: Small) -> None:
    one_line(factory(*arguments, *small.options), *words)


def test_a_prefix_that_fits_several_tasks_names_them(factory: Inside, small: Small, tmp_path: Path) -> None:
    """No two real digests share 8 digits; a second row with the first one's prefix is written past the registry."""
    copy = small.copy(tmp_path / "data")
    digest = small.digests[0]
    twin = digest[:20] + "".join("0" if digit != "0" else "1" for digit in digest[20:])
    with sqlite3.connect(copy.data / "registry.db") as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(tasks)")]
        row = dict(zip(columns, connection.execute("SELECT * FROM tasks WHERE digest = ?", (digest,)).fetchone(), strict=True))
        marks = ", ".join("?" * len(columns))
        connection.execute(
            f"INSERT INTO tasks VALUES ({marks})", tuple({**row, "digest": twin, "status": "candidate"}.values())
        )
    connection.close()
    done = factory("tasks", "show", digest[:10], *copy.options)
    one_line(done, digest[:10], digest, twin)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[policy", ("--config", "TOML")),
        ("[policy]\nlin = 'a'", ("policy.lin", "no such field", "line")),
        ("polcy = 1", ("polcy", "no such field", "policy")),
        ("[policy.shares]\nfluff = 1", ("policy.shares.fluff", "no such field", "terminal")),
        ("[policy]\ntemperature = 0", ("policy.temperature", "0", "greater than 0")),
        ("[policy]\ntemperature = 'hot'", ("policy.temperature", "'hot'", "number")),
        ("[sandbox]\nbackend = 'podman'", ("sandbox.backend", "'podman'", "bubblewrap")),
        ("policy = 3", ("policy", "3", "a table")),
        ("[generate]\nterminal = -1", ("generate.terminal", "-1", "greater than or equal to 0")),
        ("\N{NO-BREAK SPACE}x", ("--config", "TOML")),
    ],
)
def test_mistakes_in_the_settings_file(text: str, words: tuple[str, ...], factory: Inside, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    one_line(factory("tasks", "list", "--config", "mine.toml"), *words)
    (tmp_path / "factory.toml").write_text(text)
    one_line(factory("tasks", "list"), *(word for word in words if word != "--config"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[terminal]\nfamilys = ['make']", ("terminal.familys", "no such field", "families")),
        ("[terminal]\npools = 'many'", ("terminal.pools", "'many'", "integer")),
        ("[warmstart]\ngate = 2.0", ("warmstart.gate", "2.0", "at most 1")),
        ("[warmstart.optimiser]\nspeed = 1", ("warmstart.optimiser.speed", "no such field")),
        ("[screen]\nreferences = ['no-such-set']", ("no-such-set", "human-eval")),
        ("[screen]\nwordy = 1", ("screen.wordy", "no such field", "words")),
        ("[repository]\nspeed = 1", ("repository.speed", "no such field")),
        ("[train]\ngroops = 1", ("train.groops", "no such field", "groups")),
        ("[train.learner]\nlearning_rat = 1", ("train.learner.learning_rat", "no such field", "learning_rate")),
        ("[determinism]\nflor = 1", ("determinism.flor", "no such field", "floor")),
    ],
)
def test_a_section_is_read_before_a_night_is_begun(text: str, words: tuple[str, ...], factory: Inside, tmp_path: Path) -> None:
    """Else the mistake would be recorded as the run of its date, and the right settings refused for that date."""
    (tmp_path / "factory.toml").write_text(text)
    one_line(factory("nightly", "--data", "data"), *words)
    assert not (tmp_path / "data").exists()


COMMANDS = [
    ("serve",),
    ("generate", "terminal"),
    ("assess",),
    ("warmstart",),
    ("train",),
    ("evaluate",),
    ("audit", "contamination"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_table_that_a_command_does_not_use_is_read_too(command: tuple[str, ...], factory: Inside, tmp_path: Path) -> None:
    """Else the mistake would be told weeks later, by the command that uses it."""
    (tmp_path / "factory.toml").write_text("[repository]\nprojets = ['semver']")
    one_line(factory(*command, "--data", "data"), "repository.projets", "no such field", "expected projects")
    assert not (tmp_path / "data").exists()


def test_a_mistake_in_a_table_is_told_before_torch_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "factory.toml").write_text("[repository]\nprojets = ['semver']\n[train]\nsteps = 1")
    code = (
        "import sys; sys.argv = ['factory', 'nightly']\nfrom factory.cli.main import main\n"
        "try: main()\nfinally: print('loaded', *({'torch', 'vllm', 'prefect'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "loaded\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("train.steps", "number of steps")),
        ("[train]\nsteps = 1\nstepz = 1", ("train.stepz", "no such field", "steps")),
        ("[train]\nsteps = 'six'", ("train.steps", "'six'")),
        ("[train]\nsteps = 1", ("policy.line", "tiny", "factory nightly")),
    ],
)
def test_training_that_cannot_begin(text: str, words: tuple[str, ...], factory: Inside, tmp_path: Path) -> None:
    (tmp_path / "factory.toml").write_text(text)
    one_line(factory("train", "--data", "data"), *words)


def test_a_policy_that_is_not_there(factory: Inside, small: Small) -> None:
    done = factory("evaluate", "--policy", "tiny@00000000", *small.options)
    one_line(done, "--policy", "tiny@00000000", "alias")


def test_a_data_folder_that_cannot_be_made(factory: Inside, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    one_line(factory("generate", "terminal", "--data", "taken"), "--data", "taken")


def test_a_kind_that_has_no_generator(factory: Inside, small: Small) -> None:
    one_line(factory("generate", "database", *small.options), "generate.database", "at least 1")


def test_a_log_level_that_is_none(tmp_path: Path) -> None:
    one_line(process("tasks", "list", cwd=tmp_path, FACTORY_LOG="loud"), "FACTORY_LOG", "loud", "DEBUG")


def test_a_variable_that_would_set_nothing(tmp_path: Path) -> None:
    done = process("tasks", "list", cwd=tmp_path, FACTORY_POLCY__LINE="mine")
    one_line(done, "FACTORY_POLCY__LINE", "no such field", "FACTORY_POLICY")


def test_a_process_that_fails_tells_one_line_too(tmp_path: Path, small: Small) -> None:
    one_line(process("tasks", "show", "nothing", *small.options, cwd=tmp_path), "TASK", "nothing")


def test_work_that_fails_is_exit_code_1_in_one_line(factory: Inside, small: Small, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "registry.db").write_text("this is no database at all, and long enough to be taken for one" * 20)
    done = factory("tasks", "list", "--data", str(tmp_path / "data"))
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"factory: \w+: .*\n", done.err)


def test_an_alias_is_no_task_s_name_and_expects_what_target_takes(factory: Inside, small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "copied")
    with sqlite3.connect(copy.data / "registry.db") as connection:
        name = connection.execute("SELECT name FROM tasks WHERE digest = ?", (copy.digests[1],)).fetchone()[0]
    connection.close()
    one_line(factory("alias", "set", name, "chosen", *copy.options), "alias", "no task has")
    moved = factory("alias", "set", "chosen", name, "--expected", copy.digests[0][:10], *copy.options)
    assert (moved.code, moved.err) == (0, f"chosen -> {copy.digests[1]}\n")
    refused = factory("alias", "set", "chosen", name, "--expected", copy.digests[0][:10], *copy.options)
    assert refused.code == 1 and "Conflict" in refused.err


ADDRESSES = ["sqlite:////no/such/dir/x.db", "sqlite:///{tmp}/none/x.db", "sqlite:///{tmp}", "sqlite:///a\tb", "mysql://x/y"]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("words", ["tasks list", "audit show", "tasks verify", "assess", "evaluate", "tasks gc"])
def test_an_address_without_a_registry_is_told_and_nothing_is_made(
    words: str, address: str, factory: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTORY_REGISTRY", address.format(tmp=tmp_path))
    one_line(factory(*words.split()), "registry")
    assert list(tmp_path.iterdir()) == []


def test_a_registry_is_not_made_in_an_empty_database(factory: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.db").touch()
    monkeypatch.setenv("FACTORY_REGISTRY", f"sqlite:///{tmp_path}/empty.db")
    one_line(factory("tasks", "list"), "registry", "empty.db", "factory nightly")
    done = factory("doctor", "--json")
    assert "empty.db" in next(one["detail"] for one in json.loads(done.out) if one["part"] == "registry")


def test_a_noted_head_is_looked_for(factory: Inside, small: Small) -> None:
    shown = json.loads(factory("audit", "show", "--json", *small.options).out)
    checked = json.loads(factory("tasks", "verify", "--json", *small.options).out)
    assert shown["head"] == checked["head"] == shown["entries"][0]["digest"]
    assert f"audit head: {shown['head']}\n" in factory("tasks", "verify", *small.options).err
    assert factory("audit", "show", "--head", shown["entries"][1]["digest"], *small.options).code == 0
    for words in ("tasks verify", "audit show"):
        done = factory(*words.split(), "--head", "f" * 64, *small.options)
        assert done.code == 1 and "does not contain the noted head" in done.err
