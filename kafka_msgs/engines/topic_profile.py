"""The job ``topic-profile``, independent of the engine: topic statistics per partition and hour, as Parquet tables.

Handles the inputs of the job, and the choice of batch files that a run replaces. ``topic_profile_task`` processes the
records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs.analysis.batch_rows import BATCH_COLUMNS, ROWS, batch_rows, begins, same_batch
from kafka_msgs.analysis.batch_table import BATCHES, BATCHES_TABLE, BatchFile, BatchTableWriter, directory_of
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
from kafka_msgs.engines.checkpoint import Checkpoint
from kafka_msgs.engines.job import Job, JobInputs, JobRun
from kafka_msgs.engines.partition_reader import PartitionInput, SegmentInput
from kafka_msgs.engines.partition_task import PROBLEMS_TABLE, REPORT_ROWS, CheckpointData, Problems, ReadSpec
from kafka_msgs.errors import LogFileError
from kafka_msgs.tables.task_output import TableSpec, TaskOutput, write_table

__all__ = ["NAME", "PROBLEMS", "PROFILE_TABLE", "READING", "ProfileRun", "ProfileSummary", "topic_profile_run"]

PROFILE_TABLE: Final = "profile"
PROBLEMS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("file", pa.string()),
        ("batchPosition", pa.int64()),
        ("problem", pa.string()),
    ]
)
_SEGMENTS: Final = 10_000
"""The number of largest segments of a partition that are kept for the report."""


@frozen(kw_only=True)
class ProfileSummary:
    """The report data of a partition.

    ``start`` is the first offset of the read, and ``bases`` are the base offsets of the segments. ``sums`` contains the
    columns ``SUMMED`` of the profile, or None if the profile is empty. ``largest`` are the rows of the profile with the
    most bytes, and ``hours`` counts records by hour. ``known`` counts the records of all hours, excluding records
    without a time.
    """

    topic: str
    number: int
    start: int
    bases: frozenset[int]
    sums: dict[str, int] | None
    rows: int
    largest: list[dict[str, Any]]
    codecs: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    segment_count: int
    hours: dict[int, int]
    known: int
    problems: list[dict[str, Any]]
    problem_count: int

    @property
    def from_start(self) -> bool:
        """Whether the run read the full partition."""
        return self.start == 0


def _damage(log: PartitionInput, fault: LogFileError) -> Mapping[str, Any]:
    return {
        "topic": log.topic,
        "partition": log.number,
        "file": fault.file,
        "batchPosition": fault.position,
        "problem": str(fault),
    }


class _ProfileWork:
    """Processes the records of one partition. ``_last`` maps segments to the time of their last client batch."""

    def __init__(self, output: TaskOutput, log: PartitionInput, earlier: Checkpoint | None) -> None:
        self._log = log
        self._output = output
        self._start = 0 if earlier is None else earlier.tip.offset + 1
        self._bases = {each.base_offset for each in log.segments}
        tables = {} if earlier is None else {
            name: rows_of_segments(rows, self._bases) for name, rows in earlier.tables.items()
        }  # fmt: skip
        self._figures = HourlyStats(tables["figures"], tables["producers"]) if tables else HourlyStats()
        self._batches = BatchTableWriter(
            output, log.topic, log.number, self._start, tables.get("waiting", ROWS.empty_table())
        )
        numbers = {} if earlier is None else earlier.numbers
        self._last = {int(base): time for base, time in numbers.items() if int(base) in self._bases}
        self._held = ROWS.empty_table()
        self._late = FIGURES.empty_table()

    def add(self, records: pa.RecordBatch, segment: SegmentInput) -> pa.Table:
        """Process the next records; none is a problem. The last batch is held back, because more of it may follow."""
        rows = batch_rows(records, segment.base_offset, segment.name)
        if self._held.num_rows:
            joined = same_batch(self._held, rows.slice(0, 1))
            rows = pa.concat_tables([self._held, rows] if joined is None else [joined, rows.slice(1)])
        self._held = rows.slice(rows.num_rows - 1)
        self._take(rows.slice(0, rows.num_rows - 1))
        return PROBLEMS.empty_table()

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
        return _replaced(rows, data, pc.add(data["outOfOrder"].combine_chunks(), late.cast(pa.int64())), first)

    def finish(self) -> CheckpointData:
        """Return the checkpoint data after the last record."""
        self._take(self._held)
        self._figures.abort(self._batches.apply_markers())
        waiting, late = self._batches.waiting, self._late_firsts()
        self._late = late_at(waiting.filter(late))
        self._batches.finish(late.cast(pa.int64()))
        tables = {"waiting": waiting, "figures": self._figures.sums(), "producers": self._figures.producers()}
        return CheckpointData({str(base): time for base, time in self._last.items()}, tables)

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

    def discard(self) -> None:
        """Remove the written batches from the output."""
        self._batches.discard()

    def summary(self, problems: Problems) -> ProfileSummary:
        """Write the profile, and return the report data."""
        figures = pa.concat_tables([self._figures.sums(), self._late])
        profile = profile_of(figures, self._figures.producers(), self._log.topic, self._log.number)
        rows, segments = profile.drop_columns("topic"), self._segments(figures)
        part = f"{directory_of(self._log.topic)}/{self._log.number}"
        write_table(PROFILE_TABLE, rows.to_batches(), rows.schema, self._output, part)
        timed = profile.filter(profile["hourMs"].is_valid())
        return ProfileSummary(
            topic=self._log.topic,
            number=self._log.number,
            start=self._start,
            bases=frozenset(self._bases),
            sums={name: pc.sum(profile[name]).as_py() for name in SUMMED} if profile.num_rows else None,
            rows=profile.num_rows,
            largest=_largest(profile),
            codecs=by_codec(figures),
            segments=segments[:_SEGMENTS],
            segment_count=len(segments),
            hours=dict(zip(*(timed[name].to_pylist()[-SHOWN_HOURS:] for name in ("hourMs", "records")), strict=True)),
            known=pc.sum(timed["records"]).as_py() or 0,
            problems=problems.first.to_pylist(),
            problem_count=problems.count,
        )

    def _segments(self, figures: pa.Table) -> list[dict[str, Any]]:
        names = {each.base_offset: each.name.rpartition("/")[2] for each in self._log.segments}
        rows = sorted(by_segment(figures), key=lambda row: (-row["bytes"], row["segment"]))
        place = {"topic": self._log.topic, "partition": self._log.number}
        return [{**place, **row, "segment": names[row["segment"]]} for row in rows]


def _largest(profile: pa.Table) -> list[dict[str, Any]]:
    """Return the hours with the most bytes, without timestamps, because Python cannot represent all of them."""
    rows = profile.drop_columns("hour").sort_by([("bytes", "descending"), ("hourMs", "ascending")])
    return list(rows.slice(0, REPORT_ROWS).to_pylist())


def _last_by_segment(segments: pa.Array, times: pa.Array) -> dict[int, int]:
    """Return the last time of each segment, given rows in log order."""
    ends = pc.indices_nonzero(pa.concat_arrays([begins(segments)[1:], pa.array([True])]))
    return dict(zip(segments.take(ends).to_pylist(), times.take(ends).to_pylist(), strict=True))


def _replaced(rows: pa.Table, data: pa.Table, late: pa.Array, first: pa.Array) -> pa.Table:
    """Return batches with ``outOfOrder`` and ``first`` replaced in the client batches."""
    mask = pc.invert(rows["control"]).combine_chunks()
    for name, values in (("outOfOrder", late), ("first", first)):
        at = ROWS.get_field_index(name)
        column = pc.replace_with_mask(rows[name].combine_chunks(), mask, values)
        rows = rows.set_column(at, ROWS.field(at), column)
    return rows


READING: Final = ReadSpec(
    start=_ProfileWork,
    tables={"waiting": ROWS, "figures": FIGURES, "producers": PRODUCERS},
    problems=PROBLEMS,
    damage=_damage,
    columns=BATCH_COLUMNS,
    exact=True,
)
"""The read specification. Compaction changes the statistics of a segment, so no data may have been rewritten."""


NAME: Final = "topic-profile"
_TABLES: Final = {
    BATCHES_TABLE: TableSpec(BATCHES, time="hour"),
    PROFILE_TABLE: TableSpec(PROFILE, time="hour"),
    PROBLEMS_TABLE: TableSpec(PROBLEMS),
}

ProfileRun: TypeAlias = JobRun[ProfileSummary, tuple[ProfileSummary, ...]]


def topic_profile_run(inputs: JobInputs) -> ProfileRun:
    """Return the run over all partitions in the inputs.

    Raises the errors of ``JobInputs``.
    """
    job = Job(
        name=NAME,
        reading=READING,
        tables=_TABLES,
        appended_tables={BATCHES_TABLE: _replaced},
        combine=lambda summaries, _: tuple(summaries),
    )
    return JobRun(job=job, inputs=inputs.paths, logs=inputs.logs())


def _replaced(names: Iterable[str], summaries: Sequence[ProfileSummary]) -> Iterator[str]:
    """Yield the batch files that this run replaces.

    These are the files with pending rows, the files of deleted segments and partitions, and the files of runs with the
    same or a later start offset. A partition that was read from its start replaces all its files.
    """
    known = {(directory_of(each.topic), each.number): each for each in summaries}
    for name in names:
        file = BatchFile.at(name)
        summary = known.get((file.directory, file.number)) if file else None
        if file is None or summary is None or file.segment not in summary.bases or file.start >= summary.start:
            yield name
