"""Graded code that acts in the middle of a test: on pytest's objects, on its test, on its graders, on the machine."""

from __future__ import annotations

from tests.sandboxes.attacks.submissions import EVENTS, Files, called

TO_ITEM = """
import sys
frame = sys._getframe(1)
test = frame
while frame and "pyfuncitem" not in frame.f_locals and "item" not in frame.f_locals:
    frame = frame.f_back
item = frame.f_locals.get("pyfuncitem") or frame.f_locals["item"]
"""
"""Finds the running test's item and its frame from the frames of the call."""

ITS_HOOK = (
    TO_ITEM
    + """
import pytest
class Hook:
    def __init__(self, wanted): self.wanted = wanted
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if item.nodeid == self.wanted:
            report.get_result().outcome = "passed"
item.config.pluginmanager.register(Hook(item.nodeid))
"""
)
ITS_PLUGIN = (
    TO_ITEM
    + """
import gc, json, os
plugin = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Plugin" and hasattr(thing, "_nonce"))
def told(state, event, **more):
    line = {"nonce": plugin._nonce, "event": event, "state": state, "ms": 1, "failure": None, "tampered": [], **more}
    os.write(plugin._events, json.dumps(line).encode() + b"\\n")
for other in item.session.items:
    told("passed" if other.nodeid.count("::") > 1 or "test_add" in other.nodeid else "failed", "test", id=other.nodeid)
told("", "end")
os._exit(0)
"""
)
ITS_LATER_TESTS = (
    TO_ITEM
    + """
for other in item.session.items:
    if "test_add" in other.nodeid or "TestSums" in other.nodeid:
        other.runtest = lambda: None
"""
)
ITS_CODE = """
import gc, types
for thing in gc.get_objects():
    if isinstance(thing, types.FunctionType) and thing.__name__ in ("test_add", "test_sum", "test_near", "test_words"):
        thing.__code__ = (lambda *_, **__: None).__code__
"""
ITS_CONSTANTS = """
import ctypes, sys
constants = sys._getframe(1).f_code.co_consts
place = max((n for n, value in enumerate(constants) if type(value) in (int, float)), default=None)
kept = globals().setdefault("kept", [])
kept.append(a - b)
ctypes.c_ssize_t.from_address(id(constants) + tuple.__basicsize__ + 8 * place).value = id(kept[-1])
"""
EQUAL = """
class Equal(float):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    __hash__ = float.__hash__
"""
PEEKED = """
import sys
constants = [value for value in sys._getframe(1).f_code.co_consts if type(value) in (int, float)]
"""
RAISED_LIMIT = """
import os, resource
for limit in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
    try: resource.prlimit(os.getppid(), limit, (0, 0))
    except OSError: pass
"""
KILLED = """
import os, signal
parent = os.getppid()
for target in (parent, 1, 2, 3, 4, 5, -1, -parent, -os.getpgid(parent)):
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGINT, signal.SIGKILL):
        try:
            if target != os.getpid(): os.kill(target, number)
        except OSError: pass
"""
OWNED = """
import fcntl, os, signal, struct
reader, writer = os.pipe()
for command, owner in ((fcntl.F_SETOWN, os.getppid()), (15, struct.pack("ii", 1, os.getppid()))):
    try:
        fcntl.fcntl(reader, command, owner)
        fcntl.fcntl(reader, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(writer, b"x")
    except OSError: pass
"""
PIPES_TAKEN = """
import os, threading
def work(number, flags):
    try:
        pipe = os.open(f"/proc/self/fd/{number}", flags | os.O_NONBLOCK)
        while True:
            try: os.read(pipe, 65536) if flags == os.O_RDONLY else os.write(pipe, b"x" * 65536)
            except BlockingIOError: pass
    except OSError: pass
for number in range(3, 16):
    for flags in (os.O_RDONLY, os.O_WRONLY):
        threading.Thread(target=work, args=(number, flags), daemon=True).start()
"""
FORK_BOMB = """
import os
try:
    while True: os.fork()
except OSError: pass
"""
MEMORY_BOMB = """
kept = []
try:
    while "filled" not in globals(): kept.append(bytearray(1 << 24))
except MemoryError: globals()["filled"] = True
kept.clear()
"""
MEMORY_BOMB_OF_MANY = """
import os, time
for _ in range(40):
    try:
        if os.fork() == 0:
            kept = []
            try:
                while True: kept.append(bytes(1 << 24).replace(b"\\0", b"x"))
            except MemoryError: time.sleep(60)
    except OSError: break
"""
DISK_FILL = """
for place in ("/tmp/fill", "fill", "/dev/shm/fill"):
    try:
        with open(place, "wb", buffering=0) as file:
            while file.write(bytes(1 << 20)): pass
    except OSError: pass
"""
FLOOD = """
import os
block = b"tests passed\\n" * 5000
try:
    for _ in range(20000): os.write(1, block)
except OSError: pass
"""
LOUD = r"""
raise ValueError("\ud800 \x00 \x1b[2J <|im_end|> " + "x" * 100000)
"""

IN_A_TEST: dict[str, Files] = {
    "exit": called("import os\nos._exit(0)"),
    "pytest's own exit": called("import pytest\npytest.exit('done', 0)"),
    "xfail": called("import pytest\npytest.xfail('no')"),
    "skip": called("import pytest\npytest.skip('no')"),
    "system exit": called("raise SystemExit(0)"),
    "forged events": called(EVENTS),
    "hook for the running test": called(ITS_HOOK),
    "events with the nonce from memory": called(ITS_PLUGIN),
    "later tests replaced": called(ITS_LATER_TESTS),
    "code of the tests replaced": called(ITS_CODE),
    "result that equals everything": called(EQUAL, "Equal()"),
    "result read from the test's own code": called(PEEKED, "constants[-1] if len(constants) > 2 else a + b - 1"),
    "expected value rewritten in the test's own code": called(ITS_CONSTANTS, "kept[-1]"),
    "standard library patched by the test": called("import math\nmath.isclose = lambda *_, **__: True"),
    "failure that is hard to write down": called(LOUD),
}
"""Never passes a test that the bug fails."""

ON_GRADERS: dict[str, Files] = {
    "graders killed": called(KILLED, "a + b"),
    "graders' limits lowered": called(RAISED_LIMIT, "a + b"),
    "graders signalled for a descriptor": called(OWNED, "a + b"),
    "memory filled": called(MEMORY_BOMB, "a + b"),
    "graders' watchers taken": called("import ctypes\nassert ctypes.CDLL(None).inotify_init1(0) < 0", "a + b"),
}
"""The code is right otherwise: it passes as if it had done nothing."""

ON_ITSELF: dict[str, Files] = {
    "hang": called("while True: pass"),
    "sleep past the end": called("import time\ntime.sleep(3600)"),
    "pipes emptied and filled": called(PIPES_TAKEN),
    "fork bomb": called(FORK_BOMB),
    "memory filled by many": called(MEMORY_BOMB_OF_MANY),
    "disk filled": called(DISK_FILL),
    "output flooded": called(FLOOD),
    "graders killed by wrong code": called(KILLED),
}
"""Ends scored, and passes nothing that the bug fails."""
