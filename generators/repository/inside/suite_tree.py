"""The tree in which every run happens: files replaced for one run, everything put back after it.

Bytecode remembers the path at which it was made, and a process that has imported a project stands in its folder: there
is one tree, and it stays. What a run changed in it is told by inode, size and time of change, which no program sets, and
copied again from a master.
"""

import os
import shutil
import stat
import sys

TREE = "/tmp/tree"
"""Where every run happens."""
MASTER = "/tmp/master"
"""A copy of the tree as it should be."""
SCRATCH = "/tmp"
"""Holds what tests write outside the tree: temporary folders and, as their home, anything."""


class Tree:
    """The project's files. Made once in a sandbox."""

    def __init__(self, root):
        shutil.copytree(root, TREE, symlinks=True)

    def settle(self):
        """From here on, what is in the tree and in the scratch folder is how every run finds it."""
        shutil.copytree(TREE, MASTER, symlinks=True)
        self._known = scan(TREE)
        self._scratch = set(os.listdir(SCRATCH))

    def keep_scratch(self):
        """What lies in the scratch folder now stays: a process that lives on made it."""
        self._scratch = set(os.listdir(SCRATCH))

    def replace(self, files):
        """Write new texts, also of new files, and remove the bytecode of the old ones."""
        for path, text in files.items():
            target = os.path.join(TREE, path)
            remove(target)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            for cached in bytecode_of(target):
                os.unlink(cached)

    def restore(self):
        """Put back what differs from the master and remove what tests left elsewhere."""
        found = scan(TREE)
        for path in sorted(found.keys() - self._known.keys(), reverse=True):
            remove(os.path.join(TREE, path))
        for path in sorted(self._known):
            if found.get(path) != self._known[path]:
                self._known[path] = copied(path)
        for name in set(os.listdir(SCRATCH)) - self._scratch:
            remove(os.path.join(SCRATCH, name))


def scan(root):
    """{relative path: what tells a change} of everything below `root`; folders by their mode alone."""
    found: dict = {}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(os.path.join(root, folder)) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                found[path] = mark(entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
    return found


def mark(status):
    """What tells a change of a file."""
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)
    return (status.st_mode, status.st_ino, status.st_size, status.st_ctime_ns)


def copied(path):
    """Copy one entry from the master; its new mark."""
    source, target = os.path.join(MASTER, path), os.path.join(TREE, path)
    if os.path.isdir(source) and not os.path.islink(source):
        if os.path.islink(target) or not os.path.isdir(target):
            remove(target)
            os.mkdir(target)
        shutil.copystat(source, target)
    else:
        remove(target)
        shutil.copy2(source, target, follow_symlinks=False)
    return mark(os.lstat(target))


def remove(path):
    """Remove whatever is there, if anything is."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, onerror=_unlocked)
    elif os.path.lexists(path):
        os.unlink(path)


def _unlocked(function, path, _):
    """A folder whose rights were taken away: give them back and try again."""
    for locked in (os.path.dirname(path), path):
        os.chmod(locked, 0o700)
    if os.path.isdir(path) and function is not os.rmdir:
        shutil.rmtree(path)
    else:
        function(path)


def bytecode_of(path):
    """The bytecode files of a source file: plain and with rewritten assertions."""
    folder, name = os.path.split(path)
    cache = os.path.join(folder, "__pycache__")
    stem = name.removesuffix("py")
    return [os.path.join(cache, entry) for entry in os.listdir(cache) if entry.startswith(stem)] if os.path.isdir(cache) else []


def compile_all():
    """Write the bytecode of every module that compiles, so that no run does it again."""
    import compileall

    before, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    compileall.compile_dir(TREE, quiet=2)
    sys.dont_write_bytecode = before
