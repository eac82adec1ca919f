"""Validation of batches to append, and their conversion for storage.

The validator checks the header and the checksum of a batch. A copy of the batch gets the offset, the leader epoch and
the latest timestamp of its records, or the log append time. Records from clients are scanned, which checks their number
and their sizes and finds their timestamps. Records are decoded only if necessary:

* the topic is compacted, so each record needs a key;
* timestamps exceed the limits of the topic;
* the topic requires another compression type, or the offsets of compressed records do not start at 0: the batch is then
  rewritten.

The order of the checks, the error codes and the error messages match Kafka's ``LogValidator``, ``UnifiedLog`` and
``ProduceRequest``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from attrs import frozen

from kafka_msgs.binary_layouts import (
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_AND_OFFSET_STRUCT,
    LOG_APPEND_TIME,
    MAGIC_OFFSET,
    NO_TIMESTAMP,
)
from kafka_msgs.broker.storage.batch_headers import PositionedHeader, has_valid_crc, header_at
from kafka_msgs.broker.storage.producer_state import AppendOrigin, EndTransactionMarker
from kafka_msgs.broker.storage.topic_config import TopicConfig
from kafka_msgs.checksums import crc32c
from kafka_msgs.codec import Buffer
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import (
    CompressionError,
    DecompressedSizeError,
    RecordError,
    RefusedRecordsError,
    RequestRefusedError,
)
from kafka_msgs.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    ControlType,
    ReadOptions,
    Record,
    RecordBatch,
    read_batches,
)

T = TypeVar("T")

__all__ = ["RawBatch", "read_marker", "split_batches", "validate_produced"]

_corrupt: Final = partial(RequestRefusedError, ErrorCode.CORRUPT_MESSAGE)
_invalid: Final = partial(RequestRefusedError, ErrorCode.INVALID_RECORD)

_MAX_DECOMPRESSED: Final = 128 * 2**20
"""The maximum decompressed size of a batch. Kafka has no limit, because it never holds all records in memory."""

_UNCHECKED: Final = ReadOptions(check_crc=False, max_decompressed_bytes=_MAX_DECOMPRESSED)
_SMALLEST: Final = 14
_SHOWN_ERRORS: Final = 3
_ZSTD_FROM: Final = 7


@frozen
class RawBatch:
    """A batch to append: its header, and its bytes. The position in the header is relative to the buffer."""

    header: PositionedHeader
    data: memoryview

    def records(self) -> list[Record]:
        """Return the records. Raises the errors of ``read``."""
        return self.read(RecordBatch.records)

    def read(self, part: Callable[[RecordBatch], list[T]]) -> list[T]:
        """Return a part of each record.

        Raises ``RequestRefusedError`` with INVALID_RECORD for unreadable records, with UNKNOWN_SERVER_ERROR if
        decompression fails, as in Kafka, and with MESSAGE_TOO_LARGE if the decompressed records are too large.
        """
        try:
            batch = next(read_batches(self.data, _UNCHECKED))
            return part(batch) if isinstance(batch, RecordBatch) else []
        except DecompressedSizeError as error:
            raise RequestRefusedError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None
        except CompressionError as error:
            raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None
        except RecordError as error:
            raise _invalid(str(error)) from None


def split_batches(records: Buffer) -> list[RawBatch]:
    """Return the complete batches of a buffer. A partial last batch is ignored, as in Kafka.

    Raises ``RequestRefusedError`` with CORRUPT_MESSAGE for bytes that are not batches, and with
    UNSUPPORTED_FOR_MESSAGE_FORMAT for messages of magic 0 and 1.
    """
    data = memoryview(records).cast("B")
    return list(_walk(data))


def is_transactional(records: Buffer) -> bool:
    """Return whether the first batch of a buffer is transactional. Raises the errors of ``split_batches``."""
    first = next(_walk(memoryview(records).cast("B")), None)
    return first is not None and first.header.magic == 2 and first.header.is_transactional


def _walk(data: memoryview) -> Iterator[RawBatch]:
    at, total = 0, len(data)
    while total - at > MAGIC_OFFSET:
        length = int.from_bytes(data[at + 8 : at + LENGTH_AND_OFFSET_STRUCT], "big", signed=True)
        magic = data[at + MAGIC_OFFSET]
        if length < _SMALLEST:
            raise _corrupt(f"Record size {length} is less than the minimum record overhead ({_SMALLEST})")
        if magic > 2:
            signed = int.from_bytes(data[at + MAGIC_OFFSET : at + MAGIC_OFFSET + 1], signed=True)
            raise _corrupt(f"Invalid magic found in record: {signed}")
        if length + LENGTH_AND_OFFSET_STRUCT > total - at:
            return
        header = header_at(data, at, at, total - at)
        if header is None:
            raise _corrupt(f"Record is corrupt: a batch of {length + LENGTH_AND_OFFSET_STRUCT} bytes")
        yield RawBatch(header, data[at : header.end])
        at = header.end


def validate_produced(batches: list[RawBatch], version: int) -> None:
    """Check the data for one partition in a Produce request of this version: one batch of magic 2.

    Raises ``RequestRefusedError`` with INVALID_RECORD, or UNSUPPORTED_COMPRESSION_TYPE for zstd before version 7
    (KIP-110).
    """
    start = f"Produce requests with version {version} are"
    if not batches:
        raise _invalid(f"Produce requests with version {version} must have at least one record batch per partition")
    if batches[0].header.magic != 2:
        raise _invalid(f"{start} only allowed to contain record batches with magic version 2")
    if version < _ZSTD_FROM and batches[0].header.codec == CompressionType.ZSTD:
        raise RequestRefusedError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{start} not allowed to use ZStandard compression"
        )
    if version < _ZSTD_FROM and batches[0].header.codec not in CompressionType._value2member_map_:
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if len(batches) > 1:
        raise _invalid(f"{start} only allowed to contain exactly one record batch per partition")


def check_bytes(batch: RawBatch, config: TopicConfig, origin: AppendOrigin) -> None:
    """Check the offset of a batch, its size and its checksum.

    Raises ``RequestRefusedError`` with INVALID_RECORD, MESSAGE_TOO_LARGE, CORRUPT_MESSAGE, or UNKNOWN_SERVER_ERROR for
    an unknown compression type.
    """
    header = batch.header
    if origin is AppendOrigin.CLIENT and header.base_offset != 0:
        raise _invalid(f"The baseOffset of the record batch should be 0, but it is {header.base_offset}")
    if origin is not AppendOrigin.REPLAY and header.size > config.max_message_bytes:
        reason = f"The record batch size is {header.size} bytes which exceeds the maximum {config.max_message_bytes}"
        raise RequestRefusedError(ErrorCode.MESSAGE_TOO_LARGE, reason)
    if not has_valid_crc(header, batch.data):
        raise _corrupt(f"Record is corrupt (stored crc = {header.crc})")
    if header.codec not in CompressionType._value2member_map_:
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {header.codec}")


def check_header(batch: RawBatch, origin: AppendOrigin) -> None:
    """Check that the origin may write a batch with this header; raises ``RequestRefusedError`` with INVALID_RECORD."""
    header = batch.header
    if header.magic != 2:
        reason = f"Batch magic {header.magic} is not the current magic 2"
        raise RequestRefusedError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, reason)
    if origin is not AppendOrigin.CLIENT:
        return
    span = f"[{header.base_offset}, {header.last_offset}]"
    if header.last_offset_delta < 0:
        raise _invalid(f"Batch has an invalid offset range: {span}")
    if header.records <= 0:
        raise _invalid(f"Invalid reported count for record batch: {header.records}")
    if header.last_offset_delta + 1 != header.records:
        raise _invalid(f"Inconsistent batch offset range {span} and count of records {header.records}")
    if header.is_control:
        raise _invalid("Clients are not allowed to write control records")
    if header.has_producer and header.base_sequence < 0:
        reason = f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}"
        raise _invalid(reason)


def check_records(batch: RawBatch, config: TopicConfig, place: str, now: int) -> int:
    """Check the records of a batch, and return their latest timestamp.

    ``place`` is the topic and partition for error messages. ``now`` is in milliseconds since the epoch. Raises
    ``RefusedRecordsError`` with INVALID_RECORD or INVALID_TIMESTAMP, and ``RequestRefusedError`` like
    ``RawBatch.read``.
    """
    times = batch.read(RecordBatch.timestamps)
    latest = max(times, default=NO_TIMESTAMP)
    if config.compacts or _has_doubtful_times(batch.header, times, config, now):
        _check_each(batch, config, place, now)
    return max(latest, NO_TIMESTAMP)


def _check_each(batch: RawBatch, config: TopicConfig, place: str, now: int) -> None:
    errors, bad_time = [], False
    for index, record in enumerate(batch.records()):
        if config.compacts and record.key is None:
            reason = f"Compacted topic cannot accept message without key in topic partition {place}"
            errors.append((index, reason))
        elif (bad := _time_error(batch.header, config, record, now)) is not None:
            bad_time = True
            errors.append((index, bad))
    if errors:
        raise _refused_records(errors, bad_time=bad_time)


def _has_doubtful_times(header: PositionedHeader, times: Sequence[int], config: TopicConfig, now: int) -> bool:
    if config.broker_time or header.has_broker_time:
        return header.has_broker_time
    before, after = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    return now - min(times, default=now) > before or max(times, default=now) - now > after


def _time_error(header: PositionedHeader, config: TopicConfig, record: Record, now: int) -> str | None:
    before, after = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    if not config.broker_time and record.timestamp != NO_TIMESTAMP:
        if now - record.timestamp <= before and record.timestamp - now <= after:
            return None
        start = f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range."
        return f"{start} The timestamp should be within [{now - before}, {now + after}]"
    if not header.has_broker_time:
        return None
    kind = "DefaultRecord" if header.codec == 0 or _codec(header, config) != header.codec else "PartialDefaultRecord"
    no_size = -1 if kind.startswith("Partial") else 0
    key, value = (no_size if part is None else len(part) for part in (record.key, record.value))
    shown = f"{kind}(offset={record.offset}, timestamp={record.timestamp}, key={key} bytes, value={value} bytes)"
    return f"Invalid timestamp type in message {shown}. Producer should not set timestamp type to LogAppendTime."


def _refused_records(errors: list[tuple[int, str]], *, bad_time: bool) -> RefusedRecordsError:
    if bad_time:
        error, message = ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp"
    else:
        shown = ", ".join(f"RecordError(batchIndex={at}, message='{text}')" for at, text in errors[:_SHOWN_ERRORS])
        message = f"One or more records have been rejected due to {len(errors)} record errors in total, "
        message += f"and only showing the first three errors at most: [{shown}]"
        error = ErrorCode.INVALID_RECORD
    return RefusedRecordsError(error=error, message=message, record_errors=tuple(errors))


def convert_for_storage(
    batch: RawBatch, config: TopicConfig, offset: int, leader_epoch: int, now: int, latest: int
) -> tuple[PositionedHeader, bytes]:
    """Return a batch for storage: its header at position 0, and its bytes.

    ``latest`` is the latest timestamp of its records. Raises ``RequestRefusedError`` like ``RawBatch.read`` if the
    batch must be rewritten and its records are unreadable.
    """
    target = _codec(batch.header, config)
    if target != batch.header.codec or _counts_wrongly(batch):
        batch = _with_codec(batch, config, target)
    header, time = batch.header, now if config.broker_time else latest
    attributes = header.attributes & ~LOG_APPEND_TIME | (LOG_APPEND_TIME if config.broker_time else 0)
    fields = [offset, header.length, leader_epoch, 2, header.crc, attributes, *header[7:]]
    fields[8] = time
    if (attributes, time) != (header.attributes, header.max_timestamp):
        head = HEADER.pack(*fields)
        fields[4] = crc32c(batch.data[HEADER_SIZE:], crc32c(head[CRC_START:]))
    return PositionedHeader(0, *fields), b"".join((HEADER.pack(*fields), batch.data[HEADER_SIZE:]))


def _counts_wrongly(batch: RawBatch) -> bool:
    """Return whether the offsets of compressed records do not start at 0, as some old clients write them."""
    header = batch.header
    if header.codec == 0 or header.is_control:
        return False
    return batch.read(RecordBatch.offsets) != list(range(header.base_offset, header.base_offset + header.records))


def _codec(header: PositionedHeader, config: TopicConfig) -> int:
    """Return the compression type for storing a batch. Control batches stay unchanged."""
    if config.compression_type == "producer" or header.is_control:
        return header.codec
    return (
        CompressionType.NONE
        if config.compression_type == "uncompressed"
        else CompressionType[config.compression_type.upper()]
    )


def _with_codec(batch: RawBatch, config: TopicConfig, codec: int) -> RawBatch:
    header = batch.header
    levels = {
        CompressionType.GZIP: config.compression_gzip_level,
        CompressionType.LZ4: config.compression_lz4_level,
        CompressionType.ZSTD: config.compression_zstd_level,
    }
    builder = BatchBuilder(
        BatchHeader(
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
        ),
        codec=CompressionType(codec),
        level=levels.get(CompressionType(codec)),
    )
    for record in batch.records():
        builder.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers)
    data = memoryview(builder.build())
    return RawBatch(PositionedHeader(0, *HEADER.unpack_from(data)), data)


def read_marker(batch: RawBatch) -> EndTransactionMarker | None:
    """Return the marker of a control batch, or None without a marker.

    Raises ``RequestRefusedError`` with CORRUPT_MESSAGE.
    """
    try:
        found = next(read_batches(batch.data, _UNCHECKED))
        records = found.control_records() if isinstance(found, RecordBatch) else []
    except RecordError as error:
        raise _corrupt(str(error)) from None
    for record in records:
        if record.type in (ControlType.ABORT, ControlType.COMMIT) and record.message is not None:
            return EndTransactionMarker(ControlType(record.type), record.message.coordinator_epoch, record.timestamp)  # type: ignore[attr-defined]
    return None
