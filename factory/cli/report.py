"""`factory report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from factory.cli.console import emit_json, say
from factory.cli.options import ConfigOption, DataOption, JsonOption, output_file, registry_of, settings_of


def add_to(app: typer.Typer) -> None:
    """Add the command to the top level."""
    app.command()(report)


def report(
    out: Annotated[Path | None, typer.Option("--out", help="HTML file to write; default: reports/ in the data folder.")] = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page on what was made, accepted and learnt; `--json` prints its figures instead."""
    settings = settings_of(config, data)
    with registry_of(settings) as registry:
        from factory.report.collect import figures

        found = figures(registry, settings)
        if json:
            emit_json(found)
            return
        from factory.report.closing import closing
        from factory.report.page import write_page

        path = settings.data / "reports" / "report.html" if out is None else output_file(out, "--out")
        write_page(found, path)
    say("\n".join(closing(found, settings.data, path)))
