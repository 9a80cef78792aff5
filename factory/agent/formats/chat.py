"""The format of chat models with ChatML turns (SmolLM2, Qwen and others): calls as JSON between tags.

Turns are built out of ids: the delimiters never pass through text, and text of tasks and tools is
encoded with every special token as plain text. Sampled ids are decoded to be read, never encoded.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer

from factory.agent.contract import Parsed
from factory.agent.formats.calls import BEGIN, read_call, write_call
from factory.agent.tools import TOOLS
from factory.core.action import Action, Observation, ObservationRole
from factory.core.errors import UserError
from factory.core.task import Task
from factory.core.trajectory import Owner, Tokens

IM_START = "<|im_start|>"
IM_END = "<|im_end|>"
EXAMPLE = write_call(Action("bash", {"command": "ls"}))


class ChatFormat:
    """ChatML over a `tokenizer.json`. Raises UserError when the tokenizer lacks the ChatML delimiters."""

    name = "chat"

    def __init__(self, policy_dir: Path) -> None:
        path = policy_dir / "tokenizer.json"
        if not path.is_file():
            raise UserError("policy", str(policy_dir), "a folder with tokenizer.json")
        self.tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.encode_special_tokens = True
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self._start, self._end = self._delimiter(IM_START), self._delimiter(IM_END)
        self.stop = frozenset({self._end})
        self._special = frozenset(id for id, token in self.tokenizer.get_added_tokens_decoder().items() if token.special)

    def _delimiter(self, text: str) -> int:
        id: int | None = self.tokenizer.token_to_id(text)
        if id is None:
            raise UserError("policy tokenizer", text, "a tokenizer with ChatML delimiters")
        return id

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; delimiters inside it are text."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def opening(self, task: Task) -> Tokens:
        """System turn with the task's tools, a user turn with the instruction, and the head of the policy's first turn."""
        return (
            self._turn("system", system_text(task), Owner.SYSTEM)
            + self._turn("user", task.instruction, Owner.PROMPT)
            + Tokens.given(self._head("assistant"), Owner.TEMPLATE)
        )

    def observation(self, observation: Observation) -> Tokens:
        """A tool turn (a user turn when the harness speaks) and the head of the policy's next turn."""
        if observation.role is ObservationRole.ERROR:
            turn = self._turn("user", observation.text, Owner.INJECTED_ERROR)
        else:
            turn = self._turn("tool", tool_text(observation), Owner.OBSERVATION)
        return Tokens.given(self._newline, Owner.TEMPLATE) + turn + Tokens.given(self._head("assistant"), Owner.TEMPLATE)

    def _head(self, role: str) -> list[int]:
        return [self._start, *self.encode(f"{role}\n")]

    @cached_property
    def _newline(self) -> list[int]:
        return self.encode("\n")

    def _turn(self, role: str, text: str, owner: Owner) -> Tokens:
        return (
            Tokens.given(self._head(role), Owner.TEMPLATE)
            + Tokens.given(self.encode(text), owner)
            + Tokens.given([self._end, *self._newline], Owner.TEMPLATE)
        )

    def parse(self, ids: tuple[int, ...], logprobs: tuple[float, ...], version: int, task: Task) -> Parsed:
        """Read one completion: reasoning, then exactly one call, then the stop id.

        The tokens before the one in which the call begins are reasoning; where there is no call all are action.
        """
        closed = bool(ids) and ids[-1] in self.stop
        said = ids[:-1] if closed else ids
        action, error = None, ""
        if not closed:
            error = "the answer was cut before its end"
        elif self._special.intersection(said):
            error = "the answer holds a delimiter of turns"
        else:
            try:
                action = read_call(self._decode(said))
            except ValueError as fault:
                error = f"{fault}. Answer with {EXAMPLE}"
        reasoning = self._call_begins(said)
        owners = (Owner.REASONING,) * reasoning + (Owner.ACTION,) * (len(ids) - reasoning)
        tokens = Tokens(ids=ids, owners=owners, logprobs=logprobs, versions=(version,) * len(ids))
        return Parsed(tokens=tokens, action=action, error=error)

    def _decode(self, ids: tuple[int, ...]) -> str:
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=False)
        return text

    def _call_begins(self, ids: tuple[int, ...]) -> int:
        """Index of the token in which the first opening tag begins; 0 where there is none.

        Searched through decoded prefixes, not through offsets: one character may span tokens. The tag
        is complete in the shortest prefix that shows it, and begins in the last suffix of that which does.
        """
        if BEGIN not in self._decode(ids):
            return 0
        counts = range(1, len(ids) + 1)
        end = counts[bisect_left(counts, True, key=lambda count: BEGIN in self._decode(ids[:count]))]
        counts = range(1, end + 1)
        return end - counts[bisect_left(counts, True, key=lambda count: BEGIN in self._decode(ids[end - count : end]))]

    def written(self, action: Action) -> tuple[int, ...]:
        """The ids of a turn that calls `action` and says nothing else, stop id included."""
        return (*self.encode(write_call(action)), self._end)


def system_text(task: Task) -> str:
    """What the policy is told about its tools; short, since every token is paid for in every turn."""
    tools = "\n".join(f"{TOOLS[name].signature}: {TOOLS[name].description}" for name in task.environment.tools)
    example = {"name": "NAME", "arguments": {"ARGUMENT": "STRING"}}
    return f"You work in /workspace. Answer with one call:\n<tool_call>{json.dumps(example)}</tool_call>\nTools:\n{tools}"


def tool_text(observation: Observation) -> str:
    """A tool's output; an exit code other than zero is told after it."""
    if observation.exit_code in (None, 0):
        return observation.text
    line = "" if not observation.text or observation.text.endswith("\n") else "\n"
    return f"{observation.text}{line}[exit code {observation.exit_code}]"
