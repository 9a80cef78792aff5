"""Which functions of changed files can be given new code in a process that has imported the old ones.

A function's code may be exchanged when that cannot be told from having imported the new text: the module and its class bodies
do the same, line numbers aside, and of each function that differs neither it nor one inside it was called on import or in
collection, its code was not looked at, and nothing that the function object itself holds is other: names, docstring, arguments,
closure, and whether it is a generator or a coroutine. Defaults, decorators and annotations belong to what is around it.
"""

import inspect


class Refused(Exception):
    """Why the code cannot be exchanged."""


def swaps(path, before, after, imported):
    """[(key of the old function, its new code object)] for one file at the absolute `path`.

    `imported`: what ran of the file before the first test, as `suite_tracing` tells it. Raises Refused.
    """
    try:
        old, new = (compile(text, path, "exec", dont_inherit=True) for text in (before, after))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"does not compile: {type(error).__name__}") from None
    found = _pairs(old, new)
    called, read = set(imported["called"]), set(imported["read"])
    names = [key(code) for code in _with_inner(old)]
    for function, _ in found:
        if names.count(key(function)) > 1:
            raise Refused("two functions on one line")
        keys = {key(code) for code in _with_inner(function)}
        if keys & called:
            raise Refused("runs on import")
        if keys & read:
            raise Refused("read on import")
    return [(key(function), code) for function, code in found]


def key(code):
    """Names a function of a file."""
    return f"{code.co_firstlineno}:{code.co_qualname}"


def _pairs(old, new):
    """The outermost functions that differ between two module or class bodies that do the same."""
    if _form(old) != _form(new):
        raise Refused("module level" if old.co_name == "<module>" else "class body")
    found = []
    for before, after in zip(_inner(old), _inner(new), strict=True):
        if _same(before, after):
            continue
        if not before.co_flags & inspect.CO_OPTIMIZED:
            found += _pairs(before, after)
        elif _held(before) != _held(after):
            raise Refused("signature")
        else:
            found.append((before, after))
    return found


def _form(code):
    """What the interpreter runs of a code object, without line numbers and without the functions and classes inside."""
    constants = tuple(
        (item.co_name, item.co_flags) if isinstance(item, type(code)) else (type(item).__name__, repr(item))
        for item in code.co_consts
    )
    return (
        *(code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        *(code.co_flags, code.co_exceptiontable, code.co_name, code.co_qualname),
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
    )


def _held(code):
    """What a function object shows of its code without being called."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    document = code.co_consts[0] if code.co_consts and isinstance(code.co_consts[0], str) else None
    return (
        *(code.co_name, code.co_qualname, code.co_flags, code.co_freevars, code.co_varnames[:count], document),
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
    )


def _inner(code):
    return [item for item in code.co_consts if isinstance(item, type(code))]


def _with_inner(code):
    return [code, *(deep for item in _inner(code) for deep in _with_inner(item))]


def _same(before, after):
    return _form(before) == _form(after) and all(map(_same, _inner(before), _inner(after)))
