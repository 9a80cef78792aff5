"""A project's language-model bugs by number: what is asked, in which order, and what comes of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from factory.core.errors import BudgetSpent, UserError
from generators.repository.language.config import LanguageConfig
from generators.repository.language.edits import LanguageEdit
from generators.repository.language.entities import Refused
from generators.repository.language.modify import MISTAKES
from generators.repository.language.sites import LanguageSites, language_edits
from generators.repository.sites import Edit
from tests.factory.agent.chat_server import ChatServer
from tests.generators.repository.language.conftest import Open

SHOP = '''"""A shop."""

from decimal import Decimal


class Cart:
    """What is bought."""

    def total(self, rate=1):
        """The sum of all prices, times the rate."""
        amount = Decimal(0)  # the secret body
        for item in self.items:
            amount += item.price
        return amount * rate


def cheapest(items):
    found = None
    for item in items:
        if found is None or item.price < found.price:
            found = item
    return found


def one(items):
    return items[0]
'''
TEXTS = {"shop/cart.py": SHOP}
CONFIG = LanguageConfig(rounds=1)


def write(body: dict[str, Any]) -> str:
    """A model that multiplies what it returns, and names the first kind that is proposed."""
    asked = body["messages"][-1]["content"]
    code = re.findall(r"```python\n(.*?)```", asked, re.DOTALL)[-1]
    if "is missing" in asked:
        return f"```python\n{code.replace('...', 'return sum(item.price for item in self.items)')}```"
    kind = re.search(r"^- ([a-z ]+):", asked, re.MULTILINE)
    assert kind is not None
    return f"Kind: {kind.group(1)}\n```python\n{code.replace('return ', 'return 2 * ')}```"


def sites(endpoint: Any, seed: int = 1, config: LanguageConfig = CONFIG) -> LanguageSites:
    return LanguageSites(TEXTS, config, endpoint, seed=seed, project="shop")


def test_each_kind_is_asked_of_each_function_that_it_serves(server: ChatServer, open_endpoint: Open) -> None:
    server.answer = write
    found = sites(open_endpoint())
    assert Counter((plan.kind, plan.entity.qualname) for plan in found.plans) == {
        ("modify", "Cart.total"): 1,
        ("modify", "cheapest"): 1,  # too little is said of it to write it anew
        ("rewrite", "Cart.total"): 1,
    }
    edits = found.edits(range(4))
    assert edits[3] is None
    made = {(edit.operator, edit.qualname): edit for edit in edits[:3] if isinstance(edit, LanguageEdit)}
    assert len(made) == 3
    broken = made["language_modify", "Cart.total"].applied(SHOP)
    assert broken == SHOP.replace("return amount", "return 2 * amount")
    rewritten = made["language_rewrite", "Cart.total"].applied(SHOP)
    assert "        return sum(item.price for item in self.items)\n\n\ndef cheapest" in rewritten
    assert "the secret body" not in rewritten


def test_what_the_model_is_told(server: ChatServer, open_endpoint: Open) -> None:
    server.answer = write
    sites(open_endpoint()).edits(range(3))
    for body in server.asked:
        [system, user] = [message["content"] for message in body["messages"]]
        assert system
        assert "shop/cart.py" in user
        assert "from decimal import Decimal" in user
        assert 0 <= body["seed"] < 2**31
        if "is missing" in user:
            assert "the secret body" not in user and "for item in self.items" not in user
            assert "times the rate" in user and "def cheapest(items): ..." in user
            assert body["temperature"] == 0.0
        else:
            proposed = re.findall(r"^- ([a-z ]+):", user, re.MULTILINE)
            assert len(set(proposed) & set(MISTAKES)) == 3
            assert body["temperature"] == 1.0


def test_a_mistakes_kind_is_recorded_when_it_was_proposed(server: ChatServer, open_endpoint: Open) -> None:
    server.answer = write
    for edit in sites(open_endpoint()).edits(range(3)):
        assert isinstance(edit, LanguageEdit)
        assert edit.what in ("a body written anew", *MISTAKES)
        assert (edit.model, len(edit.request)) == ("writer", 64)
        assert edit.prompt in ("modify-1", "rewrite-1")
    server.answer = lambda body: write(body).replace("Kind: ", "Kind: sabotage, ")
    again = LanguageSites(TEXTS, CONFIG, open_endpoint(), seed=2, project="shop").edits(range(3))
    assert "a mistake of no named kind" in {edit.what for edit in again if isinstance(edit, LanguageEdit)}


def test_a_number_asks_the_same_in_every_process_and_order(server: ChatServer, open_endpoint: Open) -> None:
    server.answer = write
    first = sites(open_endpoint()).edits(range(3))
    asked = len(server.asked)
    again = [sites(open_endpoint()).edit(number) for number in (2, 0, 1)]
    assert [again[1], again[2], again[0]] == first
    assert len(server.asked) == asked  # all from the cache
    other = sites(open_endpoint(), seed=2)
    other.edits(range(3))
    assert len(server.asked) == 2 * asked


def test_the_same_bug_twice_is_a_duplicate(server: ChatServer, open_endpoint: Open) -> None:
    server.answer = write
    config = LanguageConfig(kinds=("modify",), rounds=2)
    found = sites(open_endpoint(), config=config)
    edits = found.edits(range(len(found.plans)))
    assert [isinstance(edit, LanguageEdit) for edit in edits] == [True, True, False, False]
    assert found.refused == {("modify", "duplicate"): 2}
    alone = sites(open_endpoint(), config=config).edit(3)  # without having looked at the others
    assert alone == Refused("duplicate")


def test_temperature_zero_asks_once(open_endpoint: Open) -> None:
    config = LanguageConfig(modify_temperature=0.0, rounds=3)
    assert len(sites(open_endpoint(), config=config).plans) == 3


def test_refusals_are_counted_by_reason(server: ChatServer, open_endpoint: Open) -> None:
    server.answer = lambda body: "No."
    found = sites(open_endpoint())
    assert {edit.reason for edit in found.edits(range(3)) if isinstance(edit, Refused)} == {"no code"}
    assert found.refused == {("modify", "no code"): 2, ("rewrite", "no code"): 1}


def test_a_spent_budget_and_a_lost_server_are_reasons(server: ChatServer, open_endpoint: Open) -> None:
    server.answer = write
    reasons = Counter(edit.reason for edit in sites(open_endpoint(requests=1)).edits(range(3)) if isinstance(edit, Refused))
    assert reasons == {"budget": 2}
    server.answer = lambda body: 500
    reasons = Counter(edit.reason for edit in sites(open_endpoint(), seed=9).edits(range(3)) if isinstance(edit, Refused))
    assert reasons == {"no answer": 3}


def test_a_wrong_key_is_told_to_the_user(server: ChatServer, open_endpoint: Open) -> None:
    server.answer = lambda body: 401
    with pytest.raises(UserError, match="key"):
        sites(open_endpoint()).edits(range(3))


def test_edits_one_by_one_until_the_budget_ends(server: ChatServer, open_endpoint: Open) -> None:
    server.answer = write
    iterator = language_edits(TEXTS, CONFIG, open_endpoint(requests=2), seed=1, project="shop")
    assert all(isinstance(next(iterator), Edit) for _ in range(2))
    with pytest.raises(BudgetSpent):
        next(iterator)


@pytest.mark.parametrize(
    "fields",
    [{"kinds": ("invent",)}, {"mistakes": 0}, {"rounds": 0}, {"min_lines": 9, "max_lines": 8}, {"rewrite_temperature": 2.5}],
)
def test_wrong_settings_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"repository\.language"):
        replace(CONFIG, **fields)
