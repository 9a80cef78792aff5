"""Snapshots, restores and forks mid-episode: files and the live shell's state, the hostile kinds among them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.task import EnvironmentSpec, Limits
from sandboxes.bubblewrap.backend import BubblewrapBackend
from sandboxes.bubblewrap.differences import KEPT, removed
from sandboxes.contract import Backend, Sandbox, Snapshot
from sandboxes.state import STATE_BYTES, ShellState
from tests.sandboxes.conftest import Make, Run

FIRST = """
cd src; export COLOUR='red
and blue'; plain=1; declare -r FIXED=9; list=(one "two three"); declare -A map=([$'odd\\n]key']='$(touch /tmp/ran)')
greet() { echo "hello $1"; }; export -f greet; alias twice='echo 2'; shopt -s extglob nullglob; set -u; umask 027
only() { case $1 in +(a)) echo as;; *) echo other;; esac; }; trap 'echo trapped' ERR; unset LOGNAME; cd deep; cd ..
"""
ASK = """
pwd; echo "$OLDPWD $PWD"; echo "$COLOUR"; bash -c 'echo "$COLOUR"; greet you'; echo "$plain ${list[1]} ${map[@]}"
only aa; twice; shopt -q nullglob && echo nullglob; umask; echo "${LOGNAME-none}"; ls /tmp; false
(FIXED=1) 2>/dev/null || echo fixed
"""
TOLD = b"""/workspace/src
/workspace/src/deep /workspace/src
red
and blue
red
and blue
hello you
1 two three $(touch /tmp/ran)
as
2
nullglob
0027
none
trapped
fixed
"""


def ask(sandbox: Sandbox, command: str, output_bytes: int = 20_000) -> bytes:
    return sandbox.run(command, timeout_s=20, output_bytes=output_bytes).output


def close(sandboxes: list[Sandbox]) -> None:
    for sandbox in sandboxes:
        sandbox.close()


def test_forks_begin_in_the_whole_state_and_go_their_own_ways(sandbox: Sandbox, run: Run) -> None:
    run(FIRST)
    run("echo changed >../a.txt; rm b.py; rm -r deep; mkdir -p new/inner; printf s >/tmp/kept; printf h >~/kept; sleep 60 &")
    run("rm /tmp/kept; mkdir deep")
    siblings = sandbox.fork(2)
    try:
        for number, one in enumerate([sandbox, *siblings]):
            assert ask(one, ASK) == TOLD
            assert (
                ask(one, "cat ../a.txt ~/kept; ls ..; find . -mindepth 1 | sort; set +u")
                == b"changed\nha.txt\nrun.sh\nsrc\n./deep\n./new\n./new/inner\n"
            )
            ask(one, f"echo {number} >mine; cd ..; plain={number}")
        assert [ask(one, "cat src/mine; echo $plain; pwd; jobs -r | wc -l") for one in [sandbox, *siblings]] == [
            b"0\n0\n/workspace\n1\n",
            b"1\n1\n/workspace\n0\n",
            b"2\n2\n/workspace\n0\n",
        ]
    finally:
        close(siblings)


def test_restore_brings_files_and_shell_back(sandbox: Sandbox, run: Run) -> None:
    run(FIRST)
    saved = sandbox.snapshot()
    assert sandbox.snapshot() == saved
    run("cd /; COLOUR=none; unset -f greet only; unalias twice; set +u; umask 0; echo x >/workspace/later; echo t >/tmp/t")
    run("exec false")
    sandbox.restore(saved)
    assert ask(sandbox, ASK) == TOLD
    assert ask(sandbox, "ls ..") == b"a.txt\nrun.sh\nsrc\n"
    assert sandbox.snapshot() == saved


def test_snapshots_are_values_for_another_back_end_object(
    backend: Backend, make: Make, tree: FileTree, blobs: MemoryBlobs, tmp_path: Path
) -> None:
    one = make()
    ask(one, "cd src; here=1; rm b.py")
    saved = one.snapshot()
    one.close()
    spec = EnvironmentSpec(files=tree.digest)
    if backend.name == "bubblewrap":
        other: Backend = BubblewrapBackend(tmp_path)
    else:
        other = backend
    with other.open(spec, blobs, snapshot=saved) as again:
        assert ask(again, "pwd; echo $here; ls") == b"/workspace/src\n1\ndeep\n"
        assert again.export() == saved.tree == tree.without("src/b.py").digest
    if other is not backend:
        other.close()
        assert [*tmp_path.rglob(".claimed*")] == []


def test_without_a_shell_there_is_no_state_and_nothing_is_said(sandbox: Sandbox, make: Make) -> None:
    saved = sandbox.snapshot()
    assert (saved.session, saved.scratch, saved.session_lost) == (None, None, False)
    sandbox.restore(saved)
    assert ask(sandbox, "pwd") == b"/workspace\n"
    ask(sandbox, "exit 3")
    assert sandbox.snapshot() == saved


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("declare() { echo shadow; }; set() { :; }; x=1", "declare; echo $x", b"shadow\n1\n"),
        ("eval() { :; }; cd() { echo no; }; x=1", "builtin cd /tmp; pwd; echo $x", b"/tmp\n1\n"),
        ("alias declare=false pwd=false printf=false eval=false; x=1", "echo $x; alias pwd", b"1\nalias pwd='false'\n"),
        ("function odd-name { echo odd; }; set -o posix; x=1", "echo $x; shopt -po posix", b"1\nset -o posix\n"),
        ("declare -r TZ PATH; x=1", "echo $x; TZ=y", b"1\n/bin/bash: line N: TZ: readonly variable\n"),
        ("set -e; x=1", "echo $x; (false; echo on) || echo off", b"1\non\n"),
        ("set -x", "echo a", b"++ echo a\na\n"),
        ("declare -n name=target; target=5; declare -i sum=2+3", "echo $name $sum; sum=sum+1; echo $sum", b"5 5\n6\n"),
        ("trap 'echo bug' DEBUG; x=1", "trap - DEBUG; echo $x", b"1\n"),
        ("x=$(printf '\\377\\1\\n\\047\\042$(id)`id`')", 'printf %s "$x"', b"\xff\x01\n'\"$(id)`id`"),
        ("a='; exit 3; '; b=$'\\' )}\\nexit 4'; c() { echo '\n}\nexit 5\n'; }", 'echo "$a"; c', b"; exit 3; \n\n}\nexit 5\n\n"),
        ("mkdir $'a\\n b'; cd $'a\\n b'", "pwd; echo \"$PWD\"", b"/workspace/a\n b\n/workspace/a\n b\n"),
        ("BASH_ENV=/etc/passwd; ENV=x; PROMPT_COMMAND='echo p'; PS4='$(echo q)'; x=1", "echo $x", b"1\n"),
        ("set -f -C; x=1", "echo * $x; : >a.txt", b"* 1\n/bin/bash: line N: a.txt: cannot overwrite existing file\n"),
    ],
)  # fmt: skip
def test_odd_states_are_carried_over(sandbox: Sandbox, before: str, after: str, wanted: bytes) -> None:
    ask(sandbox, before)
    saved = sandbox.snapshot()
    assert saved.session is not None
    for _ in range(2):
        told = re.sub(rb"line \d+:", b"line N:", ask(sandbox, after))
        assert told.removeprefix(b"bug\n" * told.count(b"bug\n")) == wanted
        sandbox.restore(saved)


@pytest.mark.parametrize(
    "spoil",
    [
        "builtin() { :; }",
        "x=$(head -c 1100000 /dev/zero | tr '\\0' x)",
        "trap 'while :; do :; done' DEBUG",
        "kill -STOP $$",
    ],
)
def test_a_shell_that_does_not_tell_its_state_is_reported(sandbox: Sandbox, spoil: str) -> None:
    sandbox.run(f"echo kept >file; {spoil}", timeout_s=1, output_bytes=1000)
    saved = sandbox.snapshot()
    if saved.session is None and not saved.session_lost:
        return  # the command itself ended the shell, and its output said so
    assert (saved.session, saved.session_lost) == (None, True)
    sandbox.restore(saved)
    assert ask(sandbox, "cat file") == (
        b"[the shell did not tell its state: variables and functions are lost; a new shell in the working directory]\nkept\n"
    )
    assert ask(sandbox, "cat file") == b"kept\n"


def state(**changed: bytes) -> ShellState:
    empty = dict.fromkeys(ShellState.__dataclass_fields__, b"")
    return ShellState(**{**empty, "directory": b"/workspace\n", "umask": b"0022\n", **changed})


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        ({"directory": b"/gone\n"}, b"status 1"),
        ({"functions": b"f () {"}, b"status 1"),
        ({"variables": b"declare -- x='open"}, b"status 1"),
        ({"traps": b"while :; do :; done"}, b"its time of 5 s passed"),
        ({"variables": b"exec 3>&-; exit 7"}, b"status 7"),
        ({"aliases": b"kill -9 $$"}, b"status 137"),
        ({"umask": b"$(echo 0022 >/workspace/ran)\n"}, b""),
    ],
)
def test_a_forged_state_harms_its_own_sandbox_only_and_is_reported(
    sandbox: Sandbox, blobs: MemoryBlobs, tree: FileTree, forged: dict[str, bytes], said: bytes
) -> None:
    session = blobs.put(state(**forged).to_bytes())
    sandbox.restore(Snapshot(tree=tree.digest, session=session))
    told = ask(sandbox, "echo on")
    assert told.endswith(b"on\n")
    if said:
        assert told.startswith(b"[the shell's state could not be carried over: %s;" % said)
    assert ask(sandbox, "echo on") == b"on\n"


@pytest.mark.parametrize("data", [b"", b"bash-state-1\0a", b"rm -rf /", b"bash-state-1" + b"\0" * 9 + b"x" * STATE_BYTES])
def test_what_is_no_state_is_refused(sandbox: Sandbox, blobs: MemoryBlobs, tree: FileTree, data: bytes) -> None:
    with pytest.raises(SandboxError, match="no state of a shell"):
        sandbox.restore(Snapshot(tree=tree.digest, session=blobs.put(data)))


def test_an_unknown_state_is_refused(sandbox: Sandbox, tree: FileTree) -> None:
    with pytest.raises(SandboxError, match="not in the blob store"):
        sandbox.restore(Snapshot(tree=tree.digest, session="0" * 64))


def test_a_state_is_one_blob_and_back() -> None:
    whole = state(variables=b'declare -- x="1"\n\xff', traps=b"trap -- 'x' EXIT\n")
    assert ShellState.from_bytes(whole.to_bytes()) == whole


def test_output_of_background_jobs_waits_for_the_next_command(sandbox: Sandbox, run: Run) -> None:
    run("(sleep 0.3; echo late) &")
    for _ in range(10):
        sandbox.snapshot()
        run_again = ask(sandbox, "sleep 0.1")
        if run_again:
            break
    assert run_again == b"late\n"


@pytest.mark.parametrize(
    ("start", "end", "gone"),
    [
        (["a", "d/x", "d/y"], ["a", "d/x", "d/y"], []),
        (["a", "d/x", "d/y"], ["d/y"], ["a", "d/x"]),
        (["d/e/x", "d/e/y", "d/z"], ["d/z"], ["d/e"]),
        (["d/e/x", "f"], [], ["d", "f"]),
        (["d/x", "d/y"], ["d"], []),
        (["d"], ["d/x"], []),
    ],
)
def test_what_a_difference_takes_away(start: list[str], end: list[str], gone: list[str]) -> None:
    entry = Entry(EntryKind.FILE, "0" * 64, 1)
    assert removed(FileTree(dict.fromkeys(start, entry)), FileTree(dict.fromkeys(end, entry))) == gone


CHANGES = [
    "rm -r src && mkdir src && printf n >src/n",
    "rm a.txt && mkdir a.txt && printf n >a.txt/n",
    "rm -r src && printf f >src",
    "rm -r src/deep; mkdir src/deep; ln -s b.py src/l; chmod +x a.txt; mkfifo p",
    "rm -r *",
    "chmod 000 src /workspace",
    "true",
]


@pytest.mark.parametrize("overlays", [True, False])
def test_snapshots_of_any_shape_come_back(tmp_path: Path, blobs: MemoryBlobs, tree: FileTree, overlays: bool) -> None:
    backend = BubblewrapBackend(tmp_path, overlays=overlays)
    spec = EnvironmentSpec(files=tree.save(blobs))
    for change in CHANGES:
        with backend.open(spec, blobs) as one:
            ask(one, change)
            saved = one.snapshot()
            (sibling,) = one.fork(1)
            with sibling:
                assert sibling.export() == saved.tree
                ask(sibling, "echo more >more; rm -rf src")
                assert FileTree.load(blobs, sibling.export()) == FileTree(
                    {
                        **{
                            path: entry
                            for path, entry in FileTree.load(blobs, saved.tree).items()
                            if not path.startswith("src")
                        },
                        "more": Entry(EntryKind.FILE, blobs.put(b"more\n"), 5),
                    }
                )
                ask(sibling, "exit")
                assert ask(sibling, "cat more") == b"more\n"
    backend.close()


def test_the_disk_limit_counts_what_siblings_share(make: Make, backend: Backend, blobs: MemoryBlobs) -> None:
    one = make(limits={"disk_bytes": 8 << 20, "file_bytes": 8 << 20}, files=FileTree())
    ask(one, "head -c 5000000 /dev/zero >big")
    (sibling,) = one.fork(1)
    with sibling:
        assert ask(sibling, "wc -c <big; head -c 5000000 /dev/zero >more 2>/dev/null || echo full") == b"5000000\nfull\n"
        assert ask(sibling, "rm more; head -c 2000000 /dev/zero >more && echo fits") == b"fits\n"


def test_a_task_costs_its_difference_and_unused_differences_go(tmp_path: Path, blobs: MemoryBlobs) -> None:
    start = FileTree.of(blobs, {f"f{number}": bytes(100_000) for number in range(20)})
    backend = BubblewrapBackend(tmp_path)
    spec = EnvironmentSpec(files=start.save(blobs), limits=Limits())

    def layers() -> list[Path]:
        return [path for folder in tmp_path.glob("layers/.claimed*") for path in folder.iterdir()]

    with backend.open(spec, blobs) as one:
        ask(one, "echo x >new; rm f3")
        siblings = one.fork(3)
        (layer,) = layers()
        assert sorted(path.name for path in layer.iterdir()) == ["f3", "new"]
        assert (layer / "f3").is_char_device()
        for number in range(KEPT + 3):
            ask(one, f"echo {number} >new")
            one.restore(one.snapshot())
        assert layer in layers()
        assert ask(siblings[0], "cat new") == b"x\n"
        close(siblings)
    assert len(layers()) == KEPT
    backend.close()
    assert layers() == []


def test_a_snapshot_of_another_tree_is_refused(
    tmp_path: Path, blobs: MemoryBlobs, tree: FileTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = BubblewrapBackend(tmp_path)
    spec = EnvironmentSpec(files=tree.save(blobs))
    with backend.open(spec, blobs) as one:
        ask(one, "echo x >new")
        saved = one.snapshot()
        one.fork(1)[0].close()
        (layer,) = [path for folder in tmp_path.glob("layers/.claimed*") for path in folder.iterdir()]
        lost = replace(saved, tree=FileTree.of(blobs, {"new": "x\n"}).digest)
        with pytest.raises(SandboxError, match="blob store"):
            one.restore(lost)
        assert layer.exists()
        assert ask(one, "cat new") == b"x\n"
    backend.close()
