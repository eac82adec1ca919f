"""Tables of records: compared with Kafka's own dump of real log files, for every format, and with damage in place."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_msgs import RecordError
from kafka_msgs.columns import RECORD_SCHEMA, read_record_table, record_schema, walk_record_table
from kafka_msgs.errors import (
    CorruptRecordError,
    CrcMismatchError,
    DecompressedSizeError,
    LogFileError,
    RecordBudgetError,
    UnknownColumnError,
)
from kafka_msgs.log.file_scan import read_log
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, ReadOptions, RecordBatch, read_batches
from tests.support.batches import BatchSpec, by_hand, described, sealed
from tests.support.dump_fixtures import BATCHES, DUMPED, named

pytestmark = pytest.mark.usefixtures("implementation")

Row = dict[str, Any]


def rows(source: Any, *options: ReadOptions, **asked: Any) -> list[Row]:
    found = []
    for table in read_record_table(source, *options, **asked):
        table.validate(full=True)
        found += numbered(table).to_pylist()
    return found


def numbered(table: pa.RecordBatch) -> pa.RecordBatch:
    """Return a table with timestamps as numbers, because Python's datetime does not cover the range of 64 bits."""
    if "timestamp" not in table.schema.names:
        return table
    times = table.column("timestamp")
    assert times.type == pa.timestamp("ms", tz="UTC")
    return table.set_column(table.schema.get_field_index("timestamp"), "timestamp", times.cast(pa.int64()))


# Against Kafka's own tool


@pytest.mark.parametrize("path", BATCHES, ids=named(BATCHES))
def test_every_row_is_what_kafka_reads(path: Path) -> None:
    said = [line for line in DUMPED[path] if line.startswith("| ")]
    found = rows(path)
    assert len(found) == len(said)
    for row, line in zip(found, said, strict=True):
        assert line.startswith(record_line(row))


@pytest.mark.parametrize("path", BATCHES, ids=named(BATCHES))
def test_every_row_has_the_values_of_its_batch_that_kafka_reads(path: Path) -> None:
    said = [facts(line) for line in DUMPED[path] if line.startswith("baseOffset")]
    stated = [batch_facts(row) for row in rows(path)]
    assert [each for place, each in enumerate(stated) if each not in stated[:place]] == said


def record_line(row: Row) -> str:
    sizes = [-1 if content is None else len(content) for content in (row["key"], row["value"])]
    names = ",".join(header["name"] for header in row["headers"])
    clock = ("CreateTime", "LogAppendTime")[row["timestamp_type"]]
    return (
        f"| offset: {row['offset']} {clock}: {row['timestamp_ms']} keySize: {sizes[0]} valueSize: {sizes[1]} "
        f"sequence: {row['sequence']} headerKeys: [{names}]"
    )


BATCH_FACTS = {
    "baseOffset": "batch_offset",
    "position": "batch_position",
    "size": "batch_size",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "compresscodec": "codec",
    "magic": "magic",
}


def facts(line: str) -> dict[str, str]:
    """Return the facts about a batch that a dump line and a row have in common."""
    words = line.split()
    stated = dict(pairwise(words))
    return {name: stated[f"{name}:"] for name in BATCH_FACTS}


def batch_facts(row: Row) -> dict[str, str]:
    return {name: str(row[column]).lower() for name, column in BATCH_FACTS.items()}


# Every format


def expected(batch: Any) -> Iterator[Row]:
    """Yield the rows of a batch, built from its records."""
    newest = isinstance(batch, RecordBatch)
    for record in batch:
        sequence = (
            -1 if not newest or batch.base_sequence < 0 else batch.base_sequence + record.offset - batch.base_offset
        )
        named = [text(name) for name, _ in record.headers]
        yield {
            "offset": record.offset,
            "timestamp": None if record.timestamp == -1 else record.timestamp,
            "timestamp_ms": record.timestamp,
            "timestamp_type": int(batch.timestamp_type) if batch.magic else -1,
            "key": record.key,
            "value": record.value,
            "headers": [{"name": name, "value": value} for name, (_, value) in zip(named, record.headers, strict=True)],
            "raw_header_names": [name.encode("utf-8", "surrogateescape") for name, _ in record.headers]
            if None in named
            else None,
            "batch_offset": batch.base_offset if newest else batch.offset,
            "batch_position": batch.position,
            "batch_size": batch.size,
            "partition_leader_epoch": batch.partition_leader_epoch if newest else -1,
            "producer_id": batch.producer_id if newest else -1,
            "producer_epoch": batch.producer_epoch if newest else -1,
            "sequence": sequence - 2**31 if sequence >= 2**31 else sequence,
            "is_transactional": newest and batch.is_transactional,
            "is_control": newest and batch.is_control,
            "codec": CompressionType(batch.codec).name.lower(),
            "magic": batch.magic,
        }


