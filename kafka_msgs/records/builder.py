"""Write batches: collect records up to a size, compress them once, and put a header before them.

This module owns the sizes, and the checks that Kafka makes before it accepts a batch. ``native``, ``python`` and
``legacy`` encode one record. ``write_checks`` checks one record. ``compression`` contains the codecs. The source is
Kafka's class ``org.apache.kafka.common.record.internal.MemoryRecordsBuilder``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from attrs import frozen

from kafka_msgs._backend import backend_module
from kafka_msgs.binary_layouts import (
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LENGTH_AND_OFFSET_STRUCT,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from kafka_msgs.checksums import crc32c
from kafka_msgs.errors import RecordWriteError
from kafka_msgs.message import Message
from kafka_msgs.records.compression import CompressionType, check_level, compress
from kafka_msgs.records.control_records import ControlType, control_content
from kafka_msgs.records.legacy import encode_entry
from kafka_msgs.records.record import NO_TIMESTAMP, Payload
from kafka_msgs.records.write_checks import INT16, INT32, INT64, Content, check, checked_content

__all__ = ["BatchBuilder", "BatchHeader", "MessageSetBuilder", "RowColumns", "replace_producer"]

_IMPLEMENTATION: Final = backend_module("kafka_msgs.records")


class RowColumns(NamedTuple):
    """Keys, values and timestamps (ms) of records as columns in Arrow's layout, without record objects.

    Offsets are 64-bit numbers, one more than rows, and start at the index ``first``. ``valid`` has a byte for each row:
    0 means null. ``valid`` is None if no row is null. Offsets are None if all rows are null, and times are None if all
    rows have the same time.
    """

    key_offsets: Any
    key_data: Any
    key_valid: Any
    key_first: int
    value_offsets: Any
    value_data: Any
    value_valid: Any
    value_first: int
    times: Any
    first_time: int


@frozen(kw_only=True)
class BatchHeader:
    """The fields of a magic 2 batch header.

    Raises ``RecordWriteError`` for a header that Kafka refuses: a transaction without a producer id, a producer id
    without an epoch, or, except in a control batch, a producer id without a sequence.
    """

    base_offset: int = 0
    partition_leader_epoch: int = -1
    log_append_timestamp: int | None = None
    """The broker's time in milliseconds since the epoch. With None the records keep their timestamps."""
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False
    delete_horizon: int | None = None
    """When tombstones may be removed, in milliseconds since the epoch."""
    last_offset: int | None = None
    """The last offset of the batch, if it is not the offset of the last record."""

    def __attrs_post_init__(self) -> None:
        check("base_offset", self.base_offset, 0, INT64)
        check("partition_leader_epoch", self.partition_leader_epoch, -1, INT32)
        check("producer_id", self.producer_id, -1, INT64)
        check("producer_epoch", self.producer_epoch, -1, INT16)
        check("base_sequence", self.base_sequence, -1, INT32)
        for name in ("log_append_timestamp", "delete_horizon", "last_offset"):
            if getattr(self, name) is not None:
                check(name, getattr(self, name), 0, INT64)
        self._check_producer()

    def _check_producer(self) -> None:
        if self.producer_id < 0:
            if self.transactional:
                raise RecordWriteError(field="transactional", value=True, reason="a transaction needs a producer_id")
            return
        if self.producer_epoch < 0:
            raise RecordWriteError(field="producer_epoch", value=self.producer_epoch, reason="a producer has an epoch")
        if self.base_sequence < 0 and not self.control:
            raise RecordWriteError(field="base_sequence", value=self.base_sequence, reason="a producer counts batches")

    def attributes(self, codec: CompressionType) -> int:
        """Return the flags of the batch."""
        return (
            codec
            | (LOG_APPEND_TIME if self.log_append_timestamp is not None else 0)
            | (TRANSACTIONAL if self.transactional else 0)
            | (CONTROL if self.control else 0)
            | (DELETE_HORIZON if self.delete_horizon is not None else 0)
        )


DEFAULT_HEADER: Final = BatchHeader()


