"""The gates of an instruction, on texts that leak in each way and on texts that do not."""

from __future__ import annotations

import pytest

from generators.repository.evidence import Evidence
from generators.repository.gates import leak, names_place, secret_of, shows, symptoms
from generators.repository.sites import Edit

BROKEN = """def total(items, rate):
    amount = 0
    for item in items[1:]:
        amount += item.price
    return round(amount * rate)


def label(item):
    return item.name
"""
FIXED = BROKEN.replace("items[1:]", "items").replace("round(amount * rate)", 'quantize(amount * rate, 86400, "half-even")')
WRONG = ["    for item in items[1:]:", "    return round(amount * rate)"]
RIGHT = ["    for item in items:", '    return quantize(amount * rate, 86400, "half-even")']
SHOWN = Evidence("assert total([book], 2) == 24", "AssertionError", "assert 0 == 24\n +  where 0 = total([book], 2)")
SECRET = secret_of(WRONG, RIGHT, [BROKEN], SHOWN.text)
EDIT = Edit(
    operator="o", path="shop/cart.py", line=3, qualname="Cart.total", start=0, end=0, new="", one_line=True, function=(1, 5)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The loop should read\n  for item   in items:", "line"),
        ("Call `quantize` instead.", "name"),
        ("One has to quantize( the amount.", "name"),
        ("Is 86400 not the number of seconds?", "value"),
        ("I think the mode half-even is missing.", "value"),
        ("Maybe `in items:` without the slice?", "turn"),
        ("The result is amount * rate, as far as I see", "turn"),
        ("total([book], 2) gives 0, I expected 24.", ""),
        ("for item in items[1:]: is the line. It returns round(amount * rate).", ""),
        ("The results can not be quantized; prices quantize badly.", ""),
        ("Two items in a cart: one is lost.", ""),
    ],
)
def test_leaks_of_each_kind(text: str, expected: str) -> None:
    assert leak(text, SECRET) == expected


def test_what_the_broken_files_and_the_failing_tests_have_is_no_secret() -> None:
    helper = "def quantize(value, seconds=86400, mode='half-even'):\n    return value\n"
    text = "Call `quantize` with 86400 and half-even."
    assert leak(text, SECRET) == "name"
    assert leak(text, secret_of(WRONG, RIGHT, [BROKEN, helper], SHOWN.text)) == ""
    assert leak(text, secret_of(WRONG, RIGHT, [BROKEN], f"{SHOWN.text}\n{helper}")) == ""


def test_a_fix_that_takes_something_out_leaves_a_seam() -> None:
    secret = secret_of(["    return not is_open(door)"], ["    return is_open(door)"], ["    return not is_open(door)\n"], "")
    assert leak("It should be `return is_open(door)`.", secret) == "line"
    assert leak("just return is_open( it )", secret) == "turn"
    assert leak("not is_open(door) is what it returns", secret) == ""


def test_a_symptom_names_what_the_tests_show() -> None:
    assert {"total", "24", "0"} <= symptoms(SHOWN)
    assert "AssertionError" not in symptoms(SHOWN)
    assert shows("`total` gives nothing.", SHOWN)
    assert shows("I expected 24.", SHOWN)
    assert not shows("It is broken. Totally.", SHOWN)
    assert not shows("I expected 240, and 1.24.", SHOWN)
    assert not shows("There is an AssertionError.", SHOWN)
    raised = Evidence("box.close()", "KeyError", "'left'")
    assert shows("Closing ends in KeyError.", raised)
    assert shows("It says left.", raised)


def test_a_symptom_that_tells_the_place() -> None:
    shown = Evidence("assert price(book) == 24", "AssertionError", "assert 0 == 24")
    assert names_place("See shop/cart.py.", EDIT, WRONG, shown)
    assert names_place("It is in cart.py", EDIT, WRONG, shown)
    assert names_place("I think `total` is wrong.", EDIT, WRONG, shown)
    assert names_place("return round(amount   * rate)", EDIT, WRONG, shown)
    assert not names_place("The total is wrong: price(book) gives 0.", EDIT, WRONG, shown)
    assert not names_place("`total` gives 0.", EDIT, WRONG, SHOWN)
