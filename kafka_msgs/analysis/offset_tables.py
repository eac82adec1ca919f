"""The tables of the job ``group-offsets``, decoded from the live records of a partition.

Defines their columns. Decoding is bounded: offsets are decoded in slices, and there are only as many group records as
in a coordinator's state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs.analysis.arrow_tables import columns, one_array
from kafka_msgs.analysis.live_records import EFFECTIVE, FIRST_COMMIT, GROUP_RECORD, UNDECIDED, rows_with
from kafka_msgs.columns import decode_column
from kafka_msgs.internal_topics.group_descriptions import GroupDescription, describe_group
from kafka_msgs.internal_topics.records import decode_record
from kafka_msgs.internal_topics.replay import replay
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue

__all__ = [
    "GROUPS",
    "HISTORY",
    "OFFSETS",
    "PENDING",
    "PROBLEMS",
    "EndOffsets",
    "commit_history",
    "committed_offsets",
    "described_groups",
    "groups_with_offsets",
    "lag_columns",
    "pending_offsets",
    "to_timestamps",
    "with_first_commits",
    "with_windows",
]

_TIME: Final = pa.timestamp("us", tz="UTC")
_TEXT, _LONG = pa.string(), pa.int64()
_KEY: Final = "group topic topicPartition"
_COMMIT: Final = """committedOffset leaderEpoch metadata commitTimestamp commitTimestampMs expireTimestamp
    expireTimestampMs topicId"""
_LOG: Final = "logOffset logTimestamp logTimestampMs"
_FIELDS: Final = {
    "committedOffset": "offset",
    "leaderEpoch": "leader_epoch",
    "metadata": "metadata",
    "commitTimestampMs": "commit_timestamp",
    "expireTimestampMs": "expire_timestamp",
    "topicId": "topic_id",
}
"""The columns of a commit and their fields in the value."""
_FIRST: Final = ("commitTimestampMs", "committedOffset")
"""The columns of a first commit."""

OFFSETS: Final = columns(f"{_KEY} {_COMMIT} transactional logPartition {_LOG} endOffset lag ahead stale")
"""The committed offsets. ``stale`` marks commits in a partition whose coordinator does not serve the group."""
PENDING: Final = columns(f"{_KEY} producerId {_COMMIT} logPartition {_LOG}")
HISTORY: Final = columns(f"{_KEY} {_COMMIT} tombstone transactional producerId outcome {_LOG} file")
"""The history without ``logPartition``, which is part of the directory names."""
PROBLEMS: Final = columns("logPartition logOffset file problem")
GROUPS: Final = columns("group kind state epoch members partitions lag ahead lastCommit lastCommitMs")

_NONE: Final = -1
_NO_ID: Final = "00000000-0000-0000-0000-000000000000"
_NEGATIVE: Final = ("leaderEpoch", "commitTimestampMs", "expireTimestampMs", "logTimestampMs", "producerId")
"""The columns that are null for -1."""
_MOST_MS: Final = (2**63 - 1) // 1000
_SLICE: Final = 1 << 16
_TOPIC: Final = "__consumer_offsets"
_Columns: TypeAlias = "dict[str, pa.Array]"


@frozen
class EndOffsets:
    """The log end offsets of partitions, as columns for lookups by other columns."""

    _places: pa.Array
    _offsets: pa.Array

    @classmethod
    def of(cls, ends: Mapping[tuple[str, int], int]) -> EndOffsets:
        """Return the end offsets from a mapping by topic and partition."""
        places = pa.array([f"{topic}/{number}" for topic, number in ends], _TEXT)
        return cls(places, pa.array(ends.values(), _LONG))

    @classmethod
    def of_columns(cls, topics: pa.Array, numbers: pa.Array, offsets: pa.Array) -> EndOffsets:
        """Return the end offsets from columns of topics, partitions and offsets."""
        places = pc.binary_join_element_wise(topics, numbers.cast(_TEXT), "/")
        return cls(one_array(places), one_array(offsets))

    def ends(self, topics: pa.Array, numbers: pa.Array) -> pa.Array:
        """Return the end offset of each partition, null if unknown."""
        places = pc.binary_join_element_wise(topics, numbers.cast(_TEXT), "/")
        return self._offsets.take(pc.index_in(places, self._places))


def committed_offsets(survivors: pa.Table, number: int, ends: EndOffsets) -> Iterator[pa.RecordBatch]:
    """Yield the committed offsets at the end of a partition, with the lag if the end offset is known.

    A commit beyond the end is ``ahead``, and its lag is 0. Without an offset, as some clients commit -1, it has no lag.
    """
    rows = rows_with(survivors, EFFECTIVE)
    for batch in _slices(rows.filter(rows["value"].is_valid())):
        found = _columns(batch, number)
        found["endOffset"] = ends.ends(found["topic"], found["topicPartition"])
        known = pc.if_else(pc.greater(found["committedOffset"], _NONE), found["committedOffset"], None)
        found |= lag_columns(pc.subtract(found["endOffset"], known))
        found["stale"] = pa.repeat(pa.scalar(False), batch.num_rows)
        yield _batch(found, OFFSETS)


def lag_columns(distance: pa.Array) -> _Columns:
    """Return the columns ``lag`` and ``ahead`` of commits with these distances from the end, null if unknown."""
    lags = {"lag": distance, "ahead": pc.negate(distance)}
    return {name: pc.max_element_wise(each, 0, skip_nulls=False) for name, each in lags.items()}


def groups_with_offsets(survivors: pa.Table) -> pa.Array:
    """Return the groups with committed offsets at the end of a partition."""
    rows = rows_with(survivors, EFFECTIVE)
    keys = rows.filter(rows["value"].is_valid())["key"].combine_chunks()
    return pc.unique(decode_column(keys, OffsetCommitKey, columns=["group"], on_error="raise").values.field("group"))


def pending_offsets(survivors: pa.Table, number: int) -> Iterator[pa.RecordBatch]:
    """Yield the offsets that the open transactions of a partition would commit."""
    for batch in _slices(rows_with(survivors, UNDECIDED)):
        yield _batch(_columns(batch, number), PENDING)


def commit_history(commits: pa.Table, outcomes: pa.Array, files: pa.Array) -> pa.Table:
    """Return history rows: the commits and deletions of the log, with the given outcomes."""
    batches = []
    for start in range(0, commits.num_rows, _SLICE):
        (rows,) = commits.slice(start, _SLICE).combine_chunks().to_batches()
        found = _columns(rows, 0)
        found["tombstone"] = rows["value"].is_null()
        found["outcome"] = outcomes.slice(start, _SLICE)
        found["file"] = files.slice(start, _SLICE)
        batches.append(_batch(found, HISTORY))
    return pa.Table.from_batches(batches, HISTORY)


def with_first_commits(offsets: pa.Table, survivors: pa.Table) -> pa.Table:
    """Return rows of ``committed_offsets`` with ``firstCommitMs`` and ``firstCommitOffset``, null without a first
    commit.

    The first commit is the oldest non-transactional one in the log since the last deletion.
    """
    counting, first = rows_with(survivors, EFFECTIVE), rows_with(survivors, FIRST_COMMIT).sort_by("offset")
    # Only the first commits of these offsets are decoded.
    keys = counting.filter(pc.is_in(counting["offset"], offsets["logOffset"].combine_chunks()))["key"].combine_chunks()
    decoded = [_columns(batch, 0, _FIRST) for batch in _slices(first.filter(pc.is_in(first["key"], keys)))]
    names = ("group", "topic", "topicPartition", *_FIRST)
    commits = {name: pa.chunked_array([each[name] for each in decoded], OFFSETS.field(name).type) for name in names}
    at = pc.index_in(_places(offsets), _places(commits).combine_chunks())
    found = offsets.append_column("firstCommitMs", commits["commitTimestampMs"].take(at))
    return found.append_column("firstCommitOffset", commits["committedOffset"].take(at))


def with_windows(offsets: pa.Table, windows: pa.Table) -> pa.Table:
    """Return rows of ``committed_offsets`` with their ``window`` of commits, null without commits.

    ``windows`` has the columns of ``commit_windows.WINDOWS``.
    """
    at = pc.index_in(_places(offsets), one_array(_places(windows)))
    return offsets.append_column(windows.schema.field("window"), windows["window"].take(at))


def _places(rows: Mapping[str, Any] | pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["group"], rows["topic"], rows["topicPartition"].cast(_TEXT), "\0")


def described_groups(survivors: pa.Table) -> list[GroupDescription]:
    """Return the groups that have group records."""
    rows = rows_with(survivors, GROUP_RECORD)
    records = zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)
    typed = (decode_record(_TOPIC, key, value) for key, value in records)
    return [describe_group(each) for each in replay(typed).groups().values()]


def to_timestamps(milliseconds: pa.Array) -> pa.Array:
    """Return Kafka's millisecond numbers as timestamps: null for -1 (no time) and for times that overflow 64 bits."""
    held = pc.and_(pc.greater_equal(milliseconds, -_MOST_MS), pc.less_equal(milliseconds, _MOST_MS))
    known = pc.and_(held, pc.not_equal(milliseconds, _NONE))
    return pc.multiply(pc.if_else(known, milliseconds, None), 1000).cast(_TIME)


