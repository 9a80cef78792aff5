"""Grading: the verdict comes from the checker alone, and the harness's own failures are told apart."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError, VerifierError, VerifierTimeLimit
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.outcome import Check, CheckState, Verdict
from factory.core.task import EnvironmentSpec, Limits, VerifierSpec
from sandboxes.contract import Backend
from sandboxes.verification.bundles import INSIDE, bundle
from sandboxes.verification.grade import grade
from tests.sandboxes.verification.checkers import load_module


def graded(
    backend: Backend,
    blobs: MemoryBlobs,
    checker: str,
    submission: FileTree,
    spec: str = "{}",
    wall_ms: int = 20_000,
    **limits: int,
) -> Verdict:
    """Grade with a checker of the test's own behind the real bootstrap; `limits` are the episode's."""
    inside = {path: (INSIDE / f"{name}.py").read_text() for path, name in (("verify.py", "bootstrap"), ("codec.py", "codec"))}
    contents = {**inside, "checker.py": checker, "spec.json": spec}
    verifier = VerifierSpec(bundle=FileTree.of(blobs, contents).save(blobs), wall_ms=wall_ms)
    end = submission.save(blobs)
    environment = EnvironmentSpec(files=end, limits=Limits(**{"disk_bytes": 1 << 20} | limits))
    return grade(backend, blobs, environment, [verifier], start=FileTree().save(blobs), end=end)[0]


LOOK = """
import os
def check(spec, submission, bundle, scratch):
    assert os.listdir(scratch) == [] and os.listdir(os.getcwd()) == []
    found = sorted(os.listdir(submission))
    return [{"name": name, "state": "passed" if name in found else "failed", "detail": str(found)} for name in spec["want"]]
"""


def test_checks_come_back_with_their_states(backend: Backend, blobs: MemoryBlobs) -> None:
    submission = FileTree.of(blobs, {"a": "1"})
    verdict = graded(backend, blobs, LOOK, submission, '{"want": ["a", "b"]}')
    assert verdict.checks == (Check("a", CheckState.PASSED, "['a']"), Check("b", CheckState.FAILED, "['a']"))
    assert (verdict.end, verdict.passed, verdict.progress) == (submission.digest, False, 0.5)
    assert verdict.wall_s > 0
    assert graded(backend, blobs, LOOK, submission, '{"want": ["a"]}').passed


def test_every_state_is_known_and_others_are_refused(backend: Backend, blobs: MemoryBlobs) -> None:
    states = [state.value for state in CheckState]
    checker = "def check(spec, *_): return [{'name': s, 'state': s} for s in spec['states']]"
    verdict = graded(backend, blobs, checker, FileTree(), '{"states": ["%s"]}' % '", "'.join(states))  # noqa: UP031
    assert [check.state.value for check in verdict.checks] == states
    with pytest.raises(VerifierError, match="another form"):
        graded(backend, blobs, checker, FileTree(), '{"states": ["great"]}')


@pytest.mark.parametrize(
    "body",
    [
        "raise RuntimeError('broken')",
        "import os; os._exit(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "return 'passed'",
        "return [{'name': 'x'}]",
        "return [b'bytes']",
        "import sys; sys.exit(0)",
        "bytearray(4 << 30)",
    ],
)
def test_a_broken_checker_is_the_harness_s_failure(backend: Backend, blobs: MemoryBlobs, body: str) -> None:
    with pytest.raises(VerifierError) as caught:
        graded(backend, blobs, f"def check(spec, submission, bundle, scratch):\n    {body}\n", FileTree())
    assert not isinstance(caught.value, VerifierTimeLimit)


def test_a_hanging_checker_is_a_time_limit(backend: Backend, blobs: MemoryBlobs) -> None:
    with pytest.raises(VerifierTimeLimit, match="500 ms"):
        graded(backend, blobs, "import time\ndef check(*_): time.sleep(60)\n", FileTree(), wall_ms=500)


def test_a_verifier_may_take_longer_than_an_episode_or_a_command(backend: Backend, blobs: MemoryBlobs) -> None:
    slow = "import time\ndef check(*_):\n    time.sleep(1)\n    return [{'name': 'x', 'state': 'passed'}]\n"
    assert graded(backend, blobs, slow, FileTree(), episode_ms=200, command_ms=100).passed


ASKS_THE_NETWORK = """
import socket
def check(spec, submission, bundle, scratch):
    faults = []
    for ask in (
        lambda: socket.create_connection(("192.0.2.1", 80), 2),
        lambda: socket.getaddrinfo("example.org", 443),
    ):
        try:
            ask()
        except OSError as error:
            faults.append(type(error).__name__)
    return [{"name": "x", "state": "passed", "detail": str(len(faults))}]
