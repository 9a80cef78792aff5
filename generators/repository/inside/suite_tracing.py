"""Records which lines of the sources each test runs, and what runs before the first test.

Written in Python, for the interpreter's own trace function: nothing compiled has to fit the image. A line counts for the test
during which it ran. What the set-up of a fixture of a wider scope runs counts for every test that uses the fixture, as in
another order another test would set it up. The result goes into a file, since a run's events have a limit:

    {"ids": [id], "lines": {path: {line: tests as a bit mask, hexadecimal, the first id lowest}},
     "imported": {path: {"lines": [line], "called": [function], "read": [function]}}, "always": {id: why}}

`imported` is what ran outside tests, in collection and at the session's end, and what importing a module runs, in a test too.
A function is told as `line:qualname`, the line that of its code object; `read` are those whose code object was looked at.
`always` are tests whose lines tell too little: they started a process, left a thread running or took the trace function away.
"""

import json
import os
import sys
import threading

import pytest
import pytest_plugin

PROCESSES = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system"})
"""Audit events of a process that starts another."""


class Tracer:
    """The trace function, and the lines seen in the present context."""

    def __init__(self, files):
        """`files`: {absolute path: relative path} of the sources."""
        self._files = files
        self._sizes: dict = {}
        self.hits: dict = {}
        """Lines by code object, in the present context."""
        self.imported: dict = {}
        """The same of modules' own code and what it calls, whoever imports them: it runs once, for all that come after."""
        self._importing: list = []

    def start(self):
        self._importing.clear()
        threading.settrace(self._call)
        sys.settrace(self._call)

    @property
    def running(self):
        return sys.gettrace() == self._call

    def enter(self):
        """Begin a new context; the lines of the one before."""
        before, self.hits = self.hits, {}
        return before

    def add(self, hits):
        """Let the present context have these lines too."""
        for code, lines in hits.items():
            self.hits.setdefault(code, set()).update(lines)

    def _call(self, frame, event, arg):
        code = frame.f_code
        if code.co_filename not in self._files:
            return None
        if code.co_name == "<module>":
            self._importing.append(self.hits)
            self.hits = self.imported
            self.hits.setdefault(code, set()).add(frame.f_lineno)
            return self._module
        seen = self.hits.get(code)
        if seen is None:
            self.hits[code] = set()
        elif len(seen) == self._size(code):
            return None
        return self._line

    def _line(self, frame, event, arg):
        if event == "line":
            code = frame.f_code
            seen = self.hits.get(code)
            if seen is None:
                seen = self.hits[code] = set()
            seen.add(frame.f_lineno)
        return self._line

    def _module(self, frame, event, arg):
        if event == "return":
            self.hits = self._importing.pop()
            return None
        if event == "line":
            self.hits.setdefault(frame.f_code, set()).add(frame.f_lineno)
        return self._module

    def _size(self, code):
        """How many lines a code object has at most."""
        if code not in self._sizes:
            self._sizes[code] = len({line for _, _, line in code.co_lines() if line is not None})
        return self._sizes[code]

    def lines(self, hits):
        """{relative path: lines}."""
        found: dict = {}
        for code, lines in hits.items():
            found.setdefault(self._files[code.co_filename], set()).update(lines)
        return found

    def functions(self, codes):
        """{relative path: functions} of code objects."""
        found: dict = {}
        for code in codes:
            if code.co_filename in self._files:
                found.setdefault(self._files[code.co_filename], set()).add(f"{code.co_firstlineno}:{code.co_qualname}")
        return found


class Traced(pytest_plugin.Plugin):
    """The plugin of a run that is traced."""

    def __init__(self, spec, events, control):
        super().__init__(spec, events, control)
        self._tracer = Tracer({os.path.join(spec["root"], path): path for path in spec["sources"]})
        self._file = spec["trace"]
        self._tests: dict = {}
        self._fixtures: dict = {}
        self._always: dict = {}
        self._looked_at: set = set()
        self._test, self._inside = None, False
        sys.addaudithook(self._audit)
        self._tracer.start()

    def _audit(self, event, arguments):
        if event == "object.__getattr__":
            if self._test is None and not self._inside and arguments[1] == "__code__":
                self._inside = True  # to look is an event itself
                self._looked_at.add(arguments[0].__code__)
                self._inside = False
        elif event in PROCESSES and self._test is not None:
            self._always.setdefault(self._test, "subprocess")

    def pytest_runtest_logstart(self, nodeid):
        _merge(self._tracer.imported, self._tracer.enter())
        self._test, self._threads = nodeid, threading.active_count()
        super().pytest_runtest_logstart(nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            yield
            return
        before = self._tracer.enter()
        yield
        hits = self._tracer.enter()
        _merge(self._fixtures.setdefault(fixturedef.argname, {}), hits)
        self._tracer.add(before)
        self._tracer.add(hits)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item):
        request = getattr(item, "_request", None)
        names = {*getattr(item, "fixturenames", ()), *getattr(request, "fixturenames", ())}
        self._tests.setdefault(item.nodeid, [{}, set()])[1].update(names)

    def pytest_runtest_logfinish(self, nodeid):
        super().pytest_runtest_logfinish(nodeid)
        if not self._tracer.running:
            self._always[nodeid] = "trace function"
            self._tracer.start()
        if threading.active_count() > self._threads:
            self._always.setdefault(nodeid, "threads")
        _merge(self._tests.setdefault(nodeid, [{}, set()])[0], self._tracer.enter())
        self._test = None

    def pytest_sessionfinish(self):
        sys.settrace(None)
        threading.settrace(None)
        _merge(self._tracer.imported, self._tracer.enter())
        with open(self._file, "w") as file:
            json.dump(self._result(), file)
        super().pytest_sessionfinish()

    def _result(self):
        lines: dict = {}
        for number, (hits, names) in enumerate(self._tests.values()):
            for found in (hits, *(self._fixtures[name] for name in names & self._fixtures.keys())):
                for path, seen in self._tracer.lines(found).items():
                    masks = lines.setdefault(path, {})
                    for line in seen:
                        masks[line] = masks.get(line, 0) | 1 << number
        imported, called, read = (
            self._tracer.lines(self._tracer.imported),
            self._tracer.functions(self._tracer.imported),
            self._tracer.functions(self._looked_at),
        )
        return {
            "ids": list(self._tests),
            "lines": {path: {line: f"{mask:x}" for line, mask in masks.items()} for path, masks in lines.items()},
            "imported": {
                path: {
                    "lines": sorted(imported.get(path, ())),
                    "called": sorted(called.get(path, ())),
                    "read": sorted(read.get(path, ())),
                }
                for path in sorted(imported.keys() | read.keys())
            },
            "always": self._always,
        }


def _merge(into, hits):
    for code, lines in hits.items():
        into.setdefault(code, set()).update(lines)
