"""Groups from log directories, compared with the broker's responses about them and with a full replay."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_msgs import (
    EndTxnMarker,
    ListGroupsResponse,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetFetchResponse,
    encode_versioned,
)
from kafka_msgs.analysis.groups import GroupsRead, read_groups
from kafka_msgs.analysis.record_classification import OFFSETS_TOPIC
from kafka_msgs.errors import JobPathError
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.internal_topics.replay import replay
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import (
    end_offset_of,
    end_offsets_in,
    end_offsets_of,
    partitions_in,
    topic_names,
)
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType
from tests.support.offsets_topic import commit as commit_of
from tests.support.offsets_topic import write_items
from tests.support.recorded_answers import answers
from tests.support.recordings import END_OFFSETS, GROUP_LOGS


def recorded(*directories: Path) -> GroupsRead:
    partitions = partitions_in(directories or [GROUP_LOGS])
    return read_groups(partitions)


def test_committed_offsets_are_those_that_the_broker_fetches() -> None:
    fetched = {
        (group.group_id, topic.name, each.partition_index): (
            each.committed_offset,
            None if each.committed_leader_epoch == -1 else each.committed_leader_epoch,
            each.metadata,
        )
        for answer in answers(OffsetFetchResponse)
        for group in answer.groups
        for topic in group.topics
        for each in topic.partitions
    }
    found = {
        (group.description.group_id, each.topic, each.partition): (each.offset, each.leader_epoch, each.metadata)
        for group in recorded().groups
        for each in group.offsets
        if group.description.kind != "share"
    }
    assert found == fetched != {}


def test_a_commit_without_an_offset_has_no_lag(tmp_path: Path) -> None:
    """Some clients commit -1. The lag would be one more than the log has records."""
    write_items(tmp_path, 0, [commit_of("orders", -1, group="tea"), commit_of("teas", 4, group="tea")])
    (group,) = read_groups(partitions_in([tmp_path]), {("orders", 0): 10, ("teas", 0): 10}).groups
    assert [(each.offset, each.lag, each.ahead) for each in group.offsets] == [(-1, None, None), (4, 6, 0)]
    assert group.lag == 6


def test_groups_are_those_that_the_broker_lists_with_their_kinds_and_states() -> None:
    (answer,) = answers(ListGroupsResponse)
    listed = {each.group_id: (each.group_type, each.group_state) for each in answer.groups}
    described = [group.description for group in recorded().groups]
    assert {each.group_id: (each.kind, each.state) for each in described} == listed
    assert recorded().problems == ()


def test_ends_are_those_that_kafkas_tool_printed() -> None:
    printed = end_offsets_in(END_OFFSETS)
    found = end_offsets_of(partitions_in([GROUP_LOGS]))
    assert {place: found[place] for place in printed} == printed != {}


def test_a_lag_is_the_distance_to_the_end_and_the_lag_of_a_group_their_sum() -> None:
    (audit,) = (group for group in recorded().groups if group.description.group_id == "audit")
    assert [(each.end_offset, each.lag) for each in audit.offsets] == [(10, 6), (10, 6)]
    assert (audit.lag, audit.last_commit) == (12, max(each.commit_timestamp or 0 for each in audit.offsets))


def test_without_ends_no_lag_is_known() -> None:
    found = read_groups(partitions_in([GROUP_LOGS]), {})
    assert {group.lag for group in found.groups} == {None}


def test_what_is_damaged_is_a_problem_and_all_else_counts(tmp_path: Path) -> None:
    copy = tmp_path / "logs"
    shutil.copytree(GROUP_LOGS, copy)
    path = max(copy.glob(f"{OFFSETS_TOPIC}-*/*.log"), key=lambda each: each.stat().st_size)
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)
    found = recorded(copy)
    (problem,) = found.problems
    assert f"{path} at byte 0" in problem.reason
    assert f"{OFFSETS_TOPIC}-{problem.partition}" == path.parent.name
    assert len(found.groups) >= 8


def test_a_partition_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "orders-0"
    shutil.copytree(GROUP_LOGS / "orders-0", copy)
    with pytest.raises(JobPathError, match="another copy of this partition"):
        partitions_in([GROUP_LOGS, copy])
    assert len(partitions_in([GROUP_LOGS, GROUP_LOGS])) == len(partitions_in([GROUP_LOGS]))


def test_a_directory_without_partitions_and_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(JobPathError, match="there is no partition in it"):
        partitions_in([tmp_path])
    with pytest.raises(JobPathError, match="is not a directory"):
        partitions_in([END_OFFSETS])


def test_a_line_that_is_not_an_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ends.txt"
    path.write_text("orders:0:10\n\norders:one:10\n")
    with pytest.raises(JobPathError, match=r"ends.txt, line 3: expected topic:partition:offset"):
        end_offsets_in(path)


def test_an_empty_partition_ends_where_its_segment_starts(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    assert end_offset_of(Partition(directory)) is None
    (directory / f"{7:020}.log").touch()
    assert end_offset_of(Partition(directory)) == 7


def test_names_of_topics_by_their_ids() -> None:
    names = topic_names(partitions_in([GROUP_LOGS]))
    assert names[UUID("37938c14-5b14-4338-8da8-e51e7900a990")] == "orders"


def commit(offset: int, metadata: str = "") -> bytes:
    return encode_versioned(OffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=offset), 3)


KEYS = [encode_versioned(OffsetCommitKey(group=name, topic="t", partition=0), 0) for name in ("a", "b", "c")]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.integers(-1, 1), st.sampled_from(KEYS), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 1), st.booleans(), st.just(False)),
    ),
    max_size=25,
)
"""A record inside a producer's transaction or (-1) outside, with or without a value; or the end of a transaction."""


