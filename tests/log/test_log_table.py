"""Log directories as Arrow tables: the rows of the source ``kafka-log``, for any program."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import daft
import datafusion
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_msgs import OffsetCommitValue, encode_versioned
from kafka_msgs.analysis.profile_job import TOPIC_PROFILE
from kafka_msgs.columns import decode_column
from kafka_msgs.columns.log_table import LogTable
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.errors import JobPathError, OptionError, UnknownColumnError
from kafka_msgs.log.partition_discovery import Progress, partitions_in
from kafka_msgs.records import RecordBatch
from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.spark_tables import read


def with_duckdb(table: Any) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        connection.register("given", table)
        found: list[dict[str, Any]] = connection.sql("SELECT * FROM given").to_arrow_table().to_pylist()
        return found


def with_polars(table: Any) -> list[dict[str, Any]]:
    return pl.DataFrame(table).to_dicts()


def with_datafusion(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(datafusion.SessionContext().from_arrow(table)).to_pylist()
    return found


def with_daft(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daft.from_arrow(table).to_arrow().to_pylist()
    return found


def with_pandas(table: Any) -> list[dict[str, Any]]:
    frame = pa.table(table).to_pandas(types_mapper=pd.ArrowDtype)
    found: list[dict[str, Any]] = pa.Table.from_pandas(frame, preserve_index=False).to_pylist()
    return found


PROGRAMS = [with_duckdb, with_polars, with_datafusion, with_daft, with_pandas]


def rows_of(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(table).to_pylist()
    return found


@pytest.mark.parametrize("columns", [None, ["*"], ["*", "rawHeaderKeys", "timestampMs"], ["codec", "topic"], ["value"]])
@pytest.mark.parametrize("path", [LOGS, GROUP_LOGS, LOGS / "codecs-0"], ids=lambda path: path.name)
def test_rows_are_those_of_the_source_in_spark(path: Path, columns: list[str] | None) -> None:
    options = {} if columns is None else {"columns": ",".join(columns)}
    assert rows_of(LogTable(path, columns=columns)) == read(KafkaLogSource, path, **options)


def test_records_of_markers_are_rows_where_that_is_asked_for() -> None:
    found = rows_of(LogTable(GROUP_LOGS, columns=["*"], control=True))
    assert found == read(KafkaLogSource, GROUP_LOGS, columns="*", control=True)
    assert any(row["control"] for row in found)


def test_damage_is_a_row_between_the_others(tmp_path: Path) -> None:
    shutil.copytree(LOGS / "prices-0", tmp_path / "prices-0")
    segment = next((tmp_path / "prices-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    found = rows_of(LogTable(tmp_path, columns=["*"]))
    assert found == read(KafkaLogSource, tmp_path, columns="*")
    assert len([row for row in found if row["_error"]]) == 1
    assert any(row["_error"] is None for row in found)


def test_zeros_at_the_end_are_damage_in_a_closed_segment(tmp_path: Path) -> None:
    home = tmp_path / "orders-0"
    shutil.copytree(GROUP_LOGS / "orders-0", home)
    files = sorted(home.glob("*.log"))
    for file in (files[1], files[-1]):
        with file.open("ab") as written:
            written.write(bytes(4000))
    found = rows_of(LogTable(tmp_path, columns=["offset", "file"]))
    assert [row["file"] for row in found if row["_error"]] == [str(files[1])]
    assert found == read(KafkaLogSource, tmp_path, columns="offset,file")


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_takes_a_log_as_a_table(program: Callable[[Any], list[dict[str, Any]]]) -> None:
    table = LogTable(GROUP_LOGS / "orders-0", GROUP_LOGS / "payments-0")
    expected = sorted(rows_of(table), key=repr)
    assert expected
    assert sorted(program(table), key=repr) == expected
    assert sorted(program(table), key=repr) == expected, "a table is read anew"


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_takes_decoded_messages_as_a_table(program: Callable[[Any], list[dict[str, Any]]]) -> None:
    values = [encode_versioned(OffsetCommitValue(offset=number, metadata="m"), 3) for number in range(3)]
    column = pa.chunked_array([[*values, None], [b"\0", *values]], pa.binary())
    for given in (column, column.chunk(1)):
        decoded = decode_column(given, OffsetCommitValue, 3, columns=["offset", "metadata"])
        nothing = {"offset": None, "metadata": None}
        expected = [row or nothing for row in decoded.values.to_pylist()]
        assert sorted(program(decoded), key=repr) == sorted(expected, key=repr)


class Opened(Progress):
    """Records which files were opened."""

    def __init__(self) -> None:
        self.files: list[Path] = []

    def file(self, path: Path) -> None:
        self.files.append(path)


def test_a_table_is_read_as_its_rows_are_taken() -> None:
    opened = Opened()
    table = LogTable(GROUP_LOGS, progress=opened)
    stream = table.reader()
    assert opened.files == []
    stream.read_next_batch()
    assert 0 < len(opened.files) < len(table.files)
    stream.read_all()
    assert opened.files == table.files


def test_a_segment_that_a_broker_deletes_meanwhile_is_a_row(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1"):
        shutil.copytree(GROUP_LOGS / name, tmp_path / name)
    last = next((tmp_path / "orders-1").glob("*.log"))

    class Deleting(Progress):
        def file(self, path: Path) -> None:
            if path == last:
                last.unlink()

    found = rows_of(LogTable(tmp_path, columns=["file"], progress=Deleting()))
    assert found[-1]["file"] == str(last)
    assert "the file is not there" in found[-1]["_error"]
    assert [row["_error"] for row in found[:-1]] == [None] * (len(found) - 1)


def test_a_segment_that_a_broker_is_replacing_is_a_row_or_read(tmp_path: Path) -> None:
    home = tmp_path / "orders-0"
    shutil.copytree(GROUP_LOGS / "orders-0", home)
    whole, replaced = rows_of(LogTable(tmp_path, columns=["offset"])), sorted(home.glob("*.log"))[1]
    replacement = replaced.rename(f"{replaced}.swap")
    for found in (rows_of(LogTable(tmp_path)), read(KafkaLogSource, tmp_path)):
        assert [str(replaced) in row["_error"] for row in found if row["_error"]] == [True]
    run_job(TOPIC_PROFILE, JobInputs.at([tmp_path]), str(tmp_path / "out"), local_engine())
    (problem,) = pq.read_table(tmp_path / "out" / "current" / "problems").to_pylist()
    assert problem["file"] == str(replaced)
    table = LogTable(tmp_path, columns=["offset"])
    segments = list(table.segments())
    replacement.rename(replaced)
    assert [row for each in segments for rows in each.rows for row in rows.to_pylist()] == whole


def test_what_there_is_not_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownColumnError, match="similar: offset"):
        LogTable(LOGS, columns=["ofset"])
    with pytest.raises(JobPathError, match="there is no partition in it"):
        LogTable(tmp_path)


def test_an_isolation_level_leaves_out_what_a_consumer_does_not_see() -> None:
    for partition in [*partitions_in([LOGS]), *partitions_in([GROUP_LOGS])]:
        batches = partition.batches(isolation="read_committed")
        seen = [
            record.offset
            for batch in batches
            if not (isinstance(batch, RecordBatch) and batch.is_control)
            for record in batch.records()
        ]
        table = LogTable(partition.path, columns=["offset"], isolation="read_committed")
        assert pa.table(table)["offset"].to_pylist() == seen, partition.path
    assert pa.table(LogTable(LOGS)).num_rows > pa.table(LogTable(LOGS, isolation="read_committed")).num_rows


def test_another_isolation_level_is_refused() -> None:
    with pytest.raises(OptionError, match="isolation"):
        LogTable(LOGS, isolation="serializable")  # type: ignore[arg-type]
