"""Files of batches in Kafka's own readers: the classes of its clients and brokers, and ``DumpLogSegments``."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import EndTxnMarker
from kafka_msgs.errors import LogFileError
from kafka_msgs.log.file_scan import AnyBatch, FileScan, read_log
from kafka_msgs.log.summary import LogSummary, walk_summary
from kafka_msgs.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    ControlType,
    LegacyBatch,
    MessageSetBuilder,
    Record,
    RecordBatch,
)
from tests.oracle import Oracle
from tests.recorders.broker import java_command
from tests.support.kafka_batches import as_kafka_prints, kafka_reads
from tests.support.recordings import GROUP_LOGS, LOGS, TIERED_LOGS

pytestmark = pytest.mark.oracle

RECORDED = sorted(
    path
    for folder in (LOGS, TIERED_LOGS, GROUP_LOGS)
    for path in (*folder.rglob("*.log"), *folder.rglob("*.checkpoint"))
    if path.stat().st_size
)


def dump(path: Path, *options: str) -> list[str]:
    """Return the output lines of Kafka's tool for a file."""
    command = java_command("org.apache.kafka.tools.DumpLogSegments", ["--files", str(path), *options], heap_mb=256)
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


def printed(batch: AnyBatch) -> dict[str, Any]:
    """Return a batch in the oracle's format, control records with their types."""
    printed = as_kafka_prints(batch)
    for control, record in zip(
        batch.control_records() if isinstance(batch, RecordBatch) else (), printed["records"], strict=False
    ):
        assert isinstance(control.type, ControlType)
        record["type"] = control.type.name
        if isinstance(control.message, EndTxnMarker):
            record["coordinator_epoch"] = control.message.coordinator_epoch
    return printed


def test_every_recorded_file_is_read_alike_to_the_last_header(oracle: Oracle) -> None:
    assert len(RECORDED) > 40
    for path in RECORDED:
        assert kafka_reads(oracle, path.read_bytes()) == [printed(batch) for batch in read_log(path)], path


def old_line(batch: LegacyBatch) -> str:
    sound = str(batch.computed_crc() == batch.crc).lower()
    return (
        f"offset: {batch.offset} position: {batch.position} {old_time(batch, batch.max_timestamp)} size: {batch.size} "
        f"magic: {batch.magic} compresscodec: {CompressionType(batch.codec).name.lower()} crc: {batch.crc} "
        f"isvalid: {sound}"
    )


def old_time(batch: LegacyBatch, timestamp: int) -> str:
    return f"CreateTime: {timestamp}" if batch.magic else "NoTimestampType: -1"


def old_record(batch: LegacyBatch, record: Record) -> str:
    sizes = [-1 if content is None else len(content) for content in (record.key, record.value)]
    printed = "" if record.key is None else f" key: {str(record.key, 'utf-8')}"
    printed += "" if record.value is None else f" payload: {str(record.value, 'utf-8')}"
    time = old_time(batch, record.timestamp)
    return f"| offset: {record.offset} {time} keySize: {sizes[0]} valueSize: {sizes[1]}{printed}"


def old_lines(path: Path) -> Iterator[str]:
    for batch in read_log(path):
        assert isinstance(batch, LegacyBatch)
        yield old_line(batch)
        for record in batch:
            yield old_record(batch, record)


def test_formats_that_no_broker_writes_any_more_are_dumped_alike(tmp_path: Path) -> None:
    data, offset = b"", 0
    for magic in (0, 1):
        for codec in (CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4):
            builder = MessageSetBuilder(magic=magic, codec=codec, base_offset=offset)
            for key, value in ((b"first", b"1"), (None, b"2"), (b"third", None)):
                builder.append(key, value, timestamp=1000 * offset if magic else -1)
                offset += 1
            data += builder.build()
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(data)
    printed = [line for line in dump(path, "--print-data-log") if line.startswith(("offset: ", "| "))]
    # Each message in a wrapper has its own checksum, which is not compared.
    assert [re.sub(r" isValid: true crc: \d+", "", line) for line in printed] == list(old_lines(path))


def batches(count: int) -> list[bytes]:
    made = []
    for number in range(count):
        builder = BatchBuilder(BatchHeader(base_offset=2 * number))
        for _ in range(2):
            builder.append(b"key", b"value", timestamp=1000 * number)
        made.append(builder.build())
    return made


def test_a_changed_byte_is_reported_for_the_same_batch(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    first, second, third = batches(3)
    path.write_bytes(first + second[:-1] + b"?" + third)
    found = [line for line in dump(path) if line.startswith("baseOffset")]
    assert [line.endswith("isvalid: true") for line in found] == [True, False, True]
    assert [isinstance(item, LogFileError) for item in FileScan(path)] == [False, True, False]


@pytest.mark.parametrize("left", [1, 16, 17, 60, 80])
def test_a_torn_tail_has_the_same_bytes(tmp_path: Path, left: int) -> None:
    path = tmp_path / f"{0:020}.log"
    first, second = batches(2)
    path.write_bytes(first + second[:left])
    (printed,) = [line for line in dump(path) if "invalid bytes" in line]
    summary = LogSummary()
    assert sum(fault.skipped for fault in walk_summary(path, summary)) == summary.skipped
    assert f"Found {summary.skipped + summary.preallocated} invalid bytes at the end" in printed
