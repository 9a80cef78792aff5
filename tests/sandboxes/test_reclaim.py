"""What is left when a process dies, and what many sandboxes at once or in turn leave behind: nothing."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError, SandboxLost
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.backends import open_backend
from sandboxes.bubblewrap.backend import BubblewrapBackend, find_bwrap
from sandboxes.contract import Backend
from sandboxes.docker.backend import OWNER

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys, time
sys.path[:0] = [{root!r}, {site!r}]
from pathlib import Path
from factory.core.blobs import MemoryBlobs
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.task import EnvironmentSpec
from sandboxes.backends import open_backend
blobs = MemoryBlobs()
backend = open_backend({name!r}, cache=Path({cache!r}), docker_image={image!r})
spec = EnvironmentSpec(files=FileTree.of(blobs, {{"a": "1\\n"}}).save(blobs))
opened = [backend.open(spec, blobs) for _ in range(2)]
for sandbox in opened:
    print(sandbox.run("cat a; (setsid sleep {mark} &); sleep {mark} & id -u", timeout_s=20, output_bytes=99).output, flush=True)
print("ready", flush=True)
time.sleep(600)
"""


def holder(name: str, cache: Path, mark: str, image: str = "") -> str:
    bwrap = Path(find_bwrap()[1][0][0]).parent if find_bwrap()[1] else ROOT
    return HOLDER.format(root=str(ROOT), site=str(bwrap), name=name, cache=str(cache), image=image, mark=mark)


def sleepers(mark: str) -> list[int]:
    """Processes of this machine whose arguments are `sleep <mark>`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes() == f"sleep\0{mark}\0".encode():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def eventually(true: Callable[[], bool], seconds: float = 10) -> bool:
    limit = time.monotonic() + seconds
    while not true():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def run_until_ready(command: list[str], **options: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "ready\n":
            assert lines[:2] == ["b'1\\n1000\\n'\n"] * 2
            return process  # type: ignore[no-any-return]
    raise AssertionError(f"ended with {process.wait()} after {lines}")


def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    mark = f"31415.{os.getpid()}"
    process = run_until_ready([sys.executable, "-c", holder("bubblewrap", tmp_path, mark)])
    assert eventually(lambda: len(sleepers(mark)) == 4)
    process.kill()
    process.communicate()
    assert eventually(lambda: sleepers(mark) == [])
    assert [path.name for path in tmp_path.rglob(".*")] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not Path("/usr/bin/python3.11").exists(), reason="no Python 3.11 that every user can start")
def test_it_works_for_a_user_without_any_right(tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = Path(f"/tmp/envfactory-nobody-{os.getpid()}")
    cache.mkdir()
    os.chown(cache, 65534, 65534)
    mark = f"27182.{os.getpid()}"
    try:
        command = ["/usr/bin/python3.11", "-I", "-c", holder("bubblewrap", cache, mark)]
        process = run_until_ready(command, user=65534, group=65534, extra_groups=[], cwd="/", env={})
        process.kill()
        process.communicate()
        assert eventually(lambda: sleepers(mark) == [])
    finally:
        subprocess.run(["rm", "-rf", str(cache)], check=True)


@pytest.mark.docker
def test_old_derived_images_go_unless_a_container_needs_them(
    tmp_path: Path, blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.engines import docker_backend

    backend = docker_backend(tmp_path)
    monkeypatch.setattr("sandboxes.docker.backend.DERIVED", "envfactory-trimmed")
    monkeypatch.setattr("sandboxes.docker.backend.IMAGES", 1)
    engine = backend._engine  # type: ignore[attr-defined]

    def environment(number: int) -> EnvironmentSpec:
        mount = Mount(path="/opt/kept", tree=FileTree.of(blobs, {"number": f"{number}\n"}).save(blobs))
        return EnvironmentSpec(files=FileTree().save(blobs), mounts=(mount,))

    with backend.open(environment(0), blobs) as held:
        for number in (1, 2):
            backend.open(environment(number), blobs).close()
        left = engine.images(name="envfactory-trimmed")
        assert held.run("cat /opt/kept/number", timeout_s=20, output_bytes=99).output == b"0\n"
    for image in left:
        engine.remove_image(image["Id"])
    assert len(left) == 2


@pytest.mark.docker
def test_containers_of_killed_processes_are_removed_at_the_next_start(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    from tests.engines import docker_backend

    backend = docker_backend(tmp_path)
    base: str = backend._base  # type: ignore[attr-defined]
    engine = backend._engine  # type: ignore[attr-defined]
    process = run_until_ready([sys.executable, "-c", holder("docker", tmp_path, f"16180.{os.getpid()}", base)])
    left = {found["Id"] for found in engine.containers(all=True) if f":{process.pid}:" in found["Labels"].get(OWNER, "")}
    assert len(left) == 2
    process.kill()
    process.communicate()
    foreign = engine.create_container(base, ["/bin/true"])["Id"]
    try:
        open_backend("docker", cache=tmp_path, docker_image=base).close()
        after = {found["Id"] for found in engine.containers(all=True)}
        assert not left & after
        assert foreign in after
    finally:
        engine.remove_container(foreign)
        backend.close()


def state(backend: Backend) -> tuple[int, int, int]:
    """Open descriptors here and in the helper, and the helper's children."""
    helper = backend._helper._process.pid  # type: ignore[attr-defined]
    children = Path(f"/proc/{helper}/task/{helper}/children").read_text().split()
    return len([*Path("/proc/self/fd").iterdir()]), len([*Path(f"/proc/{helper}/fd").iterdir()]), len(children)


