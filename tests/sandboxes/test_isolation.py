"""What every process of a sandbox stands in: rights, mounts, variables, descriptors, and nothing of another tenant."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from sandboxes.bubblewrap.backend import find_bwrap
from sandboxes.contract import Backend, Sandbox
from tests.sandboxes.conftest import Make

ROOT = Path(__file__).parents[2]
WAYS = ("a command of the session", "a process beside it")


def said(sandbox: Sandbox, way: str, script: str) -> str:
    """What a shell script prints that is run in one of the two ways in which the harness runs things."""
    if way == WAYS[0]:
        return sandbox.run(script, timeout_s=20, output_bytes=20_000).output.decode()
    return sandbox.process(["/bin/sh", "-c", script], stdin=b"", timeout_s=20, output_bytes=20_000).stdout.decode()


@pytest.mark.parametrize("way", WAYS)
def test_no_process_has_any_right(sandbox: Sandbox, way: str) -> None:
    status = dict(line.split(":\t", 1) for line in said(sandbox, way, "cat /proc/self/status").splitlines() if ":\t" in line)
    assert [status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == ["0" * 16] * 4
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert status["Uid"].split() == status["Gid"].split() == ["1000"] * 4
    assert status.get("Groups", "").split() in ([], ["1000"], ["65534"])


WRITABLE = ("/workspace", "/tmp", "/home/agent", "/dev/shm")
DEVICES = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts/ptmx", "pts", "mqueue")}
"""And two folders in which nothing can be kept: their kinds of file are made by calls that are refused."""
RUNTIME = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/opt/python", "/etc")


def test_only_the_writable_folders_can_be_written(sandbox: Sandbox) -> None:
    told = said(sandbox, WAYS[0], "find / -path /proc -prune -o -writable -not -type l -print 2>/dev/null").splitlines()
    assert {path for path in told if not path.startswith(WRITABLE)} <= DEVICES
    assert {*told} >= {*WRITABLE}


def test_no_folder_of_this_machine_is_mounted_but_the_runtime(make: Make, backend: Backend) -> None:
    """The fourth field of a mount is the folder of its file system that is shown: `/` for those of the sandbox's own."""
    if backend.name == "docker":
        pytest.skip("the engine shows an image")
    for line in said(make(), WAYS[0], "cat /proc/self/mountinfo").splitlines():
        source, point = line.split()[3:5]
        own = source.startswith(("/empty", "/workspace", "/tmp", "/home", "/shm", "/plans/", "/runtime/")) or source == "/"
        assert own or point.startswith(RUNTIME) or point in DEVICES, line


ROOT_NAMES = "bin boot dev etc home lib lib32 lib64 libx32 media mnt opt proc root run sbin srv sys tmp usr var workspace"


def test_nothing_at_the_root_but_the_runtime(sandbox: Sandbox) -> None:
    assert {*said(sandbox, WAYS[0], "ls -A /").split()} <= {*ROOT_NAMES.split(), ".dockerenv"}
    private = "/root /mnt /srv /media /boot /home"
    assert {*said(sandbox, WAYS[0], f"ls -A {private} 2>/dev/null | grep -v :").split()} == {"agent"}


VARIABLES = "HOME USER LOGNAME SHELL TERM TMPDIR TZ LANG LC_ALL PYTHONHASHSEED PYTHONDONTWRITEBYTECODE PATH"


@pytest.mark.parametrize("way", WAYS)
def test_variables_and_descriptors_are_these_alone(sandbox: Sandbox, way: str) -> None:
    names = {line.partition("=")[0] for line in said(sandbox, way, "env").splitlines()}
    assert names - {"LD_LIBRARY_PATH", "PWD", "OLDPWD", "SHLVL", "_"} == {*VARIABLES.split()}
    # The listing's own descriptor is the only further one.
    assert said(sandbox, way, "ls /proc/self/fd").split() == ["0", "1", "2", "3"]


def test_no_file_of_another_tenant_is_seen(make: Make) -> None:
    one, other = make(), make()
    script = "for d in /workspace /tmp ~ /dev/shm; do {} $d/of-one; done"
    assert said(one, WAYS[0], script.format("touch") + "; " + script.format("ls")).count("of-one") == 4
    assert said(other, WAYS[0], script.format("ls") + " 2>/dev/null; find / -name 'of-on[e]' 2>/dev/null") == ""


def test_processor_time_is_bounded(make: Make) -> None:
    """A second of it, for a process that has twenty of wall time."""
    result = make(limits={"episode_ms": 1000}).run("python3 -c 'while True: pass'", timeout_s=20, output_bytes=100)
    assert result.exit_code in (128 + 9, 128 + 24) and not result.timed_out


UNPRIVILEGED = """
import json, sys
sys.path[:0] = [{root!r}, {site!r}]
from pathlib import Path
from sandboxes.backends import open_backend
backend = open_backend("bubblewrap", cache=Path({cache!r}))
print(json.dumps([one.name for one in backend.capabilities() if not one.holds]))
backend.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user; as another user all tests are such")
@pytest.mark.skipif(not Path("/usr/bin/python3.11").exists(), reason="no Python 3.11 that every user can start")
def test_every_limit_holds_for_a_user_without_any_right() -> None:
    """Memory of one and of all processes, their number, processor and wall time, disk, files, output: all that doctor tries."""
    cache = Path(f"/tmp/envfactory-limits-{os.getpid()}")
    cache.mkdir()
    os.chown(cache, 65534, 65534)
    site = Path(find_bwrap()[1][0][0]).parent if find_bwrap()[1] else ROOT
    code = UNPRIVILEGED.format(root=str(ROOT), site=str(site), cache=str(cache))
    try:
        ended = subprocess.run(
            ["/usr/bin/python3.11", "-I", "-c", code],
            user=65534,
            group=65534,
            extra_groups=[],
            cwd="/",
            env={},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        subprocess.run(["rm", "-rf", str(cache)], check=True)
    assert ended.returncode == 0, ended.stderr
    assert {*json.loads(ended.stdout)} - {"locale en_US.UTF-8"} == {"network"}
