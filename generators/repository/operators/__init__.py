"""Operators: one module each, one way to break code each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from generators.repository.operators import (
    argument_dropped,
    arguments_swapped,
    arithmetic_operator,
    assignment_removed,
    augmented_assignment,
    boolean_operator,
    branches_swapped,
    call_removed,
    chain_broken,
    comparison_boundary,
    comparison_negated,
    condition_negated,
    condition_weakened,
    constant_boolean,
    constant_integer,
    constant_string,
    copy_missing,
    default_argument,
    early_return_removed,
    exception_type,
    function_swapped,
    loop_control,
    off_by_one,
    operands_swapped,
    raise_removed,
    return_value,
    sign_dropped,
    statements_shuffled,
    variable_swapped,
)
from generators.repository.operators.base import Operator, Place

__all__ = ["OPERATORS", "Operator", "Place"]

OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        module.OPERATOR.name: module.OPERATOR
        for module in (
            argument_dropped,
            arguments_swapped,
            arithmetic_operator,
            assignment_removed,
            augmented_assignment,
            boolean_operator,
            branches_swapped,
            call_removed,
            chain_broken,
            comparison_boundary,
            comparison_negated,
            condition_negated,
            condition_weakened,
            constant_boolean,
            constant_integer,
            constant_string,
            copy_missing,
            default_argument,
            early_return_removed,
            exception_type,
            function_swapped,
            loop_control,
            off_by_one,
            operands_swapped,
            raise_removed,
            return_value,
            sign_dropped,
            statements_shuffled,
            variable_swapped,
        )
    }
)
"""Every operator by name."""
