"""Runs a project's test suite many times inside one sandbox, each time on another version of some files.

Reads one JSON job on standard input and prints one JSON line per run:

    job   {root, path, late, files, options, cpu_ms, other_ms, cpu_s, wall_s, runs: [run]}
    run   {key, files: {path: text}, plain, shuffle, confirm}      a text of null: without that file
    line  {key, ended, finished, tampered, running, wall_ms, errors, states: {id: [state, ms]}, failures: {id: failure}}

pytest is imported once, in this process, which never imports the project; every run is a fork that imports the
project anew. The first forks write bytecode into the tree, which becomes a master. Each run has a copy of that master with
its files replaced and their bytecode removed, so that nothing stale is imported and no run sees another's files.
A run with `confirm` (ids that pass in the project as it is) which ends by itself with some of them failed is made
again in another order; that one's line has the key `KEY again`.
"""

import json
import os
import shutil
import sys

import pytest_plugin
import pytest_runs

MASTER = "/tmp/master"
TREE = "/tmp/tree"
"""Where every run happens: bytecode remembers the path at which it was made."""


def main():
    job = json.loads(sys.stdin.buffer.read())
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path += [entry for entry in job["late"] if entry not in sys.path]
    os.environ.update(pytest_runs.environment())
    pytest_runs.adopt_orphans()
    shutil.copytree(job["root"], TREE, symlinks=True)
    import pytest  # noqa: F401 (warm: every fork has it)

    for plain in (False, True):
        result = execute(job, {"key": "warm", "plain": plain, "shuffle": None}, _warming)
    if result["ids"] is None:
        print(json.dumps(line({"key": "warm"}, result)), file=channel, flush=True)
        return
    os.rename(TREE, MASTER)
    for run in job["runs"]:
        result = measured(job, run)
        print(json.dumps(line(run, result)), file=channel, flush=True)
        if run["confirm"] and result["finished"] and not result["errors"] and not passes(result, run["confirm"]):
            again = {**run, "key": run["key"] + " again", "shuffle": 1}
            print(json.dumps(line(again, measured(job, again))), file=channel, flush=True)


def measured(job, run):
    """The result of one run in a tree of its own."""
    shutil.copytree(MASTER, TREE, symlinks=True)
    for path, text in run["files"].items():
        replace(os.path.join(TREE, path), text)
    result = execute(job, run, _measured)
    shutil.rmtree(TREE)
    return result


def passes(result, names):
    """Whether all these tests passed."""
    return all(name in result["tests"] and result["tests"][name]["state"] == "passed" for name in names)


def execute(job, run, body):
    """One run of the suite in a fork of this process."""
    spec = {
        "root": TREE,
        "path": [os.path.normpath(os.path.join(TREE, root)) for root in job["path"]],
        "late": job["late"],
        "files": job["files"],
        "wanted": None,
        "options": job["options"],
        "plain": run["plain"],
        "shuffle": run["shuffle"],
        "cpu_ms": job["cpu_ms"],
        "other_ms": job["other_ms"],
    }
    return pytest_runs.run(body, spec, wall_s=job["wall_s"], cpu_s=job["cpu_s"])


def _warming(events, control):
    sys.dont_write_bytecode = False
    pytest_plugin.main(pytest_plugin.read_order(control), events, control)


def _measured(events, control):
    sys.dont_write_bytecode = True
    pytest_plugin.main(pytest_plugin.read_order(control), events, control)


def replace(path, text):
    """Write the file's new text, or remove the file where there is none, and remove its bytecode."""
    folder, name = os.path.split(path)
    if text is None:
        os.remove(path)
    else:
        os.makedirs(folder, exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    cache = os.path.join(folder, "__pycache__")
    for entry in os.listdir(cache) if os.path.isdir(cache) else ():
        if entry.startswith(name[: -len("py")]):
            os.remove(os.path.join(cache, entry))


def line(run, result):
    """What is told of one run."""
    return {
        "key": run["key"],
        "ended": result["ended"],
        "finished": result["finished"],
        "tampered": result["tampered"],
        "running": result["running"],
        "wall_ms": round(1000 * result["wall_s"]),
        "errors": result["errors"],
        "states": {name: [event["state"], event["ms"]] for name, event in result["tests"].items()},
        "failures": {name: event["failure"] for name, event in result["tests"].items() if event["failure"]},
    }


main()
