"""`constant_string`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "constant_string",
    {
        "return 'ab'": ["return 'a'", "return 'AB'"],
        'return a["1"]': ['return a[""]'],
        '"""Docstring."""': [],
        "return b'ab'": [],
        r"return 'a\n'": [],
        "return ''": [],
    },
)
test_at_module_level = in_modules(
    "constant_string",
    {
        "MODE = 'r'\n": ["MODE = ''\n", "MODE = 'R'\n"],
        "T = TypeVar('T')\n": [],
        "__all__ = ['f']\n": [],
        "log = logging.getLogger('a')\n": [],
    },
)
