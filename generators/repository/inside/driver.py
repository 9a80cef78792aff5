"""Runs a project's test suite many times inside one sandbox, each time with the texts of some files replaced.

Reads one JSON job on standard input and prints JSON lines, at least one for each run:

    job   {root, path, late, files, sources, options, cpu_ms, other_ms, import_ms, cpu_s, wall_s, stall_s, stops, kept,
           imported, risky, runs: [run]}
    run   {key, files: {path: text}, plain, shuffle, wanted, how, confirm, whole, fresh}
    line  {key, part, how, why, asked, ended, finished, running, stopped: {id: ended}, breakage, wall_ms, cpu_ms, errors,
           states: {id: [state, ms]}, failures: {id: failure}, trace}

This process imports neither pytest nor the project. Its servers fork for each run (`suite_servers`): the first has pytest
imported and imports the project in the fork, which is always sound; the second has the project imported and its tests
collected, and exchanges the code of changed functions in the fork (`suite_swaps`). A run that asks for the second (`how` is
`collected`) and cannot have it is made by the first; `how` of the line says which it was, and `why` why. All happen in one
tree (`suite_tree`).

A test that its process does not survive is `stopped`, and what comes after it is run in a further process, at most
`stops` times. `breakage` is `import` when something was not collected, `hang` or `crash` when a process ended so. A run with
`confirm` (ids that pass in the project as it is) of which some fail is made again in parts, unless it has a breakage that is
not `kept`:

    again   in another order, the ids of `confirm` that were not `wanted` and those that failed; with `whole` all of them
    newly   in another order, those that only now failed
    fresh   with `fresh`, or when a test of `risky` failed: all, in a new interpreter
"""

import base64
import json
import marshal
import os
import sys
import time

import pytest_runs
import suite_servers
import suite_swaps
from suite_tree import TREE, Tree, compile_all

TRACE = "/tmp/trace.json"
"""Where a traced run leaves what it saw."""
START_S = 30
"""What a server may take beyond the wall time of a run, seconds."""
NOTHING: dict = {
    "ids": [],
    "errors": [],
    "tests": {},
    "running": None,
    "finished": True,
    "ended": "none",
    "wall_s": 0.0,
    "cpu_s": 0.0,
    "stopped": {},
    "trace": None,
}
"""The result of no tests."""


