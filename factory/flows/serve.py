"""Deployments: the nightly flow on its schedule, served by this process."""

from __future__ import annotations

from pathlib import Path

from prefect.schedules import Cron, Schedule

from factory.core.errors import UserError
from factory.flows.nightly import nightly
from factory.settings import Settings


def schedule(settings: Settings) -> Schedule:
    """The settings' schedule. Raises UserError when it is none."""
    when = settings.nightly
    try:
        return Cron(when.cron, timezone=when.timezone)
    except ValueError:
        expected = "five fields of cron and the name of a time zone, for example `0 2 * * *` and `Europe/Paris`"
        raise UserError("nightly.cron, nightly.timezone", f"{when.cron}, {when.timezone}", expected) from None


def serve(settings: Settings, config: Path | None) -> None:
    """Serve the nightly flow on the settings' cron until interrupted. One run at a time; a late one is not doubled."""
    nightly.serve(
        name="nightly",
        schedule=schedule(settings),
        parameters={"config": str(config.resolve()) if config else None, "data": str(settings.data.resolve())},
        global_limit=1,
        pause_on_shutdown=False,
    )
