"""Batch rows, aggregated from records: one row per batch, with its position, times and sizes.

Defines the columns and their computation from record columns. All records of a batch share its header: one producer,
one codec, and at most one transaction.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.analysis.arrow_tables import begins, columns, filled, hours_of

__all__ = ["BATCH_COLUMNS", "NONE", "NO_HOUR", "ROWS", "batch_rows", "same_batch"]

BATCH_COLUMNS: Final = ("headers", "batch_size", "codec")
"""The record columns needed in addition to ``RECORD_COLUMNS`` of the partition reader."""

NONE: Final = "none"
"""The outcome of a non-transactional batch."""
NO_HOUR: Final = -1
"""The hour of a batch without a time."""

_TEXT, _LONG = pa.string(), pa.int64()

_OF_BATCH: Final = {
    "batchPosition": "batch_position",
    "batchSize": "batch_size",
    "codec": "codec",
    "producerId": "producer_id",
    "transactional": "is_transactional",
    "control": "is_control",
    "offset": "offset",
    "firstTimestampMs": "timestamp_ms",
}
"""The columns taken from the first record of a batch, and their names in the record."""
_SUMS: Final = ("keySize", "valueSize", "headersSize", "withoutKey", "tombstones", "outOfOrder")
_LARGEST: Final = {"maxKeySize": "keySize", "maxValueSize": "valueSize", "maxTimestampMs": "timestamp"}

ROWS: Final = columns(
    """segment file batchPosition batchSize codec producerId transactional control marker offset lastOffset
    firstTimestampMs lastTimestampMs maxTimestampMs records keySize valueSize headersSize maxKeySize maxValueSize
    withoutKey tombstones outOfOrder outcome hourMs first"""
)
"""The schema of batches. ``segment`` is the base offset of the segment. ``marker`` is the transaction result in a
control batch. ``outcome`` is the result of the batch's transaction, null until it ends. ``outOfOrder`` counts records
with an earlier timestamp than the previous record. ``first`` marks the first client batch of each segment."""

_MARKERS: Final = pa.array([b"\0\0", b"\0\1"])
_MEANT: Final = pa.array(["aborted", "committed"])


def batch_rows(records: pa.RecordBatch, segment: int, file: str) -> pa.Table:
    """Return the batches of a segment's records, none of them marked ``first``. Batches must not be interleaved."""
    positions, times = records["batch_position"], records["timestamp_ms"]
    of_another = begins(positions)
    starts = pc.indices_nonzero(of_another)
    ends = pc.subtract(pa.concat_arrays([starts[1:], pa.array([records.num_rows], starts.type)]), 1)
    earlier = pa.concat_arrays([pa.array([False]), pc.less(times[1:], times[:-1])])
    late = pc.and_not(earlier, pc.or_(of_another, records["is_control"]))
    sums = _sums(records, pc.cumulative_sum(of_another.cast(_LONG)), late)
    first = records.take(starts)
    found: dict[str, Any] = {name: first[source] for name, source in _OF_BATCH.items()}
    found |= {name: sums[f"{name}_sum"] for name in _SUMS}
    found |= {name: sums[f"{source}_max"] for name, source in _LARGEST.items()}
    found |= {
        "segment": segment,
        "file": file,
        "marker": _marker(first),
        "lastOffset": records["offset"].take(ends),
        "lastTimestampMs": times.take(ends),
        "records": pc.add(pc.subtract(ends.cast(_LONG), starts.cast(_LONG)), 1),
        "outcome": _outcome(first),
        "hourMs": _hour(found["firstTimestampMs"]),
        "first": False,
    }
    return filled(ROWS, len(starts), found)


def same_batch(one: pa.Table, other: pa.Table) -> pa.Table | None:
    """Return two rows merged into one if they are consecutive parts of the same batch, or else None."""
    (a,), (b,) = one.to_pylist(), other.to_pylist()
    if (a["segment"], a["batchPosition"]) != (b["segment"], b["batchPosition"]):
        return None
    late = not a["control"] and b["firstTimestampMs"] < a["lastTimestampMs"]
    found = {**a, "lastOffset": b["lastOffset"], "lastTimestampMs": b["lastTimestampMs"]}
    found |= {name: a[name] + b[name] for name in ("records", *_SUMS)}
    found |= {name: max(a[name], b[name]) for name in _LARGEST}
    return pa.Table.from_pylist([{**found, "outOfOrder": found["outOfOrder"] + late}], schema=ROWS)


def _sums(records: pa.RecordBatch, batches: pa.Array, late: pa.Array) -> pa.Table:
    keys, values = records["key"], records["value"]
    counted = {
        "batch": batches,
        "keySize": _size(keys),
        "valueSize": _size(values),
        "headersSize": _headers_size(records["headers"]),
        "timestamp": records["timestamp_ms"],
        "withoutKey": keys.is_null().cast(_LONG),
        "tombstones": values.is_null().cast(_LONG),
        "outOfOrder": late.cast(_LONG),
    }
    wanted = [*((name, "sum") for name in _SUMS), *((source, "max") for source in _LARGEST.values())]
    return pa.table(counted).group_by("batch", use_threads=False).aggregate(wanted)


def _size(data: pa.Array) -> pa.Array:
    return pc.fill_null(pc.binary_length(data), 0).cast(_LONG)


def _headers_size(headers: pa.Array) -> pa.Array:
    """Return the size of the header names and values of each record. Names that are not UTF-8 do not count."""
    parts = headers.flatten()
    if not len(parts):
        return pa.repeat(pa.scalar(0, _LONG), len(headers))
    sizes = pc.add(*(_size(pc.struct_field(parts, [number])) for number in (0, 1)))
    before = pa.concat_arrays([pa.array([0], _LONG), pc.cumulative_sum(sizes)])
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(headers), 0).cast(_LONG))
    starts = pa.concat_arrays([pa.array([0], _LONG), ends[:-1]])
    return pc.subtract(before.take(ends), before.take(starts))


def _marker(first: pa.RecordBatch) -> pa.Array:
    kind = pc.index_in(pc.binary_slice(first["key"], 2, 4), _MARKERS)
    return _MEANT.take(pc.if_else(first["is_control"], kind, pa.scalar(None, kind.type)))


def _outcome(first: pa.RecordBatch) -> pa.Array:
    waits = pc.and_not(first["is_transactional"], first["is_control"])
    return pc.if_else(waits, pa.scalar(None, _TEXT), pa.scalar(NONE))


def _hour(times: pa.Array) -> pa.Array:
    return pc.if_else(pc.greater_equal(times, 0), hours_of(times), pa.scalar(NO_HOUR, _LONG))