def segment(steps: list[tuple[str, int, Any, bool]]) -> bytes:
    data = b""
    for offset, (what, producer, arg, flag) in enumerate(steps):
        transactional: dict[str, Any] = {
            "producer_id": producer,
            "producer_epoch": 0,
            "base_sequence": 0,
            "transactional": True,
        }
        if what == "record":
            builder = BatchBuilder(BatchHeader(base_offset=offset, **transactional if producer >= 0 else {}))
            builder.append(arg, commit(offset) if flag else None, timestamp=offset)
        else:
            builder = BatchBuilder(BatchHeader(base_offset=offset, control=True, **transactional))
            kind = ControlType.COMMIT if arg else ControlType.ABORT
            builder.append_control(kind, EndTxnMarker(), timestamp=offset)
        data += builder.build()
    return data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(steps=STEPS)
def test_what_is_left_out_changes_nothing(tmp_path: Path, steps: list[tuple[str, int, Any, bool]]) -> None:
    """Replaced records are not decoded; a replay of all records has the same result."""
    directory = tmp_path / f"{OFFSETS_TOPIC}-0"
    directory.mkdir(exist_ok=True)
    (directory / f"{0:020}.log").write_bytes(segment(steps))
    partition = Partition(directory)
    expected = replay(decode_batches(OFFSETS_TOPIC, partition.batches())).groups()
    found = read_groups([partition], {})
    assert {group.description.group_id: [each.offset for each in group.offsets] for group in found.groups} == {
        name: [value.offset for value in state.offsets.values()] for name, state in expected.items()
    }


def test_a_commit_beyond_the_end_is_ahead_and_reduces_no_lag(tmp_path: Path) -> None:
    write_items(tmp_path, 0, [commit_of("a", 10), commit_of("b", 5_000), commit_of("c", 7)])
    ends = {("a", 0): 100, ("b", 0): 93}
    (group,) = read_groups([Partition(tmp_path / f"{OFFSETS_TOPIC}-0")], ends).groups
    assert [(each.topic, each.lag, each.ahead) for each in group.offsets] == [
        ("a", 90, 0), ("b", 0, 4_907), ("c", None, None),
    ]  # fmt: skip
    assert (group.lag, group.ahead) == (90, 4_907)


