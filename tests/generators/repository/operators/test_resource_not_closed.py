"""`resource_not_closed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "resource_not_closed",
    {
        "# read\nwith open(a) as file:\n    # all\n    return file.read()": [
            "# read\nfile = open(a)\n# all\nreturn file.read()"
        ],
        "try:\n    g(a)\nfinally:\n    a.close()": ["g(a)"],
        "try:\n    g(a)\nfinally:\n    g(b)": [],
        "try:\n    g(a)\nexcept B:\n    g(b)\nfinally:\n    a.close()": [],
        "with a:\n    g(b)": [],
        "with g(a) as (d, e):\n    g(d)": [],
    },
)
