"""The host's end of the namespace helper."""

from __future__ import annotations

import array
import errno
import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from factory.core.errors import SandboxError, SandboxLost
from sandboxes.bubblewrap.helper import MESSAGE_BYTES

logger = logging.getLogger(__name__)

START_S = 20.0
"""Seconds that the helper may take to start."""
ANSWER_S = 30.0
"""Seconds that the helper may take for one request."""

_ROOT = Path(__file__).parents[2]
_NOT_SENT = (errno.EMSGSIZE, errno.ENOBUFS, errno.ENOMEM, errno.ETOOMANYREFS)
"""What says that nothing of a message was sent: the next one can be."""
_CODE = "import sys; sys.path.insert(0, {root!r}); from sandboxes.bubblewrap.helper import main; main()"


@dataclass(frozen=True, kw_only=True)
class HelperRoot:
    """What the helper's root holds."""

    binds: tuple[tuple[str, str], ...]
    """Host folders and where they stand in the root."""
    links: tuple[tuple[str, str], ...]
    """Paths in the root and the targets of their links; sandboxes have the same."""
    runtime: tuple[tuple[str, str], ...]
    """Folders of the root and where every sandbox has them."""
    etc: tuple[tuple[str, str], ...]
    """Files of the sandboxes' `/etc` and their text."""
    folders: tuple[tuple[str, str], ...]
    """Folders of a box and where its sandbox has them."""
    bwrap: str
    """Path of bubblewrap in the root."""
    filters: tuple[bytes, ...]
    """System call filters of sandboxes that may not and that may watch files; empty for none."""
    overlays: bool
    """Whether to try overlays; layers are copied where they are not to be had."""
    drop: int | None
    """User id to become; None when the caller is not root."""


def _encoded(word: str) -> bytes:
    if "\0" in word:
        raise SandboxError("an argument holds a NUL character")
    try:
        return os.fsencode(word)
    except UnicodeEncodeError:  # half a character, as in a command of the session
        return word.encode(errors="surrogatepass")


class HelperClient:
    """One helper process. Safe for several threads; every request is answered before the next is sent."""

    def __init__(self, root: HelperRoot) -> None:
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _CODE.format(root=str(_ROOT))],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=dict[str, str](),
                cwd="/",
                start_new_session=True,
            )
        ours.settimeout(START_S)
        ours.send(json.dumps(asdict(root) | {"filters": [program.hex() for program in root.filters]}).encode())
        try:
            self._receive()
        except SandboxError as error:
            self.close()
            raise SandboxError(f"cannot make user and mount namespaces here: {error}") from error
        ours.settimeout(ANSWER_S)

    @property
    def running(self) -> bool:
        """Whether the helper process lives."""
        return self._process.poll() is None and self._control.fileno() >= 0

    def call(
        self, op: str, descriptors: tuple[int, ...] = (), *, words: Sequence[str] = (), **fields: Any
    ) -> tuple[dict[str, Any], list[int]]:
        """Send one request with `descriptors`; return the reply and the descriptors that came with it.

        `words` go as they are, since JSON makes a character that does not print six. Raises SandboxError when the helper
        refuses or the request is too large, which ends nothing else; SandboxLost when the helper is gone.
        """
        data = b"\0".join([json.dumps({"op": op, **fields}).encode(), *map(_encoded, words)])
        if len(data) > MESSAGE_BYTES:
            raise SandboxError(f"a request of {len(data)} bytes is too large")
        with self._lock:
            try:
                self._send(data, descriptors)
                return self._receive()
            except OSError as error:
                self._control.close()  # an answer that comes late must not be taken for the next one
                raise SandboxLost(f"the namespace helper is gone: {error}") from error

    def _send(self, data: bytes, descriptors: tuple[int, ...]) -> None:
        try:
            if descriptors:
                socket.send_fds(self._control, [data], descriptors)
            else:
                self._control.send(data)
        except OSError as error:
            if error.errno in _NOT_SENT:
                raise SandboxError(f"a request of {len(data)} bytes cannot be sent: {error}") from error
            raise

    def _receive(self) -> tuple[dict[str, Any], list[int]]:
        data, ancillary, _, _ = self._control.recvmsg(1 << 16, socket.CMSG_SPACE(16 * 4), socket.MSG_CMSG_CLOEXEC)
        received = array.array("i")
        for _, _, part in ancillary:
            received.frombytes(part)
        if not data:
            raise SandboxLost("the namespace helper ended")
        reply = json.loads(data)
        if "error" in reply:
            for descriptor in received:
                os.close(descriptor)
            raise SandboxError(reply["error"])
        return reply, list(received)

    def close(self) -> None:
        """End the helper and all that it made. Idempotent."""
        self._control.close()
        try:
            self._process.wait(timeout=ANSWER_S)
        except subprocess.TimeoutExpired:
            logger.warning("the namespace helper did not end by itself")
            self._process.kill()
            self._process.wait()
