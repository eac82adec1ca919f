"""What a consumer knows about each of its partitions: positions, pauses, and data that was fetched and not returned.

Two offsets move on separately. ``position`` is the offset of the next record that ``poll`` returns. ``fetch_offset`` is
the next one to ask a broker for; it is ahead by what is buffered. A seek moves both and drops the buffer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Any, Final
from uuid import UUID

from attrs import define, field

from kafka_msgs.binary_layouts import HEADER_SIZE, LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET, header_field_offset
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.errors import OffsetPositionError
from kafka_msgs.messages.fetch_response import AbortedTransaction
from kafka_msgs.records import Payload

__all__ = [
    "RESETS",
    "AssignedPartition",
    "AssignedPartitions",
    "FetchedRecords",
    "OffsetResetStrategy",
    "end_offset_of_batches",
]

_HEAD: Final = Struct(">qiib")  # base offset, size, leader epoch, magic
_LAST_DELTA: Final = Struct(">i")
_LAST_DELTA_AT: Final = header_field_offset("last_offset_delta")
_NO_EPOCH: Final = -1


class OffsetResetStrategy(IntEnum):
    """Where a position is looked up: the special timestamps of ListOffsets. Other timestamps are in milliseconds."""

    LATEST = -1
    EARLIEST = -2


RESETS: Final = {"earliest": OffsetResetStrategy.EARLIEST, "latest": OffsetResetStrategy.LATEST}
"""Where a partition without a position starts, by the values of ``auto.offset.reset``. ``none`` raises an error."""


@define(eq=False)
class FetchedRecords:
    """The records of one partition in one response, which are not returned yet.

    ``records`` are the bytes of batches. ``offset`` is the one that was asked for.
    """

    records: Payload
    offset: int
    aborted: tuple[AbortedTransaction, ...] | None


@define(eq=False)
class AssignedPartition:
    """A partition that a consumer reads.

    ``position`` is None until it is known. ``epoch`` is the leader epoch of the last record before ``fetch_offset``, -1
    if it is not known. ``reset_strategy`` is a ``OffsetResetStrategy`` or a timestamp (ms) if the position must be
    looked up. ``ready`` is False while the function of the user that runs at assignment has not returned. ``replica``
    is the follower that the leader prefers for this consumer (KIP-392), until ``replica_expires`` (seconds).
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
    handled: int | None = None
    """The position at the last time that the user came back for more: what automatic commits commit."""
    topic_id: UUID | None = None
    """The topic that the position belongs to. One that is made again under the same name has another id."""
    stalls: int = 0
    """How many responses in a row had bytes, but no batch at ``fetch_offset``."""
    version: int = 0
    """Counts the seeks and resets: a position that was looked up before one of them is out of date."""

    def seek(self, offset: int, epoch: int = _NO_EPOCH) -> None:
        """Go on at an offset. What was fetched before is dropped."""
        self.version += 1
        self.position = self.fetch_offset = self.handled = offset
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
        """Forget what was fetched and not returned."""
        self.buffer.clear()
        self.buffered = 0
        self.decoding = None
        self.error = None
        self.stalls = 0

    def add(self, fetched: FetchedRecords) -> None:
        """Buffer records. The next fetch asks for what follows them."""
        end, epoch = end_offset_of_batches(fetched.records)
        if end <= self.fetch_offset:
            return
        self.fetch_offset, self.epoch = end, epoch
        self.buffer.append(fetched)
        self.buffered += len(fetched.records)

    def take(self) -> FetchedRecords:
        """Return the oldest buffered records."""
        fetched = self.buffer.popleft()
        self.buffered -= len(fetched.records)
        return fetched

    def is_fetchable(self, max_records: int) -> bool:
        """Whether to ask a broker for more: the position is known, and at most ``max_records`` bytes are buffered."""
        return (
            self.position is not None
            and self.ready
            and not self.paused
            and self.error is None
            and self.buffered <= max_records
        )

    @property
    def empty(self) -> bool:
        """Whether nothing is buffered."""
        return not self.buffer and self.decoding is None

    @property
    def lag(self) -> int | None:
        """How many offsets the position is behind the end that the last response named, or None if there was none."""
        return None if self.high_watermark < 0 or self.position is None else self.high_watermark - self.position


class AssignedPartitions:
    """The partitions of a consumer, by name. They are replaced as a whole, so that any thread may look at them."""

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
        """How many bytes are buffered for all partitions."""
        return sum(each.buffered for each in self._all.values())

    def add(self, partitions: Iterable[TopicPartition], *, ready: bool = True) -> None:
        """Begin to read partitions, or keep those that are read."""
        new = {name: AssignedPartition(name, ready=ready) for name in partitions if name not in self._all}
        self._all = self._all | new
        self._turn.extend(new)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading partitions, and drop what is buffered of them."""
        gone = {name: self._all[name] for name in partitions if name in self._all}
        for partition in gone.values():
            partition.drop()
        self._all = {name: each for name, each in self._all.items() if name not in gone}
        self._turn = deque(self._all)

    def in_turn(self) -> list[AssignedPartition]:
        """Return the partitions, and begin with another one each time, so that none of them waits for ever."""
        self._turn.rotate(-1)
        return [self._all[name] for name in self._turn]


def end_offset_of_batches(records: Payload) -> tuple[int, int]:
    """Return the offset behind the last complete batch, and its leader epoch: (-1, -1) if there is none.

    Only sizes are read; damage is reported when the records are read.
    """
    at, end, epoch = 0, -1, _NO_EPOCH
    while len(records) - at > MAGIC_OFFSET:
        base_offset, size, leader_epoch, magic = _HEAD.unpack_from(records, at)
        stop = at + LENGTH_AND_OFFSET_STRUCT + size
        if size < 0 or stop > len(records):
            break
        if magic == 2 and stop - at >= HEADER_SIZE:
            end, epoch = base_offset + _LAST_DELTA.unpack_from(records, at + _LAST_DELTA_AT)[0] + 1, leader_epoch
        else:
            end, epoch = base_offset + 1, _NO_EPOCH
        at = stop
    return end, epoch
