"""Small programs that the docker back end runs inside a container, as text. Standard library only."""

from __future__ import annotations

KEEPER = "trap 'kill -9 -1' USR1; while :; do sleep 1000000 & wait; done"
"""First process of a container, as root with no capability but the one to kill, out of the agent's reach: on a signal
from outside it kills every other process in one call, which no fork can outrun; it also reaps orphans."""

INTERRUPT = """
import os, signal, sys, time
shell, first = sys.argv[1], sys.argv[2]
os.write(1, b"r")
seconds = float(sys.stdin.readline())
ticks = os.sysconf("SC_CLK_TCK")
since = int((time.clock_gettime(time.CLOCK_BOOTTIME) - seconds - 0.005) * ticks)

def stat(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()
    except OSError:
        return None

def command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return stream.read().decode(errors="replace").replace("\\0", " ").strip()
    except OSError:
        return ""

def send(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass

if stat(first):
    since = int(stat(first)[19])
spared = {1, os.getpid()}
for _ in range(10):
    fresh = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        fields = stat(pid)
        if fields is None or pid in spared:
            continue
        if fields[1] == b"0" and shell and command(pid) == shell:
            spared.add(pid)
            send(pid, signal.SIGUSR1)
        elif int(fields[19]) >= since and not (fields[1] == b"1" and command(pid) == "sleep 1000000"):
            fresh.append(pid)
    for pid in fresh:
        spared.add(pid)
        send(pid, signal.SIGKILL)
    if not fresh:
        break
found = [(pid, stat(pid)) for pid in spared - {1, os.getpid()}]
dying = sum(bool(fields) and fields[1] != b"0" and fields[0] not in b"ZX" for _, fields in found)
for pid, fields in found:
    if fields and fields[1] == b"0" and shell and command(pid) == shell:
        os.write(1, b"%s %d %d" % (fields[0], int(fields[11]) + int(fields[12]), dying))
"""
"""Make the shell whose command line is the first argument give up its command, and kill what started since: with the
process of the second argument where it still runs, or in the last so many seconds (their number is asked for once this
runs, since its own start takes time). Tells what is seen of the shell: its state, ticks of its processor time, and how many
of the killed are not gone."""

EXPORT = """
import contextlib, errno, json, os, stat, sys
limit, depth_limit, path_limit = map(int, sys.argv[1:4])

def put(path, size=0, data=None, **fields):
    header = json.dumps({"path": path.encode("unicode_escape").decode(), "size": size, **fields}).encode()
    out = len(header).to_bytes(4, "big") + header + (data or b"")
    while out:
        out = out[os.write(1, out):]

@contextlib.contextmanager
def opened(folder, name, flags):
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    link, mode = f"/proc/self/fd/{handle}", stat.S_IMODE(os.fstat(handle).st_mode)
    closed = mode & 0o500 != 0o500
    try:
        if closed:
            os.chmod(link, mode | 0o500)
        inner = os.open(link, flags)
        try:
            yield inner, mode
        finally:
            os.close(inner)
            if closed:
                os.chmod(link, mode)
    finally:
        os.close(handle)

def leaf(folder, name, path):
    global taken
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(name, dir_fd=folder)
        return put(path, kind="link", target=target.encode("unicode_escape").decode())
    if not stat.S_ISREG(status.st_mode) or taken + status.st_size > limit:
        return put(path, kind="special")
    with opened(folder, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY) as (inner, mode):
        status = os.fstat(inner)
        if not stat.S_ISREG(status.st_mode):
            return put(path, kind="special")
        data, left = b"", status.st_size
        while left > 0 and (part := os.read(inner, left)):
            data, left = data + part, left - len(part)
    taken += len(data)
    put(path, len(data), data, kind="file", executable=bool(mode & 0o100))

def visit(folder, name, path, is_folder, depth, length):
    try:
        if not is_folder:
            leaf(folder, name, path)
        elif depth >= depth_limit or length > path_limit:
            put(path, kind="special")
        else:
            with opened(folder, name, os.O_RDONLY | os.O_DIRECTORY) as (inner, _):
                walk(inner, path + "/", depth + 1, length + 1)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENXIO, errno.EAGAIN, errno.EACCES):
            put(path, kind="special")
        elif error.errno not in (errno.ENOENT, errno.ESTALE):
            raise

def walk(folder, prefix, depth, above=0):
    with os.scandir(folder) as listing:
        names = sorted((item.name, item.is_dir(follow_symlinks=False)) for item in listing)
    for name, is_folder in names:
        visit(folder, name, prefix + name, is_folder, depth, above + len(os.fsencode(name)))
    if not names and depth:
        put(prefix[:-1], kind="directory")

for place in sys.argv[4:]:
    prefix, _, root = place.partition("=")
    taken = 0
    with opened(None, root, os.O_RDONLY | os.O_DIRECTORY) as (inner, _):
        walk(inner, prefix, 0)
os.write(1, (0).to_bytes(4, "big"))
"""
"""Write the trees below folders as a stream of entries, under the rules of `sandboxes.export`; ends with a length of 0.
Arguments: most bytes of each, most folders in each other, longest path of a folder that is entered, then `PREFIX=FOLDER` for
each; paths begin with the prefix."""

FILL = """
import os, sys, tarfile
roots = dict(place.split("=") for place in sys.argv[1:])

def clear(root):
    if os.stat(root).st_uid == os.getuid():
        os.chmod(root, 0o1777 if root == "/tmp" else 0o755)
    aside, waiting, count = os.path.join(root, os.urandom(8).hex()), [root], 0
    while waiting:
        folder = waiting.pop()
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                count += 1
                waiting.append(f"{aside}-{count}")
                os.rename(path, waiting[-1])
            else:
                os.unlink(path)
        if folder != root:
            os.rmdir(folder)

for root in roots.values():
    clear(root)
folders = []
with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
    archive.extraction_filter = lambda member, path: member
    for member in archive:
        top, _, member.name = member.name.partition("/")
        if member.name:
            archive.extract(member, roots[top])
            if member.isdir():
                folders.append((member, os.path.join(roots[top], member.name)))
    for member, path in reversed(folders):
        archive.utime(member, path)
"""
"""Make folders equal to the archive on standard input. What they hold comes up folder by folder before it is removed: however
deep it is, no path and no line of calls gets long. Arguments: `NAME=FOLDER` for each folder, where NAME begins the paths
of the archive that go there."""

SPECIAL = """
import os, stat, sys
for path in sys.stdin.buffer.read().split(bytes(1)):
    os.mknod(path, stat.S_IFSOCK | 0o644)
"""
"""Make special entries at the paths on standard input, which NULs part."""
