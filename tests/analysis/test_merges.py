"""Reducers: a log that is cut anywhere, whose ranges are merged in any order, has the result of one pass."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar
from uuid import UUID

import pyarrow as pa
import pytest
from attrs import define

from kafka_msgs import OffsetCommitKey, OffsetCommitValue
from kafka_msgs.analysis import live_records
from kafka_msgs.analysis.commit_windows import CommitWindows
from kafka_msgs.analysis.committed_offsets import CommittedOffsets
from kafka_msgs.analysis.offset_tables import EndOffsets, described_groups, with_first_commits
from kafka_msgs.analysis.record_classification import RECORD_COLUMNS, ClassifiedRecords, classify
from kafka_msgs.analysis.share_offsets import LatestRecords
from kafka_msgs.columns.record_tables import walk_record_table
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import NO_PRODUCER, InternalRecord, TopicRecord
from kafka_msgs.internal_topics.replay import TransactionEnd, replay
from kafka_msgs.log import LogDirectory, Partition
from kafka_msgs.messages.share_snapshot_key import ShareSnapshotKey
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue
from kafka_msgs.messages.share_update_key import ShareUpdateKey
from kafka_msgs.messages.share_update_value import ShareUpdateValue
from kafka_msgs.messages.transaction_log_key import TransactionLogKey
from kafka_msgs.messages.transaction_log_value import TransactionLogValue
from tests.support.offsets_topic import TOPIC, Item, OffsetsTopic, end, write_items
from tests.support.recordings import GROUP_LOGS


class Reducer(Protocol):
    """The interface of reducers."""

    def add(self, batch: Any, /) -> Any: ...
    def merge(self, later: Any, /) -> Any: ...
    def checkpoint(self) -> Any: ...


R = TypeVar("R", bound=Reducer)
T = TypeVar("T")
ENDS = EndOffsets.of({(name, 0): 10_000 for name in "abcdefghijklmnopqrstuvwxyz"})


def cut(items: Sequence[T], dice: Random) -> list[Sequence[T]]:
    """Cut items at up to six places."""
    places = sorted(dice.choices(range(len(items) + 1), k=dice.randrange(7)))
    return [items[start:end] for start, end in zip([0, *places], [*places, len(items)], strict=True)]


def reduce_ranges(items: Sequence[Any], dice: Random, new: Callable[[bool], R], saved: Callable[[R], R]) -> R:
    """Reduce each range of the items, and merge neighbours in random order, some after a checkpoint."""
    states: list[R] = []
    for number, some in enumerate(cut(items, dice)):
        states.append(new(number == 0))
        for item in some:
            states[-1].add(item)
    states = [saved(each) if dice.random() < 0.5 else each for each in states]
    while len(states) > 1:
        at = dice.randrange(len(states) - 1)
        states[at : at + 2] = [states[at].merge(states[at + 1])]
    return states[0]


def classified(partition: Partition) -> list[ClassifiedRecords]:
    """Return the records of a partition of ``__consumer_offsets``, batch by batch."""
    found = []
    for segment in partition.segments:
        for item in walk_record_table(segment.path, columns=(*RECORD_COLUMNS, "batch_position"), max_bytes=1):
            if isinstance(item, pa.RecordBatch):
                positions = item["batch_position"].to_pylist()
                starts = [n for n, at in enumerate(positions) if n == 0 or positions[n - 1] != at]
                for start, end in zip(starts, [*starts[1:], item.num_rows], strict=True):
                    found.append(classify(item.slice(start, end - start), segment.path.name, segment.base_offset))
    return found


def offsets_result(state: CommittedOffsets) -> dict[str, Any]:
    rows = state.rows
    offsets = pa.Table.from_batches(state.offsets(3, ENDS)) if rows.num_rows else None
    tables = [] if offsets is None else with_first_commits(offsets, rows).to_pylist()
    return {
        "offsets": sorted(map(repr, tables)),
        "pending": sorted(repr(row) for batch in state.pending(3) for row in batch.to_pylist()),
        "groups": sorted(map(repr, described_groups(rows))),
        "counts": state.counts,
        "rows": rows.num_rows,
    }


def new_offsets(first: bool) -> CommittedOffsets:
    return CommittedOffsets(live_records.LiveRecords(open_start=not first))


def saved_offsets(state: CommittedOffsets) -> CommittedOffsets:
    rows, counts = pickle.loads(pickle.dumps(state.checkpoint()))
    return CommittedOffsets.from_checkpoint(rows, counts, open_start=state.records.open_start)


def check_offsets(items: Sequence[ClassifiedRecords], dice: Random) -> None:
    serial = CommittedOffsets()
    for item in items:
        serial.add(item)
    assert offsets_result(reduce_ranges(items, dice, new_offsets, saved_offsets)) == offsets_result(serial)


@pytest.mark.parametrize("buffer", [1, 32 << 20])
@pytest.mark.parametrize("seed", range(20))
def test_ranges_of_random_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, buffer: int) -> None:
    monkeypatch.setattr(live_records, "_BUFFER", buffer)
    topic = OffsetsTopic(tmp_path, Random(seed))
    topic.grow(seed * 10)
    items = classified(Partition(topic.write() / f"{TOPIC}-0"))
    for again in range(3):
        check_offsets(items, Random(f"{seed} {again}"))


@pytest.mark.parametrize("number", range(3))
def test_ranges_of_the_commits_of_a_broker(number: int) -> None:
    items = classified(Partition(GROUP_LOGS / f"{TOPIC}-{number}"))
    assert items
    for seed in range(4):
        check_offsets(items, Random(seed))


def share_records(dice: Random, count: int) -> Iterator[TopicRecord]:
    for number in range(count):
        place: dict[str, Any] = {"group_id": dice.choice("gh"), "topic_id": UUID(int=1), "partition": dice.randrange(2)}
        kind = dice.random()
        if kind < 0.3:
            value = ShareSnapshotValue(snapshot_epoch=number, start_offset=number)
            yield TopicRecord(topic=SHARE, key=ShareSnapshotKey(**place), value=value, version=0)
        elif kind < 0.4:
            yield TopicRecord(topic=SHARE, key=ShareSnapshotKey(**place), value=None, version=None)
        else:
            update = ShareUpdateValue(snapshot_epoch=number, start_offset=dice.choice((-1, number)))
            yield TopicRecord(topic=SHARE, key=ShareUpdateKey(**place), value=update, version=0)


SHARE = "__share_group_state"
TRANSACTIONS = "__transaction_state"


def transaction_records(dice: Random, count: int) -> Iterator[TopicRecord]:
    for number in range(count):
        key = TransactionLogKey(transactional_id=dice.choice("abc"))
        value = None if dice.random() < 0.2 else TransactionLogValue(producer_id=number)
        yield TopicRecord(topic=TRANSACTIONS, key=key, value=value, version=None if value is None else 0)


def new_latest(_: bool) -> LatestRecords:
    return LatestRecords()


def saved_latest(state: LatestRecords) -> LatestRecords:
    made = LatestRecords()
    for offset, record in pickle.loads(pickle.dumps(state.checkpoint())):
        made.add(record, offset)
    return made


def check_latest(records: Sequence[InternalRecord], seed: int) -> None:
    found = reduce_ranges(records, Random(seed), new_latest, saved_latest).state()
    assert found.entries == replay(records).entries


@pytest.mark.parametrize("records", [share_records, transaction_records])
@pytest.mark.parametrize("seed", range(20))
def test_ranges_of_random_states(records: Callable[[Random, int], Iterator[TopicRecord]], seed: int) -> None:
    check_latest(list(records(Random(seed), seed * 3)), seed)


@pytest.mark.parametrize("topic", [SHARE, TRANSACTIONS])
def test_ranges_of_the_states_of_a_broker(topic: str) -> None:
    partitions = [each for each in LogDirectory(GROUP_LOGS).partitions if each.topic == topic]
    assert partitions
    for partition in partitions:
        records = list(decode_batches(topic, partition.batches()))
        for seed in range(4):
            check_latest([each for each in records if not isinstance(each, TransactionEnd)], seed)


SIZE = 4
Window = dict[tuple[str, str, int], list[tuple[int, int, int]]]


def timed_commits(dice: Random, count: int) -> Iterator[Item]:
    """Yield commits of the same few offsets, deletions and the ends of transactions; several commits per second."""
    time = 1_767_225_600_000
    for number in range(count):
        time += dice.choice((0, 300, 2000))
        producer = dice.choice((NO_PRODUCER, NO_PRODUCER, 1, 2))
        if dice.random() < 0.2:
            yield end(dice.choice((1, 2)), committed=dice.random() < 0.6)
        else:
            key = OffsetCommitKey(group=dice.choice("gh"), topic="t", partition=dice.randrange(2))
            value = None if dice.random() < 0.1 else OffsetCommitValue(offset=number, commit_timestamp=time)
            version = None if value is None else 3
            yield TopicRecord(topic=TOPIC, key=key, value=value, version=version, producer_id=producer)


def expected_windows(items: Sequence[Item]) -> Window:
    """Return the windows by a plain replay of all items: a commit counts at its own place, once it is committed."""
    kept: dict[tuple[str, str, int], list[tuple[int, int, int]]] = {}
    for position, item in enumerate(items):
        if isinstance(item, TransactionEnd):
            continue
        key, value = item.key, item.value
        assert isinstance(key, OffsetCommitKey)
        if value is None:
            kept[key.group, key.topic, key.partition] = []
        elif item.producer_id == NO_PRODUCER or outcome(items, position, item.producer_id):
            assert isinstance(value, OffsetCommitValue)
            commits = kept.setdefault((key.group, key.topic, key.partition), [])
            commits.append((position, value.commit_timestamp, value.offset))
    slots = {place: {commit[1] // 1000: commit for commit in each} for place, each in kept.items()}
    return {place: list(each.values())[-SIZE:] for place, each in slots.items() if each}


def outcome(items: Sequence[Item], position: int, producer: int) -> bool:
    ends = (item for item in items[position:] if isinstance(item, TransactionEnd) and item.producer_id == producer)
    marker = next(ends, None)
    return marker is not None and marker.committed


def windows_of(state: CommitWindows) -> Window:
    return {
        (row["group"], row["topic"], row["topicPartition"]): [tuple(each.values()) for each in row["window"]]
        for row in state.windows().to_pylist()
    }


@define
class Windows:
    """The windows of a range, whose parts are merged."""

    windows: CommitWindows
    open_start: bool

    @classmethod
    def of(cls, first: bool, rows: pa.Table | None = None) -> Windows:
        return cls(CommitWindows(rows, size=SIZE, open_start=not first), not first)

    def add(self, batch: ClassifiedRecords) -> None:
        self.windows.add(batch)

    def merge(self, later: Windows) -> Windows:
        self.windows.merge(later.windows)
        return self

    def checkpoint(self) -> pa.Table:
        return self.windows.checkpoint()


def saved_windows(state: Windows) -> Windows:
    return Windows.of(not state.open_start, pickle.loads(pickle.dumps(state.checkpoint())))


@pytest.mark.parametrize("seed", range(30))
def test_ranges_of_the_latest_commits(tmp_path: Path, seed: int) -> None:
    items = list(timed_commits(Random(seed), seed * 10))
    write_items(tmp_path, 0, items)
    batches = classified(Partition(tmp_path / f"{TOPIC}-0"))
    for again in range(4):
        found = reduce_ranges(batches, Random(f"{seed} {again}"), Windows.of, saved_windows)
        assert windows_of(found.windows) == expected_windows(items)
    whole = CommitWindows(size=SIZE)
    for path in tmp_path.glob("*/*.log"):
        for records in walk_record_table(path, columns=RECORD_COLUMNS, max_rows=seed + 1):
            whole.add(classify(records, path.name))
    assert windows_of(whole) == expected_windows(items)
