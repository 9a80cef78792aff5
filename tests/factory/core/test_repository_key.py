from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from factory.core.errors import UserError
from factory.core.task import REPOSITORY, canonical_key, repository_key

# Written out by hand: what people and tools write for one project.
SPELLINGS = {
    "django": [
        "django",
        "Django",
        " django\n",
        "django/",
        "/django//",
        "django.git",
        "django.git/",
        "django/.git",
        "DJANGO.GIT.git",
        "\ufeffdjango",
        "dja\u200bngo",
        "djan\u00adgo\u2060",
        "django\ufe0f",
        "ｄｊａｎｇｏ",
        "𝐝𝐣𝐚𝐧𝐠𝐨",
        "-_django._",
        "django/-",
    ],
    "psf/requests": [
        "psf/requests",
        "PSF//Requests",
        "psf/requests.git",
        "./psf/requests/",
        "psf／requests",
        " psf / requests ",
    ],
    "scikit-learn": ["scikit_learn", "scikit__learn", "scikit.learn", "scikit - learn", "Scikit-Learn", "scikit-_-learn"],
    "zope-interface": ["zope.interface", "Zope_Interface"],
    "my-project": ["My_Project", "my--project"],
    "https/github-com/django/django": ["https://github.com/django/django.git"],
    "git-github-com-django/django": ["git@github.com:django/django.git"],
    "tools-github": ["tools.github"],
    "digit": ["digit"],
    "x2": ["x²", "Ｘ２"],
    "k": ["\N{KELVIN SIGN}"],
}


@pytest.mark.parametrize(("name", "spelling"), [(name, one) for name, some in SPELLINGS.items() for one in some])
def test_every_spelling_of_a_repository_has_one_key(name: str, spelling: str) -> None:
    assert repository_key(spelling) == f"repository:{name}"
    assert canonical_key(f"repository:{spelling}") == f"repository:{name}"


@pytest.mark.parametrize("name", ["", " ", "/", ".git", "/.git/", "---", "\ufeff", "项目", "..//.."])
def test_a_name_without_a_letter_or_digit_is_a_users_mistake(name: str) -> None:
    with pytest.raises(UserError, match="expected a name") as caught:
        repository_key(name)
    assert "\n" not in str(caught.value)


@given(st.text() | st.text(alphabet="aB7é/-_. \ufeff\u0301git"))
@example("İ")
@example(".git" * 3)
def test_the_canonical_form_is_idempotent_and_plain(name: str) -> None:
    try:
        key = repository_key(name)
    except UserError:
        return
    assert repository_key(key.removeprefix(REPOSITORY)) == canonical_key(key) == key
    assert re.fullmatch(r"repository:[a-z0-9]+(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)*", key)
    assert repository_key(f" {name}/") == repository_key(f"{name}.git") == repository_key(f"\ufeff{name}") == key


def test_keys_of_other_kinds_are_left_alone() -> None:
    for key in ("signature:Rename+Count", "slots:Pool_3", "cluster:x/", "Repository:Django"):
        assert canonical_key(key) == key
