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
    audit    those of them that are audited: the ones that fail before the fix
    cpu_ms   {id: CPU milliseconds a test may use}, `other_ms` for the rest
    run_ms   wall time of one run
    cpu_s    CPU seconds of one run, all tests together

The bundle holds sealed the original: every file of the project that is no source, tests, conftests and pytest
settings among them. The tree that is graded is this original and, from the submission, nothing but
regular `.py` files below `sources` that are no tests, conftests or site customisations. Links are not followed.

A run counts only when it is whole: every asked test collected, the end reported under the nonce, the child
gone by itself, the functions of pytest and of the standard library unchanged, no sealed file touched, and every
canary reported as failed. Otherwise every check has failed.

Must-fail tests ride in every graded run, in two forms:

    canaries   two files of their own in each run, under names that can not be told from real ones, which do not touch
               the graded code
    sabotage   after a run in which audited tests passed, a second run in another sandbox, which has the same files and ids in
               the same order: the text of a random half of those tests, at least one, is changed so that a test which
               passed must fail (see `sabotage`)

A code that makes its tests pass by other means than their assertions (reports or events forged, the test's frame
skipped, an object that equals everything, the expected value read from the test's own code) makes the sabotaged tests pass
too, and then every check has failed. Nothing that the graded code can see tells the two runs apart but the text of the
tests: they share no file, process or clock, it cannot know how many there are, and the original stands in no file beside the
tree that is run, nor in any process that it may read.

What risk remains: the graded code runs in the process that runs its tests. Code which takes over that process and
decides each test from its text, by what it knows of the original text or of the right answers, passes the audit. It
then knows as much as code that answers the known tests one by one, which no verifier of the same tests can tell from
a solution: held-out tests do. Tests whose text cannot be changed safely (made at run time, or defined in another module)
have the canaries alone.
"""

import os
import re
import secrets
import stat

import pytest_runs
import seal

RUNS_SUBMISSION = True
HELPERS = ("pytest_plugin", "pytest_runs", "pytest_guard", "sabotage", "seal")
PYTHON_BYTES = 4 << 20
"""The largest source file taken from a submission."""
SOURCE_FILES = 5_000
"""Most source files taken from a submission."""
DETAIL = 300
"""Longest detail, characters."""


def check(spec, submission, files, scratch):
    """Run the sealed tests; a list of {name, state, detail}, one per asked test."""
    tree = staged(spec, submission, files, scratch)
    canaries = plant_canaries(tree, spec["files"][0])
    return judge(spec["tests"], canaries, run(spec, files, scratch, canaries))


def audited(spec):
    """The checks that `audit` can doubt."""
    return spec["audit"]


def audit(spec, submission, files, scratch, passed):
    """Why the checks `passed`, all of them audited, are not believed; empty when nothing speaks against them."""
    tree = staged(spec, submission, files, scratch)
    broken = plant_sabotage(tree, passed)
    if not broken:
        return ""
    canaries = plant_canaries(tree, spec["files"][0])
    result = run(spec, files, scratch, canaries, until=broken)
    states = {name: event["state"] for name, event in result["tests"].items()}
    lucky = [name for name in (*sorted(broken), *canaries) if states.get(name) in ("passed", "xpassed")]
    if result["touched"]:
        return f"a sealed file was touched: {result['touched']!a}"
    if lucky:
        return f"made to fail, a test passed: {lucky[0]!a}"
    if not any(states.get(name) in ("failed", "error") for name in broken):
        return f"no test that was made to fail did ({result['ended']})"
    return ""


def staged(spec, submission, files, scratch):
    """The tree that is graded: the sealed original and what is taken from the submission."""
    tree = os.path.join(scratch, "tree")
    write_tree(files, tree)
    for source in spec["sources"]:
        take_source(submission, source, tree, set(spec["sealed"]), re.compile(spec["never"]))
    return tree


def run(spec, files, scratch, canaries, until=()):
    """One run of the asked tests and the canaries."""
    tree = os.path.join(scratch, "tree")
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
    body = pytest_runs.fresh_interpreter(os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytest_plugin.py"))
    sealed = [path for path, data in files.items() if data is not None]
    watched = seal.Seal(tree, [*sealed, *(name.partition("::")[0] for name in canaries)])
    result = pytest_runs.run(body, order, wall_s=spec["run_ms"] / 1000, cpu_s=spec["cpu_s"], until=until)
    return {**result, "touched": watched.broken()}


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
        return f"functions of pytest or the library were changed: {result['tampered']}"
    if result["touched"]:
        return f"a sealed file was touched: {result['touched']!a}"
    states = {result["tests"][name]["state"] if name in result["tests"] else "missing" for name in canaries}
    return "" if states == {"failed"} else f"a test that must fail did not: {sorted(states)}"


def write_tree(files, target):
    """Write {path: bytes, None for an empty folder} below a new folder."""
    os.makedirs(target)
    for path, data in files.items():
        place = os.path.join(target, path)
        os.makedirs(place if data is None else os.path.dirname(place), exist_ok=True)
        if data is not None:
            with open(place, "wb") as file:
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


def plant_sabotage(tree, passed):
    """Change the text of some of the tests so that they must fail; the ids of those.

    A random half is drawn, one at least, and one with a changed literal where there is any: nothing shows more.
    """
    import sabotage  # only where a run is audited

    places: dict = {}
    sources = {}
    for name in passed:
        file, _, inner = name.partition("::")
        places.setdefault((file, tuple(inner.partition("[")[0].split("::"))), []).append(name)
    for file in sorted({file for file, _ in places}):
        with open(os.path.join(tree, file), "rb") as stream:
            sources[file] = stream.read()
    possible: dict = {}
    for file, source in sources.items():
        changed = sabotage.sabotaged(source, [names for other, names in places if other == file])[1]
        possible |= {(file, names): literal for names, literal in changed.items()}
    drawn = {place for place in possible if secrets.randbelow(2)}
    best = [place for place, literal in possible.items() if literal] or list(possible)
    if best and drawn.isdisjoint(best):
        drawn.add(secrets.choice(best))
    broken: set = set()
    for file, source in sources.items():
        text, changed = sabotage.sabotaged(source, [names for other, names in drawn if other == file])
        with open(os.path.join(tree, file), "wb") as stream:
            stream.write(text)
        broken.update(name for names in changed for name in places[file, names])
    return broken
