"""Generate a log directory of any size: ``python -m benchmarks.big_directory DIRECTORY --bytes 2G --content offsets``.

*offsets* is a ``__consumer_offsets`` topic with eight partitions: groups that commit repeatedly, members that join and
leave, tombstones, and offsets committed or aborted in transactions. *events* is a topic with four partitions, whose
producers use every codec, some with transactions or headers, and which has tombstones. The same arguments produce the
same bytes. Segments have offset indexes, as on a broker.

A partition repeats one generated block of batches under new offsets: the offset of a batch is not covered by its
checksum, so a block is valid at any offset. The work of a reader per byte is the same as for a log without repetition,
but the number of different keys is limited to the keys of one block.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from random import Random
from struct import Struct
from typing import Any, Final, TypeAlias

from attrs import frozen
from rich.progress import Progress

from kafka_msgs import OffsetCommitKey, OffsetCommitValue
from kafka_msgs.cli.render.console import console
from kafka_msgs.internal_topics.records import TopicRecord, encode_record
from kafka_msgs.log.writers.index_writer import SegmentIndexes
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.end_txn_marker import EndTxnMarker
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kafka_msgs.records import NO_TIMESTAMP, BatchBuilder, BatchHeader, CompressionType, ControlType
from kafka_msgs.versioned import encode_versioned

__all__ = ["CONTENTS", "Written", "byte_count", "grow_directory", "write_directory"]

_Record: TypeAlias = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

_BLOCK_BYTES: Final = 8 << 20
_SEGMENT_BYTES: Final = 128 << 20
_START_MS: Final = 1_767_225_600_000
_OFFSET: Final = Struct(">q")
_ABORTED: Final = Struct(">hqqqq")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_GROUPS: Final = 400
_TOPICS: Final = 25
_TRANSACTION_EVERY: Final = 20
_TOMBSTONES_EVERY: Final = 50
_MEMBERS_EVERY: Final = 40
_EVENTS_IN_BATCH: Final = 150
_STEP_MS: Final = 5_000
_SUBSCRIPTION: Final = encode_versioned(ConsumerProtocolSubscription(topics=("topic-00",)), 1)
_ASSIGNMENT: Final = encode_versioned(
    ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="topic-00", partitions=(0, 1)),)), 1
)
_PAGES: Final = ("basket", "checkout", "delivery", "home", "offers", "returns", "search")


@frozen
class Written:
    """The counts of a written log: ``records`` without markers, transaction ``markers``, and ``size`` in bytes."""

    records: int
    markers: int
    size: int


class _Block:
    """Collects the batches of a block; ``time`` is the timestamp of the next batch, in milliseconds."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.places: list[tuple[int, int]] = []
        self.aborted: list[tuple[int, int, int]] = []
        self.markers = 0
        self.next_offset = 0
        self.time = _START_MS

    def add(self, records: Iterable[_Record], codec: CompressionType = CompressionType.NONE, **header: Any) -> None:
        """Add a batch of records; ``header`` contains arguments of ``BatchHeader``."""
        builder = BatchBuilder(BatchHeader(**header), codec=codec)
        for number, (key, value, headers) in enumerate(records):
            builder.append(key, value, timestamp=self.time + number, headers=headers)
        self._place(builder)

    def transaction(self, records: Iterable[_Record], producer: int, *, committed: bool, **header: Any) -> None:
        """Add a transaction of one batch, and the marker that ends it."""
        first = self.next_offset
        of_producer: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "transactional": True}
        self.add(records, base_sequence=first, **of_producer, **header)
        if not committed:
            self.aborted.append((producer, first, self.next_offset))
        marker = BatchBuilder(BatchHeader(control=True, **of_producer))
        kind = ControlType.COMMIT if committed else ControlType.ABORT
        marker.append_control(kind, EndTxnMarker(coordinator_epoch=1), timestamp=self.time)
        self._place(marker)
        self.markers += 1

    def _place(self, builder: BatchBuilder) -> None:
        self.places.append((len(self.data), self.next_offset))
        self.data += builder.build()
        self.next_offset += builder.count

    def at(self, offset: int) -> bytearray:
        """Return the bytes of the block with its first record at that offset."""
        data = bytearray(self.data)
        for position, relative in self.places:
            _OFFSET.pack_into(data, position, offset + relative)
        return data

    def index_at(self, offset: int, position: int, base: int) -> bytes:
        """Return the offset index entries of the block at that offset and byte of the segment with this base offset."""
        indexes = SegmentIndexes(base)
        for (start, _), (end, following) in pairwise([*self.places, (len(self.data), self.next_offset)]):
            indexes.add(position + start, end - start, offset + following - 1, NO_TIMESTAMP)
        return indexes.offset_index()

    def aborted_at(self, offset: int) -> bytes:
        """Return the transaction index entries of the block at that offset."""
        return b"".join(
            _ABORTED.pack(0, producer, offset + first, offset + marker, offset + marker + 1)
            for producer, first, marker in self.aborted
        )