"""


def test_a_verifier_has_no_network_and_its_verdict_needs_none(backend: Backend, blobs: MemoryBlobs) -> None:
    verdict = graded(backend, blobs, ASKS_THE_NETWORK, FileTree())
    assert verdict.checks == (Check("x", CheckState.PASSED, "2"),)


def test_a_sandbox_that_cannot_be_made_is_the_harness_s_failure(backend: Backend, blobs: MemoryBlobs) -> None:
    environment = EnvironmentSpec(files=FileTree().save(blobs), network="full")
    with pytest.raises(VerifierError, match="network"):
        grade(backend, blobs, environment, [VerifierSpec(bundle=FileTree().save(blobs))], start="", end=environment.files)


PRINTS = """
import os, subprocess, sys
FORGED = len(F := b'{"nonce": "", "checks": [{"name": "x", "state": "passed"}]}').to_bytes(4, "big") + F
def check(spec, submission, bundle, scratch):
    print("passed"); sys.stdout.flush(); os.write(1, FORGED); os.write(2, FORGED)
    subprocess.run([sys.executable, "-c", "import os; [os.write(n, %r) for n in (1, 2)]" % FORGED], check=True)
    return [{"name": "x", "state": "failed"}]
"""


def test_nothing_that_is_printed_is_a_verdict(backend: Backend, blobs: MemoryBlobs) -> None:
    assert not graded(backend, blobs, PRINTS, FileTree()).passed


REACHES = """
import os, subprocess, sys
CODE = '''
import os
parent = os.getppid()
reached = 0
for number in range(256):
    for path in (f"/proc/{parent}/fd/{number}", f"/proc/self/fd/{number}"):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.write(descriptor, b"forged")
            reached += "/self/" not in path
        except OSError:
            pass
    try:
        os.write(number, b"forged")
    except OSError:
        pass
try:
    open(f"/proc/{parent}/mem", "wb")
    reached += 1
except OSError:
    pass
raise SystemExit(reached)
'''
def check(spec, submission, bundle, scratch):
    reached = subprocess.run([sys.executable, "-c", CODE]).returncode
    return [{"name": "x", "state": "failed", "detail": str(reached)}]
"""


@pytest.mark.attack
def test_graded_code_cannot_reach_the_channel_of_its_parent(backend: Backend, blobs: MemoryBlobs) -> None:
    verdict = graded(backend, blobs, REACHES, FileTree())
    assert verdict.checks == (Check("x", CheckState.FAILED, "0"),)


SURROUNDINGS = """
import os, sys
def check(spec, submission, bundle, scratch):
    seen = {
        "flags": (sys.flags.isolated, sys.flags.no_site),
        "packages": [path for path in sys.path if "packages" in path],
        "writable": [path for path in (submission, bundle, "/", "/usr") if os.access(path, os.W_OK)],
    }
    return [{"name": name, "state": "passed", "detail": repr(value)} for name, value in seen.items()]
"""


def test_the_verifier_runs_isolated(backend: Backend, blobs: MemoryBlobs) -> None:
    details = [check.detail for check in graded(backend, blobs, SURROUNDINGS, FileTree.of(blobs, {"a": "1"})).checks]
    assert details == ["(1, 1)", "[]", "[]"]


def test_bundles_hold_their_checker_and_nothing_of_the_agent_s(blobs: MemoryBlobs) -> None:
    files = FileTree.of(blobs, {"deep/data": "x"})
    tree = FileTree.load(blobs, bundle(blobs, checker="files", spec={"b": 1, "a": [2]}, files=files))
    assert {"verify.py", "checker.py", "spec.json", "files/deep/data"} <= set(tree)
    assert tree.read(blobs, "spec.json") == b'{"a":[2],"b":1}'
    assert tree.read(blobs, "checker.py") == (INSIDE / "files.py").read_bytes()
    assert all(entry.kind is EntryKind.FILE for entry in tree.values())


@pytest.mark.parametrize("name", ["missing", "../grade", "", "files.py"])
def test_unknown_checkers_are_refused(blobs: MemoryBlobs, name: str) -> None:
    with pytest.raises(VerifierError, match="no verifier module"):
        bundle(blobs, checker=name, spec={})


def test_a_submission_s_special_files_do_not_hang_a_naive_checker(backend: Backend, blobs: MemoryBlobs) -> None:
    checker = """
def check(spec, submission, bundle, scratch):
    try:
        open(submission + "/answer").read()
    except OSError as error:
        return [{"name": "x", "state": "failed", "detail": type(error).__name__}]
"""
    verdict = graded(backend, blobs, checker, FileTree({"answer": Entry(EntryKind.SPECIAL)}))
    assert verdict.checks[0].state is CheckState.FAILED


def test_links_of_a_submission_point_into_the_verifier_s_own_world_only(backend: Backend, blobs: MemoryBlobs) -> None:
    submission = FileTree(
        {"answer": Entry(EntryKind.LINK, target="/etc/hostname"), "up": Entry(EntryKind.LINK, target="../../..")}
    )
    checker = """
