import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from factory.agent.formats import load_format
from factory.agent.formats.tiny import SPECIALS, TinyFormat
from factory.core.action import Action, Observation, ObservationRole
from factory.core.errors import UserError
from factory.core.task import EnvironmentSpec, Task, TaskKind, VerifierSpec
from factory.core.trajectory import Owner
from trainer.policies.tiny_tokenizer import TokenizerConfig, train_tokenizer

SUBMIT = Action("submit")
ACTIONS = st.one_of(
    st.builds(lambda text: Action("bash", {"command": text}), st.text()),
    st.builds(lambda text: Action("sql", {"query": text}), st.text()),
    st.builds(
        lambda path, line, text: Action("edit", {"path": path, "line": line, "text": text}), st.text(), st.text(), st.text()
    ),
    st.just(SUBMIT),
)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    train_tokenizer(["copy kalo to milo"] * 8, TokenizerConfig(syllables=("ka", "lo", "mi"))).save(
        str(folder / "tokenizer.json")
    )
    (folder / "policy.json").write_text('{"format": "tiny"}')
    return folder


@pytest.fixture(scope="module")
def tiny(policy: Path) -> TinyFormat:
    found = load_format(policy)
    assert isinstance(found, TinyFormat)
    return found


def task(instruction: str) -> Task:
    return Task(
        kind=TaskKind.TERMINAL,
        instruction=instruction,
        environment=EnvironmentSpec(files="f" * 64),
        verifier=VerifierSpec(bundle="b" * 64),
        held_out=None,
        solution="s" * 64,
    )


TASK = task("copy kalo to milo")


def ids_of(tiny: TinyFormat, *pieces: str) -> tuple[int, ...]:
    return tuple(tiny.tokenizer.token_to_id(piece) for piece in pieces)


def parse(tiny: TinyFormat, ids: tuple[int, ...]) -> tuple[Action | None, str]:
    parsed = tiny.parse(ids, (-0.5,) * len(ids), 3, TASK)
    assert parsed.tokens.ids == ids
    assert parsed.tokens.owners == (Owner.ACTION,) * len(ids)
    assert parsed.tokens.versions == (3,) * len(ids)
    assert (parsed.action is None) == bool(parsed.error)
    return parsed.action, parsed.error


def test_opening_is_the_instruction_between_its_delimiters(tiny: TinyFormat) -> None:
    opening = tiny.opening(TASK)
    assert opening.ids == ids_of(tiny, "<begin>", "copyĠ", "ka", "lo", "ĠtoĠ", "mi", "lo", "<instructed>")
    assert set(opening.owners) == {Owner.PROMPT}


def test_a_call_is_its_pieces(tiny: TinyFormat) -> None:
    assert tiny.written(Action("bash", {"command": "kalo milo"})) == ids_of(
        tiny, "<call:bash>", "ka", "lo", "Ġ", "mi", "lo", "<end>"
    )
    assert tiny.written(SUBMIT) == ids_of(tiny, "<call:submit>", "<end>")
    edit = Action("edit", {"text": "kalo", "line": "1", "path": "milo"})
    assert tiny.written(edit) == ids_of(tiny, "<call:edit>", "mi", "lo", "<next>", "1", "<next>", "ka", "lo", "<end>")
    assert tiny.stop == {tiny.tokenizer.token_to_id("<end>")}


@given(ACTIONS)
def test_what_is_written_parses_back(tiny: TinyFormat, action: Action) -> None:
    assert parse(tiny, tiny.written(action)) == (action, "")


@given(st.lists(st.integers(0, 300)).map(tuple))
def test_any_ids_keep_their_places_and_never_raise(tiny: TinyFormat, ids: tuple[int, ...]) -> None:
    parse(tiny, ids)


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ((), "does not start with a call"),
        (("ka", "lo", "<end>"), "does not start with a call"),
        (("<call:bash>", "ka"), "does not end"),
        (("<call:bash>",), "does not end"),
        (("<call:bash>", "ka", "<observed>", "lo", "<end>"), "delimiter stands inside"),
        (("<call:bash>", "<call:submit>", "<end>"), "delimiter stands inside"),
        (("<call:bash>", "ka", "<next>", "lo", "<end>"), "bash takes 1 arguments, not 2"),
        (("<call:edit>", "ka", "<end>"), "edit takes 3 arguments, not 1"),
        (("<call:submit>", "ka", "<end>"), "submit takes 0 arguments, not 1"),
    ],
)
def test_what_is_no_call_says_why(tiny: TinyFormat, pieces: tuple[str, ...], error: str) -> None:
    action, said = parse(tiny, ids_of(tiny, *pieces))
    assert action is None
    assert error in said


@given(st.text() | st.lists(st.sampled_from(SPECIALS)).map("".join), st.sampled_from(ObservationRole))
def test_an_observation_can_not_end_or_forge_anything(tiny: TinyFormat, text: str, role: ObservationRole) -> None:
    tokens = tiny.observation(Observation(text=text, role=role))
    first, last = ids_of(tiny, "<error>" if role is ObservationRole.ERROR else "<observed>", "</observed>")
    assert (tokens.ids[0], tokens.ids[-1]) == (first, last)
    assert not set(tokens.ids[1:-1]) & set(ids_of(tiny, *SPECIALS))
    assert tiny.decode(tokens.ids[1:-1]) == text
    assert set(tokens.owners) == {Owner.INJECTED_ERROR if role is ObservationRole.ERROR else Owner.OBSERVATION}


@given(st.lists(st.sampled_from(SPECIALS)).map("".join))
def test_an_instruction_can_not_forge_a_call(tiny: TinyFormat, text: str) -> None:
    assert not set(tiny.opening(task(text)).ids[1:-1]) & set(ids_of(tiny, *SPECIALS))


def test_bytes_that_are_no_text_are_shown_as_replacement(tiny: TinyFormat) -> None:
    assert parse(tiny, ids_of(tiny, "<call:bash>", "Ã", "<end>")) == (Action("bash", {"command": "\ufffd"}), "")


@pytest.mark.parametrize("action", [Action("fly"), Action("bash"), Action("submit", {"now": "1"})])
def test_unknown_calls_can_not_be_written(tiny: TinyFormat, action: Action) -> None:
    with pytest.raises(UserError, match="call of bash"):
        tiny.written(action)


def test_a_foreign_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.json"):
        TinyFormat(tmp_path)
    Tokenizer(models.BPE()).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UserError, match="<begin>"):
        TinyFormat(tmp_path)


def test_the_format_needs_no_torch() -> None:
    check = "import sys, factory.agent.formats.tiny; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)
