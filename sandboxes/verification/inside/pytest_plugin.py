"""The child side of a test run: runs pytest with one plugin that reports per-test events on a pipe.

Runs as a script in a fresh interpreter, or is called in a fork. The order of work comes as one line of
JSON on the control descriptor, events go out as JSON lines:

    {"event": "collected", "ids": [...], "errors": [...]}      before the nonce is known
    {"nonce", "event": "start", "id"}
    {"nonce", "event": "test", "id", "state", "ms", "failure"}
    {"nonce", "event": "end", "tampered": [...]}

The order (`spec`):

    root      the tree's root, absolute; the working directory
    path      import roots, absolute, put first on `sys.path`
    late      import roots, absolute, put last (the dependencies)
    files     test files or folders handed to pytest, relative to the root
    wanted    ids to run, exactly as collected, or null for all
    options   further pytest arguments
    plain     true: assertions are not rewritten (faster, no explanation)
    shuffle   an integer seed that shuffles the order, or null
    cpu_ms    {id: CPU milliseconds}, and `other_ms` for ids not named: a test that uses more is killed

Graded code lives in this process. Whatever it reports is believed only as far as `pytest_checker` says.
"""

import json
import os
import random
import signal
import sys
import types

EXPLANATION = 600
"""Longest failure message, characters."""
WATCHED = frozenset({"_pytest", "pluggy", "pytest", "builtins"}) | sys.stdlib_module_names - {"sys"}
"""Packages whose functions must be the same at the end as before graded code was first imported; `sys` holds hooks alone."""
OWN_PATCHES = {
    ("_pytest.config", "Config", "_getini_unknown_type"),
    ("threading", "excepthook"),
    ("warnings", "_showwarnmsg_impl"),
    ("warnings", "showwarning"),
}
"""What pytest itself replaces for the time of a session."""


def main(spec, events, control, kind=None):
    """Run pytest as `spec` says, with a plugin of the class `kind` (None: `Plugin`); never returns."""
    sys.path += [entry for entry in spec["late"] if entry not in sys.path]
    import pytest  # before any graded code, and only where a run is made

    plugin = (kind or Plugin)(spec, events, control)
    sys.path[:0] = spec["path"]
    os.environ["PYTHONPATH"] = os.pathsep.join([*spec["path"], *spec["late"]])  # for what tests start themselves
    arguments = [
        "--rootdir=" + spec["root"],
        "-pno:cacheprovider",
        "-oaddopts=",
        "-qq",
        "--tb=no",
        "--continue-on-collection-errors",
        "--assert=" + ("plain" if spec["plain"] else "rewrite"),
        *spec["options"],
        *spec["files"],
    ]
    sys.argv = ["pytest", *arguments]
    code = pytest.main(arguments, plugins=[plugin])
    os._exit(int(code))


