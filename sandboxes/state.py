"""What a live shell holds, as data: told by the shell itself, kept as bytes, told to a new shell in a sibling sandbox.

Carried over: directory, variables with their attributes (exported, read-only, arrays), functions, aliases, shell and `set`
options, traps, umask. Not carried over: running processes and background jobs, open descriptors, limits that were lowered
with `ulimit`, the stack of `pushd`, the history and the table of hashed commands; special variables (`RANDOM`, `SECONDS`,
`$_`) begin anew.

All of it is an agent's word. The harness only cuts it into sections and quotes them; nothing but a shell inside a sandbox
ever evaluates them, each section apart, so that one that cannot be evaluated loses itself only.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass, fields, replace
from typing import Self

from factory.core.errors import SandboxError

STATE_BYTES = 1 << 20
"""The largest state that a shell may tell, bytes."""
DUMP_S = 5.0
"""Seconds that a shell may take to tell its state."""
CARRY_S = 5.0
"""Seconds that a new shell may take to take a state over."""
NOT_TOLD = b"[the shell did not tell its state: variables and functions are lost; a new shell in the working directory]\n"
"""Said in the first output after a restore when there was a shell but no state of it."""
NOT_CARRIED = b"[the shell's state could not be carried over: %s; variables and functions may be missing]\n"
"""Said in the first output after a restore when the new shell did not take its state, or parts of it."""

_TOO_MANY = 100
"""Sections that no state has."""
_HEAD = b"bash-state-1"
_OFF_AT_FIRST = frozenset(
    b"autocd assoc_expand_once cdable_vars cdspell checkhash checkjobs compat31 compat32 compat40 compat41 compat42 "
    b"compat43 compat44 direxpand dirspell dotglob execfail extdebug extglob failglob globstar gnu_errfmt histappend "
    b"histreedit histverify huponexit inherit_errexit lastpipe lithist localvar_inherit localvar_unset login_shell "
    b"mailwarn no_empty_cmd_completion nocaseglob nocasematch noexpand_translation nullglob progcomp_alias "
    b"restricted_shell shift_verbose syslog_history varredir_close xpg_echo allexport emacs errexit errtrace functrace "
    b"history ignoreeof keyword monitor noclobber noexec noglob nolog notify nounset onecmd physical pipefail privileged "
    b"verbose vi xtrace".split()
)
"""Options that are off in every new session, so that nothing is to be said of them."""
_BASH_S_OWN = re.compile(
    rb"declare -\S+ (__[cs]|_|S?RANDOM|SECONDS|EPOCH(REALTIME|SECONDS)|BASHPID|LINENO|HISTCMD|DIRSTACK|GROUPS|FUNCNAME"
    rb"|BASH_(SUBSHELL|COMMAND|ALIASES|CMDS|COMPAT|VERSINFO|ARG[CV]0?|LINENO|SOURCE)|PIPESTATUS|BASHOPTS|SHELLOPTS|E?UID|PPID"
    rb"|POSIXLY_CORRECT|COMP_WORDBREAKS|BASH|BASH_(VERSION|LOADABLES_PATH)|(HOST|MACH|OS)TYPE)(=.*)?"
)
"""Lines of `declare -p` for variables that bash itself sets or the session uses: other ones at every look, or read-only."""


@dataclass(frozen=True, kw_only=True)
class ShellState:
    """The sections of one shell's state, each as the shell's own builtin printed it."""

    directory: bytes
    umask: bytes
    variables: bytes
    """`declare -p`."""
    shell_options: bytes
    """`shopt -p`."""
    set_options: bytes
    """`set +o`."""
    functions: bytes
    """`declare -f`."""
    attributes: bytes
    """`declare -F`: which functions are exported or read-only."""
    aliases: bytes
    """`alias -p`."""
    traps: bytes
    """`trap -p`."""

    def to_bytes(self) -> bytes:
        """One blob; equal states give equal bytes."""
        return b"\0".join((_HEAD, *astuple(self)))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The state in a blob. Raises SandboxError for anything that `to_bytes` does not write."""
        head, *sections = data.split(b"\0")
        if head != _HEAD or len(sections) != len(fields(cls)) or len(data) > STATE_BYTES:
            raise SandboxError(f"{len(data)} bytes are no state of a shell")
        return cls(**dict(zip(_names(cls), sections, strict=True)))

    @classmethod
    def told(cls, sections: list[bytes]) -> Self | None:
        """The state whose sections a shell told, in the order of `dump_script`; None when they are not as many."""
        if len(sections) != len(fields(cls)):
            return None
        state = cls(**dict(zip(_names(cls), sections, strict=True)))
        lines = [line for line in state.variables.split(b"\n") if not _BASH_S_OWN.fullmatch(line)]
        return replace(state, variables=b"\n".join(lines))