def text(name: str) -> str | None:
    """Return the name of a header, or None for bytes that are not UTF-8."""
    return None if any("\ud800" <= letter <= "\udfff" for letter in name) else name


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(described(0, 1, 2), min_size=1, max_size=4))
def test_batches_of_any_format_after_each_other(wanted: list[BatchSpec]) -> None:
    data = b"".join(each.written() for each in wanted)
    assert rows(data) == [row for batch in read_batches(data) for row in expected(batch)]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(described(2), st.data())
def test_a_changed_byte_gives_the_rows_or_the_fault_that_the_records_give(
    wanted: BatchSpec, data: st.DataObject
) -> None:
    written = bytearray(wanted.written())
    at = data.draw(st.integers(61, len(written) - 1))
    written[at] = data.draw(st.integers(0, 255))
    (batch,) = read_batches(sealed(written))
    assert outcome(lambda: rows(batch)) == outcome(lambda: list(expected(batch)))


def outcome(read: Callable[[], list[Row]]) -> Any:
    """Return the rows, or the type and text of the error."""
    try:
        return read()
    except RecordError as error:
        return type(error), str(error)


def batch_of(*headers: tuple[str, bytes | None], key: bytes = b"k", **options: Any) -> bytes:
    builder = BatchBuilder(BatchHeader(**options))
    assert builder.append(key, b"v", timestamp=5, headers=headers)
    return builder.build()


def test_a_header_name_that_is_not_utf8_is_null_and_its_bytes_are_kept() -> None:
    odd = str(b"\xff\xfe", "utf-8", "surrogateescape")
    data = batch_of(("a", b"1"), (odd, None)) + batch_of(("a", None), base_offset=1)
    found = rows(data, columns=["offset", "headers", "raw_header_names"])
    assert found == [
        {
            "offset": 0,
            "headers": [{"name": "a", "value": b"1"}, {"name": None, "value": None}],
            "raw_header_names": [b"a", b"\xff\xfe"],
        },
        {"offset": 1, "headers": [{"name": "a", "value": None}], "raw_header_names": None},
    ]
    raw = [{"raw_header_names": row["raw_header_names"]} for row in found]
    assert rows(data, columns=["raw_header_names"]) == raw


def test_sequence_numbers_start_again_after_the_highest() -> None:
    builder = BatchBuilder(BatchHeader(producer_id=1, producer_epoch=0, base_sequence=2**31 - 2, base_offset=7))
    for _ in range(4):
        builder.append(None, b"")
    assert [row["sequence"] for row in rows(builder.build())] == [2**31 - 2, 2**31 - 1, 0, 1]


def test_offsets_beyond_64_bits_are_a_fault_and_not_a_wrong_number() -> None:
    data = bytearray(by_hand("0c000002010100"))
    data[:8] = (2**63 - 1).to_bytes(8, "big")
    (fault,) = walk_record_table(sealed(data))
    assert isinstance(fault, CorruptRecordError)
    assert fault.reason == "its offset or its timestamp has more than 64 bits"


# Columns


@pytest.mark.parametrize("column", RECORD_SCHEMA.names)
def test_a_column_alone_is_the_one_of_the_whole(column: str) -> None:
    for path in BATCHES[:4]:
        whole = [{column: row[column]} for row in rows(path)]
        assert rows(path, columns=[column]) == whole


def test_columns_have_the_order_and_the_schema_that_were_asked_for() -> None:
    columns = ["codec", "value", "sequence"]
    (table,) = read_record_table(batch_of(), columns=columns)
    assert table.schema.equals(record_schema(columns), check_metadata=True)
    with pytest.raises(UnknownColumnError, match="a record has no column 'values'; similar: value"):
        read_record_table(batch_of(), columns=["values"])


def test_a_table_without_columns_is_refused_for_it_could_not_say_its_rows() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        read_record_table(batch_of(), columns=[])


# Sources and sizes


def segment(count: int, size: int = 10, each: int = 10) -> bytes:
    """Return batches of ``each`` records of ``size`` bytes."""
    made = []
    for first in range(0, count, each):
        builder = BatchBuilder(BatchHeader(base_offset=first))
        for _ in range(each):
            builder.append(None, b"x" * size)
        made.append(builder.build())
    return b"".join(made)


