"""`exception_type`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "exception_type",
    {
        "try:\n    g(a)\nexcept ValueError:\n    g(b)": ["try:\n    g(a)\nexcept KeyError:\n    g(b)"],
        "try:\n    g(a)\nexcept  Exception as error:\n    g(b)": ["try:\n    g(a)\nexcept  ValueError as error:\n    g(b)"],
        "raise TypeError(a)": ["raise ValueError(a)"],
        "raise KeyError": ["raise IndexError"],
        "return ValueError": [],
        "raise Unknown(ValueError)": [],
    },
)
