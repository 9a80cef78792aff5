"""Instructions by a model and by template, through the same gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factory.agent.endpoint import Endpoint, EndpointConfig
from generators.repository.evidence import Evidence
from generators.repository.issue import Issue, Writer, issue
from generators.repository.language.config import LanguageConfig
from generators.repository.sites import Edit
from tests.factory.agent.chat_server import ChatServer, spoken

ORIGINAL = "def area(w, h):\n    size = scaled(w * h, 86400)\n    return size\n"
BROKEN = ORIGINAL.replace("scaled(w * h, 86400)", "w + h")
EDIT = Edit(
    operator="o", path="lib/shape.py", line=2, qualname="area", start=26, end=46, new="w + h", one_line=True, function=(1, 3)
)
SHOWN = Evidence("assert area(2, 3) == 6", "AssertionError", "assert 5 == 6", alone=True)
GOOD = "When I call `area(2, 3)` I get 5.\n\nI expected 6."


def told(server: ChatServer | None, tmp_path: Path, shown: Evidence = SHOWN, **more: Any) -> Issue:
    fields: dict[str, Any] = {"explicitness": "symptom", "failing": 1, "excerpt_lines": 0, "seed": 1} | more
    if server is None:
        return issue("shape==1.0", EDIT, BROKEN, ORIGINAL, shown=shown, **fields)
    endpoint = Endpoint(EndpointConfig(address=server.address, model="writer", retries=0), tmp_path)
    try:
        writer = Writer(endpoint, LanguageConfig())
        return issue("shape==1.0", EDIT, BROKEN, ORIGINAL, shown=shown, writer=writer, **fields)
    finally:
        endpoint.close()


def test_without_a_model_a_template_is_used(tmp_path: Path) -> None:
    found = told(None, tmp_path)
    assert ">>> area(2, 3)\n    5" in found.text
    assert (found.refused, found.parameters) == ((), {"by": "template"})


def test_a_models_text_is_the_symptom_and_the_rest_stays(tmp_path: Path) -> None:
    with ChatServer(answer=lambda body: f"<think>Hm, size = scaled(w * h)</think>\n{GOOD}") as server:
        found = told(server, tmp_path, explicitness="line", excerpt_lines=3)
    assert found.text.startswith(f"{GOOD}\n")
    assert "area in lib/shape.py" in found.text
    assert "\n    size = w + h\n" in found.text
    assert "1|def area(w, h):" in found.text
    assert found.text.endswith("submit.")
    assert found.refused == ()
    assert found.parameters["by"] == "model"
    assert (found.parameters["model"], found.parameters["prompt"]) == ("writer", "report-1")
    [asked] = server.asked
    user = asked["messages"][-1]["content"]
    assert "assert area(2, 3) == 6" in user and "assert 5 == 6" in user
    assert "size" not in user and "lib/shape.py" not in user


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "empty"),
        ("area(2, 3) is 5, not 6:\n    size = scaled(w * h, 86400)", "leak: line"),
        ("area(2, 3) is 5. It should be `scaled`.", "leak: name"),
        ("area(2, 3) is 5. 86400 is missing.", "leak: value"),
        ("area(2, 3) is 5, but w * h is 6", "leak: turn"),
        ("area(2, 3) gives 5. See shape.py.", "place"),
        ("area(2, 3) gives 5 because of\n    size = w + h", "place"),
        ("The results look odd to me.", "no symptom"),
        ("area(2, 3) is 5. " + "Really. " * 200, "too long"),
    ],
)
def test_refused_texts_are_asked_again_then_a_template_stands_in(tmp_path: Path, said: str, reason: str) -> None:
    with ChatServer(answer=lambda body: said) as server:
        found = told(server, tmp_path)
    assert found.refused == (reason, reason)
    assert found.parameters == {"by": "template", "refused": [reason, reason]}
    assert found.text == told(None, tmp_path).text
    assert len({body["seed"] for body in server.asked}) == 2


def test_the_second_answer_may_do(tmp_path: Path) -> None:
    cut = spoken("area(2, 3) is")
    cut["choices"][0]["finish_reason"] = "length"
    with ChatServer(answer=lambda body: GOOD, first=[cut]) as server:
        found = told(server, tmp_path)
    assert found.text.startswith(GOOD)
    assert found.refused == ("cut off",)
    assert found.parameters["refused"] == ["cut off"]


def test_a_lost_model_is_no_lost_task(tmp_path: Path) -> None:
    with ChatServer(answer=lambda body: 500) as server:
        found = told(server, tmp_path)
    assert found.refused == ("no answer",)
    assert found.text == told(None, tmp_path).text


def test_a_template_that_leaks_is_refused_too(tmp_path: Path) -> None:
    """The failing test holds the fixed line itself."""
    shown = Evidence("size = scaled(w * h, 86400)", "NameError", "name 'scaled' is not defined")
    assert told(None, tmp_path, shown) == Issue("", ("leak: line",))
