"""Plots: valid SVG, the same bytes for the same data, labels that cannot break out."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import pytest

from factory.report import plots

SVG = "{http://www.w3.org/2000/svg}"
INTERVAL = {"mean": 0.5, "low": 0.25, "high": 0.75}
DRAWN: dict[str, Callable[[str], str]] = {
    "stacked": lambda name: plots.stacked(name, {name: {"a": 1, "b": 2}, "other": {"a": 3}}, {"a": "red", "b": "blue"}, name),
    "histogram": lambda name: plots.histogram(name, {name: {0.0: 2, 0.5: 1}, "other": {1.0: 4}}, 4),
    "curve": lambda name: plots.curve(name, [(1, 0.2, 0.1, 0.3), (2, 0.4, 0.3, 0.6)], name, name),
    "ranges": lambda name: plots.ranges(
        name, [(name, {"before": INTERVAL, "after": INTERVAL}), ("x", {"after": INTERVAL})], name
    ),
}
HOSTILE = ['"><script>alert(1)</s>', "</svg></figure>&amp;'", r"$\frac{1}$ and $x", "\N{SNOWMAN} 夜", "", "x" * 300]


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("name", ["plain", *HOSTILE])
def test_labels_are_text(kind: str, name: str) -> None:
    drawn = DRAWN[kind](name)
    root = ElementTree.fromstring(drawn)
    assert root.tag == f"{SVG}svg"
    assert root.get("aria-label") == name
    assert not list(root.iter(f"{SVG}script"))
    if name.strip() and len(name) <= plots.LABEL:
        assert name in {(one.text or "").strip() for one in root.iter(f"{SVG}text")} or kind == "histogram"


@pytest.mark.parametrize("kind", DRAWN)
def test_the_same_data_gives_the_same_bytes_without_a_date(kind: str) -> None:
    first = DRAWN[kind]("name")
    assert DRAWN[kind]("name") == first
    assert "<dc:date>" not in first
    assert DRAWN[kind]("another") != first


@pytest.mark.parametrize("kind", DRAWN)
def test_nothing_is_fetched(kind: str) -> None:
    """The only addresses are names of namespaces, and links lead into the picture itself."""
    root = ElementTree.fromstring(DRAWN[kind]("name"))
    for element in root.iter():
        assert element.tag not in (f"{SVG}image", f"{SVG}style") or "url(" not in (element.text or "")
        for name, value in element.attrib.items():
            if name.endswith("href"):
                assert value.startswith("#")


def test_drawing_leaves_no_global_state() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.curve("name", [(1, 0.2, 0.1, 0.3)], "x", "y")
    assert dict(matplotlib.rcParams) == before
    assert "pyplot" not in vars(plots)


def test_bars_are_as_long_as_their_values() -> None:
    """Widths of the drawn bars are in the ratio of the values."""
    drawn = plots.stacked("name", {"one": {"a": 10.0}, "two": {"a": 40.0}}, {"a": "#123456"}, "tasks")
    bars = [one.get("d", "") for one in ElementTree.fromstring(drawn).iter(f"{SVG}path") if "#123456" in one.get("style", "")]
    widths = sorted(_width(path) for path in bars)
    assert widths[1] / widths[0] == pytest.approx(4.0, rel=1e-3)


def _width(path: str) -> float:
    x = [float(token) for token in path.replace("\n", " ").split()[1::3]]
    return max(x) - min(x)
