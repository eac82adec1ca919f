"""The job ``group-offsets``, independent of the engine: all committed offsets and the lag of all groups, in Parquet.

Handles the inputs and the result of the job, and combines the groups of all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field, frozen

from kafka_msgs.analysis.commit_history import HISTORY_TABLE, HistoryWriter, is_replaced
from kafka_msgs.analysis.commit_hours import HOURS, CommitHours
from kafka_msgs.analysis.committed_offsets import CommittedOffsets
from kafka_msgs.analysis.live_records import ROWS
from kafka_msgs.analysis.offset_tables import (
    GROUPS,
    HISTORY,
    OFFSETS,
    PENDING,
    PROBLEMS,
    EndOffsets,
    described_groups,
    to_timestamps,
    with_first_commits,
)
from kafka_msgs.analysis.record_classification import OFFSETS_TOPIC, classify
from kafka_msgs.engines.checkpoint import Checkpoint
from kafka_msgs.engines.job import Job, JobInputs, JobRun
from kafka_msgs.engines.partition_reader import PartitionInput, SegmentInput
from kafka_msgs.engines.partition_task import REPORT_ROWS, CheckpointData, Problems, ReadSpec
from kafka_msgs.errors import LogFileError
from kafka_msgs.tables.task_output import TableSpec, TaskOutput, write_partitioned, write_table

__all__ = [
    "LOOKED_AT",
    "NAME",
    "OWN_GROUPS",
    "REPORT_ROWS",
    "GroupOffsetsResult",
    "GroupOffsetsSummary",
    "OffsetsRun",
    "damage_of",
    "group_offsets_run",
    "reading_of",
    "top_rows",
    "with_number",
]

LOOKED_AT: Final = 10_000
"""The number of offsets with the largest lags that are kept for the report, including the sums of their groups."""
OWN_GROUPS: Final = pa.schema(
    [
        ("group", pa.string()),
        ("kind", pa.string()),
        ("state", pa.string()),
        ("epoch", pa.int32()),
        ("members", pa.int32()),
    ]
)
_WORST: Final = [("lag", "descending"), ("group", "ascending"), ("topic", "ascending"), ("topicPartition", "ascending")]
_BY_KEY: Final = [("group", "ascending"), ("topic", "ascending"), ("topicPartition", "ascending")]


@frozen(kw_only=True)
class GroupOffsetsSummary:
    """The report data of a partition. ``from_start`` is True if the run read all of it, not only new records."""

    number: int
    from_start: bool
    rows: dict[str, int]
    numbers: dict[str, int]
    hours: pa.Table
    groups: pa.Table
    lags: pa.Table
    worst: pa.Table
    pending: pa.Table
    problems: pa.Table


def reading_of(ends: EndOffsets, *, history: bool = False) -> ReadSpec[GroupOffsetsSummary]:
    """Return the read specification, with the end offsets for lags, and optionally with the history."""
    return ReadSpec(
        start=partial(_OffsetsWork, ends, history),
        tables={"rows": ROWS, "hours": HOURS},
        problems=PROBLEMS,
        damage=damage_of,
    )


def damage_of(log: PartitionInput, fault: LogFileError) -> dict[str, Any]:
    """Return the row for an unreadable part of a file."""
    return {"logPartition": log.number, "logOffset": None, "file": fault.file, "problem": str(fault)}


def with_number(problems: pa.Table, log: PartitionInput) -> pa.Table:
    """Return the record problems of a partition with its number added."""
    numbers = pa.repeat(pa.scalar(log.number, pa.int32()), problems.num_rows)
    return problems.add_column(0, "logPartition", numbers).cast(PROBLEMS)


class _OffsetsWork:
    """Processes the records of one partition."""

    def __init__(
        self, ends: EndOffsets, history: bool, output: TaskOutput, log: PartitionInput, earlier: Checkpoint | None
    ) -> None:
        self._log = log
        self._ends = ends
        self._output = output
        self._from_start = earlier is None
        if earlier is None:
            self._hours, self._offsets = CommitHours(), CommittedOffsets()
        else:
            self._hours = CommitHours(earlier.tables["hours"])
            first_offset = log.segments[0].base_offset
            self._offsets = CommittedOffsets.from_checkpoint(earlier.tables["rows"], earlier.numbers, first_offset)
        start = 0 if earlier is None else earlier.tip.offset + 1
        resumes = earlier is not None
        self._history = HistoryWriter(output, log.number, start, resumes=resumes) if history else None

    def add(self, records: pa.RecordBatch, segment: SegmentInput) -> pa.Table:
        """Process the next records; return the problems among them."""
        found = classify(records, segment.name, segment.base_offset)
        self._offsets.add(found)
        self._hours.add(found)
        if self._history is not None:
            self._history.add(found, segment.name)
        return with_number(found.problems, self._log)

    def finish(self) -> CheckpointData:
        """Return the checkpoint data after the last record."""
        if self._history is not None:
            self._history.finish()
        rows, counts = self._offsets.checkpoint()
        return CheckpointData(counts, {"rows": rows, "hours": self._hours.hours})

    def discard(self) -> None:
        """Remove the written history from the output."""
        self._output.clear(HISTORY_TABLE)

    def summary(self, problems: Problems) -> GroupOffsetsSummary:
        """Write the committed and pending offsets, and return the report data."""
        survivors, number, name = self._offsets.rows, self._log.number, self._log.name
        offsets, pending = _Offsets(), _TopRows(PENDING, _BY_KEY)
        batches = offsets.seen(self._offsets.offsets(number, self._ends))
        written = write_table("offsets", batches, OFFSETS, self._output, name)
        open_commits = pending.seen(self._offsets.pending(number))
        waiting = write_table("pending", open_commits, PENDING, self._output, name)
        return GroupOffsetsSummary(
            number=number,
            from_start=self._from_start,
            rows={"offsets": written, "pending": waiting, "problems": problems.count},
            numbers=self._offsets.counts,
            hours=self._hours.hours,
            groups=_own_groups(survivors),
            lags=offsets.lags(),
            worst=with_first_commits(offsets.worst.rows, survivors),
            pending=pending.rows,
            problems=problems.first,
        )


@define
class _TopRows:
    """The first rows of a streamed table in some order. The retained rows are not sorted."""

    schema: pa.Schema
    order: Sequence[tuple[str, str]]
    most: int = REPORT_ROWS
    rows: pa.Table = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rows = self.schema.empty_table()

    def seen(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows = _first_of(pa.concat_tables([self.rows, pa.Table.from_batches([batch])]), self.order, self.most)
            yield batch


def top_rows(rows: pa.Table, order: Sequence[tuple[str, str]], most: int = REPORT_ROWS) -> pa.Table:
    """Return the first rows in an order, at most ``most``."""
    return _first_of(rows, order, most).sort_by(order)


def _first_of(rows: pa.Table, order: Sequence[tuple[str, str]], most: int) -> pa.Table:
    """Return the same rows as ``top_rows``, unsorted."""
    return rows.take(pc.select_k_unstable(rows, most, sort_keys=order)) if rows.num_rows > most else rows


class _Offsets:
    """The largest lags and the totals by group and topic of a stream of offsets."""

    def __init__(self) -> None:
        self.worst = _TopRows(OFFSETS, _WORST, LOOKED_AT)
        self._sums: list[pa.Table] = []

    def seen(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in self.worst.seen(batches):
            self._sums.append(summed_lags(_lag_parts(batch), "group", "topic"))
            yield batch

    def lags(self) -> pa.Table:
        return summed_lags(pa.concat_tables([LAGS.empty_table(), *self._sums]), "group", "topic")


LAGS: Final = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partitions", pa.int64()),
        ("unknown", pa.int64()),
        ("lag", pa.int64()),
        ("largestLag", pa.int64()),
        ("ahead", pa.int64()),
        ("commitTimestampMs", pa.int64()),
    ]
)
"""Totals by group and topic: offsets, unknown lags, sum and maximum of lags, distances beyond the end, last commit."""
_TOTALS: Final = {
    "partitions": "sum",
    "unknown": "sum",
    "lag": "sum",
    "largestLag": "max",
    "ahead": "sum",
    "commitTimestampMs": "max",
}


def summed_lags(rows: pa.Table, *by: str) -> pa.Table:
    """Return one row of totals for each value of the columns, ``group`` and ``topic`` or one of them."""
    found = rows.group_by(list(by)).aggregate(list(_TOTALS.items()))
    columns = [*(found[name] for name in by), *(found[f"{name}_{function}"] for name, function in _TOTALS.items())]
    names = [*by, *_TOTALS]
    return pa.Table.from_arrays(columns, names=names).cast(pa.schema([LAGS.field(name) for name in names]))


def _lag_parts(batch: pa.RecordBatch) -> pa.Table:
    """Return the totals of each row of offsets."""
    columns = {
        **{name: batch[name] for name in ("group", "topic", "lag", "ahead", "commitTimestampMs")},
        "largestLag": batch["lag"],
        "partitions": pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows),
        "unknown": batch["lag"].is_null().cast(pa.int64()),
    }
    return pa.Table.from_arrays([columns[name] for name in LAGS.names], schema=LAGS)


def _own_groups(survivors: pa.Table) -> pa.Table:
    found = described_groups(survivors)
    rows = [(each.group_id, each.kind, each.state, each.epoch, len(each.members)) for each in found]
    return pa.Table.from_pylist([dict(zip(OWN_GROUPS.names, row, strict=True)) for row in rows], schema=OWN_GROUPS)


NAME: Final = "group-offsets"
_TABLES: Final = {
    # A group may have commits in two partitions, if the number of partitions was raised.
    "offsets": TableSpec(OFFSETS, keys=("logPartition", "group", "topic", "topicPartition")),
    "pending": TableSpec(PENDING),
    "groups": TableSpec(GROUPS, keys=("group",)),
    "problems": TableSpec(PROBLEMS),
}
_HISTORY: Final = {HISTORY_TABLE: TableSpec(HISTORY.append(pa.field("logPartition", pa.int32())), time="logTimestamp")}

_JOINED: Final = ("group", "kind", "state", "epoch", "members", "partitions", "lag", "ahead")
_ALONE: Final = {"kind": "classic", "state": "Empty", "members": 0, "partitions": 0}
"""A coordinator loads a group that has only offsets as an empty classic group."""


@frozen
class GroupOffsetsResult:
    """The result of a run: the summaries of partitions by number, and the table of groups."""

    summaries: tuple[GroupOffsetsSummary, ...]
    groups: pa.Table


OffsetsRun: TypeAlias = JobRun[GroupOffsetsSummary, GroupOffsetsResult]


def group_offsets_run(
    inputs: JobInputs, ends: Mapping[tuple[str, int], int] | None = None, *, history: bool = False
) -> OffsetsRun:
    """Return the run over the partitions of ``__consumer_offsets`` in the inputs.

    ``ends`` defaults to the end offsets in the inputs. Raises the errors of ``JobInputs``.
    """
    logs = inputs.logs(OFFSETS_TOPIC)
    job = Job(
        name=NAME,
        options={"history": history},
        reading=reading_of(EndOffsets.of(inputs.ends() if ends is None else ends), history=history),
        tables={**_TABLES, **(_HISTORY if history else {})},
        appended_tables={HISTORY_TABLE: _replaced} if history else {},
        combine=_found,
    )
    return JobRun(job=job, inputs=inputs.paths, logs=logs)


def _found(summaries: Sequence[GroupOffsetsSummary], output: TaskOutput) -> GroupOffsetsResult:
    groups = _groups(summaries)
    write_partitioned("kind", "groups", groups, output, "0")
    return GroupOffsetsResult(tuple(summaries), groups)


def _groups(summaries: Sequence[GroupOffsetsSummary]) -> pa.Table:
    """Return all groups, including groups that have only offsets."""
    own = _one_per_group(summaries)
    lags = summed_lags(pa.concat_tables([each.lags for each in summaries]), "group")
    found = own.join(lags, "group", join_type="full outer")
    columns = {name: pc.fill_null(found[name], _ALONE[name]) if name in _ALONE else found[name] for name in _JOINED}
    columns["lastCommitMs"] = found["commitTimestampMs"].combine_chunks()
    columns["lastCommit"] = to_timestamps(columns["lastCommitMs"])
    groups = pa.Table.from_arrays([columns[name] for name in GROUPS.names], names=GROUPS.names)
    return groups.cast(GROUPS).sort_by("group")


def _one_per_group(summaries: Sequence[GroupOffsetsSummary]) -> pa.Table:
    """Return one description per group. Of several, the one in the partition with the group"s latest commit counts."""
    own = pa.concat_tables([OWN_GROUPS.empty_table(), *(each.groups for each in summaries)])
    if pc.count_distinct(own["group"]).as_py() == own.num_rows:
        return own
    dated = pa.concat_tables(map(_with_last_commits, summaries))
    order = [("group", "ascending"), ("commitTimestampMs", "descending"), ("logPartition", "descending")]
    rows = dated.sort_by(order)
    names = [name for name in OWN_GROUPS.names if name != "group"]
    first = rows.group_by("group", use_threads=False).aggregate([(name, "first") for name in names])
    columns = [first["group" if name == "group" else f"{name}_first"] for name in OWN_GROUPS.names]
    return pa.Table.from_arrays(columns, schema=OWN_GROUPS)


def _with_last_commits(summary: GroupOffsetsSummary) -> pa.Table:
    """Return the descriptions in a partition with the times of the groups" last commits in it."""
    times = summed_lags(summary.lags, "group").select(["group", "commitTimestampMs"])
    found = summary.groups.join(times, "group", join_type="left outer")
    return found.append_column("logPartition", pa.repeat(pa.scalar(summary.number, pa.int32()), found.num_rows))


def _replaced(names: Iterable[str], summaries: Sequence[GroupOffsetsSummary]) -> Iterator[str]:
    """Yield the replaced history files. For a partition that was reread from its start, these are all files."""
    for name in names:
        if any(is_replaced(name, each.number, from_start=each.from_start) for each in summaries):
            yield name
