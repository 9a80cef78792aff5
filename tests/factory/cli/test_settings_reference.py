"""The written list of settings: whole, current, each setting documented, and as the settings are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.cli.settings_reference import reference, settings
from factory.core.errors import UnknownField
from factory.flows.sections import check_sections
from factory.settings import load_settings

from .command import ROOT

NAMES = [f"{one.table}.{one.name}".lstrip(".") for one in settings()]


def test_the_written_list_is_that_of_the_classes() -> None:
    """After a change of a setting: `python -m factory.cli.settings_reference > docs/settings.md`."""
    assert (ROOT / "docs" / "settings.md").read_text() == reference()


def test_every_setting_says_what_it_does() -> None:
    assert [f"{one.table}.{one.name}" for one in settings() if not one.meaning] == []


def test_names_of_every_depth_stand_once() -> None:
    assert len(NAMES) == len(set(NAMES)) > 150
    assert {"data", "policy.line", "policy.shares.terminal", "screen.references", "train.learner.loss.kl"} <= set(NAMES)


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("train.reward.per_call", "-0.05"),  # of its place; the class's own is 0
        ("repository.limits.memory_bytes", "1_073_741_824"),
        ("policy.servers", "[]"),
        ("nightly.seconds", ""),
    ],
)
def test_defaults_are_those_of_the_place(name: str, default: str) -> None:
    (found,) = [one for one in settings() if f"{one.table}.{one.name}" == name]
    assert found.default == default


def test_every_default_that_is_listed_is_read_as_a_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list written out as a file is accepted, and says the same as no file at all."""
    monkeypatch.chdir(tmp_path)
    lines, table = [], ""
    for one in settings():
        if one.table != table:
            table = one.table
            lines.append(f"[{table}]")
        if one.default:
            lines.append(f"{one.name} = {one.default}")
    (tmp_path / "all.toml").write_text("\n".join(lines))
    loaded, plain = load_settings(tmp_path / "all.toml"), load_settings(None)
    check_sections(loaded)
    assert loaded.policy == plain.policy and loaded.nightly == plain.nightly and loaded.data == plain.data
    (tmp_path / "wrong.toml").write_text("\n".join(lines).replace("clip_low =", "clip_lo ="))
    with pytest.raises(UnknownField, match=r"train\.learner\.loss\.clip_lo: no such field; expected clip_low"):
        check_sections(load_settings(tmp_path / "wrong.toml"))
