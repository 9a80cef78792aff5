"""What each back end says that it offers on this machine."""

from __future__ import annotations

from factory.core.errors import SandboxError
from sandboxes.contract import Backend, Capability


def test_everything_that_should_hold_holds_here(backend: Backend) -> None:
    lacking = {capability.name for capability in backend.capabilities() if not capability.holds}
    docker = {"disk in all", "number of cores in /sys"} if backend.name == "docker" else set()
    assert lacking - {"locale en_US.UTF-8"} == {"network"} | docker


def test_capabilities_say_why_no_sandbox_opens() -> None:
    from sandboxes.probes import measure

    class Broken:
        def open(self, *_: object) -> None:
            raise SandboxError("user namespaces are off")

    assert measure(Broken()) == [Capability("sandboxes", False, "user namespaces are off")]  # type: ignore[arg-type]
