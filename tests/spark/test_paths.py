"""A log directory returns the same rows under every path form: local, ``file:``, and S3 on a loopback server."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs
from pyspark.sql import SparkSession

from kafka_msgs.errors import OptionError
from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.support.recordings import LOGS
from tests.support.spark_tables import read

NAMES = ["plain", "with space", "comma,comma", "{old,new}", "[a-c]", "100%", "a%20b", "what?", "grüße", "a=b&c"]
"""Directory names, some with characters that are special in paths."""
BUCKET = "logs"
KEYS = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One parent directory per name, each with the same log directory under that name."""
    place = tmp_path_factory.mktemp("paths")
    for name in NAMES:
        shutil.copytree(LOGS / "prices-0", place / name / "prices-0")
        shutil.copytree(LOGS / "codecs-0", place / name / "codecs-0")
    return place


@pytest.fixture(scope="module")
def s3(home: Path) -> Iterator[str]:
    """The parameters of an S3 server on loopback; its one bucket contains a copy of ``home``."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        store = fs.S3FileSystem(
            endpoint_override=f"{host}:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        store.create_dir(BUCKET)
        fs.copy_files(str(home), BUCKET, fs.LocalFileSystem(), store)
        yield f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    server.stop()


def rows(path: str, **options: object) -> list[dict[str, Any]]:
    """Return the rows of a path without the file name column."""
    return [
        {name: value for name, value in row.items() if name != "file"} for row in read(KafkaLogSource, path, **options)
    ]


def expected(*partitions: str) -> list[dict[str, Any]]:
    return [row for name in partitions for row in rows(str(LOGS / name))]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["local", "file:", "file://", "file://, escaped", "s3://", "s3a://", "s3://, escaped"])
def test_every_form_of_path_gives_the_same_rows(home: Path, s3: str, form: str, name: str) -> None:
    scheme, _, escaped = form.partition(", ")
    start = "" if form == "local" else scheme
    place = f"/{BUCKET}" if scheme.startswith("s3") else str(home)
    written = f"{place}/{quote(name) if escaped else name}"
    end = s3 if scheme.startswith("s3") else ""
    base = f"{start}{written.removeprefix('/') if scheme.startswith('s3') else written}"
    both = expected("codecs-0", "prices-0")
    assert rows(base + end) == both
    assert rows(f"{base}/{end}") == both
    assert rows(f"{base}/codecs-0{end}") == expected("codecs-0")
    assert rows(f"{base}/codecs-0/{0:020}.log{end}", splitBytes="300") == rows(str(LOGS / "codecs-0" / f"{0:020}.log"))


@pytest.mark.parametrize("start", ["{home}", "file:{home}", "file://{home}", "s3://logs"])
@pytest.mark.parametrize(
    "wild",
    ["*", "*-0", "{codecs,prices}-0", "{codecs-0,prices-0}", "[cp]*-?", "*/*.log", "{codecs-0/*,prices-0/0*}.log"],
)
def test_wildcards_mean_the_same_in_every_form(home: Path, s3: str, start: str, wild: str) -> None:
    end = s3 if start.startswith("s3") else ""
    path = f"{start.format(home=home)}/with space/{wild}{end}"
    assert rows(path) == expected("codecs-0", "prices-0")


def test_a_wildcard_is_taken_where_no_name_is_as_it_is_written(home: Path) -> None:
    shutil.copytree(home / "plain", home / "old" / "plain")
    try:
        assert rows(str(home / "{old,nowhere}" / "plain")) == expected("codecs-0", "prices-0")
        with pytest.raises(OptionError, match="there is no segment"):
            rows(str(home / "{nowhere,neither}"))
    finally:
        shutil.rmtree(home / "old")


def test_the_column_file_names_filesystem_and_path(home: Path, s3: str) -> None:
    first = read(KafkaLogSource, f"s3a://{BUCKET}/with space{s3}", columns="file")[0]
    assert first["file"] == f"s3://{BUCKET}/with space/codecs-0/{0:020}.log"
    assert next(row["file"] for row in read(KafkaLogSource, f"file:{home}/with space", columns="file")) == (
        f"{home}/with space/codecs-0/{0:020}.log"
    )


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("file://logs/x", "'logs' is the name of a host"),
        ("s4://bucket/x", "(?i)s4"),
        ("nowhere,neither", "there is no segment; several paths are given as a list"),
        ("{a,b}" * 9, "its braces expand to more than 256 paths"),
    ],
)
def test_a_path_that_means_nothing_is_named(path: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        rows(path)


@pytest.mark.parametrize("form", ["local", "file:", "s3"])
def test_spark_reads_what_a_path_means(spark: SparkSession, home: Path, s3: str, form: str) -> None:
    starts = {"local": str(home), "file:": f"file:{home}", "s3": f"s3://{BUCKET}"}
    end = s3 if form == "s3" else ""
    paths = [f"{starts[form]}/comma,comma/codecs-0{end}", f"{starts[form]}/with space/prices-0{end}"]
    frame = spark.read.format("kafka-log").load(paths)
    assert frame.count() == len(expected("codecs-0", "prices-0"))
    assert spark.read.format("kafka-log").load(paths[0]).count() == len(expected("codecs-0"))
