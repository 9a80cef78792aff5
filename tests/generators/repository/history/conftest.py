"""A small project with a history: every kind of change that history tasks come from."""

from __future__ import annotations

from pathlib import Path

import git
import pytest

from generators.repository.projects import load_fleet

LARGEST = """def largest(items, key=None):
    best = None
    for item in items:
        value = item if key is None else key(item)
        if best is None or value {sign} best[0]:
            best = (value, item)
    return None if best is None else best[1]
"""
AREA = '''def area(width, height=1):
    """Width times height."""
{check}    return width * height
'''
CHECK = '    if width < 0 or height < 0:\n        raise ValueError("negative")\n'
UNUSED = "def unused(a, b):\n    return a {sign} b\n"
COUNTDOWN = """def countdown(number):
    found = []
    while number > {last}:
        found.append(number)
        number -= 1
    return found
"""
PERIMETER = "def perimeter(width, height):\n    return 2 * (width + height)\n"
LINES = '''"""Points and lines."""


def midpoint(one, two):
    return tuple((a + b) {half} for a, b in zip(one, two))
'''


def shapes(sign: str = "<", check: str = "", unused: str = "+", last: str = "1", more: str = "") -> str:
    parts = ['"""Shapes."""', AREA.format(check=check).strip("\n"), LARGEST.format(sign=sign).strip("\n")]
    parts += [
        COUNTDOWN.format(last=last).strip("\n"),
        UNUSED.format(sign=unused).strip("\n"),
        *([more.strip("\n")] if more else []),
    ]
    return "\n\n\n".join(parts) + "\n"


BASE_TESTS = "\n".join(
    ["from shapes import area, countdown, largest, unused", "from shapes.lines import midpoint", "", ""]
    + [f"def test_area_{n}():\n    assert area({n}, 3) == {3 * n}\n\n" for n in range(5)]
    + [f"def test_unused_{n}():\n    assert unused({n}, 0) == {n}\n\n" for n in range(3)]
)
TEST_LARGEST = """def test_largest():
    assert largest([3, 9, 4]) == 9


def test_largest_of_two():
    assert largest([1, 2]) == 2


"""
TEST_NEGATIVE = """def test_negative():
    try:
        area(-1, 2)
    except ValueError:
        return
    raise AssertionError("no error")


"""
TEST_MIDPOINT = """def test_midpoint():
    assert midpoint((0, 0), (2, 4)) == (1, 2)


"""
TEST_PERIMETER = """from shapes import perimeter


def test_perimeter():
    assert perimeter(1, 2) == 6


def test_perimeter_of_a_square():
    assert perimeter(2, 2) == 8
"""

BASE = {
    "shapes/__init__.py": shapes(),
    "shapes/lines.py": LINES.format(half="/ 3"),
    "tests/test_shapes.py": BASE_TESTS,
    "README.md": "Shapes.\n",
    "CHANGES.md": "Nothing yet.\n",
}
FIXED = {
    **BASE,
    "shapes/__init__.py": shapes(">", unused="-"),
    "tests/test_shapes.py": BASE_TESTS + TEST_LARGEST,
    "CHANGES.md": "`largest` compares with > now.\n",
}
MIXED = {
    **FIXED,
    "shapes/__init__.py": shapes(">", CHECK, unused="-"),
    "shapes/lines.py": LINES.format(half="/ 2"),
    "tests/test_shapes.py": BASE_TESTS + TEST_LARGEST + TEST_NEGATIVE + TEST_MIDPOINT,
}
FEATURE = {
    **MIXED,
    "shapes/__init__.py": shapes(">", CHECK, unused="-", more=PERIMETER),
    "tests/test_perimeter.py": TEST_PERIMETER,
}
UNTESTED = {**FEATURE, "shapes/__init__.py": shapes(">", CHECK, unused="-", last="0", more=PERIMETER)}
DOCUMENTED = {**UNTESTED, "README.md": "Shapes and lines.\n"}
MOVED = {
    **{path: text for path, text in DOCUMENTED.items() if path != "shapes/lines.py"},
    "shapes/points.py": LINES.format(half="/ 2"),
    "tests/test_shapes.py": DOCUMENTED["tests/test_shapes.py"].replace("shapes.lines", "shapes.points"),
}
STATES = {
    "base": BASE,
    "largest was the least": FIXED,
    "two repairs": MIXED,
    "perimeter": FEATURE,
    "countdown ends at one": UNTESTED,
    "words": DOCUMENTED,
    "points": MOVED,
}
"""Commit message and the files after it, oldest first."""


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit for each state."""
    root = tmp_path_factory.mktemp("history") / "shapes"
    with git.Repo.init(root) as repository:
        with repository.config_writer() as config:
            config.set_value("user", "name", "n").set_value("user", "email", "e@example.org")
        held: dict[str, str] = {}
        for message, files in STATES.items():
            for path in held.keys() - files.keys():
                (root / path).unlink()
                repository.index.remove([path])
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            repository.index.add(list(files))
            repository.index.commit(message)
            held = files
    return root


@pytest.fixture(scope="session")
def history_fleet(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of that repository, its history an entry."""
    lock = "".join(f'"{line}",\n' for line in load_fleet().locks["pytest"])
    path = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    path.write_text(
        f'[locks]\npytest = [\n{lock}]\n[[project]]\nname = "shapes"\nversion = "HEAD"\ngit = "{history}"\n'
        'sources = ["shapes"]\ntests = ["tests"]\nlicence = "MIT"\n'
        f'[[history]]\nproject = "shapes"\ngit = "{history}"\n'
    )
    return path
