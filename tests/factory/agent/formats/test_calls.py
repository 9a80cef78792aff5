import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.agent.formats.calls import read_call, write_call
from factory.core.action import Action

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def test_a_call_is_read() -> None:
    action = read_call('<tool_call>{"name": "bash", "arguments": {"command": "ls -l"}}</tool_call>')
    assert action == Action("bash", {"command": "ls -l"})


def test_reasoning_may_stand_before_and_white_space_after() -> None:
    text = 'First look.\n<tool_call>\n{"arguments": {}, "name": "submit"}\n</tool_call>\n '
    assert read_call(text) == Action("submit")


def test_a_whole_number_stands_for_its_digits_and_raw_line_ends_are_kept() -> None:
    text = '<tool_call>{"name": "edit", "arguments": {"path": "a.py", "line": 12, "text": "x\ny"}}</tool_call>'
    assert read_call(text).arguments == {"path": "a.py", "line": "12", "text": "x\ny"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no <tool_call>"),
        ("ls -l", "no <tool_call>"),
        ('<tool_call>{"name": "submit", "arguments": {}}', "no </tool_call>"),
        ('</tool_call><tool_call>{"name": "submit", "arguments": {}}</tool_call>', "exactly one"),
        ('<tool_call>{"name": "submit", "arguments": {}}</tool_call> done', "nothing after"),
        (
            '<tool_call>{"name": "a", "arguments": {}}</tool_call><tool_call>{"name": "b", "arguments": {}}</tool_call>',
            "one call",
        ),
        ("<tool_call>{name: submit}</tool_call>", "not a JSON object"),
        ('<tool_call>["submit"]</tool_call>', "exactly the keys"),
        ('<tool_call>{"name": "submit"}</tool_call>', "exactly the keys"),
        ('<tool_call>{"name": "submit", "arguments": {}, "id": 1}</tool_call>', "exactly the keys"),
        ('<tool_call>{"name": "submit", "name": "bash", "arguments": {}}</tool_call>', "repeated keys"),
        ('<tool_call>{"name": 3, "arguments": {}}</tool_call>', "a string"),
        ('<tool_call>{"name": "bash", "arguments": ["ls"]}</tool_call>', "an object"),
        ('<tool_call>{"name": "bash", "arguments": {"command": null}}</tool_call>', "every argument"),
        ('<tool_call>{"name": "bash", "arguments": {"command": true}}</tool_call>', "every argument"),
        ('<tool_call>{"name": "bash", "arguments": {"command": 1.5}}</tool_call>', "every argument"),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "not a JSON object"),
        ('<tool_call>{"name": "bash", "arguments": {"command": ' + "9" * 5000 + "}}</tool_call>", "not a JSON object"),
    ],
)
def test_what_is_no_call_is_refused_with_its_reason(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        read_call(text)


@given(name=TEXT, arguments=st.dictionaries(TEXT, TEXT))
def test_what_is_written_is_read(name: str, arguments: dict[str, str]) -> None:
    action = Action(name, arguments)
    tags = json.dumps(action.manifest(), ensure_ascii=False)
    if "<tool_call>" not in tags and "</tool_call>" not in tags:
        assert read_call(write_call(action)) == action


@given(st.text(alphabet=st.sampled_from(list('<>/{}":,[] \n\\tool_callname arguments1')), max_size=200))
def test_any_text_is_a_call_or_a_value_error(text: str) -> None:
    try:
        assert isinstance(read_call(text), Action)
    except ValueError as error:
        assert "\n" not in str(error)