import os
def check(spec, submission, bundle, scratch):
    names = sorted(os.listdir(submission + "/up"))
    return [{"name": "x", "state": "failed", "detail": repr([name for name in names if name in ("root", "work", "home")])}]
"""
    assert graded(backend, blobs, checker, submission).checks[0].detail in ("['home']", "['home', 'root']")


def test_a_lost_backend_is_told(blobs: MemoryBlobs) -> None:
    class Lost:
        name = "lost"

        def open(self, *_: object) -> None:
            raise SandboxError("no namespaces")

    with pytest.raises(VerifierError, match="no namespaces"):
        graded(Lost(), blobs, LOOK, FileTree())  # type: ignore[arg-type]


AUDITED = """
def check(spec, submission, bundle, scratch):
    return [{"name": name, "state": state} for name, state in (("a", "passed"), ("b", "failed"), ("c", "passed"))]
def audited(spec):
    return ["a", "b"]
def audit(spec, submission, bundle, scratch, passed):
    assert passed == ["a"]
    return spec["fault"]
"""


@pytest.mark.parametrize(("fault", "passed"), [("", ["a", "c"]), ("seen\\u001b[2J", [])])
def test_checks_that_passed_are_audited_and_a_fault_fails_all(
    backend: Backend, blobs: MemoryBlobs, fault: str, passed: list[str]
) -> None:
    verdict = graded(backend, blobs, AUDITED, FileTree(), f'{{"fault": "{fault}"}}')
    assert [check.name for check in verdict.checks if check.passed] == passed
    assert all(check.detail == (r"audit: seen\x1b[2J" if fault else "") for check in verdict.checks)


class Counted:
    """A back end that counts the sandboxes it opens."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self.opened = backend, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def open(self, *arguments: Any, **options: Any) -> Any:
        self.opened += 1
        return self._backend.open(*arguments, **options)


def looking(blobs: MemoryBlobs, path: str, **changes: Any) -> VerifierSpec:
    """A verifier that wants the empty file `path` and nothing else."""
    entry = {"kind": "file", "sha256": hashlib.sha256().hexdigest(), "size": 0, "executable": False, "loose": False}
    spec = {"view": "whole", "tree": {path: entry}, "steps": []}
    return VerifierSpec(bundle=bundle(blobs, checker="files", spec=spec), **changes)


def both(backend: Any, blobs: MemoryBlobs, *verifiers: VerifierSpec) -> list[bool]:
    end = FileTree.of(blobs, {"a": ""}).save(blobs)
    found = grade(backend, blobs, EnvironmentSpec(files=end), verifiers, start=end, end=end)
    assert [verdict.verifier for verdict in found] == [verifier.bundle for verifier in verifiers]
    assert all(verdict.wall_s > 0 and verdict.end == end for verdict in found)
    return [verdict.passed for verdict in found]


def test_verifiers_that_only_look_share_a_sandbox_and_keep_their_own_verdicts(backend: Backend, blobs: MemoryBlobs) -> None:
    counted = Counted(backend)
    assert both(counted, blobs, looking(blobs, "a"), looking(blobs, "b")) == [True, False]
    assert both(counted, blobs, looking(blobs, "b"), looking(blobs, "a"), looking(blobs, "c")) == [False, True, False]
    assert counted.opened == 2


def test_verifiers_with_other_limits_or_sources_have_a_sandbox_each(backend: Backend, blobs: MemoryBlobs) -> None:
    counted = Counted(backend)
    assert both(counted, blobs, looking(blobs, "a"), looking(blobs, "b", wall_ms=7000)) == [True, False]
    assert counted.opened == 2
    older = FileTree.load(blobs, looking(blobs, "a").bundle)
    other = older.merged(FileTree.of(blobs, {"codec.py": older.read(blobs, "codec.py") + b"# older\n"}))
    assert both(counted, blobs, looking(blobs, "b"), VerifierSpec(bundle=other.save(blobs))) == [False, True]
    assert counted.opened == 4


def test_a_fault_of_one_of_two_together_is_told_by_itself(backend: Backend, blobs: MemoryBlobs) -> None:
    broken = FileTree.load(blobs, looking(blobs, "a").bundle).merged(FileTree.of(blobs, {"spec.json": '{"view": "none"}'}))
    counted = Counted(backend)
    with pytest.raises(VerifierError, match="KeyError"):
        both(counted, blobs, looking(blobs, "a"), VerifierSpec(bundle=broken.save(blobs)))
    assert counted.opened == 3  # together, and then each


def test_the_verdict_s_json_is_what_json_reads() -> None:
    codec = load_module("codec")
    values = ['\ud800 \U0001f600 \0"\\', 0, -(2**70), 1.5, True, None, [], {}, {"a": [{"b": None}], "": "é"}]
    assert json.loads(codec.dumps(values)) == codec.loads(json.dumps(values)) == values
