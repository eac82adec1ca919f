"""Logs on an S3 server with keys: passing keys, bytes fetched, missing objects, and hidden secrets."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kafka_msgs.errors import JobPathError, OptionError
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.path_resolution import local_copy, log_files
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.spark.sources.capture import CaptureReader, KafkaCaptureSource
from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.support.recordings import LOGS
from tests.support.s3_server import KEYS, S3Server, s3_server
from tests.support.spark_tables import read

NAME = f"{0:020}.log"
SECRETS = ("a+secret", "a%2Bsecret", "token-of-this-hour")


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """A server with two partitions in ``logs/of broker 1``."""
    with s3_server() as made:
        store = made.store()
        store.create_dir("logs")
        for name in ("prices-0", "codecs-0"):
            fs.copy_files(str(LOGS / name), f"logs/of broker 1/{name}", fs.LocalFileSystem(), store)
        yield made


def without_file(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "file"} for row in rows]


def rows_of(reader: DataSourceReader, splits: Sequence[InputPartition]) -> list[dict[str, Any]]:
    batches: Any = (batch for split in splits for batch in reader.read(split))
    return [row for batch in batches for row in batch.to_pylist()]


def test_options_reach_the_server_and_rows_are_those_of_a_local_log(server: S3Server) -> None:
    rows = read(KafkaLogSource, "s3a://logs/of broker 1/*-0", columns="*", **server.settings)
    local = [row for name in ("codecs-0", "prices-0") for row in read(KafkaLogSource, LOGS / name, columns="*")]
    assert without_file(rows) == without_file(local)
    assert rows[0]["file"] == f"s3://logs/of broker 1/codecs-0/{NAME}"
    assert not server.refused


@pytest.mark.parametrize("name", KEYS)
def test_a_wrong_key_is_refused_by_the_server_and_not_shown(server: S3Server, name: str) -> None:
    with pytest.raises(OSError, match="ACCESS_DENIED") as caught:
        read(KafkaLogSource, "s3a://logs/of broker 1", **server.settings | {name: "quite-another"})
    assert "quite-another" not in str(caught.value)
    server.refused.clear()


def test_options_have_precedence_over_the_session_and_that_over_the_environment(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setattr(KafkaLogSource, "fs_options", FilesystemOptions.from_mapping(server.settings))
    assert read(KafkaLogSource, "s3a://logs/of broker 1/prices-0")
    stale = {"fs.s3a.bucket.logs.secret.key": "of-yesterday", "fs.s3a.bucket.logs.session.token": "of-yesterday"}
    monkeypatch.setattr(KafkaLogSource, "fs_options", FilesystemOptions.from_mapping(server.settings | stale))
    assert read(KafkaLogSource, "s3a://logs/of broker 1/prices-0", **KEYS)
    assert not server.refused


def test_parameters_of_the_uri_have_precedence(server: S3Server) -> None:
    nowhere = server.settings | {"fs.s3a.endpoint": "127.0.0.1:1"}
    assert read(
        KafkaLogSource, f"s3a://logs/of broker 1/prices-0?endpoint_override={server.endpoint}&scheme=http", **nowhere
    )


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("s3a://logs/x", {"fs.s3a.secret.kye": "a+secret/x"}),
        ("s3a://logs/x", {"fs.s3a.connection.ssl.enabled": "maybe"}),
        ("s3a://AKID:a%2Bsecret@logs/nothing/here,or there", {}),
        ("s3a://AKID:a%2Bsecret@logs/{" + "a,b}{" * 9, {}),
        ("s3a://logs/x?endpoint_override=127.0.0.1:1&session_token=token-of-this-hour&wrong=1", {}),
        ("s4://AKID:a+secret@logs/x", {}),
    ],
)
def test_errors_do_not_show_secrets(server: S3Server, path: str, options: dict[str, str]) -> None:
    with pytest.raises((OptionError, OSError)) as caught:
        read(KafkaLogSource, path, **server.settings | options)
    assert not any(secret in str(caught.value) + repr(caught.value.__dict__) for secret in SECRETS)
    server.refused.clear()


def test_a_source_names_the_option_that_is_meant() -> None:
    with pytest.raises(OptionError, match=r"did you mean fs\.s3a\.secret\.key\?"):
        read(KafkaLogSource, LOGS / "prices-0", **{"fs.s3a.secret.kye": "x"})


def test_what_a_task_fetches_is_its_part(server: S3Server) -> None:
    (file, *_) = log_files(
        "kafka-log", ["s3a://logs/of broker 1/codecs-0"], fs_options=FilesystemOptions.from_mapping(server.settings)
    )
    server.sent.clear()
    with local_copy(file, 100, 150) as (path, shift):
        assert (path.stat().st_size, shift) == (50, 100)
        assert path.read_bytes() == (LOGS / "codecs-0" / NAME).read_bytes()[100:150]
    assert server.sent.total() == 50


def test_a_segment_that_vanishes_after_planning_is_a_row(server: S3Server) -> None:
    store = server.store()
    fs.copy_files(str(LOGS / "prices-0"), "logs/going/prices-0", fs.LocalFileSystem(), store)
    reader = KafkaLogSource({"path": "s3a://logs/going", "splitBytes": "1", **server.settings}).reader(StructType())
    splits = reader.partitions()
    store.delete_file(f"logs/going/prices-0/{NAME}")
    rows = rows_of(reader, splits)
    assert rows[0]["_error"].startswith(f"s3://logs/going/prices-0/{NAME} at byte 0: the file was deleted")
    assert without_file(rows[-1:]) == without_file(read(KafkaLogSource, LOGS / "prices-0")[-1:])


@pytest.mark.parametrize("place", ["here", "s3"])
def test_a_capture_that_vanishes_after_planning_is_a_row(server: S3Server, tmp_path: Path, place: str) -> None:
    (tmp_path / "a.pcap").write_bytes(b"\0" * 40)
    path, options = str(tmp_path), {}
    if place == "s3":
        fs.copy_files(str(tmp_path), "logs/captures", fs.LocalFileSystem(), server.store())
        path, options = "s3a://logs/captures", server.settings
    reader = KafkaCaptureSource({"path": path, **options}).reader(StructType())
    assert isinstance(reader, CaptureReader)
    (split,) = reader.partitions()
    server.store().delete_file("logs/captures/a.pcap") if place == "s3" else (tmp_path / "a.pcap").unlink()
    (row,) = rows_of(reader, [split])
    assert (row["_error"], row["_errorKind"], row["_errorBytes"]) == (
        "the file was deleted after the read was planned", "file", 40,
    )  # fmt: skip


def test_a_directory_is_copied_to_where_nothing_is(server: S3Server, tmp_path: Path) -> None:
    settings = FilesystemOptions.from_mapping(server.settings)
    shutil.copytree(LOGS / "prices-0", tmp_path / "prices-0")
    storage = Storage.at("s3a://logs/copy", settings)
    storage.check_empty()
    storage.copy_from(tmp_path)
    copied = log_files("kafka-log", ["s3a://logs/copy"], fs_options=settings)
    assert [file.size for file in copied] == [file.size for file in log_files("kafka-log", [str(tmp_path)])]
    with pytest.raises(JobPathError, match="nothing is overwritten"):
        storage.check_empty()
    wrong = FilesystemOptions.from_mapping(server.settings | {"fs.s3a.secret.key": "x"})
    with pytest.raises(JobPathError, match="ACCESS_DENIED"):
        Storage.at("s3a://logs/other", wrong).check_empty()
