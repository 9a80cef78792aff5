"""The frozen clock's shared library, made byte by byte: a sandbox's machine need not have a compiler.

It is an ELF file of two pages. The first holds the tables and the code, the second what the loader writes to: the dynamic
section and one slot, which gets the address of the C library's `syscall`. Layout: the System V ABI with its x86-64
supplement; instructions: AMD64 manual, volume 3.
"""

from __future__ import annotations

import struct

MACHINES = ("x86_64",)
"""Machines whose instructions are known here."""

_PAGE = 4096
_HEADERS = 64 + 4 * 56
_GLOB_DAT = 6
_CLOCK_GETTIME = 228
_WALL = (0, 5, 11)
"""CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_TAI."""
_READ, _WRITE, _RUN = 4, 2, 1
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_SLOT = _PAGE + 16 * 9
"""Address of the slot: behind the nine entries of the dynamic section."""

_RET = b"\xc3"
_ZERO_RET = b"\x31\xc0" + _RET
"""xor eax, eax; ret"""


def frozen_library(instant_ns: int) -> bytes:
    """A library for x86-64 whose `clock_gettime`, `gettimeofday`, `time` and `timespec_get` answer `instant_ns` since 1970."""
    seconds, nanoseconds = divmod(instant_ns, 10**9)
    names = ("clock_gettime", "gettimeofday", "time", "timespec_get", "syscall")
    text = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    starts = [text.index(b"\0" + name.encode() + b"\0") + 1 for name in names]
    hashes_at = _HEADERS
    symbols_at = hashes_at + 4 * (4 + len(names))
    relocation_at = symbols_at + 24 * (1 + len(names))
    text_at = relocation_at + 24
    code_at = _aligned(text_at + len(text))
    code, places = b"", []
    for body in (
        _clock_gettime(seconds, nanoseconds, code_at),
        _gettimeofday(seconds, nanoseconds // 1000),
        _time(seconds),
        _timespec_get(seconds, nanoseconds),
    ):
        places.append((code_at + len(code), len(body)))
        code += body.ljust(_aligned(len(body)), b"\xcc")
    symbols = bytes(24)
    for start, (place, size) in zip(starts, places, strict=False):
        symbols += struct.pack("<IBBHQQ", start, 0x12, 0, 1, place, size)  # global function
    symbols += struct.pack("<IBBHQQ", starts[-1], 0x22, 0, 0, 0, 0)  # weak function, from elsewhere
    # One bucket, a chain through all symbols.
    hashes = struct.pack(f"<{4 + len(names)}I", 1, len(names) + 1, 1, 0, *range(2, len(names) + 1), 0)
    relocation = struct.pack("<QQq", _SLOT, len(names) << 32 | _GLOB_DAT, 0)
    tables = hashes + symbols + relocation + text
    first = (_headers() + tables).ljust(code_at, b"\0") + code
    dynamic = [(4, hashes_at), (6, symbols_at), (5, text_at), (10, len(text)), (11, 24)]
    dynamic += [(7, relocation_at), (8, 24), (9, 24), (0, 0)]
    second = b"".join(struct.pack("<QQ", *entry) for entry in dynamic) + bytes(8)
    return first.ljust(_PAGE, b"\0") + second


def _aligned(size: int) -> int:
    return -(-size // 16) * 16


def _headers() -> bytes:
    size = _SLOT + 8 - _PAGE
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = identity + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0)
    segments = (
        (_LOAD, _READ | _RUN, 0, _PAGE, _PAGE),
        (_LOAD, _READ | _WRITE, _PAGE, size, _PAGE),
        (_DYNAMIC, _READ | _WRITE, _PAGE, size - 8, 8),
        (_STACK, _READ | _WRITE, 0, 0, 16),
    )
    return header + b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size, size, align) for kind, flags, at, size, align in segments
    )


def _clock_gettime(seconds: int, nanoseconds: int, address: int) -> bytes:
    """Wall clocks stand; others are asked of the kernel through `syscall`, which also sets `errno`."""
    ask = (
        b"\x48\x89\xf2"  # mov rdx, rsi
        + b"\x48\x63\xf7"  # movsxd rsi, edi
        + b"\xbf"  # mov edi, the call's number
        + struct.pack("<I", _CLOCK_GETTIME)
        + b"\x31\xc0"  # xor eax, eax
        + b"\xff\x25"  # jmp [rip + distance of the slot]
    )
    tests = b""
    for place, clock in enumerate(_WALL):
        left = 5 * (len(_WALL) - 1 - place)
        tests += bytes([0x83, 0xFF, clock, 0x74, left + len(ask) + 4])  # cmp edi, clock; je frozen
    ask += struct.pack("<i", _SLOT - (address + len(tests) + len(ask) + 4))
    frozen = (
        _load(seconds)
        + b"\x48\x89\x06"  # mov [rsi], rax
        + b"\x48\xc7\x46\x08"  # mov qword [rsi + 8], nanoseconds
        + struct.pack("<I", nanoseconds)
        + _ZERO_RET
    )
    return tests + ask + frozen


def _gettimeofday(seconds: int, microseconds: int) -> bytes:
    fill = (
        _load(seconds)
        + b"\x48\x89\x07"  # mov [rdi], rax
        + b"\x48\xc7\x47\x08"  # mov qword [rdi + 8], microseconds
        + struct.pack("<I", microseconds)
    )
    zone = b"\x48\xc7\x06" + bytes(4)  # mov qword [rsi], 0
    return (
        b"\x48\x85\xff"  # test rdi, rdi
        + bytes([0x74, len(fill)])  # je zone
        + fill
        + b"\x48\x85\xf6"  # test rsi, rsi
        + bytes([0x74, len(zone)])  # je end
        + zone
        + _ZERO_RET
    )


def _time(seconds: int) -> bytes:
    store = b"\x48\x89\x07"  # mov [rdi], rax
    return _load(seconds) + b"\x48\x85\xff" + bytes([0x74, len(store)]) + store + _RET  # test rdi, rdi; je end


def _timespec_get(seconds: int, nanoseconds: int) -> bytes:
    """TIME_UTC is the only base."""
    return (
        b"\x83\xfe\x01\x74\x03"  # cmp esi, 1; je frozen
        + _ZERO_RET
        + _load(seconds)
        + b"\x48\x89\x07"  # mov [rdi], rax
        + b"\x48\xc7\x47\x08"  # mov qword [rdi + 8], nanoseconds
        + struct.pack("<I", nanoseconds)
        + b"\x89\xf0"  # mov eax, esi
        + _RET
    )


def _load(seconds: int) -> bytes:
    return b"\x48\xb8" + struct.pack("<Q", seconds)  # mov rax, seconds
