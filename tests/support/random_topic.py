"""A randomly generated partition of an ordinary topic, written to disk up to any point."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

from attrs import define, field, frozen

from kafka_msgs import EndTxnMarker
from kafka_msgs.log.writers.small_files import format_partition_metadata
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, ControlType

__all__ = ["RandomTopic"]

_START_MS: Final = 1_767_225_600_000
_HOUR_MS: Final = 3_600_000
_FIRST_ID: Final = UUID(int=1)
_KEYS: Final = (None, b"", b"a", b"beer", "größer".encode())
_HEADERS: Final = ((), (), (("trace", b"1"),), (("größe", None), ("", b"xyz")))
_CODECS: Final = (CompressionType.NONE, CompressionType.NONE, CompressionType.GZIP, CompressionType.ZSTD)


@frozen
class _Batch:
    offset: int
    data: bytes


@define
class RandomTopic:
    """A growing partition. ``write`` writes the files of its current state."""

    home: Path
    dice: Random
    name: str = "events"
    number: int = 0
    damage: bool = False
    """Whether to write some batches with a wrong checksum."""
    far: bool = True
    """Whether to use some times too late for any timestamp type."""
    id: UUID | None = _FIRST_ID
    segments: list[list[_Batch]] = field(factory=lambda: [[]])
    _open: set[int] = field(factory=set)
    _next: int = 0
    _epoch: int = 0

    @property
    def directory(self) -> Path:
        """The partition directory."""
        return self.home / f"{self.name}-{self.number}"

    def grow(self, steps: int) -> None:
        """Add this many batches."""
        for _ in range(steps):
            if self.segments[-1] and self.dice.random() < 0.1:
                self.segments.append([])
            self.segments[-1].append(self._marker() if self._open and self.dice.random() < 0.2 else self._batch())

    def _time(self) -> int:
        """Return a time close to the write time of the batch, in any order, or none."""
        near = _START_MS + self._next * 200_000 + self.dice.randrange(-_HOUR_MS // 2, _HOUR_MS)
        return self.dice.choice((-1, near, near, near, near, near, 7, 2**53 if self.far else near))

    def _batch(self) -> _Batch:
        producer, transactional = self.dice.choice(((-1, False), (-1, False), (5, False), (1, True), (2, True)))
        facts: dict[str, Any] = {} if producer < 0 else {
            "producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": transactional,
        }  # fmt: skip
        header = BatchHeader(base_offset=self._next, partition_leader_epoch=self._epoch, **facts)
        builder = BatchBuilder(header, codec=self.dice.choice(_CODECS))
        for _ in range(self.dice.randrange(1, 5)):
            value = None if self.dice.random() < 0.2 else bytes(self.dice.randrange(40))
            key, headers = self.dice.choice(_KEYS), self.dice.choice(_HEADERS)
            builder.append(key, value, headers=headers, timestamp=self._time())
        if transactional:
            self._open.add(producer)
        return self._built(builder)

    def _marker(self) -> _Batch:
        producer = self.dice.choice(sorted(self._open))
        self._open.discard(producer)
        header = BatchHeader(
            base_offset=self._next, partition_leader_epoch=self._epoch, producer_id=producer, producer_epoch=0,
            transactional=True, control=True,
        )  # fmt: skip
        builder = BatchBuilder(header)
        kind = self.dice.choice((ControlType.COMMIT, ControlType.ABORT))
        builder.append_control(kind, EndTxnMarker(coordinator_epoch=1), timestamp=_START_MS + self._next * 200_000)
        return self._built(builder)

    def _built(self, builder: BatchBuilder) -> _Batch:
        offset, count, data = self._next, builder.count, bytearray(builder.build())
        self._next += count
        if self.damage and self.dice.random() < 0.05:
            data[-1] ^= 1
        return _Batch(offset, bytes(data))

    def delete_first(self) -> None:
        """Delete the first segment, as retention does."""
        if len(self.segments) > 1:
            del self.segments[0]

    def compact(self) -> None:
        """Remove some batches from the closed segments, and one of these segments."""
        for segment in self.segments[:-1]:
            segment[:] = [each for each in segment if self.dice.random() < 0.8]
        if len(self.segments) > 2:
            one = self.dice.randrange(1, len(self.segments) - 1)
            self.segments[one - 1] += self.segments.pop(one)

    def truncate(self) -> None:
        """Truncate the last batches, as a follower that has more than the new leader, which then writes others."""
        self._epoch += 1
        for _ in range(self.dice.randrange(1, 6)):
            if len(self.segments) > 1 and not self.segments[-1]:
                self.segments.pop()
            if self.segments[-1]:
                self._next = self.segments[-1].pop().offset

    def recreate(self) -> None:
        """Delete and recreate the topic, with different records at the same offsets."""
        self.id = self.id and UUID(int=self.id.int + 1)
        self.segments, self._next = [[]], 0
        self._open.clear()

    def write(self) -> Path:
        """Write the files, and return the log directory."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        if self.id is not None:
            (self.directory / "partition.metadata").write_bytes(format_partition_metadata(self.id))
        base = 0
        for segment in self.segments:
            base = segment[0].offset if segment else base
            (self.directory / f"{base:020}.log").write_bytes(b"".join(each.data for each in segment))
            base += 1
        return self.home
