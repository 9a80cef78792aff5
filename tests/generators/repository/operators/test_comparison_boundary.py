"""`comparison_boundary`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "comparison_boundary",
    {
        "return a  <= b  # kept": ["return a  < b  # kept"],
        "return a > b": ["return a >= b"],
        "return 0 < a < 9": ["return 0 <= a < 9", "return 0 < a <= 9"],
        "return a == b": [],
    },
)
test_at_module_level = in_modules(
    "comparison_boundary",
    {
        "if sys.version_info >= (3, 8):\n    X = 1\n": ["if sys.version_info > (3, 8):\n    X = 1\n"],
        "if TYPE_CHECKING and 1 < 2:\n    X = 1\n": [],
        "if __name__ == '__main__' and 1 < 2:\n    main()\n": [],
    },
)