class Plugin:
    """pytest hooks. Keeps its own references to what it needs, taken before graded code is imported."""

    def __init__(self, spec, events, control):
        self._write, self._dumps, self._read = os.write, json.dumps, os.read
        self._limit, self._timer = signal.setitimer, signal.ITIMER_PROF
        self._nonce = None
        self._errors = []
        self._phases = {}
        self._failure = None
        self._before = self.fingerprint()
        self.take(spec, events, control)

    def take(self, spec, events, control):
        """Work on this order from here on, and report there."""
        self._wanted = None if spec["wanted"] is None else set(spec["wanted"])
        self._shuffle = spec["shuffle"]
        self._cpu_ms, self._other_ms = spec["cpu_ms"], spec["other_ms"]
        self._root = spec["root"]
        self._events, self._control = events, control

    def fingerprint(self):
        """What must be the same at the end."""
        return fingerprint()

    def _send(self, **event):
        data = self._dumps({"nonce": self._nonce, **event}).encode() + b"\n"
        while data:
            data = data[self._write(self._events, data) :]

    def pytest_collectreport(self, report):
        if report.failed:
            self._errors.append({"id": report.nodeid, "text": str(report.longrepr)[-EXPLANATION:]})

    def pytest_collection_modifyitems(self, items):
        if self._wanted is not None:
            items[:] = [item for item in items if item.nodeid in self._wanted]
        if self._shuffle is not None:
            random.Random(self._shuffle).shuffle(items)

    def pytest_collection_finish(self, session):
        self._send(event="collected", ids=[item.nodeid for item in session.items], errors=self._errors)
        line = b""
        while not line.endswith(b"\n"):
            part = self._read(self._control, 256)
            if not part:
                os._exit(3)
            line += part
        self._nonce = line.decode().strip()

    def pytest_runtest_logstart(self, nodeid):
        self._phases, self._failure = {}, None
        self._send(event="start", id=nodeid)
        self._limit(self._timer, self._cpu_ms.get(nodeid, self._other_ms) / 1000)

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is not None and self._failure is None:
            self._failure = self._explained(item, call.excinfo)

    def pytest_runtest_logreport(self, report):
        self._phases[report.when] = report

    def pytest_runtest_logfinish(self, nodeid):
        self._limit(self._timer, 0)
        state = state_of(self._phases)
        ms = round(1000 * sum(report.duration for report in self._phases.values()))
        failure = self._failure if state in ("failed", "error") else None
        self._send(event="test", id=nodeid, state=state, ms=ms, failure=failure)

    def pytest_sessionfinish(self):
        self._send(event="end", tampered=changed(self._before))

    def _explained(self, item, excinfo):
        """Type and message of a failure, and the last line of the test's own file that it passed through."""
        path, line = str(item.path), 0
        for entry in excinfo.traceback:
            if str(entry.path) == path:
                line = entry.lineno + 1
        try:
            text = str(excinfo.value)
        except Exception as error:  # noqa: BLE001 (boundary: an exception of the graded code may fail to describe itself)
            text = f"({type(error).__name__} in its description)"
        file = os.path.relpath(path, self._root)
        return {"type": excinfo.type.__name__, "message": text[:EXPLANATION], "file": file, "line": line}


def state_of(phases):
    """One of six states from the reports of a test's phases; a phase that fails beside the call is an error."""
    if any(name != "call" and report.failed for name, report in phases.items()):
        return "error"
    report = phases.get("call") or phases.get("setup")
    if report is None or "teardown" not in phases:
        return "error"
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    if report.skipped:
        return "skipped"
    return "passed" if report.passed and "call" in phases else "failed"


def fingerprint():
    """{name: code} of every function of the watched packages' loaded modules and of their classes."""
    found: dict = {}
    for name, module in list(sys.modules.items()):
        if module is None or name.partition(".")[0] not in WATCHED:
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType):
                found[name, key] = value.__code__
            elif isinstance(value, types.BuiltinFunctionType):
                found[name, key] = value
            elif isinstance(value, type) and value.__module__ == name:
                for inner, method in list(vars(value).items()):
                    function = getattr(method, "__func__", getattr(method, "fget", method))
                    if isinstance(function, types.FunctionType):
                        found[name, key, inner] = function.__code__
    return found


def changed(before):
    """Names of the functions that are not what `before` says, or that a module loaded since has from elsewhere."""
    after = fingerprint()
    names = [key for key, code in before.items() if after.get(key) is not code and key not in OWN_PATCHES]
    loaded = {key[0] for key in before}
    return [".".join(key) for key in (*names, *foreign({key[0] for key in after} - loaded))][:5]


def foreign(modules):
    """(module, function) of functions in these modules that no watched package defined."""
    for name in modules:
        for key, value in list(vars(sys.modules[name]).items()):
            if isinstance(value, types.FunctionType):
                home = str(value.__globals__.get("__name__")).partition(".")[0]
                if home not in WATCHED:
                    yield name, key


def read_order(control):
    """The specification: one line of JSON on the control descriptor."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(control, 1 << 16)
        if not part:
            os._exit(3)
        line += part
    return json.loads(line)


if __name__ == "__main__":
    import site

    for name in ("setquit", "setcopyright", "sethelper"):
        getattr(site, name)()
    _events, _control = int(sys.argv[1]), int(sys.argv[2])
    main(read_order(_control), _events, _control)
