"""Plots as inline SVG, drawn by matplotlib without pyplot: no global figures, the same data gives the same bytes.

Figures are drawn as wide as a phone's screen, so that their letters are readable there; wider screens show them side
by side. Colours are those of Okabe and Ito (2008), told apart by colour-blind readers.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

BLUE, ORANGE, GREEN, RED, GREY, SKY, PINK = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#999999", "#56b4e9", "#cc79a7"
PALETTE = (BLUE, ORANGE, GREEN, SKY, PINK, RED, GREY)
WIDTH = 4.6
"""Inches."""
LABEL = 28
"""Most characters of a label inside a figure: a longer one would leave no room for the data."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "envfactory",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "text.parse_math": False,
}
_NAMELESS = re.compile(r' id="[a-z0-9]+(?:_[a-z0-9]+)*_\d+"')
"""Identifiers that nothing refers to and that several figures on one page would share."""


def draw(label: str, height: float, paint: Callable[[Axes], None]) -> str:
    """An `<svg>` element, `height` inches high, that screen readers call `label`."""
    with rc_context(_STYLE), warnings.catch_warnings():
        # The reader's browser has letters that the font used for measuring lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        paint(figure.add_subplot())
        text = StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = _NAMELESS.sub("", svg[svg.index("<svg ") :])
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label, quote=True)}" ', 1)


def stacked(label: str, rows: Mapping[str, Mapping[str, float]], series: Mapping[str, str], unit: str) -> str:
    """Horizontal bars, one a row, made of the series (name to colour), in their order."""

    def paint(axes: Axes) -> None:
        names = list(rows)[::-1]
        places = range(len(names))
        left = [0.0] * len(names)
        for one, colour in series.items():
            widths = [rows[name].get(one, 0) for name in names]
            if any(widths):
                axes.barh(places, widths, left=left, color=colour, label=_short(one), height=0.6)
            left = [begin + width for begin, width in zip(left, widths, strict=True)]
        axes.set_yticks(places, [_short(name) for name in names])
        axes.set_xlabel(_short(unit))
        axes.grid(axis="y", visible=False)
        _legend(axes)

    return draw(label, 1.25 + 0.32 * len(rows), paint)


def histogram(label: str, parts: Mapping[str, Mapping[float, int]], bins: int) -> str:
    """Tasks by pass rate: `bins` + 1 bars centred on k / `bins`, stacked by part."""

    def paint(axes: Axes) -> None:
        bottom = [0] * (bins + 1)
        for (part, counts), colour in zip(parts.items(), PALETTE, strict=False):
            heights = [counts.get(k / bins, 0) for k in range(bins + 1)]
            axes.bar([k / bins for k in range(bins + 1)], heights, 0.85 / bins, bottom=bottom, color=colour, label=_short(part))
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
        axes.set_xlabel("pass rate of the latest assessment")
        axes.set_ylabel("accepted tasks")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="x", visible=False)
        _legend(axes)

    return draw(label, 2.7, paint)


def curve(label: str, points: Sequence[tuple[float, float, float, float]], xlabel: str, ylabel: str) -> str:
    """A line of (x, mean, low, high) with its intervals as a band."""

    def paint(axes: Axes) -> None:
        x, mean, low, high = zip(*points, strict=True)
        axes.plot(x, mean, color=BLUE, marker="o", markersize=3 if len(x) <= 40 else 0, linewidth=1.4)
        axes.fill_between(x, low, high, color=BLUE, alpha=0.18, linewidth=0)
        axes.set_xlabel(_short(xlabel))
        axes.set_ylabel(_short(ylabel))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_ylim(min(0.0, *low) - 0.02, 1.02)

    return draw(label, 2.6, paint)


def ranges(label: str, rows: Sequence[tuple[str, Mapping[str, Mapping[str, Any]]]], xlabel: str) -> str:
    """For each row its intervals (`mean`, `low`, `high`) by series: a dot with whiskers."""
    series = list(dict.fromkeys(name for _, intervals in rows for name in intervals))

    def paint(axes: Axes) -> None:
        for number, name in enumerate(series):
            shift = 0.28 * (number - (len(series) - 1) / 2)
            points = [(place + shift, found[name]) for place, (_, found) in enumerate(rows) if name in found]
            y, intervals = zip(*points, strict=True)
            mean = [one["mean"] for one in intervals]
            error = [[one["mean"] - one["low"] for one in intervals], [one["high"] - one["mean"] for one in intervals]]
            colour = PALETTE[number % len(PALETTE)]
            axes.errorbar(mean, y, xerr=error, fmt="o", color=colour, capsize=3, markersize=5, label=_short(name))
        axes.set_yticks(range(len(rows)), [_short(name) for name, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(_short(xlabel))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.grid(axis="y", visible=False)
        _legend(axes)

    return draw(label, 1.25 + 0.42 * len(rows), paint)


def _short(label: str) -> str:
    return label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"


def _legend(axes: Axes) -> None:
    """Above the axes, where it hides nothing."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        columns = min(3, len(names))
        axes.legend(handles, names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, fontsize=8)
