"""What holds on this machine."""

from __future__ import annotations

from sandboxes.contract import Backend, Capability


def measure(backend: Backend) -> list[Capability]:
    """Filled by trying each property in a sandbox."""
    raise NotImplementedError
