"""The job ``group-offsets``: all committed offsets and the lag of all groups.

Reduces the partitions of ``__consumer_offsets`` and ``__share_group_state``, and combines the groups of all partitions.
A group may have commits in two partitions, if the number of partitions was raised. Its coordinator serves the offsets
in only one of them. The offsets in other partitions are stale, and do not count in sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, evolve, field, frozen

from kafka_msgs.analysis.arrow_tables import aggregated, columns, filled, named, one_array, replaced
from kafka_msgs.analysis.commit_history import HISTORY_TABLE, MARKERS, HistoryWriter
from kafka_msgs.analysis.commit_hours import HOURS, commit_hours, commits_by_hour, summed_hours
from kafka_msgs.analysis.commit_windows import ROWS as WINDOW_ROWS
from kafka_msgs.analysis.commit_windows import WINDOWS, CommitWindows
from kafka_msgs.analysis.committed_offsets import CommittedOffsets
from kafka_msgs.analysis.job import (
    PROBLEMS_TABLE,
    REPORT_ROWS,
    ClusterFacts,
    Job,
    LogRange,
    SavedState,
    add_summaries,
)
from kafka_msgs.analysis.live_records import ROWS, rows_since
from kafka_msgs.analysis.offset_tables import (
    GROUPS,
    HISTORY,
    OFFSETS,
    PENDING,
    PROBLEMS,
    described_groups,
    groups_with_offsets,
    to_timestamps,
    with_first_commits,
    with_windows,
)
from kafka_msgs.analysis.record_classification import classify
from kafka_msgs.analysis.share_offsets import SHARE_STATE_TOPIC, STATE_RECORDS, ShareOffsets
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.tables.task_output import TableSpec, TaskOutput

__all__ = [
    "LOOKED_AT",
    "OWN_GROUPS",
    "GroupOffsets",
    "GroupOffsetsSummary",
    "group_offsets_job",
    "lag_totals",
    "top_rows",
]

LOOKED_AT: Final = 10_000
"""The number of offsets with the largest lags that are kept for the report."""
_TOPIC: Final = "__consumer_offsets"
_ALL, _PLACED = "groups", "placed groups"
"""The names of two counts: all groups with committed offsets, and the groups whose coordinator serves the partition."""
OWN_GROUPS: Final = columns("group kind state epoch members logPartition stale")
LAGS: Final = columns("group topic partitions unknown lag largestLag ahead commitTimestampMs logPartition stale")
"""Totals by group, topic and partition of the log: offsets, unknown lags, sum and maximum of lags, distances beyond the
end, and the last commit."""
_TOTALS: Final = {
    "partitions": "sum",
    "unknown": "sum",
    "lag": "sum",
    "largestLag": "max",
    "ahead": "sum",
    "commitTimestampMs": "max",
}
_WORST_ROWS: Final = pa.schema([*OFFSETS, *columns("firstCommitMs firstCommitOffset"), WINDOWS.field("window")])
_BY_LOG: Final = ("group", "topic", "logPartition", "stale")
_BY_KEY: Final = [("group", "ascending"), ("topic", "ascending"), ("topicPartition", "ascending")]
_WORST: Final = [("lag", "descending"), *_BY_KEY]
_ALONE: Final = {"kind": "classic", "state": "Empty", "members": 0, "partitions": 0}
"""A coordinator loads a group that has only offsets as an empty classic group."""


@frozen(kw_only=True)
class GroupOffsetsSummary:
    """The report data of partitions. ``rows`` counts the rows of tables, and ``served`` offsets, which are not stale.
    ``counts`` are the records by role.

    ``own_groups`` are the described groups, ``lags`` the sums of commits by group, ``starts`` the same sums of start
    offsets, and ``groups`` the table that combines them.
    """

    rows: Mapping[str, int] = field(factory=dict)
    counts: Mapping[str, int] = field(factory=dict)
    hours: pa.Table = field(factory=HOURS.empty_table)
    own_groups: pa.Table = field(factory=OWN_GROUPS.empty_table)
    lags: pa.Table = field(factory=LAGS.empty_table)
    starts: pa.Table = field(factory=LAGS.empty_table)
    worst: pa.Table = field(factory=_WORST_ROWS.empty_table)
    pending: pa.Table = field(factory=PENDING.empty_table)
    groups: pa.Table = field(factory=GROUPS.empty_table)


def merge_summaries(found: Sequence[GroupOffsetsSummary]) -> GroupOffsetsSummary:
    """Return the report data of all partitions."""
    whole = add_summaries([GroupOffsetsSummary(), *found])
    worst, pending = _first_of(whole.worst, _WORST, LOOKED_AT), _first_of(whole.pending, _BY_KEY, REPORT_ROWS)
    return evolve(whole, hours=summed_hours(whole.hours), worst=worst, pending=pending)


def group_offsets_job(*, history: bool = False, status: bool = False) -> Job[GroupOffsetsSummary]:
    """Return the job, with or without the history of all commits, and the status of groups in the report."""
    tables = {
        "offsets": TableSpec(OFFSETS),
        "pending": TableSpec(PENDING),
        "groups": TableSpec(GROUPS, partition_by=("kind",)),
        PROBLEMS_TABLE: TableSpec(PROBLEMS),
    }
    committed = pa.schema([*HISTORY, *columns("logPartition")])
    appended = {HISTORY_TABLE: TableSpec(committed, partition_by=("logPartition",))}
    return Job(
        name="group-offsets",
        topics=(_TOPIC,),
        optional_topics=(SHARE_STATE_TOPIC,),
        options={"history": history, "status": status},
        start=partial(_start, history, status),
        state_tables=_state_tables(history, status),
        needs_facts=True,
        tables={**tables, **(appended if history else {})},
        appended=frozenset([PROBLEMS_TABLE, HISTORY_TABLE]),
        merge=merge_summaries,
        combined=frozenset(["groups"]),
        combine=_combine,
    )


def _start(
    history: bool, status: bool, output: TaskOutput, of: LogRange, saved: SavedState | None
) -> GroupOffsets | GroupStarts:
    reducer = GroupStarts if of.topic == SHARE_STATE_TOPIC else GroupOffsets
    return reducer(history, status, output, of, saved)


def _state_tables(history: bool, status: bool) -> dict[str, pa.Schema]:
    return {
        "rows": ROWS,
        "hours": HOURS,
        **({"windows": WINDOW_ROWS} if status else {}),
        **({"waiting": HISTORY, "markers": MARKERS} if history else {}),
    }


class GroupOffsets:
    """The state of a range of a partition."""

    def __init__(self, history: bool, status: bool, output: TaskOutput, of: LogRange, saved: SavedState | None) -> None:
        self._range = of
        self._output = output
        state = SavedState() if saved is None else saved
        self._hours = commit_hours(state.table("hours", HOURS))
        self._windows = None
        if status:
            windows = rows_since(state.table("windows", WINDOW_ROWS), of.first_offset)
            self._windows = CommitWindows(windows, open_start=of.sequence > 0)
        self._offsets = CommittedOffsets.from_checkpoint(
            state.table("rows", ROWS), state.numbers, of.first_offset, open_start=of.sequence > 0
        )
        rows = state.table("waiting", HISTORY), state.table("markers", MARKERS)
        self._history = HistoryWriter(output, of, *rows) if history else None

    def add(self, records: pa.RecordBatch, file: str, segment: int) -> pa.Table:
        """Process the next records; return the problems among them."""
        found = classify(records, file, segment)
        self._offsets.add(found)
        self._hours.add(commits_by_hour(found))
        if self._windows is not None:
            self._windows.add(found)
        if self._history is not None:
            self._history.add(found, file)
        return numbered(found.problems, self._range.number)

    def merge(self, later: GroupOffsets) -> None:
        """Add the state of the next range."""
        self._offsets = self._offsets.merge(later._offsets)
        self._hours.add(later._hours.all())
        if self._windows is not None and later._windows is not None:
            self._windows.merge(later._windows)
        if self._history is not None and later._history is not None:
            self._history.merge(later._history)

    def checkpoint(self) -> SavedState:
        """Return the complete state after the last record."""
        rows, counts = self._offsets.checkpoint()
        tables = {"rows": rows, "hours": self._hours.all()}
        if self._windows is not None:
            tables["windows"] = self._windows.checkpoint()
        if self._history is not None:
            self._history.end()
            tables |= {"waiting": self._history.waiting, "markers": self._history.markers}
        groups = groups_with_offsets(rows)
        mine = pc.invert(is_stale(groups, self._range.number, self._range.partitions))
        return SavedState({**counts, _ALL: len(groups), _PLACED: pc.sum(mine).as_py() or 0}, tables)

    def finish(self, facts: ClusterFacts) -> GroupOffsetsSummary:
        """Write the committed and pending offsets, and return the report data."""
        survivors, number = self._offsets.rows, self._range.number
        partitions = self._range.partitions
        # Without the cluster metadata, the inputs may contain only some partitions. Then most groups are misplaced.
        sound = facts.is_placement_known or facts.totals.get(_PLACED, 0) * 4 >= facts.totals.get(_ALL, 1) * 3
        partitions = partitions if sound else 0
        offsets, pending = _OffsetWriter(self._output), pa.Table.from_batches(self._offsets.pending(number), PENDING)
        for batch in self._offsets.offsets(number, facts.ends):
            offsets.write(replaced(batch, stale=is_stale(batch["group"], number, partitions)))
        self._output.append("pending", pending)
        if self._history is not None:
            self._history.finish()
        windows = WINDOWS.empty_table() if self._windows is None else self._windows.windows()
        return GroupOffsetsSummary(
            rows={**offsets.counts, "pending": pending.num_rows},
            counts=self._offsets.counts,
            hours=self._hours.all(),
            own_groups=_own_groups(survivors, number, partitions),
            lags=offsets.lags(),
            worst=with_windows(with_first_commits(offsets.worst, survivors), windows),
            pending=_first_of(pending, _BY_KEY, REPORT_ROWS),
        )


class GroupStarts:
    """The state of a range of a partition of ``__share_group_state``: the start offsets of share groups."""

    def __init__(self, history: bool, status: bool, output: TaskOutput, of: LogRange, saved: SavedState | None) -> None:
        self._states = _state_tables(history, status)
        self._output = output
        self._number = of.number
        records = (saved or SavedState()).table("rows", STATE_RECORDS)
        self._offsets = ShareOffsets.from_checkpoint(rows_since(records, of.first_offset))

    def add(self, records: pa.RecordBatch, file: str, segment: int) -> pa.Table:
        """Process the next records; return the problems among them."""
        return numbered(self._offsets.add(records, file, segment), self._number)

    def merge(self, later: GroupStarts) -> None:
        """Add the state of the next range."""
        self._offsets = self._offsets.merge(later._offsets)

    def checkpoint(self) -> SavedState:
        """Return the complete state after the last record."""
        records = self._offsets.checkpoint()
        rows = filled(ROWS, records.num_rows, named(records))
        return SavedState({}, {name: each.empty_table() for name, each in self._states.items()} | {"rows": rows})

    def finish(self, facts: ClusterFacts) -> GroupOffsetsSummary:
        """Write the start offsets, and return the report data."""
        names = {UUID(topic_id): name for topic_id, name in facts.names.items()}
        offsets = _OffsetWriter(self._output)
        for batch in self._offsets.offsets(self._number, names, facts.ends).combine_chunks().to_batches():
            offsets.write(batch)
        worst = with_windows(with_first_commits(offsets.worst, ROWS.empty_table()), WINDOWS.empty_table())
        return GroupOffsetsSummary(rows=offsets.counts, starts=offsets.lags(), worst=worst)


def numbered(problems: pa.Table, number: int) -> pa.Table:
    """Return problems with the number of their partition, with the columns of ``PROBLEMS``."""
    return filled(PROBLEMS, problems.num_rows, named(problems) | {"logPartition": number})


def is_stale(groups: pa.Array, number: int, partitions: int) -> pa.Array:
    """Return whether another partition's coordinator serves each group, False if the number of partitions is 0."""
    if not partitions:
        return pa.repeat(pa.scalar(False), len(groups))
    found = groups.dictionary_encode()
    stale = [partition_for_key(name, partitions) != number for name in found.dictionary.to_pylist()]
    return pc.fill_null(pa.array(stale, pa.bool_()).take(found.indices), True)


