"""The job ``topic-profile``: the batches of topics, and their statistics per partition and hour.

Relates batches to each other: merges the parts of a batch, and detects records older than the previous batch. The state
is kept per segment, so that it is dropped with the segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen

from kafka_msgs.analysis.arrow_tables import aggregated, begins, columns, one_array, replaced
from kafka_msgs.analysis.batch_rows import BATCH_COLUMNS, ROWS, batch_rows, same_batch
from kafka_msgs.analysis.batch_table import BATCHES, BATCHES_TABLE, MARKERS, BatchTableWriter, directory_of
from kafka_msgs.analysis.commit_hours import SHOWN_HOURS
from kafka_msgs.analysis.hourly_stats import (
    FIGURES,
    PRODUCERS,
    PROFILE,
    SUMMED,
    HourlyStats,
    by_codec,
    by_segment,
    late_at,
    profile_of,
    rows_of_segments,
)
from kafka_msgs.analysis.job import (
    PROBLEMS_TABLE,
    REPORT_ROWS,
    ClusterFacts,
    Job,
    LogRange,
    SavedState,
    add_summaries,
)
from kafka_msgs.tables.task_output import TableSpec, TaskOutput

__all__ = ["PARTITIONS", "PROBLEMS", "PROFILE_TABLE", "TOPIC_PROFILE", "ProfileSummary"]

PROFILE_TABLE: Final = "profile"
PROBLEMS: Final = columns("topic partition file batchPosition problem")
PARTITIONS: Final = columns(" ".join(("topic", "partition", *SUMMED)))
"""The sums of the partitions with batches."""
_SEGMENTS: Final = 10_000
"""The number of largest segments that are kept for the report."""

Rows = list[dict[str, Any]]


@frozen(kw_only=True)
class ProfileSummary:
    """The report data of partitions.

    ``partitions`` has the columns ``PARTITIONS``. ``rows`` counts the rows of the profile, and ``largest`` are the rows
    with the most bytes. ``hours`` counts records by topic and hour, and ``known`` the records of all hours by topic,
    excluding records without a time. ``codecs`` contains sums by topic and codec. ``segments`` are the largest of
    ``segment_count`` segments.
    """

    partitions: pa.Table = field(factory=PARTITIONS.empty_table)
    rows: int = 0
    largest: Rows = field(factory=list)
    codecs: Mapping[tuple[str, str], Mapping[str, int]] = field(factory=dict)
    segments: Rows = field(factory=list)
    segment_count: int = 0
    hours: Mapping[str, Mapping[int, int]] = field(factory=dict)
    known: Mapping[str, int] = field(factory=dict)


def merge_summaries(found: Sequence[ProfileSummary]) -> ProfileSummary:
    """Return the report data of all partitions."""
    whole = add_summaries([ProfileSummary(), *found])
    hours = {topic: dict(sorted(counts.items())[-SHOWN_HOURS:]) for topic, counts in whole.hours.items()}
    largest, segments = sorted(whole.largest, key=_by_bytes)[:REPORT_ROWS], _largest_segments(whole.segments)
    return evolve(whole, hours=hours, largest=largest, segments=segments)


def _by_bytes(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return -row["bytes"], row["topic"], row["partition"], row["hourMs"] is not None, row["hourMs"]


def _largest_segments(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (-row["bytes"], row["topic"], row["partition"], row["segment"]))[:_SEGMENTS]


class TopicProfile:
    """The state of a range of a partition. ``_last`` maps segments to the time of their last client batch."""

    def __init__(self, output: TaskOutput, of: LogRange, saved: SavedState | None) -> None:
        self._range = of
        self._output = output
        state = SavedState() if saved is None else saved
        schemas = {"figures": FIGURES, "producers": PRODUCERS, "waiting": ROWS}
        figures, producers, waiting = (
            rows_of_segments(state.table(name, schema), of.bases) for name, schema in schemas.items()
        )
        self._figures = HourlyStats(figures, producers)
        self._batches = BatchTableWriter(output, of, waiting, state.table("markers", MARKERS))
        self._last = {int(base): time for base, time in state.numbers.items() if int(base) in of.bases}
        self._held = ROWS.empty_table()

    def add(self, records: pa.RecordBatch, file: str, segment: int) -> pa.Table:
        """Process the next records; none is a problem. The last batch is held back, because more of it may follow."""
        rows = batch_rows(records, segment, file)
        if self._held.num_rows:
            joined = same_batch(self._held, rows.slice(0, 1))
            rows = pa.concat_tables([self._held, rows] if joined is None else [joined, rows.slice(1)])
        self._held = rows.slice(rows.num_rows - 1)
        self._take(rows.slice(0, rows.num_rows - 1))
        return PROBLEMS.empty_table()

    def merge(self, later: TopicProfile) -> None:
        """Add the state of the next range.

        If the range begins within a segment, its first client batch is not the first one of the segment, and may be
        older than the last one before the cut.
        """
        waiting, figures = later._batches.waiting, later._figures
        segments = waiting["segment"].combine_chunks()
        before = pa.array([self._last.get(base) for base in segments.to_pylist()], pa.int64())
        continued = pc.and_(waiting["first"], before.is_valid()).combine_chunks()
        late = pc.and_(continued, pc.fill_null(pc.less(waiting["firstTimestampMs"].combine_chunks(), before), False))
        order, first = pc.add(waiting["outOfOrder"], late.cast(pa.int64())), pc.and_not(waiting["first"], continued)
        waiting = replaced(waiting, outOfOrder=order, first=first)
        self._figures.merge(figures, late_at(waiting.filter(late)))
        self._figures.abort(self._batches.merge(waiting, later._batches.markers))
        self._last |= later._last

    def _take(self, rows: pa.Table) -> None:
        if rows.num_rows:
            rows = self._ordered(rows)
            self._figures.add(rows)
            self._figures.abort(self._batches.add(rows))

    def _ordered(self, rows: pa.Table) -> pa.Table:
        """Return batches with ``outOfOrder`` counted against the previous batch, and ``first`` set per segment."""
        data = rows.filter(pc.invert(rows["control"])).combine_chunks()
        if not data.num_rows:
            return rows
        segments, times = data["segment"].combine_chunks(), data["lastTimestampMs"].combine_chunks()
        base = segments[0].as_py()
        seen = self._last.get(base)
        before = pa.concat_arrays([pa.array([seen], pa.int64()), times[:-1]])
        first = pa.concat_arrays([pa.array([seen is None]), pc.not_equal(segments[1:], segments[:-1])])
        late = pc.and_not(pc.fill_null(pc.less(data["firstTimestampMs"].combine_chunks(), before), False), first)
        self._last |= _last_by_segment(segments, times)
        order = pc.add(data["outOfOrder"].combine_chunks(), late.cast(pa.int64()))
        mask = pc.invert(rows["control"]).combine_chunks()
        new = {"outOfOrder": order, "first": first}
        found = {name: pc.replace_with_mask(one_array(rows[name]), mask, each) for name, each in new.items()}
        return replaced(rows, **found)

    def checkpoint(self) -> SavedState:
        """Return the complete state after the last record."""
        self._take(self._held)
        self._held = ROWS.empty_table()
        self._figures.abort(self._batches.apply_markers())
        tables = {
            "waiting": self._batches.waiting,
            "markers": self._batches.markers,
            "figures": self._figures.sums(),
            "producers": self._figures.producers(),
        }
        return SavedState({str(base): time for base, time in self._last.items()}, tables)

    def _late_firsts(self) -> pa.Array:
        """Return which pending batches start a segment and are older than the last batch of an earlier segment."""
        before: dict[int, int] = {}
        earlier: int | None = None
        for base in sorted(self._last):
            if earlier is not None:
                before[base] = earlier
            earlier = self._last[base]
        waiting = self._batches.waiting
        last = pa.array([before.get(base) for base in waiting["segment"].to_pylist()], pa.int64())
        late = pc.fill_null(pc.less(waiting["firstTimestampMs"].combine_chunks(), last), False)
        return pc.and_(late, waiting["first"].combine_chunks())

    def figures(self) -> pa.Table:
        """Return the statistics of a complete log, with the columns of ``FIGURES``."""
        return pa.concat_tables([self._figures.sums(), late_at(self._batches.waiting.filter(self._late_firsts()))])

    def producers(self) -> pa.Table:
        """Return the producers, with the columns of ``PRODUCERS``."""
        return self._figures.producers()

    def finish(self, _: ClusterFacts) -> ProfileSummary:
        """Write the pending batches and the profile, and return the report data."""
        self._batches.finish(self._late_firsts().cast(pa.int64()))
        figures = self.figures()
        topic, number = self._range.topic, self._range.number
        profile = profile_of(figures, self.producers(), topic, number)
        self._output.append(PROFILE_TABLE, profile.drop_columns("topic"), directory_of(topic))
        timed = profile.filter(profile["hourMs"].is_valid())
        hours = dict(zip(*(timed[name].to_pylist()[-SHOWN_HOURS:] for name in ("hourMs", "records")), strict=True))
        segments = [
            {"topic": topic, "partition": number, **row, "segment": f"{row['segment']:020}.log"}
            for row in by_segment(figures, self._range.bases)
        ]
        return ProfileSummary(
            partitions=_sums(profile),
            rows=profile.num_rows,
            largest=_largest(profile),
            codecs={(topic, row.pop("codec")): row for row in by_codec(figures)},
            segments=_largest_segments(segments),
            segment_count=len(segments),
            hours={topic: hours} if hours else {},
            known={topic: pc.sum(timed["records"]).as_py() or 0},
        )


def _sums(profile: pa.Table) -> pa.Table:
    sums = aggregated(profile, ["topic", "partition"], dict.fromkeys(SUMMED, "sum"))
    return sums.select(PARTITIONS.names).cast(PARTITIONS)


def _largest(profile: pa.Table) -> Rows:
    """Return the hours with the most bytes, without timestamps, because Python cannot represent all of them."""
    rows = profile.drop_columns("hour").sort_by([("bytes", "descending"), ("hourMs", "ascending")])
    return list(rows.slice(0, REPORT_ROWS).to_pylist())


def _last_by_segment(segments: pa.Array, times: pa.Array) -> dict[int, int]:
    """Return the last time of each segment, given rows in log order."""
    ends = pc.indices_nonzero(pa.concat_arrays([begins(segments)[1:], pa.array([True])]))
    return dict(zip(segments.take(ends).to_pylist(), times.take(ends).to_pylist(), strict=True))


TOPIC_PROFILE: Final = Job(
    name="topic-profile",
    start=TopicProfile,
    state_tables={"waiting": ROWS, "markers": MARKERS, "figures": FIGURES, "producers": PRODUCERS},
    columns=BATCH_COLUMNS,
    exact=True,
    tables={
        BATCHES_TABLE: TableSpec(BATCHES, partition_by=("topic",)),
        PROFILE_TABLE: TableSpec(PROFILE, partition_by=("topic",)),
        PROBLEMS_TABLE: TableSpec(PROBLEMS),
    },
    appended=frozenset([BATCHES_TABLE, PROBLEMS_TABLE]),
    merge=merge_summaries,
)
"""The job. Compaction changes the statistics of a segment, so no data may have been rewritten."""
