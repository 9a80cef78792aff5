"""Calls that names tell for certain."""

from __future__ import annotations

from generators.repository.calls import Routine, call_edges

FILES = {
    "src/pkg/__init__.py": "from .tools import clean\nfrom pkg import late\n",
    "src/pkg/tools.py": """
def clean(x):
    return strip(x)


def strip(x):
    return x


def twice(x):
    return x


def twice(x):
    return x + x


class Base:
    def run(self):
        return self.step()

    def step(self):
        return 1
""",
    "src/pkg/late.py": "def close(x):\n    return x\n",
    "src/pkg/main.py": """
import pkg
import pkg.late as ending
from pkg import late
from . import tools
from .tools import Base, clean as tidy, twice


def f(x):
    return tidy(x) + tools.strip(x)


def g(x):
    return pkg.clean(x), pkg.late.close(x), ending.close(x)


def shadowed(tidy):
    return tidy(1)


def local(x):
    def clean(x):
        return x

    return clean(x) + twice(x) + unknown(x)


class Child(Base):
    def __init__(self):
        self.run()
        self.other()

    def other(self):
        return Child()
""",
    "src/pkg/broken.py": "def f(:\n",
}
TOOLS, MAIN, LATE = "src/pkg/tools.py", "src/pkg/main.py", "src/pkg/late.py"


def test_calls_through_imports_modules_classes_and_self() -> None:
    found = {
        (Routine(MAIN, "f"), Routine(TOOLS, "clean")),
        (Routine(MAIN, "f"), Routine(TOOLS, "strip")),
        (Routine(MAIN, "g"), Routine(TOOLS, "clean")),
        (Routine(MAIN, "g"), Routine(LATE, "close")),
        (Routine(MAIN, "Child.__init__"), Routine(TOOLS, "Base.run")),
        (Routine(MAIN, "Child.__init__"), Routine(MAIN, "Child.other")),
        (Routine(MAIN, "Child.other"), Routine(MAIN, "Child.__init__")),
        (Routine(TOOLS, "clean"), Routine(TOOLS, "strip")),
        (Routine(TOOLS, "Base.run"), Routine(TOOLS, "Base.step")),
    }
    edges = call_edges(FILES, ("src",))
    assert set(edges) == found
    assert len(edges) == len(found)


def test_names_that_are_bound_twice_are_not_followed() -> None:
    once = {"a.py": "def f():\n    return 1\n", "b.py": "from a import f\n\ndef g():\n    return f()\n"}
    assert call_edges(once) == [(Routine("b.py", "g"), Routine("a.py", "f"))]
    for more in ("\nf = 1\n", "\ndef h():\n    global f\n    f = 2\n", "\nfrom c import f\n"):
        assert call_edges({**once, "b.py": once["b.py"] + more}) == []


def test_imports_in_a_circle_end() -> None:
    files = {"a.py": "from b import f\n\ndef g():\n    return f()\n", "b.py": "from a import f\n"}
    assert call_edges(files) == []
