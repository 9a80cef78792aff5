"""A small OpenAI-compatible server on a port of its own: it answers as a function of the request says."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Said = str | int | bytes | dict[str, Any] | tuple[int, dict[str, str]] | None
"""The model's text; a status; a raw body; a body; a status with headers; or None, which drops the connection."""


def spoken(text: str | None, **more: Any) -> dict[str, Any]:
    """An answer in the form of the protocol's reference: 12 prompt tokens, 5 of the answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage, **more}


@dataclass
class ChatServer:
    """Serves POST /v1/chat/completions while it is entered."""

    answer: Callable[[dict[str, Any]], Said] = lambda body: "hello"
    first: list[Said] = field(default_factory=list)
    """What the first requests get instead."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of the requests, each with its `path`."""
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self) -> ChatServer:
        self._lock = threading.Lock()
        self.server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"chat": self}))
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def said(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Said:
        with self._lock:
            self.asked.append({"path": path, **body})
            self.headers.append(headers)
            if self.first:
                return self.first.pop(0)
        return self.answer(body)


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that went away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    chat: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = self.chat.said(self.path, body, dict(self.headers))
        if said is None:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status, headers = said if isinstance(said, tuple) else (said, {}) if isinstance(said, int) else (200, {})
        value: Any = spoken(said) if isinstance(said, str) else {"error": "told to"} if status != 200 else said
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass
