"""The plan of a run: the chosen replicas, cut into ranges, and packed into tasks of about the same size.

A plan is one Arrow file with a record batch per task, so that each task reads only its own rows. Ranges are cut at
segments, and within large segments at the marks of the listing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from attrs import asdict, frozen

from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.task_output import TaskOutput

__all__ = [
    "NO_SPLIT",
    "PLAN",
    "SPLIT_BYTES",
    "PlannedRange",
    "RangeEdge",
    "StateRef",
    "pack_ranges",
    "plan_tasks",
    "read_batch",
    "write_batches",
]

SPLIT_BYTES: Final = 128 << 20
"""The default size of ranges in bytes, and the maximum size of a task of several ranges."""
NO_SPLIT: Final = 1 << 62
"""A size that no partition has, so that each partition is read in one range."""
_FILE_BYTES: Final = 384 << 10
"""The cost of opening a file, as bytes that could be read in that time. It limits the number of ranges in a task."""

_LONG, _INT, _TEXT = pa.int64(), pa.int32(), pa.string()
_EDGE: Final = pa.struct([("segment", _LONG), ("position", _LONG), ("offset", _LONG)])
PLAN: Final = pa.schema(
    [
        ("topic", _TEXT),
        ("partition", _INT),
        ("root", _INT),
        ("directory", _TEXT),
        ("topic_id", _TEXT),
        ("sequence", _INT),
        ("count", _INT),
        ("start", _EDGE),
        ("end", _EDGE),
        ("state", pa.struct([("path", _TEXT), ("row", _INT)])),
    ]
)


@frozen
class RangeEdge:
    """The byte of a segment at which a range is cut, and the offset of the batch there, None at a segment's start."""

    segment: int
    position: int = 0
    offset: int | None = None


@frozen
class StateRef:
    """A saved state: the path of its index file, and its row there."""

    path: str
    row: int


@frozen(kw_only=True)
class PlannedRange:
    """A range of a partition to read: range ``sequence`` of ``count``, from ``start`` to before ``end``.

    ``state`` is the checkpoint of the partition, from which the first range resumes.
    """

    topic: str
    partition: int
    root: int
    directory: str
    topic_id: str | None
    sequence: int = 0
    count: int = 1
    start: RangeEdge | None = None
    end: RangeEdge | None = None
    state: StateRef | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> PlannedRange:
        """Return a range from a row of ``PLAN``."""
        made = {"start": RangeEdge, "end": RangeEdge, "state": StateRef}
        return cls(**{name: made[name](**value) if name in made and value else value for name, value in row.items()})


@frozen
class SavedPlace:
    """The checkpoint of a partition: its state, and the segment and byte at which it resumes."""

    state: StateRef
    segment: int
    position: int


def plan_tasks(
    replicas: pa.Table, saved: Mapping[tuple[str, int], SavedPlace], split_bytes: int = SPLIT_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the ranges of each task, with the columns of ``PLAN``. ``saved`` contains the checkpoints."""
    rows = (row for batch in replicas.to_batches(max_chunksize=1024) for row in batch.to_pylist())
    ranges = (each for row in rows for each in _ranges(row, saved.get((row["topic"], row["partition"])), split_bytes))
    return pack_ranges((([planned], size + _FILE_BYTES) for planned, size in ranges), min(split_bytes, SPLIT_BYTES))


def pack_ranges(
    groups: Iterable[tuple[Sequence[PlannedRange], int]], split_bytes: int = SPLIT_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the ranges of each task, with the columns of ``PLAN``. A task has at most about ``split_bytes``.

    The ranges of a group are in one task. Each group has its cost in bytes.
    """
    rows: list[dict[str, Any]] = []
    used = 0
    for ranges, cost in groups:
        if rows and used + cost > split_bytes:
            yield pa.RecordBatch.from_pylist(rows, PLAN)
            rows, used = [], 0
        rows += map(asdict, ranges)
        used += cost
    if rows:
        yield pa.RecordBatch.from_pylist(rows, PLAN)


def _ranges(row: Mapping[str, Any], saved: SavedPlace | None, split_bytes: int) -> Iterator[tuple[PlannedRange, int]]:
    """Yield the ranges of a replica, each with its size in bytes."""
    first = (saved.segment, saved.position) if saved is not None else (-1, 0)
    edges, sizes = _edges(row, first, split_bytes)
    ends = [*edges[1:], None]
    for sequence, (start, end, size) in enumerate(zip(edges, ends, sizes, strict=True)):
        yield (
            PlannedRange(
                topic=row["topic"],
                partition=row["partition"],
                root=row["root"],
                directory=row["directory"],
                topic_id=row["topicId"],
                sequence=sequence,
                count=len(edges),
                start=start,
                end=end,
                state=saved.state if saved is not None else None,
            ),
            size,
        )


def _edges(
    row: Mapping[str, Any], first: tuple[int, int], split_bytes: int
) -> tuple[list[RangeEdge | None], list[int]]:
    """Return the start of each range, None for the first one, and the sizes of the ranges."""
    edges: list[RangeEdge | None] = [None]
    sizes = [0]
    marks: dict[int, list[RangeEdge]] = {}
    for mark in row["marks"] or ():
        marks.setdefault(mark["segment"], []).append(RangeEdge(**mark))
    for segment in row["segments"]:
        base, size = segment["base"], segment["size"]
        if base < first[0]:
            continue
        at = first[1] if base == first[0] else 0
        for edge in [RangeEdge(base), *marks.get(base, ()), RangeEdge(base, size)]:
            if edge.position < at or (edge.position == at and at > 0):
                continue
            sizes[-1] += edge.position - at
            at = edge.position
            if sizes[-1] >= split_bytes and edge.position < size:
                edges.append(edge)
                sizes.append(0)
    return edges, sizes


def write_batches(
    output: TaskOutput, table: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> tuple[str, int]:
    """Write batches to an Arrow file, which is no part of the result; return its path and the number of batches."""
    path, count = output.path_of(table, "all.arrow"), 0
    with output.storage.output(path) as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += 1
    return path, count


def read_batch(storage: Storage, path: str, number: int) -> pa.RecordBatch:
    """Return a batch of an Arrow file. Only this batch and the end of the file are read."""
    with storage.open(path) as file:
        return pa.ipc.open_file(file).get_batch(number)