class BatchBuilder:
    """Collects records for one magic 2 batch.

    ``size_limit`` is the largest size of the batch in bytes, without compression. The first record is always accepted,
    for any size, as in Kafka's producer.
    """

    def __init__(
        self,
        header: BatchHeader = DEFAULT_HEADER,
        *,
        codec: CompressionType = CompressionType.NONE,
        level: int | None = None,
        size_limit: int | None = None,
    ) -> None:
        self._header = header
        self._codec = CompressionType(codec)
        check_level(self._codec, level)
        self._level = level
        if size_limit is not None:
            check("size_limit", size_limit, 0, INT64)
        base = self._header.base_offset
        room = None if size_limit is None else max(0, size_limit - HEADER_SIZE)
        self._collector = _IMPLEMENTATION.RecordAppender(
            base, min(INT64, base + INT32), self._header.delete_horizon, room
        )
        if not self._header.control and type(self).append is BatchBuilder.append:
            # Callers call this for every record. A Python call in between would cost more than the work itself.
            self.append = self._collector.append  # type: ignore[method-assign]

    @property
    def count(self) -> int:
        """The current number of records in the batch."""
        return int(self._collector.count)

    @property
    def size(self) -> int:
        """The current size of the batch in bytes, without compression."""
        return HEADER_SIZE + int(self._collector.size)

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return int(self._collector.next_offset)

    def append(
        self,
        key: Payload | None,
        value: Payload | None,
        *,
        timestamp: int = NO_TIMESTAMP,
        headers: Iterable[tuple[str, Payload | None]] = (),
        offset: int | None = None,
    ) -> bool:
        """Add a record. If the batch would exceed its size limit, add nothing and return False.

        ``timestamp`` is in milliseconds since the epoch, -1 for none. ``offset`` defaults to the next offset, and may
        leave a gap. Raises ``RecordWriteError`` for a record that the format cannot hold.
        """
        if self._header.control:
            raise RecordWriteError(field="control", value=True, reason="a control batch takes control records only")
        taken: bool = self._collector.append(key, value, timestamp=timestamp, headers=headers, offset=offset)
        return taken

    def append_rows(self, columns: RowColumns, start: int, stop: int, *, timestamp: int) -> int:
        """Add rows of columns as records until one would exceed the size limit; return the number of added records.

        A row that the format cannot hold also ends the call; ``append`` raises the reason. ``timestamp`` is used for
        columns without timestamps. Raises ``ValueError`` for columns that do not have these rows, and
        ``RecordWriteError`` for a control batch.
        """
        if self._header.control:
            raise RecordWriteError(field="control", value=True, reason="a control batch takes control records only")
        return int(self._collector.append_rows(start, stop, timestamp, *columns))

    def append_control(
        self, kind: ControlType, message: Message, *, timestamp: int, version: int = 0, offset: int | None = None
    ) -> bool:
        """Add a control record, with the result and errors of ``append``, and the errors of ``Message.encode``.

        Raises ``RecordWriteError`` for a batch that is not a control batch.
        """
        if not self._header.control:
            raise RecordWriteError(field="control", value=False, reason="control records need a control batch")
        key, value = control_content(kind, message, version)
        taken: bool = self._collector.append(key, value, timestamp=timestamp, offset=offset)
        return taken

    def build(self, header: BatchHeader | None = None) -> bytes:
        """Return the batch. More records can be added later, and another call then returns a larger batch.

        ``header`` replaces the header from the constructor, because a producer assigns the sequence of a batch only
        when sending it. Its base offset must be the same. A batch without records is allowed, since compaction leaves
        such batches. Raises ``MissingExtraError``, and ``RecordWriteError`` for a level that the codec refuses.
        """
        found, header = self._collector, header or self._header
        if self._codec == CompressionType.NONE or not found.count:
            plain: bytes = found.sealed(self._head(header, _IMPLEMENTATION.appended_bytes(found)))
            return plain
        content = compress(self._codec, _IMPLEMENTATION.appended_bytes(found), self._level)
        return b"".join((self._head(header, content), content))

    def _head(self, header: BatchHeader, content: bytes | bytearray | memoryview) -> bytes:
        found = self._collector
        size = HEADER_SIZE + len(content) - LENGTH_AND_OFFSET_STRUCT
        check("size", size, 0, INT32)
        least = max(found.next_offset - 1, header.base_offset)
        last = least if header.last_offset is None else header.last_offset
        check("last_offset", last, least, header.base_offset + INT32)
        appended = header.log_append_timestamp
        head = bytearray(HEADER_SIZE)
        HEADER.pack_into(
            head, 0, header.base_offset, size, header.partition_leader_epoch, 2, 0, header.attributes(self._codec),
            last - header.base_offset, found.base_timestamp, found.max_timestamp if appended is None else appended,
            header.producer_id, header.producer_epoch, header.base_sequence, found.count,
        )  # fmt: skip
        crc = crc32c(content, crc32c(head[CRC_START:]))
        head[CRC_START - 4 : CRC_START] = crc.to_bytes(4, "big")
        return bytes(head)