def _own_groups(survivors: pa.Table, number: int, partitions: int) -> pa.Table:
    rows = [
        {
            "group": each.group_id,
            "kind": each.kind,
            "state": each.state,
            "epoch": each.epoch,
            "members": len(each.members),
            "logPartition": number,
        }
        for each in described_groups(survivors)
    ]
    found = pa.Table.from_pylist(rows, schema=OWN_GROUPS)
    return replaced(found, stale=is_stale(one_array(found["group"]), number, partitions))


def top_rows(rows: pa.Table, order: Sequence[tuple[str, str]], most: int = REPORT_ROWS) -> pa.Table:
    """Return the first rows in an order, at most ``most``."""
    return _first_of(rows, order, most).sort_by(order)


def _first_of(rows: pa.Table, order: Sequence[tuple[str, str]], most: int) -> pa.Table:
    """Return the same rows as ``top_rows``, unsorted."""
    return rows.take(pc.select_k_unstable(rows, most, sort_keys=order)) if rows.num_rows > most else rows


@define
class _OffsetWriter:
    """Writes offsets; keeps their numbers, the largest lags, and the sums by group."""

    output: TaskOutput
    counts: Counter[str] = field(factory=Counter)
    worst: pa.Table = field(factory=OFFSETS.empty_table)
    _sums: list[pa.Table] = field(factory=list)

    def write(self, batch: pa.RecordBatch) -> None:
        rows = pa.Table.from_batches([batch])
        self.output.append("offsets", rows)
        served = rows.filter(pc.invert(rows["stale"]))
        self.counts.update({"offsets": rows.num_rows, "served": served.num_rows})
        self.worst = _first_of(pa.concat_tables([self.worst, served]), _WORST, LOOKED_AT)
        self._sums.append(_summed(_lag_parts(batch), *_BY_LOG))

    def lags(self) -> pa.Table:
        return _summed(pa.concat_tables([LAGS.empty_table(), *self._sums]), *_BY_LOG)