def keep_section(sections: list[bytes], section: bytes) -> None:
    """Add what a shell told. Where it makes too much of it, what is kept is no state, and grows no more."""
    sections.append(section)
    if sum(map(len, sections)) > STATE_BYTES or len(sections) > _TOO_MANY:
        sections[:] = [b""] * _TOO_MANY


def _names(kind: type[ShellState]) -> list[str]:
    return [field.name for field in fields(kind)]


def dump_script(nonce: bytes, marker: bytes = b"") -> bytes:
    r"""A script line that makes the session write its state's sections, then the answer to `nonce`, on descriptor 3.

    `\builtin` is reached past aliases and past functions of any other name; a shell in which
    it is not `builtin` any more tells nothing that counts as a state.
    Each command is redirected by itself: what a trap of the agent prints before it goes where all its output goes. `marker` is
    as in `sandboxes.shell.command_script`.
    """
    told = ("pwd", "umask", "declare -p", "shopt -p", "set +o", "declare -f", "declare -F", "alias -p", "trap -p")
    sections = "; ".join(rf"\builtin {what} >&3 2>/dev/null; \builtin printf '\0' >&3" for what in told)
    script = rf"{{ {sections}; }} || \builtin :; "
    mark = rb"; \builtin printf '%s' '" + marker + rb"' >&4" if marker else b""
    return script.encode() + rb"\builtin printf '" + nonce + rb" 0\0' >&3" + mark + b"\n"


def carry_command(state: ShellState, inherited: list[str]) -> bytes:
    """A command that makes a new shell hold `state`; it succeeds when the shell could read every section to its end.

    `inherited` names the variables that the new shell was started with: those that the state lacks are gone. Options come
    before the functions that need them, aliases after (a function's text has them expanded), posix mode last (an unreadable
    function would end the shell). Errors of single variables (bash's own read-only ones) are not counted.
    """
    posix = b"set -o posix" in state.set_options.split(b"\n")
    lines = [
        rb"__b=0; \builtin unset -v " + " ".join(inherited).encode(),
        rb"\builtin cd -- " + _quoted(state.directory.removesuffix(b"\n")) + rb" || __b=1",
        _counted(state.variables),
        rb"\builtin test $__b = 0 || \builtin cd -P .",
        _counted(b"umask " + state.umask),
        *_options(state),
        *(_counted(text) for text in (state.functions, _by_builtin(state.attributes), state.aliases, state.traps)),
        rb'\builtin test -z "${__x-}" || \builtin set -x',
        rb"\builtin set -o posix" if posix else rb"\builtin :",
        rb'\builtin test "$__b" = 0 && \builtin unset -v __b',
    ]
    return b"{ " + b"\n".join(lines) + b"\n} >/dev/null 2>&1"


def _options(state: ShellState) -> list[bytes]:
    """Short commands for what `shopt -p` and `set +o` printed line by line: a shell reads its commands byte by byte."""
    found = re.findall(rb"^shopt -([su]) ([a-z0-9_]+)$", state.shell_options, re.MULTILINE)
    lines = []
    for way in (b"s", b"u"):
        names = [name for done, name in found if done == way and (way == b"s" or name not in _OFF_AT_FIRST)]
        lines += [rb"\builtin shopt -" + way + b" " + b" ".join(names)] if names else []
    options = re.findall(rb"^set ([-+]o) ([a-z-]+)$", state.set_options, re.MULTILINE)
    kept = [way + b" " + name for way, name in options if name != b"posix" and (way == b"-o" or name not in _OFF_AT_FIRST)]
    return [rb"\builtin set " + b" ".join(kept), *lines] if kept else lines


def _counted(text: bytes) -> bytes:
    """Evaluate `text`; where it cannot be read to its end, `__b` counts one more."""
    return rb"__b=$((__b+1)); \builtin eval " + _quoted(text + b"\n__b=$((__b-1))")


def _quoted(text: bytes) -> bytes:
    """`text` as one word of the shell that nothing expands."""
    return b"'" + text.replace(b"'", rb"'\''") + b"'"


def _by_builtin(attributes: bytes) -> bytes:
    """Lines of `declare -F` that no function named `declare` can catch."""
    return b"\n".join(rb"\builtin " + line for line in attributes.splitlines() if line.startswith(b"declare -"))
