"""Evaluation repositories stay out, whatever a key spells: through the code, and past it with plain SQL."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from factory.core.errors import Excluded, InvalidTask, UserError
from factory.core.task import TaskKind, repository_key
from registry.store import Registry
from tests.registry.material import candidate

Raw = Callable[[str], None]

DISGUISED = [
    "django.git",
    "django/",
    "scikit__learn",
    " django",
    "django ",
    "Django",
    "scikit_learn",
    "psf/django//",
    "psf//django",
    "psf/-django",
    "psf-/django",
    "-django",
    "django-",
    "\ufeffdjango",
    "dja\u200bngo",
    "ｄｊａｎｇｏ",
    "django\n",
    "django\t",
    "djang\N{CYRILLIC SMALL LETTER O}",
    "/",
    "-",
]
KINDS = ["Repository:django", "REPOSITORY:django", " repository:django", "repository :django", ":django", "repository:", "none"]


@pytest.fixture
def sound(registry: Registry) -> str:
    return registry.register(candidate(registry.blobs, 1)).digest


def key_of(task: str, key: str) -> str:
    return f"INSERT INTO task_keys (task, key, position) VALUES ('{task}', '{key}', 9)"


@pytest.mark.parametrize("name", DISGUISED)
def test_a_repository_has_no_key_but_the_canonical_one(registry: Registry, raw: Raw, sound: str, name: str) -> None:
    with pytest.raises(IntegrityError, match=r"not in canonical form|excluded repository"):
        raw(key_of(sound, f"repository:{name}"))
    with pytest.raises(InvalidTask, match="split key"):
        registry.register(candidate(registry.blobs, kind=TaskKind.REPOSITORY, keys=(f"repository:{name}",)))
    with pytest.raises(InvalidTask, match="split key"):
        registry.add_keys([(sound, f"repository:{name}")])
    assert len(registry.query()) == 1 and registry.keys(sound) == ("signature:1", "slots:1")


@pytest.mark.parametrize("key", KINDS)
def test_a_key_names_its_kind_in_one_spelling(registry: Registry, raw: Raw, sound: str, key: str) -> None:
    with pytest.raises(IntegrityError, match=r"split key without a kind|split key of|excluded repository"):
        raw(key_of(sound, key))
    with pytest.raises(InvalidTask, match="kind:value"):
        registry.add_keys([(sound, key)])


@pytest.mark.parametrize("name", ["django", "anyone/django", "github-com/anyone/scikit-learn", "sympy"])
def test_an_excluded_name_is_refused_with_any_owner(registry: Registry, raw: Raw, sound: str, name: str) -> None:
    with pytest.raises(IntegrityError, match="excluded repository"):
        raw(key_of(sound, f"repository:{name}"))
    with pytest.raises(Excluded, match=name):
        registry.add_keys([(sound, f"repository:{name}")])


@pytest.mark.parametrize("name", ["django-like", "my-django", "django/tools", "flask-django/x", "jango", "d", "requests2"])
def test_names_that_only_resemble_an_excluded_one_are_free(registry: Registry, raw: Raw, sound: str, name: str) -> None:
    registry.add_keys([(sound, f"repository:{name}")])
    other = registry.register(candidate(registry.blobs, 2)).digest
    raw(key_of(other, f"repository:{name}"))
    assert registry.keys(sound)[-1] == registry.keys(other)[-1] == f"repository:{name}"


@pytest.mark.parametrize(
    "value", ["CAST('repository:django' AS BLOB)", "'repository:foo' || char(0) || '/django'", "x'72653a31'"]
)
def test_no_other_type_and_no_nul_passes(registry: Registry, raw: Raw, sound: str, value: str) -> None:
    if not registry._database.embedded:
        pytest.skip("SQLite's: PostgreSQL's text has one type and no NUL")
    with pytest.raises(IntegrityError, match="split key"):
        raw(f"INSERT INTO task_keys (task, key, position) VALUES ('{sound}', {value}, 9)")
    with pytest.raises(IntegrityError, match="canonical form"):
        raw("INSERT INTO excluded_repositories VALUES (CAST('mine' AS BLOB), '', '')")


def test_canonical_keys_pass_the_trigger_and_it_agrees_with_the_code(registry: Registry, sound: str) -> None:
    engine = create_engine(registry._database.url)
    excluded = frozenset(registry.excluded())
    insertion = text("INSERT INTO task_keys (task, key, position) VALUES (:task, :key, 9)")

    def passes(key: str) -> bool:
        with engine.connect() as connection, connection.begin() as transaction:
            try:
                connection.execute(insertion, {"task": sound, "key": key})
            except DBAPIError:
                return False
            transaction.rollback()
            return True

    letters = st.characters(exclude_categories=["Cs"])
    near = st.lists(st.sampled_from([*"ab9-/._ ", "django", ".git", "\ufeff", "É", "\0", "\n"]), max_size=6).map("".join)

    @settings(deadline=None)
    @given(st.text(letters) | near)
    def agree(name: str) -> None:
        try:
            canonical = repository_key(name)
        except UserError:
            assert not passes(f"repository:{name}")
            return
        allowed = canonical.rpartition("/")[2].removeprefix("repository:") not in excluded
        assert passes(canonical) == allowed
        assert passes(f"repository:{name}") == (allowed and canonical == f"repository:{name}")

    agree()
    engine.dispose()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE excluded_repositories SET name = 'other' WHERE name = 'django'", "append-only"),
        ("UPDATE excluded_repositories SET reason = ''", "append-only"),
        ("DELETE FROM excluded_repositories WHERE name = 'django'", "append-only"),
        ("DELETE FROM excluded_repositories", "append-only"),
        ("INSERT INTO excluded_repositories VALUES ('django', 'mine', '')", "append-only"),
        (
            "INSERT INTO excluded_repositories VALUES ('django', '', '') ON CONFLICT (name) DO UPDATE SET reason = ''",
            "append-only",
        ),
        ("INSERT INTO excluded_repositories VALUES ('Mine', '', '')", "canonical form"),
        ("INSERT INTO excluded_repositories VALUES ('me/mine', '', '')", "canonical form"),
        ("INSERT INTO excluded_repositories VALUES ('', '', '')", "canonical form"),
    ],
)
def test_exclusions_are_append_only(registry: Registry, raw: Raw, statement: str, said: str) -> None:
    before = registry.excluded()
    with pytest.raises(IntegrityError, match=said):
        raw(statement)
    assert registry.excluded() == before and "django" in before


def test_an_exclusion_by_sql_counts_like_one_by_code(registry: Registry, raw: Raw, sound: str) -> None:
    raw("INSERT INTO excluded_repositories VALUES ('mine', 'ours', '')")
    with pytest.raises(Excluded):
        registry.add_keys([(sound, "repository:me/mine")])
    with pytest.raises(IntegrityError, match="excluded repository"):
        raw(key_of(sound, "repository:me/mine"))


def test_excluding_is_idempotent_and_takes_any_spelling(registry: Registry) -> None:
    for spelling in ("https://example.org/me/My_Eval.git", "my-eval", "ＭＹ.ＥＶＡＬ"):
        registry.exclude(spelling, "ours")
    assert set(registry.excluded()) > {"my-eval"} and len(registry.excluded()) == 13
    assert [entry.subject for entry in registry.audit_log(action="exclude")] == ["my-eval"]
    with pytest.raises(UserError, match="repository"):
        registry.exclude(" /.git", "ours")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR REPLACE INTO excluded_repositories VALUES ('django', '', '')",
        "INSERT OR REPLACE INTO excluded_repositories (rowid, name, reason, created_at) VALUES ({taken}, 'zzz', '', '')",
        "INSERT OR REPLACE INTO excluded_repositories (rowid, name, reason, created_at) VALUES (-1, 'zzz', '', '')",
        "UPDATE OR REPLACE excluded_repositories SET rowid = 99 WHERE name = 'django'",
        "INSERT OR REPLACE INTO task_keys (rowid, task, key, position) SELECT rowid, task, 'a:x', 9 FROM task_keys LIMIT 1",
        "INSERT OR REPLACE INTO task_keys SELECT task, key, 99 FROM task_keys LIMIT 1",
        "INSERT OR REPLACE INTO origins SELECT task, digest, 'x', '1', '', '', '', '{{}}', NULL, '' FROM origins LIMIT 1",
        "INSERT OR REPLACE INTO status_events SELECT id, task, old, new, 'forged', run, created_at FROM status_events LIMIT 1",
    ],
)
def test_a_replacing_insertion_finds_nothing_to_replace(registry: Registry, raw: Raw, sound: str, statement: str) -> None:
    if not registry._database.embedded:
        pytest.skip("INSERT OR REPLACE and rowids are SQLite's")
    tables = ("excluded_repositories", "task_keys", "origins", "status_events")

    def rows() -> list[object]:
        with registry._database.read() as connection:
            return [connection.execute(text(f"SELECT rowid, * FROM {table}")).all() for table in tables]

    before = rows()
    with pytest.raises(IntegrityError):
        raw(statement.format(taken=before[0][0][0]))  # type: ignore[index]
    assert rows() == before
    # What leaves the rowid to the database is none of these.
    registry.exclude("another", "ours")
    assert registry.register(candidate(registry.blobs, 2)).created


def test_tasks_are_found_by_any_spelling_of_their_repository(registry: Registry) -> None:
    one = candidate(registry.blobs, kind=TaskKind.REPOSITORY, keys=(repository_key("zope.interface"),), source="zope 7.0")
    digest = registry.register(one).digest
    for source in ("zope.interface", "Zope_Interface.git", "zope-interface", "zope 7.0"):
        assert [row.digest for row in registry.query(source=source)] == [digest], source
    for source in ("zope", "", "项目"):
        assert registry.query(source=source) == []
