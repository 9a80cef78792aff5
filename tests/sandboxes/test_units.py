"""Parts without a sandbox: bounded output, frames, scans, layers, archives, owners, the filter's program."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError, SandboxLost, UserError
from factory.core.files import Entry, EntryKind, FileTree
from sandboxes.backends import open_backend
from sandboxes.bubblewrap import seccomp
from sandboxes.docker.seccomp import profile
from sandboxes.docker.trees import Archive, Entries
from sandboxes.export import canonical, scan
from sandboxes.folders import write_tree
from sandboxes.owners import alive, claim_name, reclaim, start_time
from sandboxes.shell import READY, Frames, HeadTail
from sandboxes.syscalls import ABSENT, REFUSED


@given(st.integers(0, 40), st.lists(st.binary(max_size=30), max_size=12))
def test_head_and_tail_of_any_chunks(limit: int, chunks: list[bytes]) -> None:
    kept, whole = HeadTail(limit), b"".join(chunks)
    for chunk in chunks:
        kept.add(chunk)
    if len(whole) <= limit:
        assert (kept.kept, kept.omitted) == (whole, 0)
    else:
        tail = whole[len(whole) - limit // 2 :]
        assert (kept.kept, kept.omitted) == (whole[: (limit + 1) // 2] + tail, len(whole) - limit)


@given(st.integers(0, 255), st.integers(1, 7))
def test_frames_arrive_in_any_pieces(code: int, size: int) -> None:
    stream = READY + b"\0" + b"abc %d\0" % code
    frames, found = Frames(), None
    for start in range(0, len(stream), size):
        found = frames.add(stream[start : start + size], b"abc") if found is None else found
    assert (found, frames.ready, frames.spoilt) == (code, True, False)


@pytest.mark.parametrize("forged", [b"xyz 0\0", b"abc\0", b"abc 0 0\0", b"abc -1\0", b"\0", b"x" * 5000])
def test_other_frames_spoil_the_session(forged: bytes) -> None:
    frames = Frames(ready=True)
    assert frames.add(forged, b"abc") is None
    assert frames.spoilt


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda n: n not in (".", "..")
)
LEAVES = st.one_of(
    st.binary(max_size=20).map(lambda data: ("file", data)),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=10).map(
        lambda target: ("link", target)
    ),
    st.just(("special", None)),
    st.just(("directory", None)),
)
NODES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=4).map(lambda names: ("directory", names)), max_leaves=8
)


def flat(node: object, blobs: MemoryBlobs, prefix: str = "") -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for name, (kind, content) in (node or {}).items():  # type: ignore[attr-defined]
        path = prefix + name
        if kind == "file":
            entries[path] = Entry(EntryKind.FILE, blobs.put(content), len(content), len(content) % 2 == 1)
        elif kind == "link":
            entries[path] = Entry(EntryKind.LINK, target=content)
        else:
            entries[path] = Entry(EntryKind(kind))
            entries |= flat(content, blobs, path + "/") if kind == "directory" else {}
    return entries


@given(st.dictionaries(NAMES, NODES, max_size=5))
def test_trees_survive_the_disk(tmp_path_factory: pytest.TempPathFactory, node: dict[str, object]) -> None:
    blobs = MemoryBlobs()
    tree = FileTree(flat(node, blobs))
    folder = tmp_path_factory.mktemp("tree")
    write_tree(blobs, tree, folder, None)
    opened = os.open(folder, os.O_RDONLY)
    try:
        assert scan(blobs, opened) == canonical(tree)
    finally:
        os.close(opened)


@given(st.dictionaries(NAMES, NODES, max_size=5))
def test_archives_hold_the_tree(node: dict[str, object]) -> None:
    blobs = MemoryBlobs()
    tree = FileTree(flat(node, blobs))
    archive = Archive(owner=1000)
    archive.add_tree(blobs, tree, "at")
    with tarfile.open(fileobj=io.BytesIO(archive.data())) as opened:
        members = {member.name: member for member in opened.getmembers()}
        for path, entry in tree.items():
            member = members.get(f"at/{path}")
            assert (member is None) == (entry.kind is EntryKind.SPECIAL)
            if entry.kind is EntryKind.FILE and member is not None:
                content = opened.extractfile(member)
                assert content is not None
                assert content.read() == tree.read(blobs, path)
                assert member.mode == (0o755 if entry.executable else 0o644)
            if entry.kind is EntryKind.LINK and member is not None:
                assert (member.issym(), member.linkname) == (True, entry.target)
    assert sorted(archive.special) == sorted(f"at/{path}" for path, entry in tree.items() if entry.kind is EntryKind.SPECIAL)


def test_scans_name_what_they_do_not_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "outside").symlink_to("/etc")
    (tmp_path / "hard").write_text("x")
    (tmp_path / "hard2").hardlink_to(tmp_path / "hard")
    opened = os.open(tmp_path, os.O_RDONLY)
    found = scan(None, opened)
    os.close(opened)
    kinds = {path: entry.kind.value for path, entry in found.items()}
    assert kinds == {"fifo": "special", "socket": "special", "loop": "link", "outside": "link", "hard": "file", "hard2": "file"}


def test_entries_read_a_stream_in_pieces() -> None:
    blobs = MemoryBlobs()
    parts = [
        (b'{"path": "a\\\\xe9", "size": 3, "kind": "file", "executable": true}', b"xyz"),
        (b'{"path": "l", "size": 0, "kind": "link", "target": "t"}', b""),
    ]
    stream = b"".join(len(head).to_bytes(4, "big") + head + data for head, data in parts) + b"\0\0\0\0"
    entries = Entries(blobs, 3)
    ends = [entries.add(stream[place : place + 1]) for place in range(len(stream))]
    assert ends.index(True) == len(stream) - 1
    file = Entry(EntryKind.FILE, blobs.put(b"xyz"), 3, True)
    assert entries.tree() == FileTree({"a\xe9": file, "l": Entry(EntryKind.LINK, target="t")})


@pytest.mark.parametrize(
    "stream",
    [
        b"\0\1\0\1",
        b"\0\0\0\2{]",
        b'\0\0\0\x20{"path":"a","size":4,"kind":"file"}',
        b'\0\0\0\x2d{"path":"../a","size":0,"kind":"directory"      }',
        b'\0\0\0\x29{"path":"/etc","size":0,"kind":"directory"  }',
        b'\0\0\0\x29{"path":"a","size":0,"kind":"a new kind"     }',
    ],
)
def test_other_streams_are_refused(stream: bytes) -> None:
    with pytest.raises(SandboxLost):
        Entries(MemoryBlobs(), 3).add(stream)


def test_only_folders_of_dead_owners_are_reclaimed(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "from sandboxes.owners import claim_name; print(claim_name('layer-1'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    dead, mine = tmp_path / ended.stdout.strip(), tmp_path / claim_name("layer-2")
    others = [tmp_path / "0123abcd", tmp_path / ".claimed-1-notours", tmp_path / "notes"]
    for folder in (dead, mine, *others):
        folder.mkdir()
        (folder / "content").write_text("x")
    reused = tmp_path / f".claimed-{os.getpid()}-{(start_time(os.getpid()) or 0) - 1}-layer-3"
    reused.mkdir()
    assert reclaim(tmp_path) == 2
    assert sorted(tmp_path.iterdir()) == sorted([mine, *others])
    assert alive(os.getpid(), start_time(os.getpid()) or 0)


def test_the_filter_s_program_is_well_formed() -> None:
    for machine in seccomp.MACHINES:
        code = seccomp.program(machine)
        instructions = [struct.unpack_from("=HBBI", code, place) for place in range(0, len(code), 8)]
        assert instructions[-1][0] == 0x06
        for place, (operation, taken, not_taken, _) in enumerate(instructions):
            if operation & 0x07 == 0x05:
                assert place + 1 + max(taken, not_taken) < len(instructions)
    with pytest.raises(ValueError, match="riscv"):
        seccomp.program("riscv64")


def verdict(machine: str, arch: int, number: int, *arguments: int, watches: bool = False) -> int:
    """Run the program as the kernel would; the errno it answers, 0 for allowed."""
    code, place, accumulator = seccomp.program(machine, watches=watches), 0, 0
    data = struct.pack("=iIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    while True:
        operation, taken, not_taken, value = struct.unpack_from("=HBBI", code, 8 * place)
        place += 1
        if operation == 0x06:
            return 0 if value == 0x7FFF0000 else value & 0xFFFF
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            place += taken if holds else not_taken


COMMANDS = (*range(17), 36, 37, 38, 1025, *range(1030, 1039))
"""Commands of `fcntl` that programs need: <fcntl.h> without F_SETLEASE and F_NOTIFY."""


@pytest.mark.parametrize(
    ("machine", "arch", "clone", "sock", "ptrace", "read"),
    [("x86_64", 0xC000003E, 56, 41, 101, 0), ("aarch64", 0xC00000B7, 220, 198, 117, 63)],
)
def test_what_the_filter_refuses(machine: str, arch: int, clone: int, sock: int, ptrace: int, read: int) -> None:
    assert verdict(machine, arch, read) == 0
    assert verdict(machine, arch, ptrace) == 1
    assert verdict(machine, arch, 435) == 38  # clone3
    assert verdict(machine, arch, clone, 0x01200011) == 0  # fork
    assert verdict(machine, arch, clone, 0x003D0F00) == 0  # a thread
    assert verdict(machine, arch, clone, 0x10000011) == 1  # a user namespace
    assert [verdict(machine, arch, sock, family) for family in (1, 2, 10, 16, 17, 38, 40)] == [0, 0, 0, 0, 97, 97, 97]
    watch = 294 if machine == "x86_64" else 26
    assert [verdict(machine, arch, watch, watches=watches) for watches in (False, True)] == [38, 0]
    fcntl = 72 if machine == "x86_64" else 25
    assert [verdict(machine, arch, fcntl, 1, command) for command in COMMANDS] == [0] * len(COMMANDS)
    assert [verdict(machine, arch, fcntl, 1, command) for command in (1024, 1026, 1 << 32 | 1024)] == [1, 1, 1]
    mmap = 9 if machine == "x86_64" else 222
    assert [verdict(machine, arch, mmap, 0, 4096, 3, flags) for flags in (0x22, 0x20, 0x01, 0x02)] == [0, 0, 0, 0]
    assert [verdict(machine, arch, mmap, 0, 4096, 3, flags) for flags in (0x21, 0x23, 1 << 32 | 0x40021)] == [1, 1, 1]
    assert verdict(machine, 0x40000003, read) == 38  # another architecture's numbers
    assert verdict("x86_64", 0xC000003E, 0x40000000) == 38  # x32


def test_without_an_engine_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(SandboxError, match="no Docker Engine answers: start one, or set DOCKER_HOST"):
        open_backend("docker", cache=tmp_path)
    ended = subprocess.run(
        [sys.executable, "-m", "sandboxes.docker.base_image"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)


def test_unknown_back_ends_are_the_user_s_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="bubblewrap, docker"):
        open_backend("vmware", cache=tmp_path)


def test_the_container_s_filter_allows_nothing_that_the_other_refuses() -> None:
    """And what any program needs is among it."""
    told = json.loads(profile())
    allowed, looking = (
        {name for rule in json.loads(text)["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
        for text in (profile(), profile(watches=True))
    )
    assert told["defaultAction"] == "SCMP_ACT_ERRNO"
    assert not allowed & {*REFUSED, *ABSENT}
    assert looking - allowed == {"inotify_init", "inotify_init1"}
    assert allowed >= {"execve", "openat", "read", "write", "mmap", "clone", "wait4", "pipe2", "socket", "getdents64", "rseq"}
    assert all(rule["args"] for rule in told["syscalls"] if {"clone", "socket", "fcntl", "mmap"} & {*rule["names"]})


def container_allows(call: str, place: int, value: int) -> bool:
    """Whether a rule of the container's profile lets a call with this argument through, 64 bits compared."""
    wanted = [rule["args"] for rule in json.loads(profile())["syscalls"] if call in rule["names"]]
    compared = [(arg["index"], arg["value"], arg["valueTwo"]) for args in wanted for arg in args]
    return any(index == place and value & bits == result for index, bits, result in compared)


def test_what_the_container_s_filter_refuses_of_a_call() -> None:
    assert all(container_allows("fcntl", 1, command) for command in COMMANDS)
    assert not any(container_allows("fcntl", 1, command) for command in (1024, 1026, 1 << 32 | 1024))
    assert all(container_allows("mmap", 3, flags) for flags in (0x22, 0x20, 0x01, 0x02))
    assert not any(container_allows("mmap", 3, flags) for flags in (0x21, 0x23, 1 << 32 | 0x40021))
