"""Storages and logs on servers for the protocols of Azure's and Google's object stores."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.path_resolution import local_copy, log_files
from kafka_msgs.filesystems.storage import Storage
from tests.support.foreign_programs import ProgramUnavailableError
from tests.support.object_stores import ObjectStore, azure_store, gcs_store
from tests.support.recordings import LOGS
from tests.support.skip_reasons import not_run

pytestmark = pytest.mark.system

STORES = {"azure": azure_store, "gcs": gcs_store}


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    """A server with an empty bucket."""
    try:
        with STORES[request.param]("bucket") as made:
            yield made
    except ProgramUnavailableError as error:
        not_run(str(error))


def storage_at(store: ObjectStore, path: str, *, creates: bool = False) -> Storage:
    settings = store.creating if creates and store.creating else store.settings
    return Storage.at(store.uri(path), FilesystemOptions.from_mapping(settings))


def test_a_file_is_created_once(store: ObjectStore) -> None:
    storage = storage_at(store, "once", creates=True)
    storage.probe("probe")
    assert storage.create("_commits/1.json", b"first")
    assert not storage.create("_commits/1.json", b"second")
    assert storage.read("_commits/1.json") == b"first"
    assert [(each.path, each.size) for each in storage.list_files()] == [("_commits/1.json", 5)]


def test_one_of_many_writers_creates_a_file(store: ObjectStore) -> None:
    storage = storage_at(store, "race", creates=True)
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(lambda number: storage.create("x", b"%d" % number), range(8)))
    assert created.count(True) == 1
    assert storage.read("x") == b"%d" % created.index(True)


def test_files_are_written_read_and_deleted(store: ObjectStore) -> None:
    storage = storage_at(store, "files")
    storage.write("a/b", b"1")
    storage.write("a/b", b"22")
    assert (storage.read("a/b"), storage.read("a/c")) == (b"22", None)
    with storage.open("a/b") as file:
        assert file.read_at(1, 1) == b"2"
    assert storage.names() == ["a"]
    storage.delete(["a/b", "a/c"])
    assert list(storage.list_files()) == list(storage.list_files("nothing")) == []


def test_a_log_is_listed_and_fetched_in_parts(store: ObjectStore) -> None:
    storage_at(store, "logs/of broker 1/prices-0").copy_from(LOGS / "prices-0")
    settings = FilesystemOptions.from_mapping(store.settings)
    file, *_ = log_files("kafka-log", [store.uri("logs/of broker 1/*-0")], fs_options=settings)
    name = f"{0:020}.log"
    assert (file.topic, file.partition, file.base_offset) == ("prices", 0, 0)
    with local_copy(file, 100, 150) as (path, shift):
        assert (path.read_bytes(), shift) == ((LOGS / "prices-0" / name).read_bytes()[100:150], 100)
