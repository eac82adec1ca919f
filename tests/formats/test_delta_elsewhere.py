"""Tables of Delta on a server of S3 that knows keys: the settings of Hadoop are enough, and without them it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from kafka_msgs.filesystems.settings import Settings
from kafka_msgs.formats import TableFormat, format_named
from kafka_msgs.formats.object_store import storage_options
from tests.support.s3_server import KEYS, S3Server, s3_process

PLACE = "s3a://tables/run/offsets"


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """A server with an empty bucket."""
    with s3_process() as made:
        made.store().create_dir("tables")
        yield made


@pytest.fixture
def form(server: S3Server) -> TableFormat:
    return format_named("delta", Settings.of(server.settings))


def rows(**values: int) -> pa.Table:
    return pa.table({"group": list(values), "offset": list(values.values())})


def read(form: TableFormat) -> dict[str, Any]:
    found = form.read(PLACE).read_all().to_pylist()
    return {row["group"]: row["offset"] for row in sorted(found, key=lambda row: row["group"])}


def test_a_table_is_made_changed_and_read(form: TableFormat, server: S3Server) -> None:
    assert not form.exists(PLACE)
    form.write(rows(a=1, b=2), PLACE, ("group",))
    assert form.exists(PLACE)
    form.append(rows(c=3), PLACE)
    form.merge(rows(a=4, d=5), PLACE, ("group",), rows(b=0).select(["group"]))
    assert read(form) == {"a": 4, "c": 3, "d": 5}
    form.publish(rows(a=4, e=6), PLACE, ("group",))
    assert read(form) == {"a": 4, "e": 6}
    assert server.store().get_file_info("tables/run/offsets/_delta_log").type.name == "Directory"


def test_without_the_right_key_nothing_is_written(server: S3Server) -> None:
    wrong = format_named("delta", Settings.of(server.settings | {"fs.s3a.secret.key": "another"}))
    with pytest.raises((OSError, deltalake.exceptions.DeltaError), match="403"):
        wrong.write(rows(a=1), "s3a://tables/another")
    assert server.store().get_file_info("tables/another").type.name == "NotFound"


@pytest.mark.parametrize(
    ("place", "settings", "options"),
    [
        ("/tmp/table", KEYS, {}),
        ("s3a://bucket/table", {}, {}),
        (
            "s3://bucket/table",
            {"fs.s3a.bucket.bucket.access.key": "own", "fs.s3a.access.key": "other", "fs.s3a.secret.key": "s"},
            {"aws_access_key_id": "own", "aws_secret_access_key": "s"},
        ),
        (
            "s3a://bucket/table",
            {"fs.s3a.endpoint": "https://store:9000", "fs.s3a.endpoint.region": "eu-west-1"},
            {"aws_endpoint_url": "https://store:9000", "aws_region": "eu-west-1"},
        ),
        (
            "abfs://box@account.dfs.core.windows.net/table",
            {"fs.azure.account.key.account.dfs.core.windows.net": "k", "fs.azure.account.key.other": "o"},
            {"azure_storage_account_key": "k"},
        ),
        ("gs://bucket/table", {"fs.gs.auth.type": "UNAUTHENTICATED"}, {"google_skip_signature": "true"}),
    ],
)
def test_settings_are_options_of_the_store(place: str, settings: dict[str, str], options: dict[str, str]) -> None:
    assert storage_options(place, Settings.of(settings)) == options