def lag_totals(summary: GroupOffsetsSummary, *by: str) -> pa.Table:
    """Return the totals of offsets that coordinators serve, by ``group`` or by ``group`` and ``topic``."""
    own, lags, starts = _one_per_group(summary), summary.lags, summary.starts
    shares = own.filter(pc.equal(own["kind"], "share"))["group"].combine_chunks()
    commits = lags.filter(pc.invert(pc.or_(lags["stale"], pc.is_in(lags["group"], shares))))
    return _summed(pa.concat_tables([commits, starts.filter(pc.is_in(starts["group"], shares))]), *by)


def _summed(rows: pa.Table, *by: str) -> pa.Table:
    found = aggregated(rows, by, _TOTALS)
    schema = pa.schema([each for each in LAGS if each.name in found.column_names])
    return found.select(schema.names).cast(schema)


def _lag_parts(batch: pa.RecordBatch) -> pa.Table:
    """Return the totals of each row of offsets."""
    known = named(batch)
    more = {"largestLag": batch["lag"], "partitions": 1, "unknown": batch["lag"].is_null()}
    return filled(LAGS, batch.num_rows, known | more)


def _combine(summary: GroupOffsetsSummary, output: TaskOutput) -> GroupOffsetsSummary:
    """Write the table of groups, and return the report data with it."""
    groups = _groups(summary)
    output.append_by("kind", "groups", groups)
    return evolve(summary, groups=groups)