def test_ends_are_read_after_the_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that commits while its offsets are read is not ahead."""
    write_items(tmp_path, 0, [commit_of("orders", 5)])
    orders = tmp_path / "orders-0"
    orders.mkdir()

    def grow(partitions: Sequence[Partition]) -> dict[tuple[str, int], int]:
        builder = BatchBuilder()
        for _ in range(5):
            builder.append(None, b"x")
        (orders / f"{0:020}.log").write_bytes(builder.build())
        return end_offsets_of(partitions)

    (orders / f"{0:020}.log").write_bytes(b"")
    monkeypatch.setattr("kafka_msgs.analysis.groups.end_offsets_of", grow)
    (group,) = read_groups(partitions_in([tmp_path])).groups
    assert [(each.end_offset, each.lag, each.ahead) for each in group.offsets] == [(5, 0, 0)]


def test_first_commits_are_the_oldest_of_the_recorded_ones() -> None:
    wanted: dict[Any, OffsetCommitValue] = {}
    for partition in partitions_in([GROUP_LOGS]):
        for record in decode_batches(OFFSETS_TOPIC, partition.batches()) if partition.topic == OFFSETS_TOPIC else ():
            key = getattr(record, "key", None)
            if isinstance(record, TopicRecord) and isinstance(key, OffsetCommitKey) and record.producer_id == -1:
                place = (key.group, key.topic, key.partition)
                if record.value is None:
                    wanted.pop(place, None)
                else:
                    wanted.setdefault(place, record.value)  # type: ignore[arg-type]
    found = {
        (group.description.group_id, each.topic, each.partition): (
            each.first_commit_offset,
            each.first_commit_timestamp,
        )
        for group in recorded().groups
        for each in group.offsets
        if each.first_commit_offset is not None
    }
    assert found == {place: (each.offset, each.commit_timestamp) for place, each in wanted.items()}
    assert len(wanted) > 10


def test_a_deletion_and_a_transaction_do_not_begin_a_history(tmp_path: Path) -> None:
    items = [commit_of("a", 1), commit_of("a", None), commit_of("a", 5, 7), commit_of("a", 6), commit_of("a", 9)]
    write_items(tmp_path, 0, items)
    (group,) = read_groups(partitions_in([tmp_path])).groups
    assert [(each.offset, each.first_commit_offset) for each in group.offsets] == [(9, 6)]


def test_memory_grows_with_the_state_and_not_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_msgs.analysis.live_records._BUFFER", 1 << 20)
    monkeypatch.setattr("kafka_msgs.columns.log_table._MAX_BYTES", 1 << 20)
    builder = BatchBuilder()
    for number in range(4_000):
        builder.append(KEYS[number % len(KEYS)], commit(number, "m" * 80), timestamp=number)
    batch = builder.build()
    peaks = {copies: _peak(tmp_path / str(copies), batch, copies) for copies in (10, 100)}
    assert peaks[100] < min(1.5 * peaks[10], 100 * len(batch) / 4)


def _peak(home: Path, batch: bytes, copies: int) -> int:
    """Return the peak of memory while groups are read from copies of a batch, each at its own offsets."""
    directory = home / f"{OFFSETS_TOPIC}-0"
    directory.mkdir(parents=True)
    with (directory / f"{0:020}.log").open("wb") as file:
        for number in range(copies):
            file.write((4_000 * number).to_bytes(8) + batch[8:])
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        assert len(read_groups([Partition(directory)]).groups) == len(KEYS)
        return int(pool.max_memory()) + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


def test_offsets_that_no_coordinator_serves_are_stale_and_count_in_no_sum(tmp_path: Path) -> None:
    """The recorded cluster has three partitions of the topic; the group belongs to one of them."""
    logs = tmp_path / "logs"
    shutil.copytree(GROUP_LOGS, logs)
    serving = partition_for_key("late", 3)
    for number in (serving, other := (serving + 1) % 3):
        segment = max((logs / f"{OFFSETS_TOPIC}-{number}").glob("*.log"))
        end = end_offset_of(Partition(segment.parent)) or 0
        key = encode_versioned(OffsetCommitKey(group="late", topic="orders", partition=number), 0)
        builder = BatchBuilder(BatchHeader(base_offset=end))
        builder.append(key, commit(4 if number == serving else 1), timestamp=10 - number)
        segment.write_bytes(segment.read_bytes() + builder.build())
    (late,) = (each for each in recorded(logs).groups if each.description.group_id == "late")
    assert {(each.log_partition, each.stale) for each in late.offsets} == {(serving, False), (other, True)}
    assert [each.partition for each in late.served] == [serving]
    assert late.lag == late.served[0].lag
    # Without the metadata log, the places of the other groups show that there are three partitions.
    shutil.rmtree(logs / "__cluster_metadata-0")
    (late,) = (each for each in recorded(logs).groups if each.description.group_id == "late")
    assert [each.log_partition for each in late.served] == [serving]


def test_without_the_number_of_partitions_no_offset_is_stale(tmp_path: Path) -> None:
    """A directory with a few of many partitions has groups at places that fit no smaller number."""
    names = [name for name in map("group-{}".format, range(200)) if partition_for_key(name, 50) == 3]
    write_items(tmp_path, 3, [commit_of("a", 1, group=name) for name in names])
    assert any(partition_for_key(name, 4) != 3 for name in names)
    assert not [each for group in read_groups(partitions_in([tmp_path])).groups for each in group.offsets if each.stale]