class Driver:
    """One job."""

    def __init__(self, job, tell):
        self._job, self._tell = job, tell
        self._tree = Tree(job["root"])
        compile_all()
        self._clean = suite_servers.Server(suite_servers.serve_clean)
        self._collected, self._keys, self._why = None, {}, ""

    def work(self):
        warm = self._ask(self._request("warming", wanted=[]))
        if warm["ids"] is None:
            self._tell(line("warm", "first", warm, None))
            return
        self._tree.settle()
        if any(run["how"] == "collected" for run in self._job["runs"]):
            self._collect()
        for run in self._job["runs"]:
            self._made(run)
        self.close()

    def close(self):
        """End the servers, so that what they and their forks used is counted as this process's children."""
        for server in (self._clean, self._collected):
            if server is not None:
                server.close()

    def _collect(self):
        """Start the second server, or note why there is none."""
        spec = self._request("collected")["spec"]
        server = suite_servers.Server(lambda requests, answers: suite_servers.serve_collected(spec, requests, answers))
        answer = server.answer(self._job["wall_s"] + START_S)
        if "lost" in answer:
            server.close()
            self._why = answer["lost"]
            return
        self._collected, self._keys = server, answer["keys"]
        self._tree.keep_scratch()

    def _made(self, run):
        """One run and what confirms it."""
        started = time.monotonic()
        swaps, how, why = self._planned(run)
        stable = run["confirm"]

        def part(name, wanted, shuffle, how=how):
            began = started if name == "first" else time.monotonic()
            result = self._whole(run, swaps, how, wanted, shuffle)
            result["wall_s"] = time.monotonic() - began
            said = self._why if how == "collected" and result["how"] != how else why
            self._tell(line(run["key"], name, result, wanted, said))
            return result

        first = part("first", run["wanted"], run["shuffle"])
        asked = stable if run["wanted"] is None else [name for name in stable if name in set(run["wanted"])]
        failing = without(asked, first)
        if not failing or breakage(first) not in ("", *self._job["kept"]):
            return
        rest = [name for name in stable if name not in set(asked)]
        again = part("again", stable if run["whole"] else [*rest, *failing], 1)
        newly = without(rest, again)
        if newly:
            part("newly", newly, 2)
        if run["fresh"] or set(self._job["risky"]).intersection(failing):
            part("fresh", stable, 3, "fresh")

    def _planned(self, run):
        """The exchanges of code, how the run is made, and why not as it was asked."""
        if run["how"] != "collected":
            return [], run["how"], ""
        if self._collected is None:
            return [], "forked", self._why
        try:
            return [swap for path, text in run["files"].items() for swap in self._swaps(path, text)], "collected", ""
        except suite_swaps.Refused as refusal:
            return [], "forked", str(refusal)

    def _swaps(self, path, text):
        if path not in self._keys:  # not imported yet: the new file is enough
            return
        imported = (self._job["imported"] or {}).get(path)
        if imported is None:
            raise suite_swaps.Refused("what runs on import is not known")
        with open(os.path.join(self._job["root"], path), encoding="utf-8", newline="") as file:
            before = file.read()
        found = suite_swaps.swaps(os.path.join(TREE, path), before, text, imported)
        for name, code in found:
            if name not in self._keys[path]:
                raise suite_swaps.Refused("not defined on import")
            yield [path, name, base64.b64encode(marshal.dumps(code)).decode()]

    def _whole(self, run, swaps, how, wanted, shuffle):
        """The result of one part, put together from as many processes as it takes."""
        if wanted == []:
            return {**NOTHING, "how": how}
        whole = self._once(run, swaps, how, wanted, shuffle)
        whole["stopped"], last = {}, whole
        while last["ids"] is not None and not last["finished"] and last["running"] is not None:
            whole["stopped"][last["running"]] = last["ended"]
            left = [name for name in whole["ids"] if name not in whole["tests"] and name not in whole["stopped"]]
            if not left or len(whole["stopped"]) >= self._job["stops"]:
                break
            last = self._once(run, swaps, how, left, shuffle)
            whole["tests"] |= last["tests"]
            whole["cpu_s"] += last["cpu_s"]
        return whole

    def _once(self, run, swaps, how, wanted, shuffle):
        """The result of one process."""
        self._tree.replace(run["files"])
        try:
            if how == "collected" and self._collected is not None:
                request = self._request(how, wanted=wanted, plain=False, shuffle=shuffle, swaps=swaps)
                answer = self._collected.ask(request, self._job["wall_s"] + START_S)
                if "lost" not in answer:
                    return {**answer, "how": how}
                self._why = answer["lost"]
                self._collected.close()
                self._collected = None
            how = "forked" if how == "collected" else how
            plain = run["plain"] or how == "fresh"
            answer = self._ask(self._request(how, wanted=wanted, plain=plain, shuffle=shuffle))
            return {**answer, "how": how, "trace": read(TRACE) if how == "traced" and answer["finished"] else None}
        finally:
            self._tree.restore()

    def _ask(self, request):
        """What the first server answers."""
        server = self._clean
        answer = server.ask(request, self._job["wall_s"] + START_S)
        if "lost" not in answer:
            return answer
        server.close()  # killed for its memory, at worst: a new one does as well
        self._clean = suite_servers.Server(suite_servers.serve_clean)
        answer = self._clean.ask(request, self._job["wall_s"] + START_S)
        if "lost" in answer:
            raise RuntimeError(answer["lost"])
        return answer

    def _request(self, how, *, wanted=None, plain=False, shuffle=None, swaps=()):
        job = self._job
        spec = {
            "root": TREE,
            "trace": TRACE,
            "path": [os.path.normpath(os.path.join(TREE, root)) for root in job["path"]],
            "wanted": wanted,
            "plain": plain,
            "shuffle": shuffle,
            **{name: job[name] for name in ("late", "files", "sources", "options", "cpu_ms", "other_ms", "import_ms")},
        }
        return {"spec": spec, "how": how, "swaps": list(swaps), **{name: job[name] for name in ("wall_s", "cpu_s", "stall_s")}}


def without(names, result):
    """Those that did not pass."""
    return [name for name in names if result["tests"].get(name, {}).get("state") != "passed"]


HUNG = ("wall", "stall", "signal:27", "signal:24", "signal:9")
"""Ends at a limit: of wall time, of waiting, SIGPROF, SIGXCPU, and SIGKILL past the hard limit or for memory."""


def breakage(result):
    """What a run broke beside its tests."""
    ends = [*result.get("stopped", {}).values(), *([] if result["finished"] else [result["ended"]])]
    if any(end in HUNG for end in ends):
        return "hang"
    if result["errors"] or (result["ids"] is None and result["ended"].startswith("exit:")):
        return "import"
    return "crash" if ends else ""


def read(path):
    """A JSON file's value."""
    with open(path) as file:
        return json.load(file)


def line(key, part, result, wanted, why=""):
    """What is told of one part of a run."""
    return {
        "key": key,
        "part": part,
        "how": result.get("how", ""),
        "why": why,
        "asked": wanted,
        "ended": result["ended"],
        "finished": result["finished"],
        "running": result["running"],
        "stopped": result.get("stopped", {}),
        "wall_ms": round(1000 * result["wall_s"]),
        "cpu_ms": round(1000 * result["cpu_s"]),
        "errors": result["errors"],
        "states": {name: [event["state"], event["ms"]] for name, event in result["tests"].items()},
        "failures": {name: event["failure"] for name, event in result["tests"].items() if event["failure"]},
        "breakage": breakage(result),
        "trace": result.get("trace"),
    }


def main():
    job = json.loads(sys.stdin.buffer.read())
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path += [entry for entry in job["late"] if entry not in sys.path]
    os.environ.update(pytest_runs.environment())
    pytest_runs.adopt_orphans()
    import pytest  # noqa: F401 (warm: every server has it)

    Driver(job, lambda value: print(json.dumps(value), file=channel, flush=True)).work()


if __name__ == "__main__":
    main()
