"""Delta and Iceberg tables on an S3 server with keys: Hadoop settings are required and sufficient."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyiceberg.catalog
import pytest
from pyiceberg.utils.config import Config

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.store_options import properties, storage_options
from kafka_msgs.tables import TableFormat, get_format
from tests.support.s3_server import KEYS, S3Server, s3_process


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """A server with an empty bucket."""
    with s3_process() as made:
        made.store().create_dir("tables")
        yield made


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog in pyiceberg's configuration."""
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", f"sqlite:///{tmp_path}/of the firm.db")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())


@pytest.fixture(params=["delta", "iceberg"])
def form(request: pytest.FixtureRequest, server: S3Server, catalog: None) -> TableFormat:
    return get_format(request.param, FilesystemOptions.from_mapping(server.settings))


def rows(**values: int) -> pa.Table:
    return pa.table({"group": list(values), "offset": list(values.values())})


def read(form: TableFormat, place: str) -> dict[str, Any]:
    found = form.read(place).read_all().to_pylist()
    return {row["group"]: row["offset"] for row in sorted(found, key=lambda row: row["group"])}


def test_a_table_is_made_changed_and_read(form: TableFormat, server: S3Server) -> None:
    place = f"s3a://tables/{form.name}/offsets"
    assert not form.exists(place)
    form.write(rows(a=1, b=2), place, ("group",))
    assert form.exists(place)
    form.append(rows(c=3), place)
    form.merge(rows(a=4, d=5), place, ("group",), rows(b=0).select(["group"]))
    assert read(form, place) == {"a": 4, "c": 3, "d": 5}
    form.publish(rows(a=4, e=6), place, ("group",))
    assert read(form, place) == {"a": 4, "e": 6}
    assert server.store().get_file_info(f"tables/{form.name}/offsets").type.name == "Directory"


def test_without_the_right_key_nothing_is_written(form: TableFormat, server: S3Server) -> None:
    wrong = type(form)(FilesystemOptions.from_mapping(server.settings | {"fs.s3a.secret.key": "another"}))
    with pytest.raises(Exception, match=r"403|ACCESS_DENIED"):
        wrong.write(rows(a=1), f"s3a://tables/{form.name}/another")
    assert server.store().get_file_info(f"tables/{form.name}/another").type.name == "NotFound"


def test_iceberg_needs_a_catalog_for_tables_elsewhere(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYICEBERG_CATALOG__DEFAULT__URI", raising=False)
    monkeypatch.setattr(Config, "_from_configuration_files", staticmethod(lambda: None))
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    with pytest.raises(OptionError, match="tables elsewhere need a catalog"):
        get_format("iceberg", FilesystemOptions.from_mapping(server.settings)).exists("s3a://tables/offsets")


@pytest.mark.parametrize(
    ("place", "settings", "of_delta", "of_iceberg"),
    [
        ("/tmp/table", KEYS, {}, {}),
        ("s3a://bucket/table", {}, {}, {}),
        (
            "s3://bucket/table",
            {"fs.s3a.bucket.bucket.access.key": "own", "fs.s3a.access.key": "other", "fs.s3a.secret.key": "s"},
            {"aws_access_key_id": "own", "aws_secret_access_key": "s"},
            {"s3.access-key-id": "own", "s3.secret-access-key": "s"},
        ),
        (
            "s3a://bucket/table",
            {"fs.s3a.endpoint": "http://store:9000", "fs.s3a.endpoint.region": "eu-west-1"},
            {"aws_endpoint_url": "http://store:9000", "aws_region": "eu-west-1", "aws_allow_http": "true"},
            {"s3.endpoint": "http://store:9000", "s3.region": "eu-west-1"},
        ),
        (
            "abfs://box@account.dfs.core.windows.net/table",
            {"fs.azure.account.key.account.dfs.core.windows.net": "k", "fs.azure.account.key.other": "o"},
            {"azure_storage_account_key": "k"},
            {"adls.account-key": "k"},
        ),
        ("gs://bucket/table", {"fs.gs.auth.type": "UNAUTHENTICATED"}, {"google_skip_signature": "true"}, {}),
    ],
)
def test_settings_are_those_of_other_libraries(
    place: str, settings: dict[str, str], of_delta: dict[str, str], of_iceberg: dict[str, str]
) -> None:
    assert storage_options(place, FilesystemOptions.from_mapping(settings)) == of_delta
    assert properties(place, FilesystemOptions.from_mapping(settings)) == of_iceberg
