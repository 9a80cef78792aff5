"""The client of a server: its patience against a small server that misbehaves on order."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from factory.agent.clients.http import ServerClient, ServerConfig
from factory.agent.contract import Request
from factory.core.errors import PolicyError
from tests.factory.agent.samples import VERSION

Answer = Callable[[dict[str, Any]], tuple[int, dict[str, Any] | bytes] | None]
"""From the body of a request to a status and a body; None drops the connection."""

STOP = frozenset({7})


@dataclass
class Replica:
    """A server on a port of its own that answers as told and keeps what it was asked."""

    answers: list[Answer | int | None] = field(default_factory=list)
    """What to do with the first requests: a status, None to drop the connection, or an answer; then `answer`."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer: Answer = lambda body: (200, spoken([9, 7], [-0.5, -0.25]))

    def __enter__(self) -> Replica:
        replica, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    replica.asked.append({"path": self.path, **body})
                    replica.headers.append(dict(self.headers))
                    told = replica.answers.pop(0) if replica.answers else replica.answer
                result = told(body) if callable(told) else (told, {"error": "told to"}) if told else None
                if result is None:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                data = result[1] if isinstance(result[1], bytes) else json.dumps(result[1]).encode()
                self.send_response(result[0])
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that went away is part of the tests."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def spoken(ids: list[int], logprobs: list[float]) -> dict[str, Any]:
    """The form of the server's answer, as vLLM 0.32 gives it."""
    content = [
        {"token_id": id, "logprob": value, "rank": 1, "top_logprobs": [{"token_id": id, "logprob": value, "rank": 1}]}
        for id, value in zip(ids, logprobs, strict=True)
    ]
    choice = {"index": 0, "token_ids": ids, "finish_reason": "stop", "logprobs": {"content": content}}
    return {"request_id": "1", "choices": [choice], "usage": {"prompt_tokens_details": {"cached_tokens": 32}}}


@pytest.fixture
def replica() -> Iterator[Replica]:
    with Replica() as replica:
        yield replica


def connect(*replicas: Replica | str, **more: Any) -> ServerClient:
    addresses = tuple(replica if isinstance(replica, str) else replica.address for replica in replicas)
    settings = {"vocabulary": 20, "max_context": 100, "retries": 2, "backoff_s": 0.01, "connections": 4, "timeout_s": 5.0}
    return ServerClient(ServerConfig(addresses=addresses, **(settings | more)), VERSION)


def ask(client: ServerClient, count: int = 1, temperature: float = 1.0):
    requests = [Request(prompt=(1, 2), seed=seed, max_tokens=5) for seed in range(count)]
    try:
        return client.complete(requests, temperature=temperature, stop=STOP)
    finally:
        client.close()


def test_ids_go_in_and_come_out(replica: Replica) -> None:
    [made] = ask(connect(replica, api_key="secret"))
    assert (made.ids, made.logprobs, made.finish, made.cached_tokens) == ((9, 7), (-0.5, -0.25), "stop", 32)
    [asked] = replica.asked
    assert asked["path"] == "/inference/v1/generate"
    assert asked["token_ids"] == [1, 2]
    assert asked["sampling_params"] == {
        "temperature": 1.0,
        "seed": 0,
        "max_tokens": 5,
        "stop_token_ids": [7],
        "logprobs": 0,
        "detokenize": False,
    }
    assert replica.headers[0]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("failure", [500, 503, None])
def test_a_passing_failure_is_asked_again(replica: Replica, failure: int | None) -> None:
    replica.answers = [failure, failure]
    [made] = ask(connect(replica))
    assert made.ids == (9, 7)
    assert len(replica.asked) == 3


def test_a_lasting_failure_of_one_request_leaves_the_others(replica: Replica) -> None:
    replica.answer = lambda body: (500, {}) if body["sampling_params"]["seed"] == 1 else (200, spoken([7], [-1.0]))
    made = ask(connect(replica), count=3)
    assert [completion.ids for completion in made] == [(7,), (), (7,)]
    assert "answered 500" in made[1].error
    assert "3 times" in made[1].error


