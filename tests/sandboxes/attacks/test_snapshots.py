"""A shell that makes hostile what a snapshot takes of it: the harm stays in the agent's own sandboxes, and is no fault."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from factory.agent.environment import Environment
from factory.core.action import Action
from factory.core.blobs import MemoryBlobs
from factory.core.files import FileTree
from factory.core.outcome import OutcomeKind, Termination
from factory.core.task import EnvironmentSpec, Limits
from sandboxes.contract import Backend, Sandbox
from sandboxes.shell import command_script
from sandboxes.state import ShellState, carry_command, dump_script
from tests.generators.series import gold
from tests.sandboxes.attacks.conftest import ask
from tests.sandboxes.attacks.episodes import BLOBS, KINDS, candidate

pytestmark = pytest.mark.attack

BUILTINS = (
    *("builtin", "printf", "eval", "declare", "pwd", "umask", "shopt", "set", "alias", "trap", "read", "cd", "unset", "test"),
    *("exec", "command", "exit", "break", "continue", "local", "export", "readonly", "unalias", "enable", "source", "return"),
    *(":", "["),
)
"""Whatever the harness's own scripts use, and their like."""
FORGED = "bash-state-1\\0/\\0" + "0022\\n\\0" + "x=1\\0" * 8
HOSTILE = {
    "functions named as builtins": "; ".join(f"function {name} {{ echo stolen >>/workspace/stolen; }}" for name in BUILTINS),
    "exported functions named as builtins": "; ".join(
        f"function {name} {{ echo stolen >>/workspace/stolen; }}; export -f {name}" for name in BUILTINS if name != "export"
    ),
    "read-only functions": "f() { exit 9; }; readonly -f f; printf() { f; }; readonly -f printf",
    "aliases that shadow": "; ".join(
        f"alias {name}='echo stolen >>/workspace/stolen;'"
        for name in (*BUILTINS, "while", "{", "}", "do", "IFS", "\\\\builtin")
    ),
    "builtins turned off": "enable -n builtin printf eval declare read trap set",
    "sections in a variable": f"x=$(printf '{FORGED}'); export x",
    "an answer in a variable": "x=$'0123456789abcdef0123456789abcdef 0\\n\\nready'; y=$'\\0ready\\0'",
    "lines of declare in a variable": "x=$'1\\ndeclare -- PATH=\"/tmp\"\\ndeclare -f\\nf () {\\n exit 3\\n'",
    "sections printed by a trap": f"trap \"printf '{FORGED}' >&3; printf '{FORGED}'\" DEBUG",
    "sections on every descriptor": f"trap \"for n in 3 4 5 6 10 255; do printf '{FORGED}' >&\\$n; done\" DEBUG",
    "read-only variables of the harness": "readonly __c __s __x __b IFS=x REPLY",
    "variables of the harness": "__c='exit 3'; __s=0; __x=x; __b='a[$(echo stolen >>/workspace/stolen)]'; export __b",
    "integers that compute": "declare -i __b='a[$(echo stolen >>/workspace/stolen)0]' __s __c",
    "references": "declare -n __b=__c __s=__x __c=PATH",
    "arrays of the harness's names": "declare -a __b=(1 2) __s=(a b); declare -A __c=([x]=y)",
    "debug trap that ends": "trap 'exit 4' DEBUG",
    "debug trap that returns": "shopt -s extdebug; trap 'false' DEBUG",
    "debug trap in functions": "set -T; trap 'cd /tmp; exec 3>/dev/null' DEBUG",
    "exit trap": "trap 'while :; do sleep 1; done' EXIT",
    "error trap": "set -E; trap 'exit 5' ERR",
    "return trap": "set -T; trap 'exit 6' RETURN",
    "signal traps": "trap 'exit 7' USR1 TERM CHLD HUP",
    "prompt command": "PROMPT_COMMAND='exit 8'; PS0='$(exit)'; PS1='$(exit)'; PS4='$(echo stolen >>/workspace/stolen)'; set -x",
    "start-up files": "echo 'exit 9' >~/e; export BASH_ENV=~/e ENV=~/e; cp ~/e ~/.bashrc; cp ~/e ~/.bash_profile",
    "restricted": "set -r",
    "posix with odd functions": "function a-b { :; }; function /bin/ls { :; }; set -o posix",
    "errors end": "set -euo pipefail; trap 'exit 3' ERR",
    "nothing executed": "set -n",
    "one command": "set -t",
    "keywords and globs": "set -k; set -f; shopt -s failglob nullglob dotglob nocasematch expand_aliases",
    "huge array": "a=($(seq 400000))",
    "huge function": "eval \"f() { $(yes 'echo x;' | head -n 200000 | tr -d '\\n') }\"",
    "many functions": 'for n in $(seq 20000); do eval "f$n() { :; }"; done',
    "field separators": "IFS=0123456789abcdef; export IFS",
    "channel moved": "exec 7>&3 3>/workspace/took",
    "channel closed": "exec 3>&- 4>&-",
    "channel filled": "exec 8>&3; yes >&8 & sleep 0.2",
    "streams closed": "exec 0<&- 1>&- 2>&-",
    "directory that is gone": "mkdir gone; cd gone; rmdir ../gone",
    "directory that is no name": "mkdir $'a\\n$(exit 3)'; cd $'a\\n$(exit 3)'",
    "another umask": "umask 0777",
    "options by variable": "export SHELLOPTS BASHOPTS; shopt -s extdebug; set -o functrace",
    "translated strings": 'x=$"$(exit 3)"; declare -t x; declare -l y=ABC; declare -u z=abc',
    "names with tricks": "declare -A m=(['$(exit 3)']='`exit 3`' [$'\\001\\177']=$'\\001\\177' [']'='[']='x')",
    "loadable builtin": "enable -f /workspace/none.so none; hash -p /tmp/x printf; BASH_LOADABLES_PATH=/workspace",
    "process that rewrites the shell": "(while :; do for n in 3 4 255; do printf 'x 0\\0' >/proc/$$/fd/$n; done; done) & "
    "sleep 0.1",
}