@pytest.mark.parametrize("episodes", [30, pytest.param(1000, marks=pytest.mark.long)])
def test_episodes_in_turn_leave_nothing(tmp_path: Path, blobs: MemoryBlobs, tree: FileTree, episodes: int) -> None:
    backend = open_backend("bubblewrap", cache=tmp_path)
    spec = EnvironmentSpec(files=tree.save(blobs))

    def episode() -> None:
        with backend.open(spec, blobs) as sandbox:
            sandbox.run("echo x >made; sleep 60 &", timeout_s=10, output_bytes=100)
            sandbox.process(["true"], stdin=b"", timeout_s=10, output_bytes=100)
            sandbox.restore(sandbox.snapshot())
            sandbox.run("exit 1", timeout_s=10, output_bytes=100)
            sandbox.run("true", timeout_s=10, output_bytes=100)
            sandbox.stop()
            sandbox.export()

    episode()
    first = state(backend)
    for _ in range(episodes):
        episode()
    assert eventually(lambda: state(backend) == first)
    backend.close()


def test_copies_serve_where_overlays_do_not(tmp_path: Path, blobs: MemoryBlobs, tree: FileTree) -> None:
    special = tree.merged({"sock": Entry(EntryKind.SPECIAL), "link": Entry(EntryKind.LINK, target="a.txt")})
    spec = EnvironmentSpec(files=special.save(blobs))
    backend = BubblewrapBackend(tmp_path, overlays=False)
    with backend.open(spec, blobs) as sandbox:
        assert not sandbox.shares_layer
        assert sandbox.snapshot().tree == special.digest
        told = sandbox.run("stat -c %a:%Y run.sh; cat link; echo x >>a.txt; rm -r src", timeout_s=10, output_bytes=100)
        assert told.output == b"755:1767225600\none\ntwo\n"
        changed = special.merged(FileTree.of(blobs, {"a.txt": "one\ntwo\nx\n"}))
        assert FileTree.load(blobs, sandbox.snapshot().tree) == changed.without("src/b.py", "src/deep/c.txt", "src/deep/d.txt")
    assert [found.holds for found in backend.capabilities() if found.name == "layers are shared"] == [False]
    backend.close()


def test_a_machine_without_descriptors_is_a_sandbox_error(tmp_path: Path, blobs: MemoryBlobs, tree: FileTree) -> None:
    backend = open_backend("bubblewrap", cache=tmp_path)
    sandbox = backend.open(EnvironmentSpec(files=tree.save(blobs)), blobs)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 1, hard))
    try:
        with pytest.raises(SandboxError, match="Too many open files"):
            sandbox.run("true", timeout_s=5, output_bytes=10)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert sandbox.run("echo on", timeout_s=5, output_bytes=10).output == b"on\n"
    sandbox.close()
    backend.close()


def test_many_threads_share_a_back_end(tmp_path: Path, blobs: MemoryBlobs, tree: FileTree) -> None:
    backend = open_backend("bubblewrap", cache=tmp_path)
    spec = EnvironmentSpec(files=tree.save(blobs))
    told: list[bytes] = []

    def work(number: int) -> None:
        for _ in range(5):
            with backend.open(spec, blobs) as sandbox:
                sandbox.run(f"echo {number} >mine", timeout_s=30, output_bytes=100)
                told.append(sandbox.run("cat mine; ls | wc -l", timeout_s=30, output_bytes=100).output == b"%d\n4\n" % number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    backend.close()
    assert told == [True] * 40


def test_a_lost_helper_loses_its_sandboxes_and_is_replaced(tmp_path: Path, blobs: MemoryBlobs, tree: FileTree) -> None:
    backend = open_backend("bubblewrap", cache=tmp_path)
    spec = EnvironmentSpec(files=tree.save(blobs))
    mark = f"14142.{os.getpid()}"
    with backend.open(spec, blobs) as sandbox:
        sandbox.run(f"sleep {mark} &", timeout_s=10, output_bytes=100)
        assert eventually(lambda: len(sleepers(mark)) == 1)
        os.kill(backend._helper._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        assert eventually(lambda: sleepers(mark) == [])  # the kernel takes the namespaces down in its own time
        with pytest.raises(SandboxLost):
            sandbox.run("true", timeout_s=10, output_bytes=100)
        with pytest.raises(SandboxLost):
            sandbox.process(["true"], stdin=b"", timeout_s=10, output_bytes=100)
    with backend.open(spec, blobs) as sandbox:
        assert sandbox.run("cat a.txt", timeout_s=10, output_bytes=100).output == b"one\ntwo\n"
    backend.close()
