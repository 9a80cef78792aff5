"""Triggers that refuse a write, on SQLite and PostgreSQL alike. For migrations: they write through Alembic's `op`."""

from __future__ import annotations

from alembic import op


def embedded() -> bool:
    """Whether the database that is migrated is SQLite."""
    return op.get_bind().dialect.name == "sqlite"


def refuse(name: str, table: str, event: str, condition: str, refusal: str, *, columns: str = "") -> None:
    """Refuse INSERT, UPDATE or DELETE of a row of `table` where `condition`, SQL over NEW and OLD, is true.

    `columns`: only an UPDATE that names one of them. `refusal` is the error's message, without quotes or percent signs.
    """
    of = f" OF {columns}" if columns else ""
    if embedded():
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {event}{of} ON {table} FOR EACH ROW "
            f"WHEN {condition} BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
        )
        return
    passed = "OLD" if event == "DELETE" else "NEW"
    raising = f"RAISE EXCEPTION '{refusal}' USING ERRCODE = 'integrity_constraint_violation';"
    postgresql_function(name, f"IF {condition} THEN {raising} END IF; RETURN {passed};")
    op.execute(f"CREATE TRIGGER {name} BEFORE {event}{of} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()")


def drop(name: str, table: str) -> None:
    """Remove what `refuse` made."""
    if embedded():
        op.execute(f"DROP TRIGGER {name}")
    else:
        op.execute(f"DROP TRIGGER {name} ON {table}")
        op.execute(f"DROP FUNCTION {name}()")


def postgresql_function(name: str, body: str) -> None:
    """A trigger's function."""
    op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$")
