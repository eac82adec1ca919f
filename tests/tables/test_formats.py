"""Tables in every format: written data is read back, by this library and by programs that support the format."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest

from kafka_msgs.errors import MissingExtraError, OptionError
from kafka_msgs.tables import FORMAT_NAMES, TableFormat, add_day_column, get_format
from kafka_msgs.tables.iceberg_catalog import catalog_of

KEYS: Final = ("group", "partition")
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


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def keys_of(gone: list[tuple[str, int]]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(KEYS, key, strict=True)) for key in gone],
        pa.schema([("group", pa.string()), ("partition", pa.int64())]),
    )


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["group"], row["partition"]))


def read(form: TableFormat, place: Path) -> list[Row]:
    return in_order(form.read(str(place)).read_all().select(SCHEMA.names).to_pylist())


@pytest.fixture(params=FORMAT_NAMES)
def form(request: pytest.FixtureRequest) -> TableFormat:
    return get_format(request.param)


@pytest.mark.parametrize("by", [(), ("day",), ("empty", "group")], ids=str)
def test_what_is_written_is_read_back(form: TableFormat, tmp_path: Path, by: tuple[str, ...]) -> None:
    rows, place = some_rows(range(20), 1), tmp_path / "offsets"
    assert not form.exists(str(place))
    form.write(table_of(rows).to_reader(max_chunksize=7), str(place), by)
    assert form.exists(str(place))
    assert read(form, place) == rows
    form.append(table_of(some_rows(range(20, 25), 2)), str(place))
    assert read(form, place) == in_order([*rows, *some_rows(range(20, 25), 2)])
    assert form.read(str(place), ["offset", "empty"]).schema.names == ["offset", "empty"]
    form.write(table_of(rows[:2]), str(place))
    assert read(form, place) == rows[:2]


@pytest.mark.parametrize("by", [(), ("day",)], ids=str)
def test_merging_gives_the_table_that_is_made_from_nothing(
    form: TableFormat, tmp_path: Path, by: tuple[str, ...]
) -> None:
    place = str(tmp_path / "offsets")
    state: dict[tuple[str, int], Row] = {}
    dice = random.Random(3)
    form.write(table_of([]), place, by)
    for seed in range(6):
        changed = dice.sample(some_rows(range(12), seed), 9)
        gone = dice.sample(sorted(state), min(len(state), 4))
        form.merge(table_of(changed), place, KEYS, keys_of(gone))
        state = {key: row for key, row in state.items() if key not in gone}
        state |= {(row["group"], row["partition"]): row for row in changed}
        assert read(form, tmp_path / "offsets") == in_order(list(state.values()))


def test_publishing_leaves_the_rows_that_are_given(form: TableFormat, tmp_path: Path) -> None:
    place, before = str(tmp_path / "offsets"), some_rows(range(9), 1)
    after = [*some_rows(range(2), 2), *before[9:], *some_rows(range(20, 22), 3)]
    for rows in (before, after, after, []):
        form.publish(table_of(rows), place, KEYS, ("day",))
        assert read(form, tmp_path / "offsets") == in_order(rows)


def test_keys_must_be_there_once(form: TableFormat, tmp_path: Path) -> None:
    rows, place = some_rows(range(1), 1), str(tmp_path / "offsets")
    form.write(table_of(rows), place)
    with pytest.raises(OptionError, match="two rows have the same key"):
        form.merge(table_of(rows * 2), place, KEYS)
    with pytest.raises(OptionError, match="a row has no group"):
        form.merge(table_of([{**rows[0], "group": None}]), place, KEYS)


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


def parquet_by_duckdb(place: Path) -> pa.Table:
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT * FROM read_parquet('{place}/**/*.parquet')").to_arrow_table()


READERS: Final[list[tuple[str, Callable[[Path], pa.Table]]]] = [
    ("parquet", lambda place: pl.read_parquet(place / "**/*.parquet", hive_partitioning=True).to_arrow()),
    ("parquet", parquet_by_duckdb),
    ("delta", by_delta),
    ("delta", lambda place: pl.read_delta(str(place)).to_arrow()),
    ("delta", delta_by_duckdb),
    ("iceberg", lambda place: iceberg_table(place).scan().to_arrow()),
    ("iceberg", lambda place: pl.scan_iceberg(iceberg_table(place), reader_override="native").collect().to_arrow()),
    ("iceberg", iceberg_by_duckdb),
]


@pytest.mark.parametrize(("name", "reader"), READERS)
def test_other_programs_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reader: Callable[[Path], pa.Table]
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    form, place = get_format(name), tmp_path / "offsets"
    rows, changed = some_rows(range(9), 1), some_rows(range(5, 7), 2)
    flat = table_of(rows).drop_columns(["members"])
    form.write(flat, str(place), ("day",))
    form.merge(table_of(changed).drop_columns(["members"]), str(place), KEYS, flat.slice(0, 2).select(KEYS))
    found = reader(place).select(flat.column_names)
    assert in_order(found.to_pylist()) == in_order(form.read(str(place)).read_all().to_pylist())
    assert found.num_rows == 25


def test_days_are_those_of_utc() -> None:
    times = [datetime(2026, 1, 1, 23, 59, tzinfo=UTC), datetime(1969, 12, 31, 1, tzinfo=UTC), None]
    found = add_day_column(pa.table({"time": pa.array(times, pa.timestamp("us", "UTC"))}), "time").read_all()
    assert found["day"].to_pylist() == [date(2026, 1, 1), date(1969, 12, 31), None]


def test_formats_are_known_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="there is no such format"):
        get_format("orc")
    monkeypatch.setitem(__import__("sys").modules, "kafka_msgs.tables.delta", None)
    with pytest.raises(MissingExtraError, match=r"kafka-msgs\[delta\]"):
        get_format("delta")
