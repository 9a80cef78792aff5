"""Tests that a model writes: what counts as a proposal, and that only what tells old from new is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.repository.history.written import Asked, prompt, proposal, written_tests
from generators.repository.runs import Run, RunResult

GOOD = "from shapes import countdown\n\n\ndef test_end():\n    assert countdown(2) == [2, 1]\n"
ASKED = Asked(
    project="shapes",
    broken={"shapes/__init__.py": "while number > 1:\n"},
    fixed={"shapes/__init__.py": "while number > 0:\n"},
    folder="tests",
    example="def test_area(): ...\n",
)


class Endpoint:
    """A server of chat completions on this machine, and a client of it."""

    def __init__(self, answers: list[str]) -> None:
        self.requests: list[dict[str, object]] = []
        left, requests = iter(answers), self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                body = json.dumps({"choices": [{"message": {"role": "assistant", "content": next(left)}}]}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def __call__(self, prompt: str, *, seed: int) -> str:
        body = {"messages": [{"role": "user", "content": prompt}], "seed": seed}
        reply = httpx.post(f"http://127.0.0.1:{self.server.server_port}/v1/chat/completions", json=body, timeout=10)
        found: str = reply.json()["choices"][0]["message"]["content"]
        return found

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def endpoints() -> Iterator[list[Endpoint]]:
    opened: list[Endpoint] = []
    yield opened
    for one in opened:
        one.close()


def block(text: str) -> str:
    return f"Here it is:\n```python\n{text}```\nGood luck.\n"


def result(run: Run, states: dict[str, str], finished: bool = True) -> RunResult:
    ms = dict.fromkeys(states, 7)
    return RunResult(run.key, "exit:0", finished, None, 1, (), states, ms, {})


def test_the_file_of_an_answer_is_the_proposal() -> None:
    assert proposal(block(GOOD)) == GOOD
    assert proposal(GOOD) == GOOD
    assert proposal("```py\nx = 1\n```\n" + block(GOOD)) == GOOD


@pytest.mark.parametrize(
    "text",
    [
        "no code at all",
        "def test_a(:\n",
        "x = 1\n",
        "import inspect\n" + GOOD,
        "import os.path\n" + GOOD,
        "from subprocess import run\n" + GOOD,
        GOOD + "\n\ndef test_text():\n    assert '> 0' in open('shapes/__init__.py').read()\n",
        GOOD + "x = 'y'\n" * 9000,
        "\0" + GOOD,
    ],
)
def test_what_is_no_test_file_or_could_read_the_source_is_no_proposal(text: str) -> None:
    assert proposal(block(text)) is None


@given(st.text())
def test_any_answer_is_a_proposal_or_none(answer: str) -> None:
    found = proposal(answer)
    assert found is None or "def test" in found


def test_a_proposal_that_tells_the_sides_apart_every_time_is_kept(endpoints: list[Endpoint]) -> None:
    endpoints.append(Endpoint([block("def test_nothing():\n    assert True\n"), "sorry", block(GOOD)]))
    seen: list[tuple[str, list[Run]]] = []

    def run(path: str, text: str, runs: list[Run]) -> list[RunResult]:
        seen.append((text, runs))
        states = {f"{path}::test_nothing": "passed"}
        if "test_end" in text:
            return [result(one, {f"{path}::test_end": "failed" if one.files else "passed"}) for one in runs]
        return [result(one, states) for one in runs]

    found = written_tests(ASKED, endpoints[0], run, seed=3, most=3, repeats=3)
    assert found is not None
    assert found.text == GOOD and found.path.startswith("tests/test_change_") and found.tests == {f"{found.path}::test_end": 7}
    assert len(seen) == 2 and len(endpoints[0].requests) == 3
    for _, runs in seen:
        assert [(dict(one.files), one.shuffle) for one in runs] == [
            (files, order) for files in ({}, ASKED.broken) for order in (None, 1, 2)
        ]
    assert len({str(request["seed"]) for request in endpoints[0].requests}) == 3


@pytest.mark.parametrize(("side", "number"), [("new", 1), ("new", 2), ("old", 0), ("old", 2)])
def test_one_run_that_says_otherwise_is_enough_to_leave_a_test_out(endpoints: list[Endpoint], side: str, number: int) -> None:
    endpoints.append(Endpoint([block(GOOD)]))

    def run(path: str, text: str, runs: list[Run]) -> list[RunResult]:
        states = ["failed" if one.files else "passed" for one in runs]
        odd = number if side == "new" else 3 + number
        states[odd] = "passed" if states[odd] == "failed" else "failed"
        return [result(one, {f"{path}::test_end": state}) for one, state in zip(runs, states, strict=True)]

    assert written_tests(ASKED, endpoints[0], run, seed=3, most=1, repeats=3) is None


def test_runs_that_do_not_end_count_for_nothing(endpoints: list[Endpoint]) -> None:
    endpoints.append(Endpoint([block(GOOD)]))

    def run(path: str, text: str, runs: list[Run]) -> list[RunResult]:
        states = {f"{path}::test_end": "passed"}
        return [result(one, {} if one.files else states, finished=not one.files) for one in runs]

    assert written_tests(ASKED, endpoints[0], run, seed=3, most=1, repeats=3) is None


def test_the_prompt_shows_the_change() -> None:
    text = prompt(ASKED)
    assert "-while number > 1:" in text and "+while number > 0:" in text and "def test_area(): ..." in text
