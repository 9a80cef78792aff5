"""Pieces of a page. Everything that is shown goes through `text`: names and instructions are untrusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

NOTHING = "–"
LONG = 40
"""Characters from which a cell's words wrap."""
STYLE = """
:root { --ink: #1c2430; --soft: #5b6675; --line: #dde2e8; --paper: #fff; --ground: #f4f6f8; --good: #00745a; --bad: #b34700; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
header, main, footer { max-width: 68rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.2rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.2rem; margin: 0 0 .4rem; } h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
p { margin: .3rem 0 .7rem; max-width: 46rem; } .soft { color: var(--soft); font-size: .9rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem .9rem; margin: .7rem 0; font-size: .9rem; } a { color: #0061a8; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 0 0 1rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem; margin-bottom: 1rem; }
.card { background: var(--paper); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
.card b { display: block; font-size: 1.25rem; line-height: 1.3; } .card span { color: var(--soft); font-size: .85rem; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; flex: 1 1 min(24rem, 100%); max-width: 33rem; }
figcaption { font-size: .85rem; color: var(--soft); } svg { width: 100%; height: auto; display: block; }
.wide { overflow-x: auto; margin: .3rem 0 .8rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th, td { white-space: nowrap; overflow-wrap: normal; } th { font-weight: 600; color: var(--soft); }
td.number, th.number { text-align: right; }
td.words { white-space: normal; overflow-wrap: anywhere; min-width: 16rem; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
details > summary { cursor: pointer; color: #0061a8; margin: .3rem 0; }
footer { padding-bottom: 2rem; }
"""


def text(value: Any) -> str:
    """Any value as escaped text; floats to three significant digits, None as a dash."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return escape(str(value), quote=True)


def percent(rate: float | None) -> str:
    """A share as a percentage."""
    return NOTHING if rate is None else f"{100 * rate:.1f} %"


def interval(value: Mapping[str, float] | None) -> str:
    """A rate with its 95 % interval."""
    return NOTHING if value is None else f"{percent(value['mean'])} [{percent(value['low'])}, {percent(value['high'])}]"


def duration(seconds: float | None) -> str:
    """Seconds in the unit that reads best."""
    if seconds is None:
        return NOTHING
    if seconds < 0.1:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def instant(value: str | None) -> str:
    """An instant of the registry, to the second."""
    return NOTHING if value is None else text(value[:19].replace("T", " "))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that scrolls sideways where it is wider than the screen; columns of numbers stand right."""
    lines = [[_cell(value) for value in row] for row in rows]
    kinds = [_kind([line[place] for line in lines]) for place in range(len(columns))]
    head = "".join(f"<th{kind}>{text(name)}</th>" for name, kind in zip(columns, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(line, kinds, strict=True)) + "</tr>" for line in lines
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


class Markup(str):
    """Text that is HTML already."""


def _cell(value: Any) -> str:
    return value if isinstance(value, Markup) else text(value)


def _kind(cells: Sequence[str]) -> str:
    """The class of a column: numbers, or words that may wrap."""
    if cells and all(cell == NOTHING or cell.lstrip("-")[:1].isdigit() for cell in cells):
        return ' class="number"'
    return ' class="words"' if any(len(cell) > LONG and not isinstance(cell, Markup) for cell in cells) else ""


def section(name: str, title: str, *parts: str) -> str:
    """A titled block that the contents link to."""
    return f'<section id="{name}"><h2>{text(title)}</h2>{"".join(parts)}</section>'


def paragraph(words: str, soft: bool = False) -> str:
    """Escaped words."""
    return f"<p{' class=soft' if soft else ''}>{text(words)}</p>"


def plots(*drawn: tuple[str, str]) -> str:
    """Figures (SVG, caption) side by side where there is room."""
    figures = "".join(f"<figure>{svg}<figcaption>{text(caption)}</figcaption></figure>" for svg, caption in drawn)
    return f'<div class="plots">{figures}</div>'


def folded(summary: str, *parts: str) -> str:
    """Details that open at a touch, without a script."""
    return f"<details><summary>{text(summary)}</summary>{''.join(parts)}</details>"


def mark(good: bool, words: str) -> Markup:
    """Words in the colour of good or bad news."""
    return Markup(f'<span class="{"good" if good else "bad"}">{text(words)}</span>')
