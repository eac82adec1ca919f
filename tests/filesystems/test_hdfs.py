"""Logs in a real HDFS, natively and over HTTP: the rows of a local log, ranges, and vanishing files."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql.types import StructType

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.errors import JobPathError, OptionError
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.path_resolution import local_copy, log_files
from kafka_msgs.filesystems.resolver import filesystem_of
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.support.committed_tables import committed_rows
from tests.support.hdfs_cluster import HdfsCluster, hdfs_cluster
from tests.support.maven import OracleUnavailableError
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.skip_reasons import not_run
from tests.support.spark_tables import read

NAME = f"{0:020}.log"
FORMS = ["hdfs", "webhdfs"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    """A cluster with two partitions in ``/logs``."""
    try:
        with hdfs_cluster(tmp_path_factory.mktemp("hdfs"), LOGS / "prices-0", LOGS / "codecs-0") as made:
            yield made
    except OracleUnavailableError as reason:
        not_run(str(reason))


def without_file(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "file"} for row in rows]


def local(*names: str) -> list[dict[str, Any]]:
    return [row for name in names for row in without_file(read(KafkaLogSource, LOGS / name, columns="*"))]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_of_a_local_log(cluster: HdfsCluster, form: str, isolation: str) -> None:
    root = getattr(cluster, form)
    rows = read(KafkaLogSource, f"{root}/logs/*-0", columns="*", isolation=isolation, splitBytes="300")
    wanted = [read(KafkaLogSource, LOGS / name, columns="*", isolation=isolation) for name in ("codecs-0", "prices-0")]
    assert without_file(rows) == without_file([row for some in wanted for row in some])
    assert rows[0]["file"] == f"{root}/logs/codecs-0/{NAME}"


@pytest.mark.parametrize("form", FORMS)
def test_what_is_fetched_is_the_range(cluster: HdfsCluster, form: str) -> None:
    (file, *_) = log_files("kafka-log", [f"{getattr(cluster, form)}/logs/codecs-0"])
    with local_copy(file, 100, 150) as (path, shift):
        assert (path.read_bytes(), shift) == ((LOGS / "codecs-0" / NAME).read_bytes()[100:150], 100)


@pytest.mark.parametrize("form", FORMS)
def test_a_directory_is_copied_and_a_segment_that_vanishes_is_a_row(cluster: HdfsCluster, form: str) -> None:
    root = getattr(cluster, form)
    Storage.at(f"{cluster.hdfs}/copy of {form}").check_empty()
    Storage.at(f"{cluster.hdfs}/copy of {form}/prices-0").copy_from(LOGS / "prices-0")
    reader = KafkaLogSource({"path": f"{root}/copy of {form}", "splitBytes": "1"}).reader(StructType())
    first, *others = reader.partitions()
    filesystem_of(cluster.hdfs).filesystem.delete_file(f"/copy of {form}/prices-0/{NAME}")
    batches: list[Any] = [batch for split in (first, *others) for batch in reader.read(split)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows[0]["_error"].startswith(f"{root}/copy of {form}/prices-0/{NAME} at byte 0: the file was deleted")
    assert without_file(rows[-1:]) == without_file(read(KafkaLogSource, LOGS / "prices-0")[-1:])


def test_a_job_that_goes_on_replaces_its_tables(cluster: HdfsCluster) -> None:
    out = f"{cluster.hdfs}/tables"
    for _ in range(2):
        found = run_job(group_offsets_job(), JobInputs.at([GROUP_LOGS]), out, local_engine())
        rows = committed_rows(out, "offsets")
        assert len(rows) == found.report.rows["offsets"] > 0
    assert not any(each.from_start for each in found.partitions)


def test_a_file_is_created_once(cluster: HdfsCluster) -> None:
    storage = Storage.at(f"{cluster.hdfs}/created")
    storage.probe("probe")
    with ThreadPoolExecutor(4) as pool:
        created = list(pool.map(lambda content: storage.create("a/b", content), [b"0", b"1", b"2", b"3"]))
    assert created.count(True) == 1
    assert storage.read("a/b") == b"%d" % created.index(True)
    assert [each.path for each in storage.list_files()] == ["a/b"]


def test_a_copy_that_the_server_does_not_take_is_an_error(cluster: HdfsCluster) -> None:
    storage = Storage.at(f"{cluster.webhdfs}/of nobody")
    with pytest.raises(JobPathError):
        storage.copy_from(LOGS / "prices-0")


def test_the_name_node_may_be_a_setting(cluster: HdfsCluster) -> None:
    settings = {"fs.defaultFS": f"{cluster.hdfs}/", "dfs.client.use.datanode.hostname": "true"}
    assert without_file(read(KafkaLogSource, "hdfs:///logs/prices-0", columns="*", **settings)) == local("prices-0")


def test_the_name_node_of_an_alias_is_what_settings_say(cluster: HdfsCluster) -> None:
    address = cluster.hdfs.removeprefix("hdfs://")
    settings = {
        "dfs.nameservices": "lake",
        "dfs.ha.namenodes.lake": "one",
        "dfs.namenode.rpc-address.lake.one": address,
    }
    assert without_file(read(KafkaLogSource, "hdfs://lake/logs/prices-0", columns="*", **settings)) == local("prices-0")


def test_arguments_of_other_filesystems_are_settings(cluster: HdfsCluster) -> None:
    wrong = FilesystemOptions.from_mapping({"storage.kerberos": "true", "storage.user": "reader"})
    with pytest.raises(OptionError, match="do not specify the user"):
        log_files("kafka-log", [f"{cluster.webhdfs}/logs"], fs_options=wrong)
    found = log_files(
        "kafka-log", [f"{cluster.webhdfs}/logs"], fs_options=FilesystemOptions.from_mapping({"storage.user": "reader"})
    )
    assert [file.partition for file in found] == [0, 0, 0, 0]
