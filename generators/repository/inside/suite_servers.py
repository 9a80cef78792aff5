"""Processes that stay and fork for each run: one that has pytest imported, one that has the project collected too.

A server reads one request (a line of JSON) after the other and answers each with the result of one run. Both watch their
forks as graders do (`pytest_runs`), so that a run's end leaves nothing below them alive, and neither touches the other.

    request   {spec, how, stall_s, wall_s, cpu_s, swaps: [[path, function, code]]}
    answer    a result of `pytest_runs.run`, or {"lost": why}

`how` of the first server: `forked`, `fresh` (a new interpreter), `traced`, `warming` (bytecode is written). The second, whose
answer to nothing is `{"keys": {path: [function]}}` or `{"lost": why}` as soon as it stands, forks where the first test would
begin, and gives functions their new code in the fork.
"""

import base64
import contextlib
import functools
import gc
import json
import marshal
import os
import random
import select
import signal
import sys
import threading
import time
import types

import pytest_plugin
import pytest_runs

PLUGIN = os.path.join(os.path.dirname(__file__), "pytest_plugin.py")
OWN_FILES = 2
"""Nameless files that pytest itself has open during collection: what it captures of stdout and stderr."""


class Server:
    """The near side of a server process."""

    def __init__(self, serve):
        """Fork; the child calls `serve(requests, answers)`, two descriptors."""
        requests_out, self._requests = os.pipe()
        self._answers, answers_in = os.pipe()
        self._pid, self._rest = os.fork(), b""
        if self._pid == 0:
            try:
                nowhere = os.open(os.devnull, os.O_RDWR)
                for descriptor in range(3):
                    os.dup2(nowhere, descriptor)
                for descriptor in (self._requests, self._answers):
                    os.close(descriptor)
                pytest_runs.adopt_orphans()
                serve(requests_out, answers_in)
            finally:
                os._exit(70)
        os.close(requests_out)
        os.close(answers_in)

    def ask(self, request, wait_s):
        """The answer, or {"lost": why} when none comes within `wait_s`: then the server is to be closed."""
        data = json.dumps(request).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._requests, data) :]
        except BrokenPipeError:
            return {"lost": "the server has ended"}
        return self.answer(wait_s)

    def answer(self, wait_s):
        """The next line, as `ask` does."""
        deadline, parts = time.monotonic() + wait_s, [self._rest]
        while b"\n" not in parts[-1]:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                return {"lost": "the server does not answer"}
            part = os.read(self._answers, 1 << 20)
            if not part:
                return {"lost": "the server has ended"}
            parts.append(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return json.loads(line)

    def close(self):
        """End it and everything below it."""
        os.close(self._requests)
        os.close(self._answers)
        stopped: set = set()
        while fresh := {self._pid, *pytest_runs.descendants(self._pid)} - stopped:
            _signal(fresh, signal.SIGSTOP)  # so that none can start another
            stopped |= fresh
        _signal(stopped, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _signal(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class Requests:
    """The far side: requests come in, answers go out."""

    def __init__(self, requests, answers):
        self._file, self._answers = os.fdopen(requests, "rb"), answers
        self._write, self._dumps, self._loads = os.write, json.dumps, json.loads

    def __iter__(self):
        return map(self._loads, self._file)

    def answer(self, value):
        data = self._dumps(value).encode() + b"\n"
        while data:
            data = data[self._write(self._answers, data) :]


def serve_clean(requests, answers):
    """The server that never imports the project."""
    import suite_tracing  # noqa: F401 (needs pytest)

    channel = Requests(requests, answers)
    sys.path.remove(os.path.dirname(__file__))
    gc.collect()
    gc.freeze()  # forks share what they do not touch
    for request in channel:
        channel.answer(execute(BODIES[request["how"]](request["spec"]), request))


def execute(body, request):
    """One run."""
    limits = {name: request[name] for name in ("wall_s", "cpu_s", "stall_s")}
    return pytest_runs.run(body, request["spec"], **limits)


def _forked(spec, *, bytecode=False):
    """A fork that imports the project and runs its tests."""

    def body(events, control):
        sys.dont_write_bytecode = not bytecode
        _limit_import(spec)
        pytest_plugin.main(pytest_plugin.read_order(control), events, control, Measured)

    return body


def _traced(spec):
    """The same, traced."""

    def body(events, control):
        import suite_tracing

        sys.dont_write_bytecode = True
        pytest_plugin.main(pytest_plugin.read_order(control), events, control, suite_tracing.Traced)

    return body


def _fresh(spec):
    """A new interpreter."""
    start = pytest_runs.fresh_interpreter(PLUGIN)

    def body(events, control):
        _limit_import(spec)
        start(events, control)

    return body


def _limit_import(spec):
    """Limit the processor time up to the first test, which sets its own; a new interpreter keeps the limit."""
    signal.setitimer(signal.ITIMER_PROF, spec["import_ms"] / 1000)


class Measured(pytest_plugin.Plugin):
    """The plugin of a run whose code nobody wrote to cheat: it does not look for changed functions."""

    def fingerprint(self):
        return {}

    def pytest_sessionfinish(self):
        self._send(event="end", tampered=[])


BODIES = {"forked": _forked, "warming": functools.partial(_forked, bytecode=True), "traced": _traced, "fresh": _fresh}


def serve_collected(spec, requests, answers):
    """The server that has collected the tests of `spec`."""
    sys.dont_write_bytecode = True
    sys.path.remove(os.path.dirname(__file__))
    os.chdir(spec["root"])
    channel = Requests(requests, answers)
    pytest_plugin.main(spec, -1, -1, functools.partial(Collected, channel, _descriptors()))


class Collected(Measured):
    """The plugin of the second server; in each fork, that of one run."""

    def __init__(self, channel, opened, spec, events, control):
        super().__init__(spec, events, control)
        self._channel, self._opened = channel, opened

    def pytest_collection_finish(self, session):
        """Nothing is told yet: see `_run`."""

    def pytest_runtestloop(self, session):
        unsafe = self._unsafe()
        if unsafe:
            self._channel.answer({"lost": unsafe})
            os._exit(0)
        functions = self._functions()
        self._channel.answer({"keys": {path: sorted(keys) for path, keys in functions.items()}})
        gc.collect()
        gc.freeze()  # forks share what they do not touch
        for request in self._channel:
            self._channel.answer(execute(self._run(session, functions, request["swaps"]), request))
        os._exit(0)

    def _unsafe(self):
        """Why forks of this process would not be what a new one is; empty when nothing speaks against it."""
        threads = len(os.listdir("/proc/self/task"))
        if threads > 1:
            names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
            return f"{threads - 1} threads run after collection: {', '.join(names)[:100]}"
        if any(pytest_runs.descendants()):
            return "processes run after collection"
        opened = [name for number, name in _descriptors().items() if number not in self._opened and name != os.devnull]
        own = [name for name in opened if name.endswith(" (deleted)")][:OWN_FILES]
        foreign = [name for name in opened if name not in own]
        return f"files are open after collection: {foreign[0]}" if foreign else ""

    def _functions(self):
        """{path: {function: [function objects]}} of all modules below the tree."""
        found: dict = {}
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.startswith(f"{self._root}/"):
                found[os.path.relpath(file, self._root)] = {}
        for one in gc.get_objects():
            if type(one) is types.FunctionType and one.__code__.co_filename.startswith(f"{self._root}/"):
                code = one.__code__
                path = os.path.relpath(code.co_filename, self._root)
                found.setdefault(path, {}).setdefault(f"{code.co_firstlineno}:{code.co_qualname}", []).append(one)
        return found

    def _run(self, session, functions, swaps):
        def body(events, control):
            for path, name, code in swaps:
                for function in functions[path][name]:
                    function.__code__ = marshal.loads(base64.b64decode(code))
            self.take(pytest_plugin.read_order(control), events, control)
            items = session.items
            if self._wanted is not None:
                items = [item for item in items if item.nodeid in self._wanted]
            if self._shuffle is not None:
                random.Random(self._shuffle).shuffle(items)
            session.items = items
            super(Collected, self).pytest_collection_finish(session)
            try:
                self._loop(session)
            except BaseException:  # noqa: BLE001 (boundary: a test may end the session, as `pytest.exit` does)
                session.testsfailed += 1
            code = int(bool(session.testsfailed))
            session.exitstatus = code
            session.config.hook.pytest_sessionfinish(session=session, exitstatus=code)
            os._exit(code)

        return body

    def _loop(self, session):
        for item, after in zip(session.items, [*session.items[1:], None], strict=False):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.shouldfail or session.shouldstop:
                return


def _descriptors():
    """{number: name} of what is open in this process."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # the listing's own
            continue
    return found
