"""Delta and Iceberg tables that refer to the files of commits, as programs read them that support the format."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from attrs import evolve
from deltalake import DeltaTable
from pyiceberg.exceptions import CommitStateUnknownException

from kafka_msgs.errors import JobPathError, MissingExtraError, OptionError, UnseenFileError
from kafka_msgs.tables import get_format
from kafka_msgs.tables.commit_log import RunToken, Snapshot, WrittenFile
from kafka_msgs.tables.iceberg import OpenIcebergTable
from kafka_msgs.tables.iceberg_catalog import catalog_of
from kafka_msgs.tables.job_tables import JobTables
from kafka_msgs.tables.task_output import TableSpec, TaskOutput
from tests.support.table_readers import delta_table, read_table

SCHEMA: Final = pa.schema(
    [
        ("group", pa.string()),
        ("partition", pa.int32()),
        ("epoch", pa.int16()),
        ("offset", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("empty", pa.bool_()),
        ("key", pa.binary()),
        ("large", pa.decimal128(20, 0)),
        ("members", pa.list_(pa.struct([("id", pa.string()), ("topics", pa.list_(pa.string()))]))),
    ]
)
MEMBERS: Final[tuple[Any, ...]] = (None, [], [{"id": "a", "topics": None}, {"id": None, "topics": []}, None])

Row = dict[str, Any]


def some_row(group: int, partition: int, dice: random.Random) -> Row:
    """Return a row with nulls and empty values everywhere except in its key."""
    time = dice.choice([None, datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=dice.randrange(100))])
    return {
        "group": f"group {group}/é",
        "partition": partition,
        "epoch": dice.choice([None, -1, 7]),
        "offset": dice.randrange(1 << 62),
        "time": time,
        "day": None if time is None else time.date(),
        "empty": dice.choice([None, True, False]),
        "key": dice.choice([None, b"", b"\xff\0"]),
        "large": dice.choice([None, Decimal(2**64 - 1)]),
        "members": dice.choice(MEMBERS),
    }


def some_rows(groups: range, seed: int) -> list[Row]:
    dice = random.Random(seed)
    return in_order([some_row(group, partition, dice) for group in groups for partition in range(3)])


class Writer:
    """Commits the table ``offsets`` of a directory, from files with some rows each."""

    def __init__(self, form: str, out: Path, by: tuple[str, ...] = ()) -> None:
        self.form, self.by = form, by
        self.place = out / "offsets"
        self.tables = JobTables.at(str(out), {"offsets": TableSpec(SCHEMA, by)}, {"job": "test"}, form)
        self.snapshot: Snapshot | None = None

    def start(self) -> RunToken:
        return self.tables.begin(self.tables.find_base())

    def files(self, token: RunToken, *parts: list[Row]) -> list[WrittenFile]:
        """Write files, each with the rows of one partition."""
        found = list[WrittenFile]()
        for rows in parts:
            output = TaskOutput.start(self.tables.log.storage, token)
            for values in sorted({tuple(row[name] for name in self.by) for row in rows}, key=str):
                inside = [row for row in rows if tuple(row[name] for name in self.by) == values]
                names = "/".join(f"{name}={text_of(value)}" for name, value in zip(self.by, values, strict=True))
                output.append("offsets", table_of(inside).drop_columns(list(self.by)), names)
            output.close()
            found += output.files.get("offsets", {}).values()
        return found

    def commit(self, *parts: list[Row], earlier: Sequence[WrittenFile] = ()) -> list[WrittenFile]:
        """Commit rows in addition to earlier files, and return their files."""
        token = self.start()
        found = self.files(token, *parts)
        self.snapshot = self.tables.commit(token, {"offsets": [*earlier, *found]})
        return found

    def read(self) -> list[Row]:
        """Return the rows of the table, as the library of its format reads them."""
        return in_order(read_table(self.form, str(self.place)).select(SCHEMA.names).to_pylist())

    def versions(self) -> int:
        """Return the number of versions."""
        if self.form == "delta":
            return int(delta_table(str(self.place)).version()) + 1
        return len(iceberg_table(self.place).snapshots())


def text_of(value: object) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if value is None else quote(str(value), safe="")


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def in_order(rows: list[Row]) -> list[Row]:
    """Return rows in the order of their keys. pyiceberg reads a null list of structs as an empty list."""
    plain = [{**row, "members": row["members"] or None} for row in rows]
    return sorted(plain, key=lambda row: (row["group"], row["partition"]))


@pytest.fixture(params=["delta", "iceberg"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("by", [(), ("day",), ("partition", "group")], ids=str)
def test_a_version_has_the_rows_of_the_files_in_the_manifest(form: str, tmp_path: Path, by: tuple[str, ...]) -> None:
    writer = Writer(form, tmp_path, by)
    first, second, third = (some_rows(range(n, n + 5), n) for n in (0, 5, 10))
    kept = writer.commit(first, second)[: len(writer.files(writer.start(), first))]
    assert writer.read() == in_order([*first, *second])
    writer.commit(third, earlier=kept)
    assert writer.read() == in_order([*first, *third])
    assert {each.path for each in writer.tables.log.storage.list_files("offsets")} >= {each.path for each in kept}
    writer.commit()
    assert writer.read() == []
    assert writer.versions() == 3


@pytest.mark.parametrize("prefix", ["file:", "file://"])
def test_a_local_uri_is_a_path(form: str, tmp_path: Path, prefix: str) -> None:
    tables = JobTables.at(f"{prefix}{tmp_path}", {"offsets": TableSpec(SCHEMA)}, {"job": "test"}, form)
    tables.commit(tables.begin(tables.find_base()), {})
    assert read_table(form, str(tmp_path / "offsets")).num_rows == 0


def test_a_commit_is_applied_once(form: str, tmp_path: Path) -> None:
    writer = Writer(form, tmp_path)
    rows = [some_rows(range(n), n) for n in (1, 2)]
    snapshots = []
    for each in rows:
        writer.commit(each)
        snapshots.append(writer.snapshot)
    for snapshot in reversed(snapshots):
        assert snapshot is not None
        writer.tables._apply(snapshot)
    assert writer.read() == in_order(rows[1])
    assert writer.versions() == 2


@pytest.mark.parametrize("count", [2, 4])
def test_of_writers_of_one_version_one_is_accepted(form: str, tmp_path: Path, count: int) -> None:
    writer = Writer(form, tmp_path)
    writer.commit(some_rows(range(1), 1))
    spec = writer.tables.specs["offsets"]
    opened = [writer.tables.form.open(str(writer.place), spec) for _ in range(count)]
    files = writer.files(writer.start(), some_rows(range(1, 3), 2))
    for number, table in enumerate(opened):
        assert table is not None
        with nullcontext() if number == 0 else pytest.raises(writer.tables.form.conflicts):
            table.commit(2, {file.path.removeprefix("offsets/"): file for file in files}, ())
    assert writer.read() == in_order([*some_rows(range(1), 1), *some_rows(range(1, 3), 2)])
    assert writer.versions() == 2


@pytest.mark.parametrize("count", [2, 4])
def test_processes_that_apply_one_commit_apply_it_once(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    writer, rows = Writer(form, tmp_path), some_rows(range(9), 1)
    with monkeypatch.context() as patched:
        patched.setattr(JobTables, "_apply", lambda *_: None)
        writer.commit(rows)
    assert writer.snapshot is not None
    with ProcessPoolExecutor(count, mp_context=get_context("forkserver")) as pool:
        list(pool.map(apply_again, [str(tmp_path)] * count, [form] * count))
    assert writer.read() == in_order(rows)
    assert writer.versions() == 1


def apply_again(out: str, form: str) -> None:
    """Begin a run, which applies the latest commit."""
    Writer(form, Path(out)).start()


def test_a_table_that_another_program_changed_gets_the_rows_of_the_manifest(tmp_path: Path) -> None:
    writer, rows = Writer("delta", tmp_path), some_rows(range(4), 1)
    files = writer.commit(rows[:6], rows[6:])
    assert delta_table(str(writer.place)).optimize.compact()["numFilesRemoved"] == 2
    delta_table(str(writer.place)).delete("partition = 1")
    writer.commit(earlier=files)
    assert writer.read() == in_order(rows)


def test_old_files_are_for_the_vacuum_of_the_table(tmp_path: Path) -> None:
    writer = Writer("delta", tmp_path)
    for count in (1, 2, 3, 4):
        writer.commit(some_rows(range(count), count))
    assert evolve(writer.tables.log, grace=timedelta(0)).expire() == 0
    assert delta_table(str(writer.place)).to_pyarrow_table().num_rows == 12
    assert DeltaTable(writer.place, version=0).to_pyarrow_table().num_rows == 3
    delta_table(str(writer.place)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert len(list(writer.place.rglob("*.parquet"))) == 1
    writer.commit(some_rows(range(2), 5))
    assert writer.read() == some_rows(range(2), 5)


@pytest.mark.parametrize("damage", ["missing", "shorter"])
def test_a_file_that_is_not_there_is_in_no_version(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    writer, rows = Writer(form, tmp_path), some_rows(range(1), 1)
    writer.commit(rows)
    with monkeypatch.context() as patched:
        patched.setattr(JobTables, "_apply", lambda *_: None)
        (file,) = writer.commit(some_rows(range(2), 2))
    path = tmp_path / file.path
    path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UnseenFileError, match="or it was deleted or changed"):
        writer.start()
    assert writer.read() == rows


def test_another_table_is_not_overwritten(form: str, tmp_path: Path) -> None:
    Writer(form, tmp_path / "one").commit(some_rows(range(1), 1))
    shutil.rmtree(tmp_path / "one" / "_commits")
    with pytest.raises(JobPathError, match="nothing is overwritten"):
        Writer(form, tmp_path / "one").start()
    Writer(form, tmp_path / "two").commit(some_rows(range(1), 1))
    with pytest.raises(JobPathError, match="it is a table with other columns"):
        Writer(form, tmp_path / "two", ("day",)).commit()
    Writer(form, tmp_path / "two").commit()
    (tmp_path / "two" / "_commits" / f"{2:020}.json").unlink()
    with pytest.raises(JobPathError, match="it contains commit 2, which is not in"):
        Writer(form, tmp_path / "two").start()


def test_directories_are_those_of_the_partition_columns(tmp_path: Path) -> None:
    writer = Writer("delta", tmp_path, ("day",))
    token = writer.start()
    writer.by = ()
    with pytest.raises(JobPathError, match=r"the table is partitioned by \(day\)"):
        writer.tables.commit(token, {"offsets": writer.files(token, some_rows(range(1), 1))})
    assert writer.tables.log.head() is None


def by_delta(place: Path) -> pa.Table:
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(place)).execute("SELECT * FROM t")
    return pa.table(query.read_all())


def delta_by_duckdb(place: Path) -> pa.Table:
    rows = deltalake.DeltaTable(place).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        return connection.register("rows", rows).sql("SELECT * FROM rows").to_arrow_table()


def iceberg_table(place: Path) -> Any:
    return catalog_of(place.parent).load_table(f"kafka.{place.name}")


def iceberg_by_duckdb(place: Path) -> pa.Table:
    return iceberg_table(place).scan().to_duckdb("rows").sql("SELECT * FROM rows").to_arrow_table()


READERS: Final[list[tuple[str, Callable[[Path], pa.Table]]]] = [
    ("delta", by_delta),
    ("delta", lambda place: pl.read_delta(str(place)).to_arrow()),
    ("delta", delta_by_duckdb),
    ("iceberg", lambda place: iceberg_table(place).scan().to_arrow()),
    ("iceberg", lambda place: pl.scan_iceberg(iceberg_table(place), reader_override="native").collect().to_arrow()),
    ("iceberg", iceberg_by_duckdb),
]


@pytest.mark.parametrize("by", [(), ("day",), ("partition", "group")], ids=str)
@pytest.mark.parametrize(("name", "reader"), READERS)
def test_other_programs_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reader: Callable[[Path], pa.Table], by: tuple[str, ...]
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    writer, rows = Writer(name, tmp_path, by), some_rows(range(9), 1)
    writer.commit(some_rows(range(3), 2))
    writer.commit(rows)
    # These programs show some null lists of structs as empty lists.
    found = reader(writer.place).select(SCHEMA.names).to_pylist()
    assert in_order(found) == in_order(rows)


@pytest.mark.parametrize("name", ["a%20b", "a#b", "a?b", "100%", "a b+é=~"])
def test_a_location_is_read_or_refused_before_a_run(form: str, tmp_path: Path, name: str) -> None:
    writer, rows = Writer(form, tmp_path / name), some_rows(range(2), 1)
    if name in {"delta": ["a%20b"], "iceberg": ["a%20b", "a#b", "a?b"]}[form]:
        with pytest.raises(JobPathError, match=f"{form} tables cannot be here"):
            writer.start()
    else:
        writer.commit(rows)
        assert writer.read() == rows


def test_parameters_in_a_location_are_refused(form: str) -> None:
    tables = JobTables.at("s3://bucket/x?region=us-east-1&scheme=http", {}, {"job": "test"}, form)
    with pytest.raises(JobPathError, match=f"s3://bucket/x: {form} tables cannot be here"):
        tables.find_base()


def test_an_iceberg_commit_of_unknown_state_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, rows, commit = Writer("iceberg", tmp_path), some_rows(range(2), 1), OpenIcebergTable.commit

    def unknown(table: OpenIcebergTable, *arguments: Any) -> None:
        commit(table, *arguments)
        raise CommitStateUnknownException("502")

    monkeypatch.setattr(OpenIcebergTable, "commit", unknown)
    writer.commit(rows)
    assert writer.read() == rows
    assert writer.versions() == 1


def test_formats_are_known_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="there is no such format"):
        get_format("orc")
    monkeypatch.setitem(__import__("sys").modules, "kafka_msgs.tables.delta", None)
    with pytest.raises(MissingExtraError, match=r"kafka-msgs\[delta\]"):
        get_format("delta")