def replace_producer(batch: bytes, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
    """Return a magic 2 batch with another producer id, epoch and sequence, and with an updated checksum.

    A producer with a new epoch resends its batches this way (KIP-360). The records stay unchanged.
    """
    fields = list(HEADER.unpack_from(batch))
    fields[-4:-1] = producer_id, producer_epoch, base_sequence
    head = bytearray(HEADER.pack(*fields))
    content = memoryview(batch)[HEADER_SIZE:]
    crc = crc32c(content, crc32c(head[CRC_START:]))
    head[CRC_START - 4 : CRC_START] = crc.to_bytes(4, "big")
    return b"".join((head, content))


@frozen
class _Message:
    offset: int
    timestamp: int
    key: Content
    value: Content


class MessageSetBuilder:
    """Collects records for a message set of magic 0 or 1. With a codec, one compressed wrapper holds all of them.

    Such messages do not have headers, producers or transactions. Magic 0 does not have timestamps. Raises
    ``RecordWriteError`` for zstd, which needs magic 2, and for a broker's time in magic 0. The source is KIP-31, KIP-32
    and Kafka's class ``org.apache.kafka.common.record.internal.LegacyRecord``.
    """

    def __init__(
        self,
        *,
        magic: int,
        codec: CompressionType = CompressionType.NONE,
        level: int | None = None,
        base_offset: int = 0,
        log_append_timestamp: int | None = None,
    ) -> None:
        check("magic", magic, 0, 1)
        if codec == CompressionType.ZSTD:
            raise RecordWriteError(field="codec", value=codec, reason="zstd needs magic 2")
        if magic == 0 and log_append_timestamp is not None:
            reason = "magic 0 has no timestamps"
            raise RecordWriteError(field="log_append_timestamp", value=log_append_timestamp, reason=reason)
        check("base_offset", base_offset, 0, INT64)
        self._magic = magic
        self._codec = CompressionType(codec)
        check_level(self._codec, level)
        self._level = level
        self._appended = log_append_timestamp
        self._messages: list[_Message] = []
        self._next = base_offset

    def append(
        self,
        key: Payload | None,
        value: Payload | None,
        *,
        timestamp: int = NO_TIMESTAMP,
        offset: int | None = None,
    ) -> None:
        """Add a record. ``offset`` defaults to the next offset. Raises ``RecordWriteError``."""
        offset = self._next if offset is None else offset
        check("offset", offset, self._next, INT64)
        check("timestamp", timestamp, NO_TIMESTAMP, INT64 if self._magic else NO_TIMESTAMP)
        time = timestamp if self._appended is None else self._appended
        self._messages.append(_Message(offset, time, checked_content("key", key), checked_content("value", value)))
        self._next = offset + 1

    def build(self) -> bytes:
        """Return the message set; raises ``MissingExtraError``, and ``RecordWriteError`` for a refused level."""
        if self._codec == CompressionType.NONE or not self._messages:
            return self._entries(0)
        messages = self._messages
        first, last = (messages[0].offset, messages[-1].offset)
        content = self._entries(first if self._magic else 0)
        value = compress(self._codec, content, self._level, magic=self._magic)
        latest = max(message.timestamp for message in messages)
        return encode_entry(last, self._magic, self._flags | self._codec, latest, None, value)

    @property
    def _flags(self) -> int:
        return 0 if self._appended is None else LOG_APPEND_TIME

    def _entries(self, base: int) -> bytes:
        return b"".join(
            encode_entry(each.offset - base, self._magic, self._flags, each.timestamp, each.key, each.value)
            for each in self._messages
        )
