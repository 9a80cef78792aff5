"""The docker back end: base image, derived images, containers with an owner."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from dataclasses import replace
from pathlib import Path

from docker.errors import APIError, ImageNotFound, NotFound

from factory.core.blobs import BlobStore
from factory.core.digest import Json, digest_of
from factory.core.errors import ImageError, SandboxError
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.clock import FOLDER, PRELOAD, PRELOAD_NAME, clock_tree
from sandboxes.contract import Capability, ResolvedImage, Snapshot
from sandboxes.docker.container import ENGINE_FAULTS, DockerImage
from sandboxes.docker.engine import ENGINE_S, connect
from sandboxes.docker.sandbox import DockerSandbox
from sandboxes.docker.trees import Archive
from sandboxes.faults import machine_faults
from sandboxes.folders import load_tree
from sandboxes.owners import alive, start_time
from sandboxes.probes import measure
from sandboxes.spec import ETC, FACTS_SCRIPT, HOME, PYTHON_PROBE, TOOLS, Offered, check_spec, version_of

logger = logging.getLogger(__name__)

OWNER = "envfactory.owner"
"""Label of a container: machine, process id and start time of the process that made it."""
DERIVED = "envfactory"
"""Repository name of derived images: one for each base image and set of a task's own mounts."""
IMAGES = 128
"""Most derived images that stay with the engine."""

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_PATH = "/usr/local/bin:/usr/bin:/bin"
_PROBE = f"""
for tool in {" ".join(TOOLS)}; do command -v $tool >/dev/null || echo "missing $tool"; done
echo "bash $BASH_VERSION"
find / -xdev -type d -perm -0002 2>/dev/null | sed 's/^/open /'
python=$(command -v python3) || exit 0
echo "at $(readlink -f "$python")"
"$python" -I -S -c "{PYTHON_PROBE.replace("print(", "print('python', ")}"
find / -xdev -type d '(' -name site-packages -o -name dist-packages ')' 2>/dev/null | sed 's/^/packages /'
{FACTS_SCRIPT}"""


