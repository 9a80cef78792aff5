"""Grades a repository task: sealed tests on the sources that the agent left, one check per test.

The specification:

    sources  package folders or single files whose `.py` files are taken from the submission
    sealed   folders and files below them that are not (tests inside a package)
    never    a pattern of file names that are never taken: pytest or the interpreter could run them by their name
    path     import roots, relative to the tree
    late     import roots outside the tree (the dependencies), absolute
    options  further pytest arguments
    files    test files handed to pytest
    tests    ids that must pass, exactly as collected
    cpu_ms   {id: CPU milliseconds a test may use}, `other_ms` for the rest
    run_ms   wall time of one run
    cpu_s    CPU seconds of one run, all tests together

The bundle holds in `files/` the original: every file of the project that is no source, tests, conftests and pytest
settings among them. The tree that is graded is this original and, from the submission, nothing but
regular `.py` files below `sources` that are no tests, conftests or site customisations. Links are not followed.

A run counts only when it is whole: every asked test collected, the end reported under the nonce, the child
gone by itself, pytest's own functions unchanged, and every canary (a test that must fail, under a name that the
child can not tell from a real one) reported as failed. Otherwise every check has failed.

What risk remains: the graded code runs in the process that runs its tests. Code written against this very
checker could find the plugin's descriptors and nonce in that process's memory and report what it likes,
telling canaries apart by their text; it could also kill this process, which loses the verdict (the episode is
masked, never scored). The sealed ids and canary names are new to it, nothing it prints or leaves in a file
counts, and general tricks (patched pytest, patched assertions, early exits, conftests, plugins) score nothing.
"""

import os
import re
import secrets
import stat

import pytest_runs

HELPERS = ("pytest_plugin", "pytest_runs")
PYTHON_BYTES = 4 << 20
"""The largest source file taken from a submission."""
SOURCE_FILES = 5_000
"""Most source files taken from a submission."""
DETAIL = 300
"""Longest detail, characters."""


def check(spec, submission, bundle, scratch):
    """Run the sealed tests; a list of {name, state, detail}, one per asked test."""
    tree = os.path.join(scratch, "tree")
    copy_tree(os.path.join(bundle, "files"), tree)
    for source in spec["sources"]:
        take_source(submission, source, tree, set(spec["sealed"]), re.compile(spec["never"]))
    canaries = plant_canaries(tree, spec["files"][0])
    order = {
        "root": tree,
        "path": [os.path.normpath(os.path.join(tree, root)) for root in spec["path"]],
        "late": spec["late"],
        "files": [*spec["files"], *sorted({name.partition("::")[0] for name in canaries})],
        "wanted": [*spec["tests"], *canaries],
        "options": spec["options"],
        "plain": True,
        "shuffle": None,
        "cpu_ms": spec["cpu_ms"],
        "other_ms": spec["other_ms"],
    }
    pytest_runs.adopt_orphans()
    body = pytest_runs.fresh_interpreter(os.path.join(bundle, "pytest_plugin.py"))
    output = os.path.join(scratch, "output")
    result = pytest_runs.run(body, order, wall_s=spec["run_ms"] / 1000, cpu_s=spec["cpu_s"], output=output)
    return judge(spec["tests"], canaries, result)


def judge(tests, canaries, result):
    """Checks from one run's result; a run that does not count fails them all."""
    fault = run_fault(canaries, result)
    checks = []
    for name in tests:
        event = result["tests"].get(name)
        if fault or event is None:
            checks.append({"name": name, "state": "failed", "detail": (fault or "no report")[:DETAIL]})
            continue
        failure = event.get("failure") or {}
        detail = f"{failure['type']}: {failure['message']}" if failure else ""
        checks.append({"name": name, "state": event["state"], "detail": detail[:DETAIL]})
    return checks


def run_fault(canaries, result):
    """Why a run does not count; empty when it does."""
    if result["ids"] is None:
        return f"nothing was collected ({result['ended']})"
    if not result["finished"]:
        return f"the run did not reach its end ({result['ended']}, in {result['running']!a})"
    if result["tampered"]:
        return f"pytest was changed: {result['tampered']}"
    states = {result["tests"][name]["state"] if name in result["tests"] else "missing" for name in canaries}
    return "" if states == {"failed"} else f"a test that must fail did not: {sorted(states)}"


def copy_tree(source, target):
    """Copy the regular files of the bundle's own tree."""
    os.makedirs(target)
    for current, folders, files in os.walk(source):
        inner = os.path.join(target, os.path.relpath(current, source))
        for name in folders:
            os.makedirs(os.path.join(inner, name), exist_ok=True)
        for name in files:
            with open(os.path.join(current, name), "rb") as file:
                data = file.read()
            with open(os.path.join(inner, name), "wb") as file:
                file.write(data)


def take_source(submission, source, tree, sealed, never):
    """Copy what counts as source at or below `source` from the submission; what is sealed stays the original's."""
    root = os.open(submission, os.O_RDONLY | os.O_DIRECTORY)
    taken = 0
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in sealed:
            continue
        data, names = read_plain(root, path, never)
        if names is not None:
            waiting += [f"{path}/{name}" for name in names]
        elif data is not None:
            taken += 1
            if taken > SOURCE_FILES:
                break
            target = os.path.join(tree, path)
            try:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "xb") as file:
                    file.write(data)
            except OSError:  # something of the sealed original stands in the way
                continue
    os.close(root)


def read_plain(root, path, never):
    """(bytes, None) of a regular source file, (None, names) of a folder, (None, None) of anything else."""
    *folders, last = path.split("/")
    current = os.dup(root)
    try:
        for name in folders:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = inner
        mode = os.stat(last, dir_fd=current, follow_symlinks=False)
        if stat.S_ISDIR(mode.st_mode):
            folder = os.open(last, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            try:
                return None, sorted(os.listdir(folder))
            finally:
                os.close(folder)
        if not stat.S_ISREG(mode.st_mode) or not last.endswith(".py") or never.fullmatch(last):
            return None, None
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=current)
        with open(file, "rb") as stream:
            data = stream.read(PYTHON_BYTES + 1)
        return (data, None) if len(data) <= PYTHON_BYTES else (None, None)
    except OSError:
        return None, None
    finally:
        os.close(current)


CANARY = """def {helper}(value):
    return value + {step}


def test_{name}():
    assert {helper}({start}) == {start}
"""


def plant_canaries(tree, beside):
    """Two test files whose only test must fail, one named to run before and one after the real ones; their ids."""
    folder = os.path.dirname(beside.rstrip("/")) if beside.endswith(".py") else beside.rstrip("/")
    ids = []
    for first in ("a", "z"):
        name, helper = first + secrets.token_hex(4), "h" + secrets.token_hex(3)
        text = CANARY.format(helper=helper, name=name, step=1 + secrets.randbelow(9), start=secrets.randbelow(100))
        file = f"{folder}/test_{name}.py" if folder else f"test_{name}.py"
        with open(os.path.join(tree, file), "w") as stream:
            stream.write(text)
        ids.append(f"{file}::test_{name}")
    return ids