def _slices(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, _SLICE):
        yield from rows.slice(start, _SLICE).combine_chunks().to_batches()


def _columns(rows: pa.RecordBatch, number: int, commit: Collection[str] = _FIELDS.keys()) -> _Columns:
    """Return the columns shared by all tables of commits, and the columns of ``commit``.

    The rows were decoded once before, so all are valid.
    """
    fields = {column: _FIELDS[column] for column in commit}
    keys = decode_column(rows["key"], OffsetCommitKey, on_error="raise").values
    values = decode_column(rows["value"], OffsetCommitValue, columns=tuple(fields.values()), on_error="raise").values
    found: _Columns = {
        "group": keys.field("group"),
        "topic": keys.field("topic"),
        "topicPartition": keys.field("partition"),
        **{column: pc.struct_field(values, name) for column, name in fields.items()},
        "transactional": rows["transactional"],
        "producerId": rows["producer"],
        "logPartition": pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows),
        "logOffset": rows["offset"],
        "logTimestampMs": rows["timestamp"],
    }
    found |= {name: _known(found[name]) for name in _NEGATIVE if name in found}
    if "topicId" in found:
        found["topicId"] = pc.if_else(pc.equal(found["topicId"], _NO_ID), None, found["topicId"])
    times = {name.removesuffix("Ms"): to_timestamps(found[name]) for name in found if name.endswith("Ms")}
    return found | times


def _known(numbers: pa.Array) -> pa.Array:
    """Return Kafka's numbers with null for -1, which means none."""
    return pc.if_else(pc.equal(numbers, _NONE), None, numbers)


def _batch(found: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)
