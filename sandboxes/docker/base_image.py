"""Make a base image from Debian packages, for engines that reach no image registry.

    python -m sandboxes.docker.base_image [--name NAME] [--suite SUITE]

Needs root, `mmdebstrap` and a running engine. The image offers what `python-3.11` must: Python with its standard
library, bash and the usual tools; sqlite3 and procps besides.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docker import APIClient
from docker.errors import ImageNotFound

from factory.core.errors import SandboxError, UserError
from sandboxes.docker.engine import connect

logger = logging.getLogger(__name__)

NAME = "envfactory-base:python-3.11"
"""Default name of the image."""
SUITE = "bookworm"
"""Debian release whose Python is 3.11."""
PACKAGES = ("python3", "python3-distutils", "procps", "sqlite3", "util-linux")
"""Installed beside the minimal system."""


def make(name: str = NAME, suite: str = SUITE) -> str:
    """Build and import the image when the engine lacks it; return its id.

    Raises SandboxError when there is no engine or no mmdebstrap, or when the packages cannot be had.
    """
    engine = connect()
    try:
        return _find(engine, name) or _import(engine, name, suite)
    finally:
        engine.close()


def _find(engine: APIClient, name: str) -> str | None:
    try:
        found: str = engine.inspect_image(name)["Id"]
    except ImageNotFound:
        return None
    return found


def _import(engine: APIClient, name: str, suite: str) -> str:
    program = shutil.which("mmdebstrap")
    if program is None:
        raise SandboxError("mmdebstrap is missing: install the Debian package")
    repository, _, tag = name.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "base.tar")
        command = [program, "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(archive)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise SandboxError(f"mmdebstrap ended with {ended.returncode}: {ended.stderr.strip()[-500:]}")
        engine.import_image_from_file(str(archive), repository=repository, tag=tag or "latest")
    image = _find(engine, name)
    if image is None:
        raise SandboxError(f"the engine did not take the image {name!r}")
    return image


def main() -> int:
    """Entry of `python -m`. Returns 0, or 2 with one line for what is wrong."""
    parser = argparse.ArgumentParser(description="Make the base image of the docker back end from Debian packages.")
    parser.add_argument("--name", default=NAME, help="name and tag of the image")
    parser.add_argument("--suite", default=SUITE, help="Debian release")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        if ":" not in arguments.name:
            raise UserError("--name", arguments.name, "NAME:TAG")
        logger.info("%s is %s", arguments.name, make(arguments.name, arguments.suite))
    except (SandboxError, UserError) as error:
        logger.error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