SEEN = "import os; print('real', sorted(name for name in os.environ if name in ('BASH_ENV', '__b', 'x', 'IFS')))"


@pytest.fixture(scope="module")
def hostile(backend: Backend) -> Iterator[tuple[Sandbox, Sandbox]]:
    """The agent's sandbox, and a stranger's beside it."""
    blobs = MemoryBlobs()
    files = FileTree.of(blobs, {"a.txt": "one\n"}).save(blobs)
    spec = EnvironmentSpec(files=files, limits=Limits(disk_bytes=64 << 20))
    with backend.open(spec, blobs) as agent, backend.open(spec, blobs) as stranger:
        ask(stranger, "kept=stranger; greet() { echo hello $kept; }")
        yield agent, stranger


@pytest.fixture
def pair(hostile: tuple[Sandbox, Sandbox]) -> Iterator[tuple[Sandbox, Sandbox]]:
    """Both, the agent's as it was at first."""
    agent, _ = hostile
    ask(agent, "cd /workspace")
    clean = agent.snapshot()
    yield hostile
    agent.restore(type(clean)(tree=clean.tree))


def comes_back(sandbox: Sandbox) -> bool:
    """Whether one of the next commands runs and ends by itself; what a hostile state does to its own commands is its affair."""
    for _ in range(4):
        result = sandbox.run("/bin/echo $((6 * 7))", timeout_s=2, output_bytes=5000)
        if not result.timed_out and result.exit_code is not None:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_state_is_the_agent_s_own_affair(pair: tuple[Sandbox, Sandbox], name: str) -> None:
    """No step raises, so nothing is masked; the sibling holds the snapshot's files; the processes beside its shell, which
    grade and read files, and the stranger see nothing of it."""
    agent, stranger = pair
    agent.run(HOSTILE[name], timeout_s=5, output_bytes=1000)
    saved = agent.snapshot()
    (sibling,) = agent.fork(1)
    with sibling:
        assert sibling.export() == agent.snapshot().tree
        assert comes_back(sibling)
        sibling.restore(saved)
        assert sibling.export() == saved.tree
        assert comes_back(sibling)
        told = sibling.process(["python3", "-I", "-S", "-c", SEEN], stdin=b"", timeout_s=20, output_bytes=200)
        assert told.stdout == b"real []\n"
        assert sibling.read_file("/workspace/a.txt", 100) == b"one\n"
        sibling.stop()
        sibling.export()
    assert comes_back(agent)
    assert ask(stranger, "greet; cat a.txt; ls; ls /tmp ~") == b"hello stranger\none\na.txt\n/home/agent:\n\n/tmp:\n"


