"""Leak probes of repository tasks."""

from __future__ import annotations

import gzip
import io
import marshal
import zipfile
import zlib
from dataclasses import replace

import pytest

from factory.core.action import Action
from factory.core.blobs import MemoryBlobs, put_json
from factory.core.demonstration import Demonstration
from factory.core.errors import SandboxError, SandboxLost
from factory.core.files import FileTree
from factory.core.task import Mount, Task
from filters.leaks import LeakProbe
from sandboxes.contract import Backend
from tests.factory.agent.samples import Faulty, tree_verifier
from tests.factory.agent.samples import task as sample

FIXED = "def total(items):\n    amount = 0\n    for item in items:\n        amount += item.price\n    return amount\n"
BROKEN = FIXED.replace("amount += item.price", "amount -= item.price")
EDIT = Action("edit", {"path": "shop/cart.py", "line": "4", "text": "        amount += item.price"})


def zipped(text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("shop/cart.py", text)
    return file.getvalue()


def shop(
    blobs: MemoryBlobs, files: dict[str, bytes | str] | None = None, instruction: str = "Totals are wrong.", *actions: Action
) -> Task:
    everything: dict[str, bytes | str] = {"shop/cart.py": BROKEN, "README.md": "A shop.\n"}
    made = sample(blobs, files=everything | (files or {}), instruction=instruction, verifier=tree_verifier(blobs, {}))
    solution = Demonstration((*(actions or (EDIT,)), Action("submit")))
    return replace(made, solution=put_json(blobs, solution.manifest()))


@pytest.fixture
def leaks(backend: Backend, blobs: MemoryBlobs) -> LeakProbe:
    return LeakProbe(backend, blobs)


def test_a_task_without_leaks(leaks: LeakProbe, blobs: MemoryBlobs) -> None:
    found = leaks.probe(shop(blobs))
    assert found.passed and found.filter == "leaks" and found.reason == ""
    assert found.data["fixes"] == [{"path": "shop/cart.py", "lines": 1}]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("build/lib/shop/cart.py", FIXED),
        ("notes/old.txt", "Before:\n\n" + "\n\n".join(f"      {line}  " for line in FIXED.splitlines())),
        ("shop/cart.py.orig", "anything"),
        (".git/objects/ab/cdef", b"\x78\x9c"),
        ("shop/__pycache__/cart.cpython-311.pyc", b"\xa7\r\r\n"),
        ("dist/shop-1.0-py3-none-any.whl", b"PK"),
        (".git/objects/pack/pack-1.pack", b"PACK\0\0\0\2"),
        (".git/refs/heads/fixed", b"1\n"),
        (".git/refs/stash", b"1\n"),
        (".git/logs/HEAD", b"0 1 fixed\n"),
        (".git/packed-refs", b"1 refs/heads/fixed\n"),
        ("sub/.git", b"gitdir: ../.git/modules/sub\n"),
        ("notes/objects/ab/cdef", zlib.compress(b"blob 99\0" + FIXED.encode())),
        ("history.bin", b"PACK\0\0\0\2"),
        ("history", b"# v2 git bundle\n"),
        ("shop.egg-info/cart.txt", FIXED),
        ("shop.egg", b"PK"),
        (".cache/pip/http-v2/a/b.body", b"PK"),
        ("cache/a.body", b"cc=4," + zipped(FIXED)),
        ("shop-1.0.tar.gz", gzip.compress(FIXED.encode())),
        ("shop/cart.bin", b"\xa7\r\r\n" + bytes(12) + marshal.dumps(compile(FIXED, "cart.py", "exec"))),
        ("shop/__pycache__/cart.txt", b"1"),
        ("lib/site-packages/other.py", b"x = 1\n"),
        ("fix.diff", "@@ -1,5 +1,5 @@\n" + "".join(f"+{line}\n" for line in FIXED.splitlines())),
        ("shop/cart.py.rej", b"anything"),
    ],
)
def test_copies_history_and_compiled_text(leaks: LeakProbe, blobs: MemoryBlobs, path: str, content: bytes | str) -> None:
    found = leaks.probe(shop(blobs, {path: content}))
    assert not found.passed and path in found.reason


def test_the_fixed_line_in_the_instruction(leaks: LeakProbe, blobs: MemoryBlobs) -> None:
    found = leaks.probe(shop(blobs, {}, "In total, write\n`amount   += item.price`, not `-=`."))
    assert found.reason == "the instruction holds a fixed line of shop/cart.py"
    assert leaks.probe(shop(blobs, {}, "In total, `amount -= item.price` is wrong.")).passed


def test_a_common_line_elsewhere_is_no_leak(leaks: LeakProbe, blobs: MemoryBlobs) -> None:
    other = "for item in basket:\n        amount += item.price\n        count += 1\n"
    assert leaks.probe(shop(blobs, {"shop/other.py": other})).passed


def test_the_package_itself_among_the_dependencies(leaks: LeakProbe, blobs: MemoryBlobs) -> None:
    made = shop(blobs)
    mounts = [
        Mount(path="/deps", tree=FileTree.of(blobs, {"site/shop/cart.py": content}).save(blobs))
        for content in (FIXED, "x = 1\n")
    ]
    tasks = [replace(made, environment=replace(made.environment, mounts=(mount,))) for mount in mounts]
    leaking, clean = leaks.probe_many(tasks)
    assert leaking.evidence is not None and clean.evidence is not None
    assert leaking.evidence.reason == "/deps/site/shop/cart.py holds the fixed lines of shop/cart.py"
    assert clean.evidence.passed


