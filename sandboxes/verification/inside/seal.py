"""Tells whether files were touched: the kernel's own notices, which nobody who touched them can take back.

The graded code owns the tree that it is graded in, so that it could rewrite tests and their data while they run, and
restore them in time. Reading is no touch; writing, replacing, moving, removing and changing rights are.
"""

import ctypes
import os
import struct

_FILE = 0x00000002 | 0x00000004 | 0x00000008 | 0x00000400 | 0x00000800
"""IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE (which also ends a writing map), IN_DELETE_SELF, IN_MOVE_SELF."""
_FOLDER = 0x00000040 | 0x00000080 | 0x00000100 | 0x00000200 | 0x00000800 | 0x01000000
"""IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_MOVE_SELF; IN_ONLYDIR."""
_SELF = 0x00000800
_OVERFLOW = 0x00004000
_HEAD = struct.Struct("iIII")


class Seal:
    """Watches files below a folder, and the folders that hold them, from when it is made."""

    def __init__(self, root, files):
        """`files` are paths relative to `root`. Raises OSError when the kernel has no watches left."""
        libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._inotify < 0:
            raise OSError(ctypes.get_errno(), "the sealed files cannot be watched")
        self._paths = {}
        self._names: dict = {}
        for path in files:
            folder, _, name = path.rpartition("/")
            self._names.setdefault(folder, set()).add(name)
            while folder:
                folder, _, name = folder.rpartition("/")
                self._names.setdefault(folder, set()).add(name)
        for path, mask in (*((path, _FILE) for path in files), *((folder, _FOLDER) for folder in self._names)):
            watch = libc.inotify_add_watch(self._inotify, os.fsencode(os.path.join(root, path)), mask)
            if watch < 0:
                raise OSError(ctypes.get_errno(), "the sealed files cannot be watched", path)
            self._paths[watch] = path

    def broken(self):
        """The first path that was touched so far, empty where none was. Closes the watch."""
        try:
            while True:
                try:
                    data = os.read(self._inotify, 1 << 16)
                except BlockingIOError:
                    return ""
                while data:
                    watch, mask, _, length = _HEAD.unpack_from(data)
                    name = data[_HEAD.size : _HEAD.size + length].rstrip(b"\0").decode(errors="replace")
                    data = data[_HEAD.size + length :]
                    if touched := self._touched(watch, mask, name):
                        return touched
        finally:
            os.close(self._inotify)

    def _touched(self, watch, mask, name):
        if mask & _OVERFLOW:
            return "more than can be told"
        path = self._paths.get(watch)
        if path is None or (path in self._names and not mask & _SELF and name not in self._names[path]):
            return ""
        return os.path.join(path, name) if name else path or "the tree"
