"""The tiny policy's action format: every piece of a tool call is one special token. Torch-free.

    <begin> instruction <instructed>
    <call:bash> command <end>          sampled
    <observed> text </observed>        or <error> text </observed>
    <call:edit> path <next> line <next> text <end>
    ...

Delimiters are ids that no text can produce: text is encoded with special tokens switched off, so
`<end>` inside an observation is six characters and ends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from factory.agent.contract import Parsed
from factory.agent.tools import TOOLS
from factory.core.action import Action, Observation, ObservationRole
from factory.core.errors import UserError
from factory.core.task import Task
from factory.core.trajectory import Owner, Tokens

PAD, BEGIN, INSTRUCTED, NEXT, END = "<pad>", "<begin>", "<instructed>", "<next>", "<end>"
OBSERVED, ERROR, OBSERVED_END = "<observed>", "<error>", "</observed>"
SPECIALS = (PAD, BEGIN, INSTRUCTED, NEXT, END, OBSERVED, ERROR, OBSERVED_END, *(f"<call:{tool}>" for tool in TOOLS))
"""Special tokens in the order in which a new tokenizer numbers them."""


def load_tokenizer(file: Path) -> Tokenizer:
    """Load a tiny tokenizer with special tokens in text switched off.

    Raises UserError when the file is no tokenizer or lacks a special token of this format.
    """
    if not file.is_file():
        raise UserError("policy", str(file), "a policy folder with tokenizer.json")
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.encode_special_tokens = True
    missing = [token for token in SPECIALS if tokenizer.token_to_id(token) is None]
    if missing:
        raise UserError("policy", str(file), f"a tokenizer with the special tokens {' '.join(missing)}")
    return tokenizer


class TinyFormat:
    """Implements ActionFormat for policies made by `trainer.policies.tiny`."""

    name = "tiny"

    def __init__(self, policy: Path) -> None:
        """`policy` is a policy folder. Raises UserError when its tokenizer is not of this format."""
        self.tokenizer = load_tokenizer(policy / "tokenizer.json")
        self._id = {token: int(self.tokenizer.token_to_id(token) or 0) for token in SPECIALS}
        self._calls = {self._id[f"<call:{tool}>"]: tool for tool in TOOLS}
        self._special = frozenset(self._id.values())
        self.stop = frozenset({self._id[END]})

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; never a special one."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of plain ids; bytes that are no UTF-8 become U+FFFD."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=False)
        return text

    def opening(self, task: Task) -> Tokens:
        """The instruction alone: this policy has no system text, and knows its tools from its warm start."""
        return Tokens.given([self._id[BEGIN], *self.encode(task.instruction), self._id[INSTRUCTED]], Owner.PROMPT)

    def parse(self, ids: tuple[int, ...], logprobs: tuple[float, ...], version: int, task: Task) -> Parsed:
        """A call token, the arguments' ids between separators, the end token; anything else is an error."""
        tokens = Tokens(ids=ids, owners=(Owner.ACTION,) * len(ids), logprobs=logprobs, versions=(version,) * len(ids))
        tool = self._calls.get(ids[0]) if ids else None
        if tool is None:
            return Parsed(tokens=tokens, action=None, error="the turn does not start with a call")
        if ids[-1] not in self.stop:
            return Parsed(tokens=tokens, action=None, error="the call does not end")
        parts = self._arguments(ids[1:-1])
        if parts is None:
            return Parsed(tokens=tokens, action=None, error="a delimiter stands inside an argument")
        names = TOOLS[tool].arguments
        if not names and parts == [""]:
            parts = []
        if len(parts) != len(names):
            return Parsed(tokens=tokens, action=None, error=f"{tool} takes {len(names)} arguments, not {len(parts)}")
        return Parsed(tokens=tokens, action=Action(tool, dict(zip(names, parts, strict=True))))

    def _arguments(self, ids: tuple[int, ...]) -> list[str] | None:
        """Decode the ids between separators; None where another special token stands among them."""
        parts: list[list[int]] = [[]]
        for token in ids:
            if token == self._id[NEXT]:
                parts.append([])
            elif token in self._special:
                return None
            else:
                parts[-1].append(token)
        return [self.decode(part) for part in parts]

    def observation(self, observation: Observation) -> Tokens:
        """The observation's text between its delimiters; an error says so by its first token."""
        failed = observation.role is ObservationRole.ERROR
        ids = [self._id[ERROR if failed else OBSERVED], *self.encode(observation.text), self._id[OBSERVED_END]]
        return Tokens.given(ids, Owner.INJECTED_ERROR if failed else Owner.OBSERVATION)

    def written(self, action: Action) -> tuple[int, ...]:
        """The ids of `action`. Raises UserError for a tool or an argument that the format does not know."""
        names = TOOLS[action.tool].arguments if action.tool in TOOLS else None
        if names is None or set(names) != set(action.arguments):
            raise UserError("action", action.manifest(), f"a call of {', '.join(TOOLS)} with its arguments")
        ids = [self._id[f"<call:{action.tool}>"]]
        for number, name in enumerate(names):
            ids += [self._id[NEXT]] * (number > 0) + self.encode(action.arguments[name])
        return (*ids, self._id[END])
