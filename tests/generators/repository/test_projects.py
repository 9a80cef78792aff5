"""The fleet: what it holds, and how a wrong one is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from factory.core.digest import is_digest
from factory.core.errors import UserError
from factory.core.task import repository_key
from generators.repository.config import RepositoryConfig
from generators.repository.projects import load_fleet

EVALUATED = {"astropy", "django", "flask", "matplotlib", "pylint", "pytest", "requests", "seaborn"}
EVALUATED |= {"scikit-learn", "sphinx", "sympy", "xarray"}
"""Repositories of SWE-bench, as its paper lists them."""
PERMISSIVE = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "BSD-3-Clause OR Apache-2.0", "MIT OR AFL-2.1"}
"""SPDX expressions."""


def test_the_fleet_is_pinned_and_apart_from_evaluations() -> None:
    fleet = load_fleet()
    names = {project.name for project in fleet.projects}
    assert len(fleet.used_for("tasks")) >= 6
    assert len(fleet.used_for("demonstrations")) >= 10
    assert names.isdisjoint(EVALUATED)
    assert all(is_digest(project.sha256) and project.licence for project in fleet.projects)
    assert all("==" in line and "--hash=sha256:" in line for lines in fleet.locks.values() for line in lines)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("sqlparse", "repository:sqlparse"),
        ("zope.interface", "repository:zope-interface"),
        ("My_Project", "repository:my-project"),
    ],
)
def test_the_split_key_is_the_same_for_every_spelling(name: str, key: str) -> None:
    project = replace(load_fleet().projects[0], name=name)
    assert project.key == key and project.release.startswith(f"{name}==")


def test_the_wide_fleet_is_the_default_one_and_more() -> None:
    fleet, default = load_fleet(Path("wide")), load_fleet()
    tasks = fleet.used_for("tasks")
    assert len(tasks) >= 24 and "sqlparse" in {project.name for project in tasks}
    assert fleet.projects[: len(default.projects)] == default.projects
    assert {project.name for project in fleet.projects}.isdisjoint(EVALUATED)
    assert all(is_digest(project.sha256) and project.licence in PERMISSIVE for project in tasks)
    assert len({project.lock for project in tasks}) >= 4


def test_no_lock_holds_the_text_of_a_project_that_is_broken() -> None:
    fleet = load_fleet(Path("wide"))
    held = {repository_key(line.partition("==")[0]) for lines in fleet.locks.values() for line in lines}
    assert held.isdisjoint(project.key for project in fleet.projects)


def test_an_included_fleet_comes_first_and_its_locks_serve(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "first.toml").write_text(GOOD)
    (tmp_path / "second.toml").write_text('include = ["first.toml"]\n' + GOOD[GOOD.index("[[project") :].replace('"p"', '"q"'))
    with pytest.raises(UserError, match=r"first\.toml"):
        load_fleet(tmp_path / "second.toml")
    text = (tmp_path / "second.toml").read_text()
    (tmp_path / "second.toml").write_text(text.replace("first.toml", "below/first.toml"))
    fleet = load_fleet(tmp_path / "second.toml")
    assert [project.name for project in fleet.projects] == ["p", "q"] and fleet.locks == {"l": ()}


GOOD = '[locks]\nl = []\n[[project]]\nname="p"\nversion="1"\nfolder="/p"\nsources=["p"]\ntests=["t"]\nlicence="MIT"\nlock="l"\n'


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("not toml", "fleet"),
        (GOOD.replace('folder="/p"', ""), "project p"),
        (GOOD.replace('licence="MIT"', 'licence="MIT"\ngit="u"'), "project p"),
        (GOOD.replace('lock="l"', 'lock="m"'), "project p.lock"),
        (GOOD.replace('["t"]', "[]"), "project p.tests"),
        (GOOD + 'use="x"\n', "project p.use"),
        (GOOD + "colour=1\n", "fleet"),
        (GOOD + GOOD[GOOD.index("[[project") :], "projects"),
        (GOOD + GOOD[GOOD.index("[[project") :].replace('name="p"', 'name="P"\nuse="demonstrations"'), "projects"),
        (GOOD.replace('sources=["p"]', 'sources="p"'), "fleet"),
        (GOOD.replace('version="1"', "version=1"), "fleet"),
        (GOOD.replace("[[project]]", "[[projects]]"), "fleet"),
        ("project = 3", "fleet"),
        ("[locks]\nl = [3]", "fleet"),
        ('include = ["nowhere.toml"]', "fleet"),
        ('include = ["fleet.toml"]', "fleet"),
        ("\x00", "fleet"),
        ('include = ["default"]\n[locks]\npytest = []', "fleet.locks.pytest"),
    ],
)
def test_a_wrong_fleet_is_the_users_mistake(tmp_path: Path, text: str, field: str) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load_fleet(path)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "fields",
    [{"operators": ("none",)}, {"explicitness": ("loud",)}, {"explicitness": ()}, {"workers": 0}, {"excerpt_lines": -1}],
)
def test_a_wrong_config_is_the_users_mistake(fields: dict[str, object]) -> None:
    with pytest.raises(UserError):
        RepositoryConfig(**fields)  # type: ignore[arg-type]
