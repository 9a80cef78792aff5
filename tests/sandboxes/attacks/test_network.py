"""No network of any family: probes that reach a listener of this machine from outside reach nothing from inside."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sandboxes.contract import Sandbox
from tests.sandboxes.attacks.conftest import GOT, Probe
from tests.sandboxes.conftest import Make

pytestmark = pytest.mark.attack

ABSTRACT = f"\0envfactory-attack-{os.getpid()}"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Listeners on this machine, by the names that the probes use."""
    path = str(tmp_path_factory.mktemp("s") / "socket")
    with ExitStack() as stack:
        listeners = {
            "tcp": socket.create_server(("0.0.0.0", 0)),
            "tcp6": socket.create_server(("::1", 0), family=socket.AF_INET6) if socket.has_ipv6 else None,
            "unix": socket.socket(socket.AF_UNIX),
            "abstract": socket.socket(socket.AF_UNIX),
        }
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        for name, listener in listeners.items():
            if listener is not None:
                stack.enter_context(listener)
                if name in ("unix", "abstract"):
                    listener.bind(path if name == "unix" else ABSTRACT)
                    listener.listen()
        ports = {name: listener.getsockname()[1] for name, listener in listeners.items() if listener and "tcp" in name}
        yield {"path": path, "abstract": ABSTRACT, "port": ports["tcp"], "port6": ports.get("tcp6", 9)}


LISTENERS = {
    "a port of this machine": "socket.create_connection(('127.0.0.1', {port}), 3)",
    "a port of this machine by every address": "[socket.create_connection((a, {port}), 3) for a in ('0.0.0.0', '127.0.0.2')]",
    "a port by IPv6": "socket.create_connection(('::1', {port6}), 3)",
    "a socket in this machine's files": "socket.socket(socket.AF_UNIX).connect({path!r})",
    "an abstract socket of this machine": "socket.socket(socket.AF_UNIX).connect({abstract!r})",
}
"""Succeed outside."""
PROBES = {
    "an address of the internet": "socket.create_connection(('192.0.2.1', 80), 3)",
    "a name server": "socket.create_connection(('8.8.8.8', 53), 3)",
    "a name": "socket.getaddrinfo('example.org', 80)",
    "a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))",
    "a datagram by IPv6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'x', ('2001:db8::1', 9))",
    "a broadcast": "s = socket.socket(socket.AF_INET, 2); s.setsockopt(1, 6, 1); s.sendto(b'x', ('10.255.255.255', 9))",
    "a multicast": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('224.0.0.1', 9))",
    "a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "a raw socket by IPv6": "socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)",
    "a packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "a packet socket for datagrams": "socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)",
    "the host of a virtual machine": "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, 1))",
    "the kernel's ciphers": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "bluetooth": "socket.socket(31, socket.SOCK_RAW, 1)",
    "a bus of a vehicle": "socket.socket(29, socket.SOCK_RAW, 1)",
    "a cluster": "socket.socket(30, socket.SOCK_RDM)",
    "an express data path": "socket.socket(44, socket.SOCK_RAW)",
    "the engine of containers": "[socket.socket(1).connect(path) for path in ('/run/docker.sock', '/var/run/docker.sock')]",
    "a bus of the desktop": "socket.socket(socket.AF_UNIX).connect('/run/dbus/system_bus_socket')",
    "the kernel's audit": "s = socket.socket(16, socket.SOCK_RAW, 9); s.bind((0, 1))",
}
"""May fail outside as well."""


def code(statement: str) -> str:
    return f"import socket\n{statement}\nprint({GOT!r})"


@pytest.mark.parametrize("name", LISTENERS)
def test_no_listener_of_this_machine_is_reached(inside: Probe, outside: Probe, host: dict[str, object], name: str) -> None:
    probe = code(LISTENERS[name].format(**host))
    if "IPv6" not in name or socket.has_ipv6:
        assert GOT in outside(probe)
    said = inside(probe)
    assert GOT not in said and "Traceback" in said


@pytest.mark.parametrize("name", PROBES)
def test_nothing_is_sent_by_any_family(inside: Probe, name: str) -> None:
    said = inside(code(PROBES[name]))
    assert GOT not in said and "Traceback" in said


LINKS = """
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.bind((0, 0))
s.send(struct.pack("=IHHIIBxHiII", 32, 18, 0x301, 1, 0, 0, 0, 0, 0, 0))
print("loopback" if b"lo\\0" in s.recv(65536) else "none")
import os
print(sorted(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else ["lo"])
print(open("/proc/net/route").read().count("\\n"), open("/proc/net/dev").read().count(":"))
"""


def test_the_kernel_tells_of_no_interface_but_the_loopback(inside: Probe) -> None:
    assert inside(LINKS).split("\n")[:3] == ["loopback", "['lo']", "1 1"]


CONFIGURED = """
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8916, struct.pack("16sH2x4s8x", b"lo", 2, socket.inet_aton("10.0.0.1")))
"""
ROUTED = """
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.bind((0, 0))
s.send(struct.pack("=IHHIIBBBBBBBBI", 28, 24, 0x605, 1, 0, 2, 0, 0, 0, 254, 4, 253, 1, 0))
error = struct.unpack_from("=i", s.recv(65536), 16)[0]
if error: raise OSError(-error, "refused")
"""


@pytest.mark.parametrize("statement", [CONFIGURED, ROUTED], ids=["an address is added", "a route is added"])
def test_the_network_cannot_be_configured(inside: Probe, statement: str) -> None:
    said = inside(f"{statement}\nprint({GOT!r})")
    assert GOT not in said and "Traceback" in said


MEET = "import socket; s = socket.socket(socket.AF_UNIX); s.{}('\\0meet'); print('there', flush=True)"


def test_abstract_sockets_are_the_sandbox_s_own(make: Make) -> None:
    one, other = make(), make()

    def said(sandbox: Sandbox) -> bytes:
        return sandbox.run(f'python3 -c "{MEET.format("connect")}"', timeout_s=20, output_bytes=1000).output

    one.run(
        f'python3 -c "{MEET.format("bind")}; s.listen(); import time; time.sleep(60)" & sleep 1', timeout_s=20, output_bytes=0
    )
    assert said(one) == b"there\n"
    assert b"ConnectionRefusedError" in said(other)


def test_sockets_in_files_are_the_sandbox_s_own(make: Make, tmp_path: Path) -> None:
    """A link to a socket outside leads nowhere inside."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        said = make().run(
            f"ln -s {path} s; ln -s /proc/1/root{path} t; for n in s t; do "
            "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' $n; done",
            timeout_s=20,
            output_bytes=5000,
        )
    assert said.exit_code == 1 and said.output.count(b"Error") >= 2
