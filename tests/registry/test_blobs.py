from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factory.core.blobs import BlobStore
from factory.core.errors import NotFound, RegistryError
from registry.blobs import FileBlobs, FileBlobsConfig


@pytest.fixture
def blobs(tmp_path: Path) -> FileBlobs:
    return FileBlobs(tmp_path / "blobs")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(data=st.binary(max_size=5000))
def test_what_is_put_is_got_by_its_sha256(blobs: FileBlobs, data: bytes) -> None:
    digest = blobs.put(data)
    assert digest == hashlib.sha256(data).hexdigest()
    assert blobs.has(digest)
    assert blobs.get(digest) == data
    assert digest in set(blobs.digests())


def test_it_is_a_blob_store_and_pickles_as_its_folder(blobs: FileBlobs) -> None:
    assert isinstance(blobs, BlobStore)
    digest = blobs.put(b"one")
    assert pickle.loads(pickle.dumps(blobs)).get(digest) == b"one"


@pytest.mark.parametrize("digest", ["0" * 64, "../../etc/passwd", "", "A" * 64])
def test_absent_and_malformed_digests_are_not_found(blobs: FileBlobs, digest: str) -> None:
    with pytest.raises(NotFound):
        blobs.get(digest)
    with pytest.raises(NotFound):
        blobs.path(digest)


def test_damage_is_seen_on_reading_and_a_truncation_is_healed_by_the_next_put(blobs: FileBlobs) -> None:
    digest = blobs.put(b"a whole sentence")
    path = blobs.path(digest)
    path.chmod(0o644)
    path.write_bytes(b"a whole sentence"[:5])
    with pytest.raises(RegistryError, match="damaged"):
        blobs.get(digest)
    blobs.put(b"a whole sentence")
    assert blobs.get(digest) == b"a whole sentence"


def test_putting_known_content_writes_nothing_but_marks_an_old_blob_as_fresh(blobs: FileBlobs) -> None:
    digest = blobs.put(b"one")
    path = blobs.path(digest)
    written = path.stat()
    blobs.put(b"one")
    assert path.stat().st_ino == written.st_ino
    os.utime(path, (0, 0))
    blobs.put(b"one")
    assert path.stat().st_ino == written.st_ino
    assert blobs.age(digest)[1] < 60


def test_blobs_are_read_only_files(blobs: FileBlobs) -> None:
    assert stat.S_IMODE(blobs.path(blobs.put(b"one")).stat().st_mode) & 0o222 == 0


def test_durable_blobs_read_the_same(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path, FileBlobsConfig(durable=True))
    assert blobs.get(blobs.put(b"kept through a power cut")) == b"kept through a power cut"


def _put_all(root: Path, values: list[bytes]) -> None:
    blobs = FileBlobs(root)
    for value in values:
        blobs.put(value)


def test_threads_and_processes_put_the_same_contents_at_once(blobs: FileBlobs) -> None:
    values = [b"%d" % number * 50 for number in range(200)]
    context = multiprocessing.get_context("spawn")
    workers: list[threading.Thread | multiprocessing.process.BaseProcess] = [
        *(context.Process(target=_put_all, args=(blobs.root, values[::step])) for step in (1, -1)),
        *(threading.Thread(target=_put_all, args=(blobs.root, values[::step])) for step in (1, -1)),
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(blobs.digests()) == {hashlib.sha256(value).hexdigest() for value in values}
    assert [blobs.get(hashlib.sha256(value).hexdigest()) for value in values] == values
    assert list((blobs.root / "tmp").iterdir()) == []
