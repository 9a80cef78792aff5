"""Deployments: the nightly flow on its schedule, served by this process."""

from __future__ import annotations

from pathlib import Path

from prefect.schedules import Cron

from factory.flows.nightly import nightly
from factory.settings import Settings


def serve(settings: Settings, config: Path | None) -> None:
    """Serve the nightly flow on the settings' cron until interrupted. One run at a time; a late one is not doubled."""
    nightly.serve(
        name="nightly",
        schedule=Cron(settings.nightly.cron, timezone=settings.nightly.timezone),
        parameters={"config": str(config.resolve()) if config else None, "data": str(settings.data.resolve())},
        global_limit=1,
        pause_on_shutdown=False,
    )