IN_MOTION = {
    "files that come and go": "while :; do for n in 1 2 3 4 5 6 7 8; do : >f$n; done; rm -f f?; done",
    "folders that come and go": "while :; do mkdir -p d/e/f d/g; : >d/e/f/x; rm -rf d; done",
    "kinds that change": """python3 -c '
import ctypes, os
call = ctypes.CDLL(None).renameat2
os.mkfifo("p"); os.mkdir("d"); os.symlink("/etc", "l"); open("f", "w")
while True:
    for one, other in ((b"p", b"f"), (b"f", b"d"), (b"d", b"l"), (b"l", b"p")): call(-100, one, -100, other, 2)
'""",
}


@pytest.mark.parametrize("name", IN_MOTION)
@pytest.mark.parametrize("folder", ["/workspace", "/tmp"])
def test_a_snapshot_of_files_in_motion_is_one(pair: tuple[Sandbox, Sandbox], name: str, folder: str) -> None:
    agent, _ = pair
    ask(agent, f"cd {folder}; ({IN_MOTION[name]}) >/dev/null 2>&1 & sleep 0.3")
    taken = [agent.snapshot() for _ in range(6)]
    agent.restore(taken[-1])
    assert agent.export() == taken[-1].tree


@pytest.mark.parametrize(
    "name",
    ["debug trap that ends", "read-only variables of the harness", "sections printed by a trap", "exit trap", "restricted"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_no_verdict_moves_and_nothing_is_masked(backend: Backend, kind: str, name: str) -> None:
    """A solved task, its shell made hostile, a snapshot and a restore: scored as without."""
    task = candidate(kind).task
    environment = Environment(task, backend, BLOBS)
    try:
        for action in gold(candidate(kind), BLOBS)[:-1]:
            environment.step(action)
        environment.step(Action("bash", {"command": HOSTILE[name]}))
        environment.restore(environment.snapshot())
        environment.step(Action("bash", {"command": "/bin/true"}))
        outcome = environment.finish(Termination.SUBMITTED)
    finally:
        environment.close()
    assert (outcome.kind, outcome.fault) == (OutcomeKind.SCORED, "")
    assert outcome.solved and outcome.held_out is not None and outcome.held_out.passed


def test_every_builtin_of_the_harness_is_among_the_stolen() -> None:
    """The scripts by which commands, snapshots and restores go; words before a space that bash lists as builtins."""
    empty = dict.fromkeys(ShellState.__dataclass_fields__, b"")
    carried = carry_command(ShellState(**{**empty, "set_options": b"set -o posix\n"}), [])
    scripts = command_script(b"", b"n", b"m") + dump_script(b"n", b"m") + carried
    known = set(subprocess.run(["bash", "-c", "compgen -b"], capture_output=True, text=True, check=True).stdout.split())
    used = set(re.findall(r"[a-z]+", scripts.decode())) & known
    assert used >= {"printf", "eval", "declare", "read", "trap"}
    assert used <= set(BUILTINS)
