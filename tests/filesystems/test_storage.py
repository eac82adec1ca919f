"""Storages: files are created by one of many writers, completely, or the storage is refused."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.errors import JobPathError, StorageError
from kafka_msgs.filesystems.listing import walk_files
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.storage import Storage
from tests.support.s3_server import S3Server, s3_server


def on_disk(tmp_path: Path) -> Storage:
    return Storage.at(str(tmp_path / "out"))


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """A server with an empty bucket."""
    with s3_server() as made:
        made.store().create_dir("bucket")
        yield made


@pytest.fixture(params=["disk", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """An empty storage."""
    if request.param == "disk":
        return on_disk(tmp_path)
    server: S3Server = request.getfixturevalue("server")
    return Storage.at(f"s3a://bucket/{tmp_path.name}", FilesystemOptions.from_mapping(server.settings))


def test_a_file_is_created_once(storage: Storage) -> None:
    storage.probe("probe")
    assert storage.create("_commits/1.json", b"first")
    assert not storage.create("_commits/1.json", b"second")
    assert storage.read("_commits/1.json") == b"first"
    assert [(each.path, each.size) for each in storage.list_files()] == [("_commits/1.json", 5)]
    assert all(each.modified > 1e9 for each in storage.list_files())


def test_one_of_many_writers_creates_a_file(storage: Storage) -> None:
    copies = [pickle.loads(pickle.dumps(storage)) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(lambda each: each[1].create("x", b"%d" % each[0]), enumerate(copies)))
    assert created.count(True) == 1
    assert storage.read("x") == b"%d" % created.index(True)
    assert [each.path for each in storage.list_files()] == ["x"]


def test_files_are_written_read_and_deleted(storage: Storage) -> None:
    storage.write("a/b", b"1")
    storage.write("a/b", b"22")
    assert (storage.read("a/b"), storage.read("a/c")) == (b"22", None)
    with storage.open("a/b") as file:
        assert file.read_at(1, 1) == b"2"
    assert storage.names() == ["a"]
    storage.delete(["a/b", "a/c"])
    assert list(storage.list_files()) == list(storage.list_files("nothing")) == []


def test_a_storage_shows_no_credentials(server: S3Server) -> None:
    made = Storage.at("s3a://AKID:hush@bucket/x?scheme=http", FilesystemOptions.from_mapping(server.settings))
    assert "hush" not in f"{made} {made!r}"
    assert str(made) == "s3a://bucket/x"


@contextmanager
def ignoring_conditions(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    served: Callable[..., Any] = S3Server.serve

    def serve(self: S3Server, moto: Any, environ: dict[str, Any], start: Any) -> Any:
        signed = environ.get("HTTP_IF_NONE_MATCH")

        def careless(call: dict[str, Any], begin: Any) -> Any:
            call.pop("HTTP_IF_NONE_MATCH", None)
            return moto(call, begin)

        return served(self, careless if signed else moto, environ, start)

    with monkeypatch.context() as patched:
        patched.setattr(S3Server, "serve", serve)
        yield


def test_a_store_that_ignores_the_condition_is_refused(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage.at("s3a://bucket/careless", FilesystemOptions.from_mapping(server.settings))
    with ignoring_conditions(server, monkeypatch), pytest.raises(StorageError, match="ignores the condition"):
        storage.probe("probe")
    assert list(storage.list_files()) == []


def test_a_store_may_repeat_a_request_whose_response_was_lost(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Storage.create

    def twice(storage: Storage, path: str, content: bytes) -> bool:
        create(storage, path, content)
        return create(storage, path, content)

    monkeypatch.setattr(Storage, "create", twice)
    storage.probe("probe")
    assert list(storage.list_files()) == []


def test_a_filesystem_without_atomic_creation_is_refused() -> None:
    with pytest.raises(StorageError, match="cannot create a file only if it does not exist"):
        Storage.at("memory://out").probe("probe")


def test_a_disk_without_hard_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(StorageError, match="cannot be created atomically"):
        on_disk(tmp_path).probe("probe")
    assert list(on_disk(tmp_path).list_files()) == []


def test_an_unknown_filesystem_is_an_error_without_secrets() -> None:
    with pytest.raises(JobPathError) as caught:
        Storage.at("s4://AKID:hush@bucket/x")
    assert "hush" not in str(caught.value)


def test_a_loop_of_links_ends_a_walk(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"1")
    for name in ("one", "two"):
        (tmp_path / "a" / name).symlink_to(tmp_path)
    (tmp_path / "broken").symlink_to(tmp_path / "broken")
    storage = Storage.at(str(tmp_path))
    assert [each.path for each in storage.list_files()] == ["a/file"]
    assert len(list(walk_files(storage.filesystem, str(tmp_path)))) == 1
