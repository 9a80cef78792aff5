"""`regex_weakened`: before and after."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from generators.repository.operators.regex_weakened import weaker
from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "regex_weakened",
    {
        r"return re.match(r'^\d+$', a)": [
            r"return re.match(r'\d+$', a)",
            r"return re.match(r'^\w+$', a)",
            r"return re.match(r'^\d*$', a)",
            r"return re.match(r'^\d+', a)",
        ],
        "return re.sub('[^,]*?', b, a)": ["return re.sub('[,]*?', b, a)", "return re.sub('[^,]*', b, a)"],
        r"return re.split(r'\+[+*]{2}', a)": [],
        "return match(r'a+', a)": [],
        "return re.match(a, r'x+')": [],
        r"return re.match('a\\d+', a)": [],
    },
)
test_at_module_level = in_modules(
    "regex_weakened",
    {
        "X = re.compile(r'a+', re.I)\n": ["X = re.compile(r'a*', re.I)\n", "X = re.compile(r'a+')\n"],
        "X = re.compile(r'a'\n    r'b+')\n": ["X = re.compile(r'a'\n    r'b*')\n"],
        'X = re.compile(r"""\n    a+  # one + more\n""", re.X)\n': [
            'X = re.compile(r"""\n    a*  # one + more\n""", re.X)\n',
            'X = re.compile(r"""\n    a+  # one + more\n""")\n',
        ],
    },
)
ATOMS = st.sampled_from(["a", r"\d", r"\.", "[^a-c]", "[]x]", r"[\]+]", "(?:b)", "(c)", "(?P<n>d)", ".", r"\u0041"])
PARTS = st.tuples(ATOMS, st.sampled_from(["", "+", "*", "?", "{2}", "{1,3}", "*?", "+?", "??", "++"])).map("".join)
PATTERNS = st.lists(PARTS | st.sampled_from(["^", "$", r"\b", "|", "(?=a)", "(?!b)"]), max_size=8).map("".join)


@settings(max_examples=50, deadline=None)
@given(PATTERNS)
def test_what_is_weaker_is_a_pattern_too(pattern: str) -> None:
    if pattern.count("(?P<n>") > 1:
        return
    re.compile(pattern)
    for other in weaker(pattern):
        assert other != pattern
        re.compile(other)