def test_paths_buffers_batches_and_iterables_are_the_same(tmp_path: Path) -> None:
    data = segment(30)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    sources = [path, str(path), data, bytearray(data), memoryview(data), read_batches(data), read_log(path)]
    sources.append(list(read_batches(data)))
    found = [rows(source) for source in sources]
    assert all(each == found[0] for each in found)
    assert [row["offset"] for row in found[0]] == list(range(30))
    assert [row["offset"] for batch in read_batches(data) for row in rows(batch)] == list(range(30))


def test_a_table_is_full_at_its_rows_or_its_bytes() -> None:
    data = segment(100)
    sizes = [table.num_rows for table in read_record_table(data, max_rows=25)]
    assert sizes == [25, 5, 25, 5, 25, 5, 10]
    tables = read_record_table(segment(100, size=1000), max_bytes=25_000)
    assert [table.num_rows for table in tables] == [30, 30, 30, 10]
    headers = batch_of(("a", bytes(1000)), key=b"") * 4
    assert [table.num_rows for table in read_record_table(headers, max_bytes=1500)] == [2, 2]
    builder = BatchBuilder(codec=CompressionType.GZIP)
    for _ in range(100):
        builder.append(None, bytes(10_000))
    assert [table.num_rows for table in read_record_table(builder.build() * 3, max_bytes=1000)] == [100, 100, 100]


def test_memory_does_not_grow_with_the_source() -> None:
    batch = next(iter(read_batches(segment(1000, size=1000, each=1000))))
    gc.collect()
    before = pa.total_allocated_bytes()
    most = 0
    for _ in read_record_table((batch for _ in range(100)), columns=["value"], max_bytes=4 << 20):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 16 << 20


def test_a_batch_without_records_gives_no_rows() -> None:
    empty = by_hand("", count=0)
    assert rows(empty) == []
    assert len(rows(empty + batch_of() + empty)) == 1


# Damage


def damaged(data: bytes) -> bytes:
    """Return the batches with the last byte of the last value changed."""
    return data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]


def kinds(items: Iterator[Any]) -> list[Any]:
    return [item.num_rows if isinstance(item, pa.RecordBatch) else type(item) for item in items]


def test_damage_in_a_buffer_stands_in_its_place() -> None:
    data = segment(20) + damaged(segment(10)) + segment(30)
    assert kinds(walk_record_table(data)) == [20, CrcMismatchError, 30]
    assert len(rows(data, ReadOptions(check_crc=False))) == 60
    table = read_record_table(data)
    assert next(table).num_rows == 20
    with pytest.raises(CrcMismatchError):
        next(table)


def test_a_batch_whose_records_are_damaged_gives_no_row() -> None:
    wrong = by_hand("0c000000010100" + "0c0000020101", count=2)
    assert kinds(walk_record_table(segment(10) + wrong + segment(10))) == [10, CorruptRecordError, 10]


def test_damage_in_a_file_stands_in_its_place_and_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    builder = BatchBuilder(BatchHeader(base_offset=30))
    builder.append(None, b"")
    path.write_bytes(segment(20) + b"\xff" * 100 + builder.build() + builder.build()[:40])
    items = list(walk_record_table(path))
    assert kinds(iter(items)) == [20, LogFileError, 1, LogFileError]
    assert [item.position for item in items if isinstance(item, LogFileError)] == [
        len(segment(20)),
        len(segment(20)) + 100 + builder.size,
    ]
    with pytest.raises(LogFileError, match=str(path)):
        list(read_record_table(path))


def test_a_cut_batch_at_the_end_of_a_buffer_is_left_to_its_reader() -> None:
    reader = read_batches(segment(10) + segment(10)[:50])
    assert len(rows(reader)) == 10
    assert reader.left == 50


def test_a_bomb_is_a_fault() -> None:
    builder = BatchBuilder(codec=CompressionType.GZIP)
    builder.append(None, bytes(10_000_000))
    data = segment(10) + builder.build()
    assert kinds(walk_record_table(data, ReadOptions(max_decompressed_bytes=1_000_000))) == [10, DecompressedSizeError]
    small = BatchBuilder()
    small.append(None, b"")
    assert kinds(walk_record_table(segment(10) + small.build(), ReadOptions(max_elements=5))) == [RecordBudgetError, 1]


def test_what_was_read_keeps_no_batch_alive() -> None:
    """An Arrow array of views keeps the viewed memory alive, so memory would grow with the log."""
    builder = BatchBuilder()
    builder.append(b"key", bytes(10**6), headers=[("header", b"value")])
    data = builder.build()
    tracemalloc.start()
    try:
        kept = []
        for _ in range(2):
            for _ in range(8):
                rows(data, ReadOptions(zero_copy=True))
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert kept[1] - kept[0] < len(data)
