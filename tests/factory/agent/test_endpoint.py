"""The endpoint's client against a small server of the same protocol: patience, budget, cache, the key."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factory.agent.endpoint import Answer, Endpoint, EndpointConfig, Question
from factory.core.errors import BudgetSpent, EndpointError, GeneratorError, UserError
from tests.factory.agent.chat_server import ChatServer, spoken

QUESTION = Question(user="Say hello.", system="Be short.", temperature=0.5, max_tokens=50, seed=7)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


def config(server: ChatServer | str, **more: Any) -> EndpointConfig:
    address = server if isinstance(server, str) else server.address
    return EndpointConfig(address=address, **({"model": "m", "backoff_s": 0.01, "retries": 2, "timeout_s": 60.0} | more))


def ask(server: ChatServer | str, folder: Path, *questions: Question, **more: Any) -> list[Answer]:
    endpoint = Endpoint(config(server, **more), folder)
    try:
        return [endpoint.ask(question) for question in questions or (QUESTION,)]
    finally:
        endpoint.close()


def test_what_is_asked_and_what_comes_back(server: ChatServer, tmp_path: Path) -> None:
    [answer] = ask(server, tmp_path)
    assert (answer.text, answer.finish, answer.prompt_tokens, answer.completion_tokens) == ("hello", "stop", 12, 5)
    assert server.asked == [
        {
            "path": "/v1/chat/completions",
            "model": "m",
            "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Say hello."}],
            "temperature": 0.5,
            "max_tokens": 50,
            "seed": 7,
        }
    ]


def test_the_other_name_of_the_limit(server: ChatServer, tmp_path: Path) -> None:
    ask(server, tmp_path, limit_field="max_completion_tokens")
    assert server.asked[0]["max_completion_tokens"] == 50
    assert "max_tokens" not in server.asked[0]


@pytest.mark.parametrize("failure", [429, 500, 503, None, b"<html>a proxy's page</html>", b"[1]"])
def test_a_passing_failure_is_asked_again(server: ChatServer, tmp_path: Path, failure: Any) -> None:
    server.first = [failure, failure]
    [answer] = ask(server, tmp_path)
    assert answer.text == "hello"
    assert len(server.asked) == 3


def test_the_server_says_how_long_to_wait(server: ChatServer, tmp_path: Path) -> None:
    server.first = [(429, {"Retry-After": "1"})]
    started = time.monotonic()
    ask(server, tmp_path)
    assert time.monotonic() - started > 0.9


def test_a_lasting_failure_is_an_error_of_the_generator_boundary(server: ChatServer, tmp_path: Path) -> None:
    server.answer = lambda body: 502
    with pytest.raises(GeneratorError, match=r"answered 502.*3 times"):
        ask(server, tmp_path)
    assert len(server.asked) == 3


def test_a_server_that_is_gone(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(EndpointError, match="ConnectError"):
            ask(f"http://127.0.0.1:{unused.getsockname()[1]}/v1", tmp_path)


def test_an_answer_that_does_not_come_in_time(server: ChatServer, tmp_path: Path) -> None:
    release = threading.Event()
    server.answer = lambda body: "late" if release.wait(60) else "later"
    started = time.monotonic()
    with pytest.raises(EndpointError, match="ReadTimeout"):
        try:
            ask(server, tmp_path, timeout_s=0.1, retries=1)
        finally:
            release.set()
    assert time.monotonic() - started < 20


def test_an_answer_that_trickles_in(tmp_path: Path) -> None:
    """Each byte within the time limit, the whole of them not."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                try:
                    for _ in range(1000):
                        connection.sendall(b" ")
                        time.sleep(0.05)
                except OSError:
                    return  # the client gave up

        thread = threading.Thread(target=trickle)
        thread.start()
        started = time.monotonic()
        with pytest.raises(EndpointError, match=r"no whole answer within 0\.3 s"):
            ask(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", tmp_path, timeout_s=0.3, retries=0)
        assert time.monotonic() - started < 20
        thread.join()


def test_a_wrong_request_is_not_repeated(server: ChatServer, tmp_path: Path) -> None:
    server.answer = lambda body: 400
    with pytest.raises(EndpointError, match="answered 400"):
        ask(server, tmp_path)
    assert len(server.asked) == 1


@pytest.mark.parametrize(("status", "field"), [(401, "key_variable"), (403, "key_variable"), (404, "model")])
def test_a_persons_mistake_is_told_as_one(server: ChatServer, tmp_path: Path, status: int, field: str) -> None:
    server.answer = lambda body: status
    with pytest.raises(UserError, match=rf"endpoint\.{field}: .*{status}"):
        ask(server, tmp_path)
    assert len(server.asked) == 1


@pytest.mark.parametrize("answer", [{}, {"choices": []}, {"choices": [{"message": None}]}, {"choices": [{"text": "x"}]}])
def test_an_answer_of_another_form(server: ChatServer, tmp_path: Path, answer: dict[str, Any]) -> None:
    server.answer = lambda body: answer
    with pytest.raises(EndpointError, match="another form"):
        ask(server, tmp_path)


def test_no_text_and_no_usage(server: ChatServer, tmp_path: Path) -> None:
    server.answer = lambda body: spoken(None, usage=None)
    [answer] = ask(server, tmp_path)
    assert answer.text == ""
    assert answer.prompt_tokens == len("Be short.Say hello.") // 4 + 1


def test_the_same_question_is_asked_once(server: ChatServer, tmp_path: Path) -> None:
    endpoint = Endpoint(config(server), tmp_path)
    assert endpoint.ask(QUESTION) == endpoint.ask(QUESTION)
    assert (endpoint.usage.requests, endpoint.usage.cached, endpoint.usage.tokens) == (1, 1, 17)
    endpoint.close()
    assert ask(server, tmp_path)[0].text == "hello"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(QUESTION, seed=8),
        replace(QUESTION, temperature=0.6),
        replace(QUESTION, max_tokens=51),
        replace(QUESTION, system=""),
        replace(QUESTION, user="Say hello.\r\n"),
    ],
)
def test_another_question_is_another_request(server: ChatServer, tmp_path: Path, other: Question) -> None:
    first, second = ask(server, tmp_path, QUESTION, other)
    assert first.request != second.request
    assert len(server.asked) == 2


