"""Reducers of jobs: a log that is cut anywhere, whose ranges are merged in any order, has the tables of one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pytest
from attrs import asdict, define, evolve, field

from kafka_msgs.analysis import batch_table, commit_history, hourly_stats, live_records
from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.group_state_job import GROUP_STATE
from kafka_msgs.analysis.job import PROBLEMS_TABLE, ClusterFacts, Job, LogRange, PartitionReducer, SavedState
from kafka_msgs.analysis.memory_output import MemoryOutput
from kafka_msgs.analysis.offset_tables import EndOffsets
from kafka_msgs.analysis.profile_job import TOPIC_PROFILE
from kafka_msgs.analysis.record_classification import RECORD_COLUMNS
from kafka_msgs.columns.record_tables import walk_record_table
from kafka_msgs.log import LogDirectory, Partition
from tests.analysis.test_merges import reduce_ranges
from tests.support.offsets_topic import OffsetsTopic
from tests.support.random_topic import RandomTopic
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.share_topic import ShareTopic

FACTS: Final = ClusterFacts(
    ends=EndOffsets.of({(name, 0): 10_000 for name in (*"abcdefghijklmnopqrstuvwxyz", "parcels", "pallets")}),
    names={str(UUID(int=901)): "parcels", str(UUID(int=902)): "pallets"},
)
JOBS: Final[dict[str, Job[Any]]] = {
    "group-offsets": group_offsets_job(history=True),
    "group-state": GROUP_STATE,
    "topic-profile": TOPIC_PROFILE,
}
Piece = tuple[pa.RecordBatch, str, int]


@define
class JobRange:
    """The state of a range, and the rows that it and the ranges merged into it have written."""

    job: Job[Any]
    range: LogRange
    output: MemoryOutput
    reducer: PartitionReducer[Any]
    rows: dict[str, list[pa.Table]] = field(factory=dict)

    @classmethod
    def start(cls, job: Job[Any], of: LogRange, saved: SavedState | None = None) -> JobRange:
        output = MemoryOutput({name: spec.schema for name, spec in job.tables.items()})
        return cls(job, of, output, job.start(output, of, saved))

    def add(self, piece: Piece) -> None:
        problems = self.reducer.add(*piece)
        self.rows.setdefault(PROBLEMS_TABLE, []).append(problems)

    def merge(self, later: JobRange) -> JobRange:
        for state in (self, later):
            state.reducer.checkpoint()
        self.reducer.merge(later.reducer)
        for name, rows in later.written().items():
            self.rows.setdefault(name, []).extend(rows)
        return self

    def checkpoint(self) -> SavedState:
        return self.reducer.checkpoint()

    def written(self) -> dict[str, list[pa.Table]]:
        for name, batch in self.output.drain():
            self.rows.setdefault(name, []).append(pa.Table.from_batches([batch]))
        return self.rows

    def result(self) -> dict[str, Any]:
        """Finish the partition; return the rows of its tables and its report data, both sorted."""
        self.reducer.checkpoint()
        summary = self.job.merge([self.reducer.finish(FACTS)])
        tables = {name: plain(pa.concat_tables(rows)) for name, rows in self.written().items() if rows}
        return tables | {"summary": {name: plain(value) for name, value in asdict(summary, recurse=False).items()}}


def plain(value: Any) -> Any:
    """Return rows in a fixed order, with times as numbers: Python cannot represent all of them."""
    if isinstance(value, pa.Table):
        times = [pa.types.is_timestamp(each.type) for each in value.schema]
        fields = [
            pa.field(each.name, pa.int64()) if is_time else each
            for each, is_time in zip(value.schema, times, strict=True)
        ]
        return sorted(map(repr, value.cast(pa.schema(fields)).to_pylist()))
    return dict(value) if isinstance(value, dict) else value


def saved(state: JobRange) -> JobRange:
    """Return the state that a later task restores from a checkpoint, through Arrow's file format."""
    found = state.checkpoint()
    tables = {name: through_file(rows) for name, rows in found.tables.items()}
    restored = JobRange.start(state.job, state.range, SavedState(dict(found.numbers), tables))
    return evolve(restored, rows=state.written())


def through_file(rows: pa.Table) -> pa.Table:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return pa.ipc.open_file(sink.getvalue()).read_all()


def pieces(job: Job[Any], partition: Partition) -> Iterator[Piece]:
    """Yield the records of a partition, batch by batch."""
    columns = (*RECORD_COLUMNS, "batch_position", *job.columns)
    for segment in partition.segments:
        for item in walk_record_table(segment.path, columns=columns):
            if isinstance(item, pa.RecordBatch):
                positions = item["batch_position"].to_pylist()
                starts = [n for n, at in enumerate(positions) if n == 0 or positions[n - 1] != at]
                for start, end in zip(starts, [*starts[1:], item.num_rows], strict=True):
                    yield item.slice(start, end - start), segment.path.name, segment.base_offset


def check(job: Job[Any], partition: Partition, seeds: Sequence[object]) -> None:
    items = list(pieces(job, partition))
    bases = tuple(each.base_offset for each in partition.segments)
    of = LogRange(topic=partition.topic, number=partition.partition, bases=bases, partitions=3)
    serial = JobRange.start(job, of)
    for item in items:
        serial.add(item)
    expected = serial.result()
    for seed in seeds:

        def new(first: bool) -> JobRange:
            return JobRange.start(job, evolve(of, sequence=0 if first else 1))

        assert reduce_ranges(items, Random(f"{seed}"), new, saved).result() == expected


def with_small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce all data after each batch."""
    for module in (batch_table, commit_history, hourly_stats, live_records):
        monkeypatch.setattr(module, "_BUFFER", 1)


def offsets_topic(home: Path, dice: Random) -> OffsetsTopic:
    return OffsetsTopic(home, dice)


TOPICS: Final[dict[str, tuple[str, Callable[[Path, Random], Any]]]] = {
    "group-offsets": ("__consumer_offsets", offsets_topic),
    "share-offsets": ("__share_group_state", ShareTopic),
    "group-state": ("__consumer_offsets", offsets_topic),
    "topic-profile": ("events", lambda home, dice: RandomTopic(home, dice, damage=True)),
}


@pytest.mark.parametrize("name", TOPICS)
@pytest.mark.parametrize("seed", range(6))
def test_ranges_of_random_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, name: str) -> None:
    if seed % 2:
        with_small_buffers(monkeypatch)
    topic, new = TOPICS[name]
    log = new(tmp_path, Random(seed))
    log.grow(seed * 8)
    log.write()
    job = JOBS["group-offsets" if name == "share-offsets" else name]
    check(job, Partition(tmp_path / f"{topic}-0"), [f"{seed} {again}" for again in range(2)])


@pytest.mark.parametrize("name", JOBS)
def test_ranges_of_the_logs_of_a_broker(name: str) -> None:
    job, topics = JOBS[name], JOBS[name].read_topics
    partitions = LogDirectory(LOGS if topics is None else GROUP_LOGS).partitions
    wanted = [each for each in partitions if topics is None or each.topic in topics]
    assert wanted
    for seed, partition in enumerate(wanted):
        check(job, partition, [seed])