class _Offsets:
    """Fills a block of a ``__consumer_offsets`` partition, one commit or membership change at a time."""

    topic = "__consumer_offsets"
    partitions = 8

    def __init__(self, number: int) -> None:
        self._random = Random(number)
        self._groups = [f"group-{each:04}" for each in range(number, _GROUPS, self.partitions)]

    def fill(self, block: _Block, step: int) -> None:
        """Add one unit to the block."""
        group = self._random.choice(self._groups)
        if step % _MEMBERS_EVERY == 0:
            block.add([_bytes(_members(group, step, self._random.randrange(4), block.time))])
            return
        topic = f"topic-{self._random.randrange(_TOPICS):02}"
        gone = step % _TOMBSTONES_EVERY == 2
        records = [_bytes(_commit(group, topic, each, step, block.time, gone=gone)) for each in range(8)]
        if step % _TRANSACTION_EVERY == 1:
            block.transaction(records, self._random.randrange(9), committed=step // _TRANSACTION_EVERY % 3 != 0)
        else:
            block.add(records)


def _commit(group: str, topic: str, partition: int, offset: int, time: int, *, gone: bool) -> TopicRecord:
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    if gone:
        return TopicRecord(topic=_Offsets.topic, key=key)
    value = OffsetCommitValue(offset=100 * offset + partition, leader_epoch=3, metadata="", commit_timestamp=time)
    return TopicRecord(topic=_Offsets.topic, key=key, value=value, version=3)


def _members(group: str, generation: int, count: int, time: int) -> TopicRecord:
    members = tuple(
        MemberMetadata(
            member_id=f"{group}-{number}", client_id="app", client_host="/10.0.0.7", rebalance_timeout=60_000,
            session_timeout=45_000, subscription=_SUBSCRIPTION, assignment=_ASSIGNMENT,
        )
        for number in range(count)
    )  # fmt: skip
    value = GroupMetadataValue(
        protocol_type="consumer", generation=generation, protocol="range" if count else None,
        leader=members[0].member_id if members else None, current_state_timestamp=time, members=members,
    )  # fmt: skip
    return TopicRecord(topic=_Offsets.topic, key=GroupMetadataKey(group=group), value=value, version=3)


def _bytes(record: TopicRecord) -> _Record:
    key, value = encode_record(record)
    return key, value, ()


class _Events:
    """Fills a block of an ordinary partition, one producer batch or transaction at a time."""

    topic = "events"
    partitions = 4

    def __init__(self, number: int) -> None:
        self._random = Random(number)

    def fill(self, block: _Block, step: int) -> None:
        """Add one unit to the block."""
        records = [self._record(number, with_headers=step % 3 == 0) for number in range(_EVENTS_IN_BATCH)]
        codec = CompressionType(step % len(CompressionType))
        if step % _TRANSACTION_EVERY == 1:
            block.transaction(records, step % 7, committed=step // _TRANSACTION_EVERY % 3 != 0, codec=codec)
        else:
            block.add(records, codec=codec)

    def _record(self, number: int, *, with_headers: bool) -> _Record:
        user = self._random.randrange(1_000_000)
        key = b"user-%06d" % user
        headers = (("trace", b"%016x" % self._random.getrandbits(64)), ("tenant", None)) if with_headers else ()
        if number % _TOMBSTONES_EVERY == 1:
            return key, None, headers
        page = self._random.choice(_PAGES)
        value = f'{{"user":{user},"page":"{page}","session":"{self._random.getrandbits(64):016x}","item":{number}}}'
        return key, value.encode(), headers


CONTENTS: Final[Mapping[str, type[_Offsets | _Events]]] = {"offsets": _Offsets, "events": _Events}
"""The contents that can be generated."""


def write_directory(
    path: Path,
    size: int,
    content: str,
    *,
    block_bytes: int = _BLOCK_BYTES,
    segment_bytes: int = _SEGMENT_BYTES,
    progress: Callable[[int], object] = lambda size: None,
) -> Written:
    """Write a log directory of at least ``size`` bytes of batches at ``path``, if it does not exist yet.

    ``content`` is one of ``CONTENTS``. ``progress`` is called with the bytes written so far. Raises ``OSError``.
    """
    kind = CONTENTS[content]
    share = -(-size // kind.partitions)
    records = markers = written = 0
    for number in range(kind.partitions):
        block = _block(kind(number), min(block_bytes, share))
        directory = path / f"{kind.topic}-{number}"
        directory.mkdir(parents=True)
        for copy in range(-(-share // len(block.data))):
            _append(directory, block, copy, max(1, segment_bytes // len(block.data)))
            records += block.next_offset - block.markers
            markers += block.markers
            written += len(block.data)
            progress(written)
    return Written(records, markers, written)


def grow_directory(path: Path, size: int, content: str, more: int, *, block_bytes: int = _BLOCK_BYTES) -> int:
    """Append batches of about ``more`` bytes to a directory written by ``write_directory``; return their bytes.

    Pass the same ``size``, ``content`` and ``block_bytes`` as before. The last segments grow, but not their indexes.
    Raises ``OSError``.
    """
    kind = CONTENTS[content]
    share, added = -(-size // kind.partitions), 0
    for number in range(kind.partitions):
        block = _block(kind(number), min(block_bytes, share))
        copies = -(-share // len(block.data))
        end = next((place for place, _ in block.places if place >= more // kind.partitions), len(block.data))
        with max((path / f"{kind.topic}-{number}").glob("*.log")).open("ab") as file:
            file.write(block.at(copies * block.next_offset)[:end])
        added += end
    return added


def _block(content: _Offsets | _Events, size: int) -> _Block:
    block = _Block()
    step = 0
    while len(block.data) < size:
        content.fill(block, step)
        block.time += _STEP_MS
        step += 1
    return block


def _append(directory: Path, block: _Block, copy: int, copies_in_segment: int) -> None:
    offset = copy * block.next_offset
    base = (copy - copy % copies_in_segment) * block.next_offset
    with (directory / f"{base:020}.log").open("ab") as file, (directory / f"{base:020}.index").open("ab") as index:
        index.write(block.index_at(offset, file.tell(), base))
        file.write(block.at(offset))
    with (directory / f"{base:020}.txnindex").open("ab") as file:
        file.write(block.aborted_at(offset))


def byte_count(text: str) -> int:
    """Return the number of bytes in a text such as ``512M`` or ``2G``; raises ``ValueError``."""
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text.upper())
    if match is None:
        raise ValueError(f"{text!r} is not a number of bytes, such as 512M or 2G")
    return int(match[1]) * _UNITS[match[2]]


def main() -> None:
    """Write the directory according to the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.big_directory", description="Make a log directory.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--bytes", type=byte_count, default=byte_count("2G"), help="such as 512M or 2G (default: 2G)")
    parser.add_argument("--content", choices=sorted(CONTENTS), default="offsets")
    arguments = parser.parse_args()
    with Progress(console=console()) as shown:
        task = shown.add_task(f"writing {arguments.content}", total=arguments.bytes)
        written = write_directory(
            arguments.directory, arguments.bytes, arguments.content,
            progress=lambda size: shown.update(task, completed=size),
        )  # fmt: skip
    print(f"{written.records:,} records and {written.markers:,} markers in {written.size:,} bytes")


if __name__ == "__main__":
    main()
