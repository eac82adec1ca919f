"""One partition of ``__consumer_offsets`` from its files to its part of every table: the work of one task.

Owns the order of things: what an earlier run kept, what is new in the log, what is left of both, and the figures for
the report. Engines decide where this runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field, frozen

from kafka_msgs.errors import LogFileError
from kafka_msgs.offline.directories import Progress
from kafka_msgs.pipeline.answers import (
    OFFSETS,
    PENDING,
    PROBLEMS,
    Ends,
    described_groups,
    offsets_of,
    pending_of,
    with_first_commits,
)
from kafka_msgs.pipeline.commits import classify
from kafka_msgs.pipeline.counters import Counters
from kafka_msgs.pipeline.history import HISTORY_TABLE, HistoryWriter, directory_of
from kafka_msgs.pipeline.logs import LogReader, LogSegment, RewrittenError, Tip
from kafka_msgs.pipeline.output import Place, write_table
from kafka_msgs.pipeline.state import STATE, State, earlier_problems, load_state, save_state
from kafka_msgs.pipeline.survivors import Survivors

__all__ = ["LOOKED_AT", "OWN_GROUPS", "SHOWN", "Log", "Summary", "Task", "run_partition"]

SHOWN: Final = 50
"""How many rows of a table are kept for the report."""
LOOKED_AT: Final = 10_000
"""How many offsets are kept for it, those with the largest lags: their groups are summed up, too."""
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
class Log:
    """A partition of ``__consumer_offsets``: its number, the id of its topic if that is known, and its segments."""

    number: int
    topic_id: str | None
    segments: tuple[LogSegment, ...]

    @property
    def size(self) -> int:
        """The bytes of the segments."""
        return sum(each.size for each in self.segments)


@frozen(kw_only=True)
class Task:
    """What all partitions of a run share: its name, where it writes, the ends of partitions, and what is wanted.

    ``appends`` is whether the place holds an earlier run.
    """

    run: str
    place: Place
    ends: Ends
    history: bool = False
    appends: bool = False


@frozen(kw_only=True)
class Summary:
    """What the report needs of a partition, and how much of it was read anew: all, or what was added."""

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


def run_partition(task: Task, log: Log, progress: Progress | None = None) -> Summary:
    """Read what is new in a partition, write its parts of the tables and its state, and return its summary.

    Raises ``OSError``.
    """
    earlier = load_state(task.place, log.number) if task.appends else None
    usable = earlier.of_log(log.topic_id, log.segments) if earlier else None
    if usable is not None:
        try:
            return _Pass(log, task, usable).run(progress)
        except RewrittenError:
            _discard(log.number, task.place.new)
    return _Pass(log, task, None).run(progress)


def _discard(number: int, new: Place) -> None:
    """Delete what a pass wrote that could not go on. The other files are written again by the pass after it."""
    new.remove("problems", f"{number}.parquet")
    new.remove(STATE, f"{number}-problems.parquet")
    new.inside(HISTORY_TABLE, directory_of(number)).clear()


@define
class _Problems:
    """The problems of a partition, written as they are found; ``tail`` counts those since the last record."""

    place: Place
    number: int
    count: int = 0
    tail: int = 0
    first: pa.Table = field(factory=PROBLEMS.empty_table)
    _writers: list[object] = field(factory=list)

    def add(self, found: pa.Table) -> None:
        if not found.num_rows:
            return
        if not self._writers:
            paths = ("problems", f"{self.number}.parquet"), (STATE, f"{self.number}-problems.parquet")
            self._writers = [self.place.writer(PROBLEMS, *path) for path in paths]
        for writer in self._writers:
            writer.write_table(found)  # type: ignore[attr-defined]
        self.count += found.num_rows
        self.first = pa.concat_tables([self.first, found.slice(0, max(SHOWN - self.first.num_rows, 0))])

    def close(self) -> None:
        for writer in self._writers:
            writer.close()  # type: ignore[attr-defined]


class _Pass:
    """One pass over a log, from the tip of ``earlier`` on, or from its start."""

    def __init__(self, log: Log, task: Task, earlier: State | None) -> None:
        self._log = log
        self._task = task
        self._earlier = earlier
        new = task.place.new
        self._counters = Counters() if earlier is None else Counters(dict(earlier.numbers), earlier.hours)
        self._survivors = Survivors() if earlier is None else Survivors(earlier.rows)
        self._problems = _Problems(new, log.number)
        start = 0 if earlier is None else earlier.tip.offset + 1
        place = None if earlier is None else task.place
        self._history = HistoryWriter(new, log.number, start, place) if task.history else None

    def run(self, progress: Progress | None) -> Summary:
        try:
            tip = self._read(progress)
        finally:
            self._problems.close()
        survivors = self._survivors.finish()
        self._counters.count("committed", self._survivors.committed)
        self._counters.count("aborted", self._survivors.aborted)
        if self._history is not None:
            self._history.finish()
        if tip is not None:
            save_state(self._state(tip, survivors), self._task.place.new, self._log.number)
        return self._summary(survivors)

    def _read(self, progress: Progress | None) -> Tip | None:
        if self._earlier is not None:
            for batch in earlier_problems(self._task.place, self._log.number, self._earlier):
                self._problems.add(pa.Table.from_batches([batch]))
        tip = None if self._earlier is None else self._earlier.tip
        reader = LogReader(self._log.segments, tip, progress)
        for segment, item in reader:
            if isinstance(item, LogFileError):
                self._problems.add(_damage(self._log.number, item))
                self._problems.tail += 1
            else:
                self._add(item, segment.name)
        return reader.tip

    def _add(self, records: pa.RecordBatch, file: str) -> None:
        found = classify(records, file)
        self._survivors.add(found.rows)
        self._counters.add(found)
        if self._history is not None:
            self._history.add(found, file)
        numbers = pa.repeat(pa.scalar(self._log.number, pa.int32()), found.problems.num_rows)
        self._problems.add(found.problems.add_column(0, "logPartition", numbers).cast(PROBLEMS))
        self._problems.tail = 0

    def _state(self, tip: Tip, survivors: pa.Table) -> State:
        return State(
            run=self._task.run,
            topic_id=self._log.topic_id,
            tip=tip,
            segments=tuple((each.name, each.base_offset, each.size) for each in self._log.segments),
            problems=self._problems.count,
            tail=self._problems.tail,
            numbers=self._counters.facts(),
            rows=survivors,
            hours=self._counters.hours,
        )

    def _summary(self, survivors: pa.Table) -> Summary:
        new, number = self._task.place.new, self._log.number
        offsets, pending = _Offsets(), _Best(PENDING, _BY_KEY)
        batches = offsets.seen(offsets_of(survivors, number, self._task.ends))
        written = write_table("offsets", batches, OFFSETS, new, f"{number}")
        waiting = write_table("pending", pending.seen(pending_of(survivors, number)), PENDING, new, f"{number}")
        return Summary(
            number=number,
            from_start=self._earlier is None,
            rows={"offsets": written, "pending": waiting, "problems": self._problems.count},
            numbers=self._counters.facts(),
            hours=self._counters.hours,
            groups=_own_groups(survivors),
            lags=offsets.lags(),
            worst=with_first_commits(offsets.worst.rows, survivors),
            pending=pending.rows,
            problems=self._problems.first,
        )


@define
class _Best:
    """The first rows of a table in some order, picked while it passes by; they are not sorted."""

    schema: pa.Schema
    order: Sequence[tuple[str, str]]
    most: int = SHOWN
    rows: pa.Table = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rows = self.schema.empty_table()

    def seen(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows = _first_of(pa.concat_tables([self.rows, pa.Table.from_batches([batch])]), self.order, self.most)
            yield batch


def best_of(rows: pa.Table, order: Sequence[tuple[str, str]], most: int = SHOWN) -> pa.Table:
    """Return the first rows in an order, at most as many as are given."""
    return _first_of(rows, order, most).sort_by(order)


def _first_of(rows: pa.Table, order: Sequence[tuple[str, str]], most: int) -> pa.Table:
    """Return the same rows as ``best_of``, in any order."""
    return rows.take(pc.select_k_unstable(rows, most, sort_keys=order)) if rows.num_rows > most else rows


class _Offsets:
    """The largest lags, and the sums by group, of offsets that pass by."""

    def __init__(self) -> None:
        self.worst = _Best(OFFSETS, _WORST, LOOKED_AT)
        self._sums: list[pa.Table] = []

    def seen(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in self.worst.seen(batches):
            self._sums.append(summed_lags(pa.Table.from_batches([batch]).append_column("partitions", _ones(batch))))
            yield batch

    def lags(self) -> pa.Table:
        return summed_lags(pa.concat_tables([LAGS.empty_table(), *self._sums]))


LAGS: Final = pa.schema(
    [("group", pa.string()), ("partitions", pa.int64()), ("lag", pa.int64()), ("commitTimestampMs", pa.int64())]
)
"""How many offsets a group has, the sum of its lags, and the time of its last commit."""


def summed_lags(rows: pa.Table) -> pa.Table:
    """Return one row for each group: its sums, with the columns of ``LAGS``."""
    sums = [("partitions", "sum"), ("lag", "sum"), ("commitTimestampMs", "max")]
    found = rows.group_by("group").aggregate(sums)
    columns = [found["group"], *(found[f"{name}_{function}"] for name, function in sums)]
    return pa.Table.from_arrays(columns, names=LAGS.names).cast(LAGS)


def _ones(batch: pa.RecordBatch) -> pa.Array:
    return pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)


def _own_groups(survivors: pa.Table) -> pa.Table:
    found = described_groups(survivors)
    rows = [(each.group_id, each.kind, each.state, each.epoch, len(each.members)) for each in found]
    return pa.Table.from_pylist([dict(zip(OWN_GROUPS.names, row, strict=True)) for row in rows], schema=OWN_GROUPS)


def _damage(number: int, fault: LogFileError) -> pa.Table:
    row = {"logPartition": number, "logOffset": None, "file": fault.file, "problem": str(fault)}
    return pa.Table.from_pylist([row], schema=PROBLEMS)
