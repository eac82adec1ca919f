"""The interface between jobs and the engines that run them: what a job reads of a partition, keeps and writes.

A job reduces the records of each range of a partition with a ``PartitionReducer``. States of consecutive ranges merge,
and a saved state continues in the next run. Engines know nothing about the records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import quote

import pyarrow as pa
from attrs import AttrsInstance, field, fields, frozen

from kafka_msgs.analysis.offset_tables import EndOffsets
from kafka_msgs.errors import LogFileError
from kafka_msgs.tables.task_output import TableSpec, TaskOutput

__all__ = [
    "PROBLEMS_TABLE",
    "REPORT_ROWS",
    "ClusterFacts",
    "Job",
    "LogRange",
    "PartitionReducer",
    "SavedState",
    "add_summaries",
]

PROBLEMS_TABLE: Final = "problems"
_LONGEST: Final = 190
"""The longest start of a file name. File names may have 255 bytes, and topics 249."""
REPORT_ROWS: Final = 50
"""The number of rows of a table that are kept for the report."""

S = TypeVar("S")
AddedT = TypeVar("AddedT", bound=AttrsInstance)
SummaryT = TypeVar("SummaryT", covariant=True)


@frozen(kw_only=True)
class LogRange:
    """A range of a partition's log that a reducer processes.

    ``start`` is the first offset that the run reads of the partition, 0 for all of it, ``sequence`` the number of the
    range in this read, and ``bases`` are the base offsets of all segments. ``partitions`` is the number of partitions
    of the topic, 0 if unknown.
    """

    topic: str
    number: int
    start: int = 0
    sequence: int = 0
    bases: tuple[int, ...] = (0,)
    partitions: int = 0

    @property
    def log(self) -> str:
        """The name of the partition in manifests. It starts with the number: table readers skip underscores."""
        return f"{self.number}-{quote(self.topic, safe='')}"

    @property
    def stem(self) -> str:
        """The start of the names of the partition's files: ``log``, with a digest instead of the end of a long name."""
        name = self.log
        return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 17]}-{sha256(name.encode()).hexdigest()[:16]}"

    @property
    def part(self) -> str:
        """The stem of the files that the range adds to tables."""
        return f"{self.stem}-{self.start:020}-{self.sequence}"

    @property
    def first_offset(self) -> int:
        """The base offset of the first segment: retention has deleted all records before it."""
        return self.bases[0] if self.bases else 0

    @property
    def from_start(self) -> bool:
        """Whether the run reads the full partition."""
        return self.start == 0


@frozen
class SavedState:
    """The state of a reducer, as numbers and tables."""

    numbers: Mapping[str, int] = field(factory=dict)
    tables: Mapping[str, pa.Table] = field(factory=dict)

    def table(self, name: str, schema: pa.Schema) -> pa.Table:
        """Return a table, empty without one."""
        return self.tables.get(name, schema.empty_table())


@frozen(kw_only=True)
class ClusterFacts:
    """Facts about the cluster after all records of a run were read: end offsets, and topic names by id.

    ``totals`` are the sums of the numbers in the states of all partitions. ``is_placement_known`` is True if the
    cluster metadata names the number of partitions. Otherwise, the inputs determine the number.
    """

    ends: EndOffsets = field(factory=lambda: EndOffsets.of({}))
    names: Mapping[str, str] = field(factory=dict)
    totals: Mapping[str, int] = field(factory=dict)
    is_placement_known: bool = False

    @classmethod
    def of_replicas(cls, replicas: pa.Table) -> ClusterFacts:
        """Return the facts about chosen replicas, by their topic, partition, topic id and end offset, if known."""
        ended, named = (replicas.filter(replicas[name].is_valid()) for name in ("endOffset", "topicId"))
        names = zip(*(named[name].to_pylist() for name in ("topicId", "topic")), strict=True)
        ends = EndOffsets.of_columns(ended["topic"], ended["partition"], ended["endOffset"])
        return cls(ends=ends, names=dict(names))


class PartitionReducer(Protocol[SummaryT]):
    """Reduces the records of a range, and writes rows to the output of its task."""

    def add(self, records: pa.RecordBatch, file: str, segment: int) -> pa.Table:
        """Process the next records, of the segment with this base offset; return the problems among them."""

    def merge(self, later: Any) -> None:
        """Add the state of the next range of the partition."""

    def checkpoint(self) -> SavedState:
        """Return the complete state after the last record."""

    def finish(self, facts: ClusterFacts) -> SummaryT:
        """Write the tables, and return the report data. This is the last call, for the state of a complete log."""


def add_summaries(found: Sequence[AddedT]) -> AddedT:
    """Return the sum of report data, attribute by attribute."""
    names = [each.name for each in fields(type(found[0]))]
    return type(found[0])(**{name: _added([getattr(each, name) for each in found]) for name in names})


def _added(values: Sequence[Any]) -> Any:
    """Return the sum of numbers, all rows of tables and lists, or the sum for each key of mappings."""
    match values[0]:
        case pa.Table():
            return pa.concat_tables(values).combine_chunks()
        case Mapping():
            keys = dict.fromkeys(key for each in values for key in each)
            return {key: _added([each[key] for each in values if key in each]) for key in keys}
        case list():
            return list(chain.from_iterable(values))
    return sum(values)


def _unchanged(report: S, _: TaskOutput) -> S:
    return report


@frozen(kw_only=True)
class Job(Generic[S]):
    """A job over partitions. ``topics`` are the topics that it reads, None for all. Inputs without any partition of
    them are refused. ``optional_topics`` are read as well if the inputs contain them.

    ``start`` creates the reducer of a range from the output, the range and a saved state. ``state_tables`` contains the
    schemas of the tables in its state. ``columns`` lists record columns in addition to ``RECORD_COLUMNS``. With
    ``exact`` an earlier state is used only if no data already read was rewritten. With ``needs_facts`` all partitions
    are reduced before ``finish``, so that facts are as new as their records.

    A run resumes an earlier run only if the ``options`` are equal. Every run writes all rows of ``tables``, but only
    adds rows to the ``appended`` tables. ``merge`` combines report data, and ``combine`` writes the tables that depend
    on all partitions, which are ``combined``.
    """

    name: str
    topics: tuple[str, ...] | None = None
    optional_topics: tuple[str, ...] = ()
    options: Mapping[str, object] = field(factory=dict)
    start: Callable[[TaskOutput, LogRange, SavedState | None], PartitionReducer[S]]
    state_tables: Mapping[str, pa.Schema]
    columns: tuple[str, ...] = ()
    exact: bool = False
    needs_facts: bool = False
    tables: Mapping[str, TableSpec]
    appended: frozenset[str] = frozenset()
    merge: Callable[[Sequence[S]], S]
    combined: frozenset[str] = frozenset()
    combine: Callable[[S, TaskOutput], S] = _unchanged

    @property
    def read_topics(self) -> tuple[str, ...] | None:
        """All topics that the job reads, None for all."""
        return None if self.topics is None else (*self.topics, *self.optional_topics)

    @staticmethod
    def damage(of: LogRange, fault: LogFileError) -> Mapping[str, Any]:
        """Return the row for an unreadable part of a file, with all columns that tables of problems may have."""
        place = {"topic": of.topic, "partition": of.number, "logPartition": of.number}
        return {**place, "file": fault.file, "batchPosition": fault.position, "problem": str(fault)}
