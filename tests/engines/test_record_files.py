"""Records of log directories as Parquet: the rows of the table, in separate files, with little memory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from click.testing import CliRunner

from kafka_msgs.cli.commands.pipeline import pipeline_command
from kafka_msgs.columns.log_table import LogTable
from kafka_msgs.engines.record_files import write_records
from kafka_msgs.errors import JobPathError, OptionError
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.records import BatchBuilder
from kafka_msgs.tables.commit_log import CommitLog
from tests.support.recordings import GROUP_LOGS, LOGS


def rows_of(table: Any) -> list[str]:
    """Return rows as sorted text: a directory of files has no order."""
    return sorted(repr(sorted(row.items())) for row in pa.table(table).to_pylist())


def written_rows(out: Path) -> pa.Table:
    """Return the rows that a reader of Hive directories finds."""
    parts = ds.partitioning(pa.schema([("topic", pa.string()), ("partition", pa.int32())]), flavor="hive")
    return ds.dataset(out / "current" / "records", format="parquet", partitioning=parts).to_table()


@pytest.mark.parametrize("columns", [None, ["*", "rawHeaderKeys", "timestampMs"], ["value"]])
@pytest.mark.parametrize("logs", [LOGS, GROUP_LOGS], ids=lambda path: path.name)
def test_the_files_have_the_rows_of_the_table(logs: Path, columns: list[str] | None, tmp_path: Path) -> None:
    table = LogTable(logs, columns=["topic", "partition", *(columns or ["value", "offset", "headers"])])
    written = write_records(table, tmp_path / "out")
    found = written_rows(tmp_path / "out")
    assert rows_of(found.select(table.schema.names)) == rows_of(table)
    assert sum(each.records + each.damaged for each in written) == found.num_rows
    assert sum(each.read for each in written) <= sum(path.stat().st_size for path in table.files)


def test_several_processes_write_the_same_files(tmp_path: Path) -> None:
    opened: list[Path] = []

    class Noted(Progress):
        def file(self, path: Path) -> None:
            opened.append(path)

    alone = write_records(LogTable(GROUP_LOGS), tmp_path / "alone")
    together = write_records(LogTable(GROUP_LOGS, progress=Noted()), tmp_path / "together", workers=2)
    assert [evolve(each, path="") for each in together] == [evolve(each, path="") for each in alone]
    for one, other in zip(alone, together, strict=True):
        assert one.path.rpartition("records/")[2] == other.path.rpartition("records/")[2]
        assert (tmp_path / "alone" / one.path).read_bytes() == (tmp_path / "together" / other.path).read_bytes()
    assert opened == LogTable(GROUP_LOGS).files


def test_duckdb_reads_topic_and_partition_from_the_names_of_directories(tmp_path: Path) -> None:
    write_records(LogTable(GROUP_LOGS), tmp_path / "out")
    query = (
        f"SELECT topic, count(*) FROM '{tmp_path}/out/current/records/**/*.parquet' WHERE _error IS NULL GROUP BY topic"
    )
    with duckdb.connect() as connection:
        found = dict(connection.sql(query).fetchall())
    topics = pa.table(LogTable(GROUP_LOGS)).column("topic").value_counts().to_pylist()
    assert found == {each["values"]: each["counts"] for each in topics}


def test_damage_is_a_row_and_is_counted(tmp_path: Path) -> None:
    shutil.copytree(LOGS / "prices-0", tmp_path / "logs" / "prices-0")
    segment = next((tmp_path / "logs" / "prices-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    written = {Path(each.path).stem: each for each in write_records(LogTable(tmp_path / "logs"), tmp_path / "out")}
    file = written[segment.stem]
    assert [each.damaged for each in written.values() if each.damaged] == [file.damaged] == [1]
    errors = [
        each
        for each in pq.read_table(tmp_path / "out" / file.path, partitioning=None).column("_error").to_pylist()
        if each is not None
    ]
    assert len(errors) == 1
    assert str(segment) in errors[0]


def test_topics_and_partitions_are_chosen(tmp_path: Path) -> None:
    table = LogTable(GROUP_LOGS, topics={"orders"}, partitions={0})
    assert {(each.topic, each.partition) for each in write_records(table, tmp_path / "out")} == {("orders", 0)}
    with pytest.raises(OptionError, match="topics 'ordres'"):
        LogTable(GROUP_LOGS, topics={"ordres"})
    with pytest.raises(OptionError, match="partitions 77"):
        LogTable(GROUP_LOGS, partitions={77})


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    table = LogTable(GROUP_LOGS / "orders-0", columns=["codec"])
    files = write_records(table, tmp_path / "out", compression="none")
    with pytest.raises(JobPathError, match="nothing is overwritten"):
        write_records(table, tmp_path / "out")
    assert (
        pq.ParquetFile(tmp_path / "out" / files[0].path).metadata.row_group(0).column(0).compression == "UNCOMPRESSED"
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_an_export_that_ends_early_leaves_no_table(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(CommitLog, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            write_records(LogTable(GROUP_LOGS), tmp_path / "out", workers=workers)
    assert {each.name for each in (tmp_path / "out").iterdir()} == {"_runs", "data"}
    written = write_records(LogTable(GROUP_LOGS), tmp_path / "out")
    assert written_rows(tmp_path / "out").num_rows == sum(each.records for each in written)


PEAK = """
import re, sys
from pathlib import Path
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.columns.log_table import LogTable
from kafka_msgs.engines.record_files import write_records
write_records(LogTable(sys.argv[1]), Path(sys.argv[2]))
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not report the peak of memory")
def test_memory_does_not_grow_with_the_directory(tmp_path: Path) -> None:
    builder = BatchBuilder()
    for number in range(8):
        builder.append(b"key %d" % number, bytes(range(256)) * 4)
    peaks = {}
    for batches in (12_000, 24_000):
        partition = tmp_path / str(batches) / "events-0"
        partition.mkdir(parents=True)
        (partition / f"{0:020}.log").write_bytes(builder.build() * batches)
        command = [sys.executable, "-c", PEAK, str(partition.parent), str(tmp_path / f"out-{batches}")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        peaks[batches] = int(done.stdout) * 1024
    grown = (24_000 - 12_000) * len(builder.build())
    assert peaks[24_000] - peaks[12_000] < grown / 3


def test_the_command_writes_them_without_spark(tmp_path: Path) -> None:
    arguments = ["records", str(GROUP_LOGS), "--out", str(tmp_path / "out"), "--topic", "orders"]
    done = CliRunner().invoke(pipeline_command, [*arguments, "--columns", "offset,value", "--engine", "local"])
    assert done.exit_code == 0, done.output
    assert "orders" in done.output
    assert set(written_rows(tmp_path / "out").schema.names) == {"offset", "value", "_error", "topic", "partition"}
    again = CliRunner().invoke(pipeline_command, arguments)
    assert isinstance(again.exception, JobPathError)
