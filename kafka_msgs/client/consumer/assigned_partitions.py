"""The state of a consumer's assigned partitions: positions, pauses, and records fetched but not yet returned.

Two offsets advance separately. ``position`` is the offset of the next record that ``poll`` returns. ``fetch_offset`` is
the next offset to request from a broker; the buffered records lie between the two. A seek moves both offsets and drops
the buffer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Any, Final, NamedTuple
from uuid import UUID

from attrs import define, field

from kafka_msgs.binary_layouts import HEADER_SIZE, LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET, header_field_offset
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.errors import OffsetPositionError
from kafka_msgs.messages.fetch_response import AbortedTransaction
from kafka_msgs.records import Payload

__all__ = [
    "RESETS",
    "AssignedPartition",
    "AssignedPartitions",
    "FetchedRecords",
    "OffsetResetStrategy",
    "scan_batches",
]

_HEAD: Final = Struct(">qiib")  # base offset, size, leader epoch, magic
_INT32: Final = Struct(">i")
_LAST_DELTA_AT: Final = header_field_offset("last_offset_delta")
_COUNT_AT: Final = header_field_offset("count")
_NO_EPOCH: Final = -1


class OffsetResetStrategy(IntEnum):
    """The special ListOffsets timestamps for looking up a position. All other timestamps are in milliseconds."""

    LATEST = -1
    EARLIEST = -2


RESETS: Final = {"earliest": OffsetResetStrategy.EARLIEST, "latest": OffsetResetStrategy.LATEST}
"""The start of a partition without a position, by ``auto.offset.reset`` value. ``none`` raises an error instead."""


@define(eq=False)
class FetchedRecords:
    """The records of one partition in one response, not yet returned to the user.

    ``records`` are the bytes of the batches. ``offset`` is the requested offset.
    """

    records: Payload
    offset: int
    aborted: tuple[AbortedTransaction, ...] | None


@define(eq=False)
class AssignedPartition:
    """A partition that a consumer reads.

    ``position`` is None until it is known. ``epoch`` is the leader epoch of the last record before ``fetch_offset``, or
    -1 if unknown. ``reset_strategy`` is an ``OffsetResetStrategy`` or a timestamp (ms) if the position must be looked
    up. ``ready`` is False until the user's ``on_assigned`` callback returns. ``replica`` is the follower that the
    leader prefers for this consumer (KIP-392), until ``replica_expires`` (seconds).
    """

    name: TopicPartition
    position: int | None = None
    fetch_offset: int = 0
    epoch: int = _NO_EPOCH
    reset_strategy: int | None = None
    paused: bool = False
    ready: bool = True
    replica: int | None = None
    replica_expires: float = 0.0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    error: Exception | None = None
    buffer: deque[FetchedRecords] = field(factory=deque)
    buffered: int = 0
    decoding: Any = None
    position_epoch: int = _NO_EPOCH
    handled: int | OffsetAndMetadata | None = None
    """The position when the user last requested more records, or the stored offset. Automatic commits use it."""
    topic_id: UUID | None = None
    """The id of the topic that the position belongs to. A topic recreated under the same name gets a new id."""
    stalls: int = 0
    """The number of consecutive responses that contained bytes, but no batch at ``fetch_offset``."""
    version: int = 0
    """The number of seeks and resets. A position looked up before the latest one is out of date."""

    def seek(self, offset: int, epoch: int = _NO_EPOCH) -> None:
        """Continue at an offset, and drop all buffered records. Earlier records count as handled."""
        self.handled = offset
        self.rewind(offset, epoch)

    def rewind(self, offset: int, epoch: int) -> None:
        """Continue at the offset of a record that was not handed over. This changes nothing for earlier records."""
        self.version += 1
        self.position = self.fetch_offset = offset
        self.epoch = self.position_epoch = epoch
        self.reset_strategy = None
        self.drop()

    def reset(self, to: int) -> None:
        """Look up the position: the start, the end, or the first record that is not older than a timestamp (ms)."""
        self.version += 1
        self.position = self.handled = None
        self.reset_strategy = to
        self.epoch = self.position_epoch = _NO_EPOCH
        self.drop()

    def drop(self) -> None:
        """Discard the records that were fetched but not returned, and any error."""
        self.buffer.clear()
        self.buffered = 0
        self.decoding = None
        self.error = None
        self.stalls = 0

    def add(self, fetched: FetchedRecords) -> int:
        """Buffer records, and return their number. The next fetch requests the records after them."""
        end, epoch, count = scan_batches(fetched.records)
        if end <= self.fetch_offset:
            return 0
        self.fetch_offset, self.epoch = end, epoch
        self.buffer.append(fetched)
        self.buffered += len(fetched.records)
        return count

    def take(self) -> FetchedRecords:
        """Remove and return the oldest buffered records."""
        fetched = self.buffer.popleft()
        self.buffered -= len(fetched.records)
        return fetched

    def is_fetchable(self, max_bytes: int) -> bool:
        """Whether to fetch more records: the position is known, and at most ``max_bytes`` are buffered."""
        return (
            self.position is not None
            and self.ready
            and not self.paused
            and self.error is None
            and self.buffered <= max_bytes
        )

    @property
    def empty(self) -> bool:
        """Whether the buffer is empty."""
        return not self.buffer and self.decoding is None

    @property
    def lag(self) -> int | None:
        """The distance from the position to the high watermark of the last response, or None if either is unknown."""
        return None if self.high_watermark < 0 or self.position is None else self.high_watermark - self.position


class AssignedPartitions:
    """The partitions of a consumer, by name. Every change replaces the mapping, so any thread may read it."""

    def __init__(self) -> None:
        self._all: dict[TopicPartition, AssignedPartition] = {}
        self._turn: deque[TopicPartition] = deque()

    def __iter__(self) -> Iterator[AssignedPartition]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __getitem__(self, name: TopicPartition) -> AssignedPartition:
        """Return a partition. Raises ``OffsetPositionError`` if the consumer does not have it."""
        try:
            return self._all[name]
        except KeyError:
            raise OffsetPositionError(
                topic=name[0], partition=name[1], reason="the consumer does not have it"
            ) from None

    def get(self, name: TopicPartition) -> AssignedPartition | None:
        """Return a partition, or None if the consumer does not have it."""
        return self._all.get(name)

    @property
    def names(self) -> frozenset[TopicPartition]:
        """The names of the partitions."""
        return frozenset(self._all)

    @property
    def buffered(self) -> int:
        """The number of bytes buffered for all partitions."""
        return sum(each.buffered for each in self._all.values())

    def add(self, partitions: Iterable[TopicPartition], *, ready: bool = True) -> None:
        """Start reading partitions. Partitions already being read are unchanged."""
        new = {name: AssignedPartition(name, ready=ready) for name in partitions if name not in self._all}
        self._all = self._all | new
        self._turn.extend(new)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading partitions, and drop their buffered records."""
        gone = {name: self._all[name] for name in partitions if name in self._all}
        for partition in gone.values():
            partition.drop()
        self._all = {name: each for name, each in self._all.items() if name not in gone}
        self._turn = deque(self._all)

    def in_turn(self) -> list[AssignedPartition]:
        """Return the partitions, starting with a different one on each call so that every partition gets its turn."""
        self._turn.rotate(-1)
        return [self._all[name] for name in self._turn]


class BatchScan(NamedTuple):
    """The offset after the last complete batch and its leader epoch, or -1, and the number of records."""

    end: int
    epoch: int
    records: int


def scan_batches(records: Payload) -> BatchScan:
    """Return the end, the last leader epoch and the number of records of complete batches.

    This function reads batch headers only. Damage is reported when the records are read.
    """
    at, end, epoch, count = 0, -1, _NO_EPOCH, 0
    while len(records) - at > MAGIC_OFFSET:
        base_offset, size, leader_epoch, magic = _HEAD.unpack_from(records, at)
        stop = at + LENGTH_AND_OFFSET_STRUCT + size
        if size < 0 or stop > len(records):
            break
        if magic == 2 and stop - at >= HEADER_SIZE:
            end, epoch = base_offset + _INT32.unpack_from(records, at + _LAST_DELTA_AT)[0] + 1, leader_epoch
            count += _INT32.unpack_from(records, at + _COUNT_AT)[0]
        else:
            end, epoch = base_offset + 1, _NO_EPOCH
            count += 1
        at = stop
    return BatchScan(end, epoch, count)