def test_another_model_is_another_request(server: ChatServer, tmp_path: Path) -> None:
    assert ask(server, tmp_path)[0].request != ask(server, tmp_path, model="n")[0].request
    assert len(server.asked) == 2


def test_threads_with_one_question_wait_for_one_answer(server: ChatServer, tmp_path: Path) -> None:
    server.answer = lambda body: time.sleep(0.1) or "slow"
    endpoint = Endpoint(config(server), tmp_path)
    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(lambda _: endpoint.ask(QUESTION), range(8)))
    endpoint.close()
    assert len(answers) == len(server.asked) == 1


PROGRAM = """
import sys
from pathlib import Path
from factory.agent.endpoint import Endpoint, EndpointConfig, Question
endpoint = Endpoint(EndpointConfig(address=sys.argv[1], model="m"), Path(sys.argv[2]))
for seed in range(20):
    print(endpoint.ask(Question(user="?", temperature=1.0, max_tokens=9, seed=seed)).text)
"""


def test_processes_that_ask_the_same_agree(server: ChatServer, tmp_path: Path) -> None:
    """The server never says the same twice; all processes still read one answer to each question."""
    server.answer = lambda body: f"{body['seed']} {len(server.asked)} {time.monotonic_ns()}"
    command = [sys.executable, "-c", PROGRAM, server.address, str(tmp_path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=60)[0].splitlines() for process in started]
    assert said[0] == said[1] == said[2]
    assert len(said[0]) == 20
    kept = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(kept) == 20
    assert all(json.loads(path.read_text())["text"] in said[0] for path in kept)


def test_the_budget_of_requests(server: ChatServer, tmp_path: Path) -> None:
    server.first = [500]
    endpoint = Endpoint(config(server, requests=2), tmp_path)
    endpoint.ask(QUESTION)
    with pytest.raises(BudgetSpent, match=r"endpoint\.requests: all 2"):
        endpoint.ask(replace(QUESTION, seed=8))
    assert endpoint.ask(QUESTION).text == "hello"  # what is cached is free
    endpoint.close()
    assert len(server.asked) == 2


def test_the_budget_of_tokens(server: ChatServer, tmp_path: Path) -> None:
    """A request that could pass it is not sent: 17 tokens are used, the next may take 50 and its prompt."""
    endpoint = Endpoint(config(server, tokens=70), tmp_path)
    endpoint.ask(QUESTION)
    with pytest.raises(BudgetSpent, match=r"endpoint\.tokens: 17 of 70"):
        endpoint.ask(replace(QUESTION, seed=8))
    endpoint.close()
    assert len(server.asked) == 1


def test_parallel_requests_do_not_pass_the_budget_together(server: ChatServer, tmp_path: Path) -> None:
    release = threading.Event()
    server.answer = lambda body: "late" if release.wait(60) else None
    endpoint = Endpoint(config(server, tokens=130), tmp_path)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(endpoint.ask, replace(QUESTION, seed=seed)) for seed in range(4)]
        while sum(one.done() for one in asked) < 2:
            time.sleep(0.01)
        release.set()
    endpoint.close()
    assert sum(isinstance(one.exception(), BudgetSpent) for one in asked) == 2
    assert len(server.asked) == 2


def test_the_key_is_sent_and_nowhere_else(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    server.first = [{"choices": "sk-very-secret"}]
    settings = config(server, key_variable="MY_KEY")
    endpoint = Endpoint(settings, tmp_path)
    with pytest.raises(EndpointError) as caught:
        endpoint.ask(QUESTION)
    server.first = [b"no key sk-very-secret"]
    endpoint.ask(QUESTION)
    endpoint.close()
    assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"
    stored = "".join(path.read_text() for path in tmp_path.rglob("*.json"))
    assert "very-secret" not in f"{settings!r} {caught.value} {caplog.text} {stored}"
    assert "answered 200" in caplog.text


def test_a_key_that_is_not_set(server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_KEY", raising=False)
    with pytest.raises(UserError, match=r"NO_KEY.*variable that is set"):
        Endpoint(config(server, key_variable="NO_KEY"), tmp_path)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"address": "127.0.0.1:8000"}, "endpoint.address"),
        ({"address": "ftp://host/v1"}, "endpoint.address"),
        ({"address": "http://name:word@host/v1"}, "endpoint.address"),
        ({"address": "http://host/v1?key=1"}, "endpoint.address"),
        ({"model": ""}, "endpoint.model"),
        ({"requests": 0}, "endpoint.requests"),
        ({"tokens": 0}, "endpoint.tokens"),
        ({"timeout_s": 0.0}, "endpoint"),
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(UserError) as caught:
        EndpointConfig(**({"address": "http://host/v1", "model": "m"} | fields))
    assert caught.value.field == field
    assert "word" not in str(caught.value)


def test_without_an_address_there_is_no_endpoint(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"endpoint\.address"):
        Endpoint(EndpointConfig(), tmp_path)
