"""`format_changed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "format_changed",
    {
        "return f'{a!r:>4} {b}'": ["return f'{a:>4} {b}'", "return f'{a!r} {b}'"],
        "return '%02d:%r 100%%' % (a, b)": ["return '%2d:%r 100%%' % (a, b)", "return '%02d:%s 100%%' % (a, b)"],
        "return '%(x).2f' % a": ["return '%(x).1f' % a"],
        "return '{0!r} {1:.2f} {{x:1}}'.format(a, b)": [
            "return '{0} {1:.2f} {{x:1}}'.format(a, b)",
            "return '{0!r} {1} {{x:1}}'.format(a, b)",
        ],
        "return f'{a}'": [],
        "return '%d' % a": [],
        "return '{:>4}'": [],
    },
)