class DockerBackend:
    """Containers of one engine, found by the usual variables (`DOCKER_HOST`)."""

    name = "docker"

    def __init__(self, base_image: str) -> None:
        """Raises SandboxError when no engine answers."""
        self._engine = connect()
        self._base = base_image
        self._lock = threading.Lock()
        self._images: dict[str, DockerImage] = {}
        self._labels = {OWNER: f"{_machine()}:{os.getpid()}:{start_time(os.getpid())}"}
        self._reclaim()

    @machine_faults(*ENGINE_FAULTS)
    def _reclaim(self) -> None:
        """Remove the containers of this machine's processes that are gone."""
        for found in self._engine.containers(all=True, filters={"label": OWNER}):
            machine, pid, started = found["Labels"][OWNER].split(":")
            if machine == _machine() and not alive(int(pid), int(started)):
                logger.info("removing container %s, left by process %s", found["Id"][:12], pid)
                self._remove(found["Id"])

    def resolve(self, image: str) -> ResolvedImage:
        return self._image(image, ()).resolved

    @machine_faults(*ENGINE_FAULTS)
    def _image(self, name: str, mounts: tuple[Mount, ...], blobs: BlobStore | None = None) -> DockerImage:
        """The base image with what every sandbox needs and `mounts` in it; made once for each set of mounts."""
        with self._lock:
            if name not in self._images:
                self._images[name] = self._look(name)
            image = self._images[name]
            content: Json = [image.resolved.digest, [[path, text] for path, text in ETC], [[m.path, m.tree] for m in mounts]]
            reference = f"{DERIVED}:{digest_of(content)}"
            try:
                self._engine.inspect_image(reference)
            except ImageNotFound:
                self._derive(image.reference, reference, mounts, blobs)
                self._trim()
            return replace(image, reference=reference)

    def _derive(self, base: str, reference: str, mounts: tuple[Mount, ...], blobs: BlobStore | None) -> None:
        archive = Archive(owner=0)
        for path, text in ETC:
            archive.add_file(path.strip("/"), text.encode())
        archive.add_folder(HOME.strip("/"))
        for mount in mounts:
            assert blobs is not None
            archive.add_tree(blobs, load_tree(blobs, mount.tree), mount.path.strip("/"))
        if archive.special:
            raise SandboxError(f"a mounted tree has special entries: {archive.special[0]}")
        container = self._engine.create_container(base, ["/bin/true"], labels=self._labels)["Id"]
        try:
            self._engine.put_archive(container, "/", archive.data())
            repository, _, tag = reference.partition(":")
            self._engine.commit(container, repository, tag)
        finally:
            self._remove(container)

    def _trim(self) -> None:
        """Remove the oldest derived images past `IMAGES`; the engine keeps those that have a container."""
        images = sorted(self._engine.images(name=DERIVED), key=lambda image: image["Created"])
        for image in images[:-IMAGES]:
            with contextlib.suppress(APIError):
                self._engine.remove_image(image["Id"], noprune=True)

    def _remove(self, container: str) -> None:
        try:
            self._engine.remove_container(container, force=True, v=True)
        except NotFound:
            pass
        except APIError as error:
            logger.warning("container %s is not removed: %s", container[:12], error.explanation)

    def _look(self, name: str) -> DockerImage:
        """Find the base image, pulling it when the engine lacks it, and look into it. Raises ImageError."""
        version = version_of(name)
        try:
            facts = self._engine.inspect_image(self._base)
        except ImageNotFound:
            try:
                self._engine.pull(self._base)
                facts = self._engine.inspect_image(self._base)
            except APIError as error:
                raise ImageError(
                    f"the engine has no image {self._base!r} and cannot pull it; "
                    f"`python -m sandboxes.docker.base_image` makes one from Debian packages ({error.explanation})"
                ) from error
        found = self._probe(facts["Id"])
        missing = [line for line in found if line.startswith("missing")]
        python = [line.split()[1] for line in found if line.startswith("python ")]
        if missing or not python or not python[0].startswith(f"{version}."):
            raise ImageError(f"image {self._base!r} does not offer {name}: python {python or 'none'}; {', '.join(missing)}")
        told = {
            word: [line.partition(" ")[2] for line in found if line.startswith(word)]
            for word in ("at", "bash", "open", "packages")
        }
        return DockerImage(
            resolved=ResolvedImage(
                name=name,
                digest=facts["Id"].removeprefix("sha256:"),
                versions={"python": python[0], "bash": told["bash"][0]},
            ),
            reference=facts["Id"],
            python=told["at"][0],
            path=_PATH,
            hidden=tuple(sorted({*told["packages"], *told["open"]})),
            offered=Offered.of(found),
            machine=_MACHINES.get(facts["Architecture"], facts["Architecture"]),
            cores=self._engine.info()["NCPU"],
        )

    def _probe(self, image: str) -> list[str]:
        container = self._engine.create_container(
            image,
            ["/bin/bash", "-c", _PROBE],
            environment={"PATH": _PATH},
            labels=self._labels,
            host_config=self._engine.create_host_config(network_mode="none"),
        )["Id"]
        try:
            self._engine.start(container)
            self._engine.wait(container, timeout=ENGINE_S)
            text: str = self._engine.logs(container).decode(errors="replace")
            return text.splitlines()
        except APIError as error:
            raise ImageError(f"image {self._base!r} does not start: {error.explanation}") from error
        finally:
            self._remove(container)

    def open(
        self, spec: EnvironmentSpec, blobs: BlobStore, mounts: tuple[Mount, ...] = (), *, snapshot: Snapshot | None = None
    ) -> DockerSandbox:
        check_spec(spec, mounts)
        try:
            return self._open(spec, blobs, mounts, snapshot)
        except SandboxError as error:
            if not isinstance(error.__cause__, ImageNotFound):
                raise
            return self._open(spec, blobs, mounts, snapshot)  # another process removed the image since it was looked for

    def _open(
        self, spec: EnvironmentSpec, blobs: BlobStore, mounts: tuple[Mount, ...], snapshot: Snapshot | None
    ) -> DockerSandbox:
        image = self._image(spec.image, spec.mounts, blobs)
        image.offered.check(spec, image.cores)
        inside = mounts

        def fork(state: Snapshot) -> DockerSandbox:
            return self.open(spec, blobs, mounts, snapshot=state)

        if (clock := clock_tree(spec, blobs, image.machine)) is not None:
            link = FileTree({PRELOAD_NAME: Entry(EntryKind.LINK, target=f"{FOLDER}/{PRELOAD_NAME}")})
            inside += (Mount(path=FOLDER, tree=clock), Mount(path=PRELOAD.rpartition("/")[0], tree=link.save(blobs)))
        return DockerSandbox(self._engine, image, spec, blobs, inside, self._labels, snapshot, fork, watches=bool(mounts))

    def capabilities(self) -> list[Capability]:
        return measure(self)

    def close(self) -> None:
        self._engine.close()


def _machine() -> str:
    """This boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
