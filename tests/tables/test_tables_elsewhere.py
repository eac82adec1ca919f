"""Delta and Iceberg tables on an S3 server with keys: Hadoop settings are required and sufficient."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyiceberg.catalog
import pytest
from pyiceberg.utils.config import Config

from kafka_msgs.errors import JobPathError, OptionError
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.store_options import properties, storage_options
from kafka_msgs.tables.job_tables import JobTables
from kafka_msgs.tables.task_output import TableSpec, TaskOutput
from tests.support.s3_server import KEYS, S3Server, s3_process
from tests.support.table_readers import read_table


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
def form(request: pytest.FixtureRequest, catalog: None) -> str:
    return str(request.param)


SPEC = TableSpec(pa.schema([("offset", pa.int64()), ("group", pa.string())]), ("group",))


def tables_at(form: str, out: str, settings: dict[str, str]) -> JobTables:
    return JobTables.at(out, {"offsets": SPEC}, {"job": "test"}, form, FilesystemOptions.from_mapping(settings))


def commit(tables: JobTables, **offsets: int) -> None:
    """Commit a table with an offset of each group."""
    token = tables.begin(tables.find_base())
    output = TaskOutput.start(tables.log.storage, token)
    for group, offset in offsets.items():
        output.append("offsets", pa.table({"offset": [offset]}), f"group={group}")
    output.close()
    tables.commit(token, {name: files.values() for name, files in output.files.items()})


def test_a_table_is_made_changed_and_read(form: str, server: S3Server) -> None:
    out = f"s3a://tables/{form}"
    tables = tables_at(form, out, server.settings)
    for offsets in ({"a": 1, "b": 2}, {"a": 4, "c": 3}):
        commit(tables, **offsets)
        found = read_table(form, f"{out}/offsets", server.settings).to_pylist()
        assert {row["group"]: row["offset"] for row in found} == offsets
    assert server.store().get_file_info(f"tables/{form}/offsets").type.name == "Directory"


def test_a_catalog_may_have_a_table_of_the_name_elsewhere(server: S3Server, catalog: None) -> None:
    commit(tables_at("iceberg", "s3a://tables/one", server.settings), a=1)
    with pytest.raises(JobPathError, match=r"the catalog has a table kafka\.offsets at s3a://tables/one/offsets"):
        tables_at("iceberg", "s3a://tables/two", server.settings).find_base()


def test_without_the_right_key_nothing_is_written(form: str, server: S3Server) -> None:
    wrong = tables_at(form, f"s3a://tables/{form}-another", server.settings | {"fs.s3a.secret.key": "another"})
    with pytest.raises(Exception, match=r"403|ACCESS_DENIED"):
        commit(wrong, a=1)
    assert server.store().get_file_info(f"tables/{form}-another").type.name == "NotFound"


def test_iceberg_needs_a_catalog_for_tables_elsewhere(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYICEBERG_CATALOG__DEFAULT__URI", raising=False)
    monkeypatch.setattr(Config, "_from_configuration_files", staticmethod(lambda: None))
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    with pytest.raises(OptionError, match="tables elsewhere need a catalog"):
        tables_at("iceberg", "s3a://tables/new", server.settings).find_base()


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