def test_servers_that_are_all_gone_are_a_policy_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(PolicyError, match="ConnectError"):
            ask(connect(address), count=2)


def test_a_server_that_does_not_answer_in_time_is_a_policy_error(replica: Replica) -> None:
    release = threading.Event()
    replica.answer = lambda body: (release.wait(5), (500, {}))[1]
    started = time.monotonic()
    with pytest.raises(PolicyError, match="ReadTimeout"):
        try:
            ask(connect(replica, timeout_s=0.1, retries=1))
        finally:
            release.set()
    assert time.monotonic() - started < 4


@pytest.mark.parametrize(("status", "error"), [(400, "answered 400"), (404, "--tokens-only")])
def test_a_refused_request_is_not_asked_again(replica: Replica, status: int, error: str) -> None:
    replica.answer = lambda body: (status, {})
    with pytest.raises(PolicyError, match=error):
        ask(connect(replica))
    assert len(replica.asked) == 1


def test_an_answer_that_is_no_json_is_asked_again(replica: Replica) -> None:
    replica.answers = [lambda body: (200, b"<html>a proxy's page</html>")]
    [made] = ask(connect(replica))
    assert made.ids == (9, 7)
    assert len(replica.asked) == 2


@pytest.mark.parametrize("answer", [{}, {"choices": []}, {"choices": [{"token_ids": [7], "logprobs": None}]}, [1]])
def test_an_answer_of_another_form_is_an_error_of_its_request(replica: Replica, answer: object) -> None:
    replica.answer = lambda body: (200, json.dumps(answer).encode())
    [made] = ask(connect(replica))
    assert made.ids == ()
    assert "another form" in made.error


def test_replicas_take_turns_and_stand_in_for_each_other() -> None:
    with Replica() as first, Replica() as second, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        ask(connect(first, second), count=6)
        assert (len(first.asked), len(second.asked)) == (3, 3)
        gone = f"http://127.0.0.1:{unused.getsockname()[1]}"
        made = ask(connect(first, gone), count=4)
        assert all(completion.ids for completion in made)


@pytest.mark.parametrize("logprob", [-9999.0, -123456.0])
def test_the_servers_word_for_no_number_is_an_error(replica: Replica, logprob: float) -> None:
    replica.answer = lambda body: (200, spoken([9, 7], [-0.5, logprob]))
    [made] = ask(connect(replica))
    assert (made.ids, made.error) == ((), "a log-probability is not finite")


@pytest.mark.parametrize(("ids", "logprobs"), [([9, 7], [-0.5]), ([7], [-0.5, -0.25]), ([], [])])
def test_ids_without_a_log_probability_each_are_an_error(replica: Replica, ids: list[int], logprobs: list[float]) -> None:
    answer = spoken([0] * len(logprobs), logprobs)
    answer["choices"][0]["token_ids"] = ids
    replica.answer = lambda body: (200, answer)
    [made] = ask(connect(replica))
    assert (made.ids, made.error) == ((), f"{len(ids)} ids with {len(logprobs)} log-probabilities")


def test_a_server_that_ignores_the_temperature_is_refused(replica: Replica) -> None:
    def raw(body: dict[str, Any]) -> tuple[int, dict[str, Any] | bytes]:
        answer = spoken([3], [-1.5])
        wanted = body["sampling_params"]["logprob_token_ids"][0]
        answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"].append({"token_id": wanted, "logprob": -float(wanted)})
        return 200, answer

    replica.answer = raw
    with pytest.raises(PolicyError, match="processed_logprobs"):
        ask(connect(replica), temperature=0.7)


def test_ids_outside_the_vocabulary_are_never_sent(replica: Replica) -> None:
    client = connect(replica)
    with pytest.raises(PolicyError, match="id 20 is outside"):
        client.complete([Request(prompt=(20,), seed=0, max_tokens=1)], temperature=1.0, stop=STOP)
    client.close()
    assert replica.asked == []


def test_the_key_is_not_shown() -> None:
    config = ServerConfig(addresses=("http://a",), vocabulary=1, max_context=1, api_key="secret")
    assert "secret" not in repr(config)
