"""What a curious agent sees is the same on both back ends, but for the list of docs/decisions/0002-sandboxes.md, Parity."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec
from sandboxes.contract import Backend, Sandbox
from tests.engines import bubblewrap_backend, docker_backend

pytestmark = [pytest.mark.docker, pytest.mark.slow]

SAME = {
    "places": "pwd; cd /; pwd; cd; pwd; cd /workspace; echo $OLDPWD $HOME ~",
    "files": "stat -c '%n %F %a %u %g %U %G %s %h %Y' a.txt run.sh src/b.py; ls -l a.txt run.sh",
    "folders": "stat -c '%n %F %a %u %g %U %G %Y' src c/d",
    "names": "ls; ls -A src; echo * */*; find . | sort",
    "owner": "id; whoami; groups; umask",
    "new files": "echo x > new; mkdir sub; ln -s new link; mkfifo pipe; stat -c '%n %F %a %U' new sub link pipe; rm -r new sub",
    "variables": "env | sort",
    "shell": "set -o; shopt; echo $- $0; echo $BASHOPTS; type cd; alias; trap",
    "limits": "ulimit -Sa | grep -v processes; ulimit -Ha | grep -v processes",
    "cores": "nproc",
    "machine": "uname -srm; hostname",
    "locale": "locale; date -d @0; printf '%.2f\\n' 1.5; printf 'b\\nA\\na\\n' | sort",
    "users": "cat /etc/passwd /etc/group /etc/nsswitch.conf; getent passwd agent",
    "interfaces": "grep -c : /proc/net/dev; (exec 9<>/dev/tcp/192.0.2.1/80) 2>&1",
    "errors": "cat nothing; no-such-program; ls nothing; cd nothing; (exit 3); echo $?; ./a.txt; kill 99999; python3 -c x",
    "syntax": 'echo "unclosed',
    "signals": 'for n in 2 9 11 15; do { sh -c "kill -$n \\$\\$"; } 2>/dev/null; echo $?; done',
    "jobs": "sleep 0.1 & wait; echo done; jobs",
    "python": "python3 -c \"import sys; print(hash('a'), {'a', 'b', 'c', 'd'}, sys.stdout.encoding, sys.flags)\"",
    "memory": "python3 -c 'bytearray(900 << 20)'",
    "terminal": "tty; [ -t 0 ]; echo $?; stty size; echo $TERM $COLUMNS",
    "long output": "seq 100000",
    "bytes": "printf 'a\\377\\033[31m\\r\\0b\\n'",
    "privileges": "grep -E '^(CapEff|CapPrm|CapInh|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status",
    "standard input": "cat; read line; echo $?",
    "random": "python3 -c 'import random; random.seed(1); print(random.random())'; RANDOM=1; echo $RANDOM",
}
"""Commands whose whole output and exit status are the same on both."""
DIFFERENT = {
    "sizes": "stat -c %s .",
    "order": "ls -U",
    "/etc": "ls -a / /etc",
    "/proc/mounts": "cut -d' ' -f2 /proc/mounts",
    "Read-only": "touch /usr/x",
    "process ids": "echo $$",
    "ulimit -u": "ulimit -u",
    "bounding set": "grep CapBnd /proc/self/status",
}
"""Words of the list and a command that shows what it says: an entry that no longer holds has to leave the list."""
NOTES = Path(__file__).parents[1] / "docs/decisions/0002-sandboxes.md"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, Sandbox]]:
    docker, bubblewrap = (
        docker_backend(tmp_path_factory.mktemp("docker")),
        bubblewrap_backend(tmp_path_factory.mktemp("bubblewrap")),
    )
    blobs = MemoryBlobs()
    names = ("0", "Z", "a.txt", "c/d/e", "run.sh", "src/b.py", "src/z", "é")
    files = FileTree.of(blobs, {name: f"{name}\n" for name in names}, executable=frozenset({"run.sh"}))

    def opened(backend: Backend) -> Sandbox:
        return backend.open(EnvironmentSpec(files=files.save(blobs)), blobs)

    with opened(bubblewrap) as here, opened(docker) as there:
        yield here, there
    bubblewrap.close()
    docker.close()


def look(sandbox: Sandbox, command: str) -> tuple[str, int | None, int]:
    result = sandbox.run(command, timeout_s=20, output_bytes=20_000)
    return result.output.decode(errors="backslashreplace"), result.exit_code, result.omitted_bytes


@pytest.mark.parametrize("name", SAME)
def test_what_is_the_same(pair: tuple[Sandbox, Sandbox], name: str) -> None:
    here, there = (look(sandbox, SAME[name]) for sandbox in pair)
    assert here == there and here[0]


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_on_the_list(pair: tuple[Sandbox, Sandbox], name: str) -> None:
    here, there = (look(sandbox, DIFFERENT[name]) for sandbox in pair)
    assert here[0] != there[0]
    section = NOTES.read_text(encoding="utf-8").partition("**Parity.**")[2].partition("\n**")[0]
    assert name in section