def test_a_solution_by_shell_is_replayed(leaks: LeakProbe, blobs: MemoryBlobs) -> None:
    by_shell = Action("bash", {"command": "sed -i 's/amount -=/amount +=/' shop/cart.py"})
    assert leaks.probe(shop(blobs, {}, "Totals are wrong.", by_shell)).data["fixes"] == [{"path": "shop/cart.py", "lines": 1}]
    assert not leaks.probe(shop(blobs, {"copy.py": FIXED}, "Totals are wrong.", by_shell)).passed


def test_lines_put_back_and_taken_out(leaks: LeakProbe, blobs: MemoryBlobs) -> None:
    """A fix that deletes is recognised by the lines that then stand side by side."""
    without = FIXED.replace("    amount = 0\n", "")
    insert = Action("edit", {"path": "shop/cart.py", "line": "1", "text": "def total(items):\n    amount = 0"})
    assert not leaks.probe(shop(blobs, {"shop/cart.py": without, "a.py": FIXED}, "It fails.", insert)).passed
    assert leaks.probe(shop(blobs, {"shop/cart.py": without, "a.py": without}, "It fails.", insert)).passed
    doubled = FIXED.replace("    for", "    amount = 1\n    for")
    second = Action("bash", {"command": "sed -i 3d shop/cart.py"})
    assert not leaks.probe(shop(blobs, {"shop/cart.py": doubled, "a.py": FIXED}, "It is off.", second)).passed


def test_a_replay_that_fails_is_no_verdict(backend: Backend, blobs: MemoryBlobs) -> None:
    by_shell = Action("bash", {"command": "sed -i 's/amount -=/amount +=/' shop/cart.py"})
    leaks = LeakProbe(Faulty(backend, open=[SandboxLost("gone")] * 2), blobs)
    task = shop(blobs, {}, "Totals are wrong.", by_shell)
    with pytest.raises(SandboxError, match="gone"):
        leaks.probe(task)
    [judged] = leaks.probe_many([task])
    assert judged.evidence is None and "gone" in judged.fault


def test_a_repository_under_any_name_is_history(leaks: LeakProbe, blobs: MemoryBlobs) -> None:
    found = leaks.probe(shop(blobs, {"old/HEAD": "ref: refs/heads/a\n", "old/refs/heads/a": "1\n"}))
    assert found.reason == "workspace/old/refs/heads/a is history"
    assert leaks.probe(shop(blobs, {"old/refs/heads/a": "1\n", "HEAD": "1\n"})).passed


def test_the_same_project_in_another_version_among_the_dependencies(leaks: LeakProbe, blobs: MemoryBlobs) -> None:
    """Its text need not be the very one: another version shows what was changed."""
    made = shop(blobs, {"shop/__init__.py": ""})
    old = FIXED.replace("item.price", "item.cost")
    for path, expected in (
        ("shop/cart.py", "/deps/shop/cart.py is an installed copy of shop/cart.py"),
        ("cart.py", ""),
        ("other/shop/cart.py", ""),
    ):
        mount = Mount(path="/deps", tree=FileTree.of(blobs, {path: old}).save(blobs))
        found = leaks.probe(replace(made, environment=replace(made.environment, mounts=(mount,))))
        assert found.reason == expected


def test_the_src_folder_of_an_installed_copy_does_not_hide_it(leaks: LeakProbe, blobs: MemoryBlobs) -> None:
    edit = Action("edit", {"path": "src/shop/cart.py", "line": "4", "text": "        amount += item.price"})
    made = shop(blobs, {"src/shop/__init__.py": "", "src/shop/cart.py": BROKEN}, "Totals are wrong.", edit)
    mount = Mount(path="/deps", tree=FileTree.of(blobs, {"shop/cart.py": "x = 1\n"}).save(blobs))
    found = leaks.probe(replace(made, environment=replace(made.environment, mounts=(mount,))))
    assert found.reason == "/deps/shop/cart.py is an installed copy of src/shop/cart.py"


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("shop/__pycache__/cart.cpython-311.pyc", b"\xa7\r\r\n", "is bytecode without its source"),
        ("cart.pyc", b"\xa7\r\r\n", "is bytecode without its source"),
        ("pkg/.git/HEAD", b"1", "is history"),
        ("wheels/shop.whl", zipped(FIXED), "wheels/shop.whl!shop/cart.py holds the fixed lines of shop/cart.py"),
        ("tool/__pycache__/run.cpython-311.pyc", b"\xa7\r\r\n", ""),
        ("wheels/tool.whl", zipped("x = 1\n"), ""),
        ("locked.zip", b"PK\x03\x04 and nothing", ""),
    ],
)
def test_hiding_among_the_dependencies(leaks: LeakProbe, blobs: MemoryBlobs, path: str, content: bytes, reason: str) -> None:
    made = shop(blobs)
    mount = Mount(path="/deps", tree=FileTree.of(blobs, {"tool/run.py": "x = 1\n", path: content}).save(blobs))
    found = leaks.probe(replace(made, environment=replace(made.environment, mounts=(mount,))))
    assert (reason in found.reason) if reason else found.passed, found.reason
