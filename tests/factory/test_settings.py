"""Settings: file, environment and flags in that order; frozen; mistakes named."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import ValidationError

from factory.core.errors import UnknownField, UserError
from factory.settings import Settings, load_settings, section


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings but those that a test makes."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("FACTORY_")]:
        monkeypatch.delenv(name)


def written(text: str, name: str = "factory.toml") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def test_nothing_given_is_the_defaults() -> None:
    settings = load_settings(None)
    assert settings.data == Path("data")
    assert settings.policy.line == settings.policy.source == "tiny"
    assert settings.database_url == f"sqlite:///{Path.cwd() / 'data' / 'registry.db'}"


def test_environment_overrides_file_and_flags_override_both(monkeypatch: pytest.MonkeyPatch) -> None:
    written('[policy]\nline = "file"\nsource = "file"\ntemperature = 0.5\n[generate]\nterminal = 3')
    monkeypatch.setenv("FACTORY_POLICY__SOURCE", "environment")
    monkeypatch.setenv("FACTORY_POLICY__TEMPERATURE", "0.6")
    settings = load_settings(None, policy={"temperature": 0.7})
    found = (settings.policy.line, settings.policy.source, settings.policy.temperature, settings.policy.samples)
    assert found == ("file", "environment", 0.7, 8)
    assert settings.generate.terminal == 3


def test_a_named_file_is_read_instead_of_the_default_one() -> None:
    written('data = "default"')
    other = written('data = "named"', "other.toml")
    assert load_settings(other).data == Path("named")
    assert load_settings(None).data == Path("default")


def test_nested_values_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_TRAIN__STEPS", "7")
    monkeypatch.setenv("FACTORY_POLICY__SHARES__DATABASE", "0")
    monkeypatch.setenv("FACTORY_POLICY__SERVERS", '["http://one", "http://two"]')
    monkeypatch.setenv("FACTORY_LOG", "INFO")
    settings = load_settings(None)
    assert settings.train == {"steps": "7"}
    assert settings.policy.shares.database == 0
    assert settings.policy.servers == ("http://one", "http://two")


def test_settings_are_frozen() -> None:
    settings = load_settings(None)
    with pytest.raises(ValidationError, match="frozen"):
        settings.data = Path("elsewhere")
    with pytest.raises(ValidationError, match="frozen"):
        settings.policy.line = "other"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[policy]\nlin = 1", "policy.lin: no such field; expected line"),
        ("[sandbox]\nzzz = 1", "sandbox.zzz: no such field; expected one of backend, docker_image, layers_gib, workers"),
        ("[policy.shares]\nterminals = 1", "policy.shares.terminals: no such field; expected terminal"),
        ("[evaluate]\nsamples = 0", "evaluate.samples: 0 is not right; expected a value greater than or equal to 1"),
        ("[evaluate]\nsamples = 'x'", "evaluate.samples: 'x' is not right; expected a valid integer"),
        ("[policy]\ndtype = 'int4'", "policy.dtype: 'int4' is not right; expected 'float32' or 'bfloat16'"),
        ("train = 3", "train: 3 is not right; expected a table"),
    ],
)
def test_a_mistake_names_the_field_the_value_and_what_would_be_right(text: str, message: str) -> None:
    written(text)
    with pytest.raises(UserError) as raised:
        load_settings(None)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("FACTORY_POLCY__LINE", "x", ("FACTORY_POLCY__LINE", "no such field", "FACTORY_POLICY")),
        ("FACTORY_POLICY__LIN", "x", ("policy.lin", "no such field", "line")),
        ("FACTORY_POLICY", "not json", ("policy",)),
        ("FACTORY_NIGHTLY__SECONDS", "soon", ("nightly.seconds", "soon", "number")),
    ],
)
def test_mistakes_in_the_environment(name: str, value: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UserError) as raised:
        load_settings(None)
    assert all(word in str(raised.value) for word in words)


def test_files_that_cannot_be_read() -> None:
    with pytest.raises(UserError, match=r"--config: 'nowhere\.toml' is not right"):
        load_settings(Path("nowhere.toml"))
    with pytest.raises(UserError, match="a TOML file"):
        load_settings(written("= 1", "bad.toml"))
    Path("bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="a TOML file"):
        load_settings(Path("bytes.toml"))


def test_the_digest_is_of_what_decides_the_result() -> None:
    base = load_settings(None).digest
    assert load_settings(None, data=Path("elsewhere"), registry="sqlite:///x.db").digest == base
    assert load_settings(None, nightly={"seconds": 5, "tokens": 7}).digest == base
    others = [
        load_settings(None, **{table: {name: value}}).digest
        for table, name, value in [
            ("generate", "seed", 3),
            ("generate", "terminal", 301),
            ("policy", "temperature", 0.9),
            ("terminal", "pools", 4),
            ("split", "compositions", 7),
            ("sandbox", "backend", "docker"),
        ]
    ]
    assert len({base, *others}) == 7


def test_the_order_of_keys_does_not_change_the_digest() -> None:
    one = load_settings(written("[train]\nsteps = 1\ngroups = 2\n[terminal]\npools = 3\nturns = 4", "one.toml"))
    other = load_settings(written("[terminal]\nturns = 4\npools = 3\n[train]\ngroups = 2\nsteps = 1", "other.toml"))
    assert one.digest == other.digest


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.5
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Room:
    count: int = 1
    limit: float | None = None
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError("room.count", self.count, "at least 1")


def test_a_section_becomes_its_rooms_configuration() -> None:
    table = {"count": "4", "limit": 2, "inner": {"rate": 1, "names": ["a", "b"]}}
    assert section(Room, table, "room") == Room(count=4, limit=2.0, inner=Inner(rate=1.0, names=("a", "b")))
    assert section(Room, {}, "room") == Room()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"conut": 1}, "room.conut: no such field; expected count"),
        ({"zzz": 1}, "room.zzz: no such field; expected one of count, inner, limit"),
        ({"inner": {"rat": 1}}, "room.inner.rat: no such field; expected rate"),
        ({"count": "many"}, "room.count: 'many' is not right; expected a valid integer"),
        ({"inner": 3}, "room.inner: 3 is not right"),
        ({"count": 0}, "room.count: 0 is not right; expected at least 1"),
    ],
)
def test_mistakes_in_a_section(table: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as raised:
        section(Room, table, "room")
    assert str(raised.value).startswith(message)


def test_unknown_fields_are_users_mistakes_that_pickle() -> None:
    import pickle

    error = UnknownField("a.b", 1, "c")
    assert isinstance(error, UserError)
    assert str(pickle.loads(pickle.dumps(error))) == "a.b: no such field; expected c"


def test_every_option_is_read_somewhere() -> None:
    """No setting does nothing: each field's name stands in the code outside the settings."""
    root = Path(__file__).parents[2]
    rooms = ("factory/flows", "factory/cli", "factory/report")
    code = "\n".join(path.read_text() for room in rooms for path in (root / room).rglob("*.py"))
    code += "".join((root / "factory/settings.py").read_text().split("def database_url")[1:])
    for name, info in Settings.model_fields.items():
        fields = getattr(info.annotation, "model_fields", {})
        for one in fields or [name]:
            assert f".{one}" in code, f"{name}.{one}"


def test_of_the_endpoint_only_the_model_decides_the_result() -> None:
    base = load_settings(None).digest
    asked = {"address": "http://127.0.0.1:8000/v1", "model": "writer"}
    with_model = load_settings(None, endpoint=asked).digest
    assert with_model != base
    elsewhere = {**asked, "address": "http://elsewhere/v1", "retries": 9, "tokens": 5}
    assert load_settings(None, endpoint=elsewhere).digest == with_model
    assert load_settings(None, endpoint={**asked, "model": "another"}).digest not in (base, with_model)
    assert load_settings(None, endpoint={"model": "writer"}).digest == base