def _groups(summary: GroupOffsetsSummary) -> pa.Table:
    """Return all groups, including groups that have only offsets. Stale offsets and descriptions do not count."""
    joined = _one_per_group(summary).join(lag_totals(summary, "group"), "group", join_type="full outer")
    known = named(joined)
    known |= {name: pc.fill_null(known[name], value) for name, value in _ALONE.items()}
    times = one_array(joined["commitTimestampMs"])
    known |= {"lastCommitMs": times, "lastCommit": to_timestamps(times)}
    return filled(GROUPS, joined.num_rows, known).sort_by("group")


def _one_per_group(summary: GroupOffsetsSummary) -> pa.Table:
    """Return one description per group: of the partition that its coordinator reads, else of that with its last commit.

    If that partition contains only offsets of the group, the columns are null.
    """
    place = ["group", "logPartition", "stale"]
    last = _summed(summary.lags, *place).select([*place, "commitTimestampMs"])
    found = summary.own_groups.join(last, place, join_type="full outer")
    names = ["kind", "state", "epoch", "members"]
    order = [
        ("group", "ascending"), ("stale", "ascending"), ("commitTimestampMs", "descending"),
        ("logPartition", "descending"),
    ]  # fmt: skip
    first = pc.ScalarAggregateOptions(skip_nulls=False)
    grouped = found.sort_by(order).group_by("group", use_threads=False)
    chosen = grouped.aggregate([(name, "first", first) for name in names])
    return chosen.rename_columns([name.removesuffix("_first") for name in chosen.column_names])
