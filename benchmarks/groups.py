"""Group coordinators: the time to load a partition of ``__consumer_offsets``.

The records resemble a busy cluster: committed offsets of many groups, topics and partitions, each committed repeatedly.
They are loaded as in a broker: from the bytes of record batches into a coordinator.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Final

from rich.console import Console

from benchmarks.report import Figure, print_figures
from benchmarks.timing import PROTOCOL, fastest
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import GroupCoordinator
from kafka_msgs.groups.runtime.memory_log import MemoryLog
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import TopicRecord, decode_record, encode_record
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.records import Batch, BatchBuilder, read_batches

__all__ = ["run"]

_TOPIC: Final = "__consumer_offsets"
_RECORDS: Final = 1_000_000
_IN_BATCH: Final = 500
_ROUNDS: Final = 3
_TARGET: Final = 300_000


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    cases = {
        "records to messages": partial(_decode, _keys_and_values()),
        "messages to state": partial(_load, _messages()),
        "records to state": partial(_load_pairs, _keys_and_values()),
        "batches to state": partial(_load_batches, _batches()),
    }
    used = min(rounds, _ROUNDS)
    seconds = fastest(cases, used)
    figures = [
        Figure(
            f"load a partition of {_RECORDS:,} records, {name}, records a second",
            _RECORDS / seconds[name],
            unit="",
            target=_TARGET if name == "batches to state" else None,
        )
        for name in cases
    ]
    print_figures(console, "Group coordinators", PROTOCOL.format(rounds=used), figures)
    return figures


def _coordinator() -> GroupCoordinator:
    """Return a coordinator that loads its only partition."""
    made = GroupCoordinator(MemoryLog().append, config=CoordinatorConfig(offsets_topic_num_partitions=1))
    made.elect(0, 1, now=0)
    return made


@cache
def _messages() -> tuple[TopicRecord, ...]:
    """Return commits of 1,000 groups to 7 topics with 16 partitions."""
    return tuple(
        TopicRecord(
            topic=_TOPIC,
            key=OffsetCommitKey(group=f"group-{number % 1000}", topic=f"topic-{number % 7}", partition=number % 16),
            value=OffsetCommitValue(offset=number, commit_timestamp=1_790_000_000_000 + number),
            version=4,
        )
        for number in range(_RECORDS)
    )


@cache
def _keys_and_values() -> tuple[tuple[bytes | None, bytes | None], ...]:
    return tuple(map(encode_record, _messages()))


@cache
def _batches() -> tuple[Batch, ...]:
    builders = []
    for start in range(0, _RECORDS, _IN_BATCH):
        builder = BatchBuilder()
        for key, value in _keys_and_values()[start : start + _IN_BATCH]:
            builder.append(key, value, timestamp=0)
        builders.append(builder.build())
    return tuple(read_batches(b"".join(builders)))


def _decode(pairs: tuple[tuple[bytes | None, bytes | None], ...]) -> None:
    for key, value in pairs:
        decode_record(_TOPIC, key, value)


def _load(records: tuple[TopicRecord, ...]) -> None:
    _coordinator().load(0, records)


def _load_pairs(pairs: tuple[tuple[bytes | None, bytes | None], ...]) -> None:
    _coordinator().load(0, (decode_record(_TOPIC, key, value) for key, value in pairs))


def _load_batches(batches: tuple[Batch, ...]) -> None:
    _coordinator().load(0, decode_batches(_TOPIC, batches))
