"""`copy_missing`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "copy_missing",
    {
        "return list(a)": ["return a"],
        "return a.copy()  # kept": ["return a  # kept"],
        "return a[:]": ["return a"],
        "return copy.deepcopy(a)": ["return a", "return copy.copy(a)"],
        "return int(a.x)": ["return a.x"],
        "a[:] = b": [],
        "return a[1:]": [],
        "return list(x for x in a)": [],
        "return dict(x=a)": [],
    },
)
