"""The entry point: the table of commands, and the one boundary where errors become exit codes.

Exit codes: 0 done, 1 the work failed, 2 the user's input is not right, 130 interrupted.
"""

from __future__ import annotations

from factory.cli import interrupt  # isort: split

import logging
import os
import sys

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError

from factory.cli.quiet import quiet
from factory.core.errors import FactoryError, UserError

app = typer.Typer(
    name="factory",
    help="Make, check, register and train on environments for language-model agents.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _commands() -> None:
    from factory.cli import audit, doctor, exchange, report, run, splits, tasks, trajectories

    for module in (run, doctor, report):
        module.add_to(app)
    exchange.add_to(tasks.app)
    app.add_typer(tasks.app, name="tasks")
    app.add_typer(trajectories.app, name="trajectories")
    app.add_typer(splits.aliases, name="alias")
    app.add_typer(splits.app, name="split")
    app.add_typer(audit.app, name="audit")


_commands()


def main() -> None:
    """Run the command line; the only place where an error turns into a message and an exit code."""
    try:
        _log(os.environ.get("FACTORY_LOG", "WARNING"))
        code = app(standalone_mode=False, prog_name="factory") or 0
        if code == interrupt.CODE:
            interrupt.tell()
        sys.exit(code)
    except NoArgsIsHelpError as error:
        _say(error.format_message())
        sys.exit(0)
    except ClickException as error:
        _say(f"factory: {' '.join(error.format_message().split())}")
        sys.exit(2)
    except UnicodeEncodeError:
        odd = [word for word in sys.argv[1:] if not _is_text(word)]
        if not odd:
            raise
        _say(f"factory: argument: {odd[0]!r} is not right; expected text in UTF-8")
        sys.exit(2)
    except UserError as error:
        _say(f"factory: {_line(error)}")
        sys.exit(2)
    except (FactoryError, OSError) as error:  # OSError: a full disk, a file where a folder should be
        _say(f"factory: {type(error).__name__}: {_line(error)}")
        sys.exit(1)


def _log(level: str) -> None:
    """Log to stderr. What Prefect says of a run that failed is the error that `main` tells, at length and with a trace."""
    known = logging.getLevelNamesMapping()
    if level.upper() not in known:
        raise UserError("FACTORY_LOG", level, f"one of {', '.join(known)}")
    quiet(known[level.upper()])
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: not record.name.startswith(("prefect.flow_runs", "prefect.task_runs")))
    logging.basicConfig(level=known[level.upper()], format="%(levelname)s %(name)s: %(message)s", handlers=[handler])


def _is_text(word: str) -> bool:
    """Whether an argument can be stored: bytes that are no UTF-8 come as lone surrogates, good for paths alone."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _say(line: str) -> None:
    typer.echo(line, err=True)


if __name__ == "__main__":
    main()
