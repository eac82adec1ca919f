"""Hourly statistics of a partition, aggregated from batches and kept per segment, so that deleted segments drop out.

Defines the list of statistics, their aggregation, and the resulting rows of ``profile`` and of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.analysis.arrow_tables import (
    ReducingBuffer,
    aggregated,
    columns,
    filled,
    group_rows_by,
    named,
    one_array,
)
from kafka_msgs.analysis.batch_rows import NO_HOUR
from kafka_msgs.analysis.offset_tables import to_timestamps

__all__ = [
    "FIGURES",
    "PRODUCERS",
    "PROFILE",
    "STATISTICS",
    "SUMMED",
    "HourlyStats",
    "by_codec",
    "by_segment",
    "late_at",
    "profile_of",
    "rows_of_segments",
    "statistics_by",
]

_TEXT, _LONG, _DOUBLE = pa.string(), pa.int64(), pa.float64()

_OF_DATA: Final = {
    "records": "records",
    "dataBytes": "batchSize",
    "keyBytes": "keySize",
    "valueBytes": "valueSize",
    "headerBytes": "headersSize",
    "withoutKey": "withoutKey",
    "tombstones": "tombstones",
    "outOfOrder": "outOfOrder",
    "firstOffset": "offset",
    "lastOffset": "lastOffset",
    "maxKeySize": "maxKeySize",
    "maxValueSize": "maxValueSize",
}
"""The statistics of batches with client records, and their source columns."""

_ADDED: Final[dict[str, str]] = {
    **dict.fromkeys(_OF_DATA, "sum"),
    **dict.fromkeys(("batches", "bytes", "transactions", "abortedTransactions", "abortedRecords"), "sum"),
    **dict.fromkeys(("firstOffset", "oldestMs"), "min"),
    **dict.fromkeys(("lastOffset", "newestMs", "maxKeySize", "maxValueSize"), "max"),
}
"""The statistics and their aggregate functions."""

_PLACE: Final = ("segment", "hourMs", "codec")
FIGURES: Final = pa.schema([*columns("segment hourMs codec"), *((name, _LONG) for name in _ADDED)])
"""Statistics by segment, hour and codec. The codec is null for batches without client records."""
PRODUCERS: Final = columns("segment hourMs producerId")
"""The producers with a producer id, by segment and hour."""

PROFILE: Final = columns(
    """topic partition hour hourMs records batches bytes contentBytes ratio codecs meanKeySize maxKeySize meanValueSize
    maxValueSize withoutKey tombstones producers transactions abortedTransactions abortedRecords outOfOrder firstOffset
    lastOffset"""
)
STATISTICS: Final = pa.schema(list(PROFILE)[4:])
"""The statistics in the profile, without topic, partition and hour."""
SUMMED: Final = (
    "records", "batches", "bytes", "contentBytes", "tombstones",
    "transactions", "abortedTransactions", "abortedRecords", "outOfOrder",
)  # fmt: skip
"""The columns of the profile that are summed per topic."""

_BUFFER: Final = 1 << 16


class HourlyStats:
    """Aggregates batches. It keeps only the statistics."""

    def __init__(self, sums: pa.Table, producers: pa.Table) -> None:
        self._sums = ReducingBuffer(sums, _by_place, _BUFFER)
        self._producers = ReducingBuffer(producers, _distinct, _BUFFER)

    def add(self, batches: pa.Table) -> None:
        """Add batches with the columns of ``batch_rows.ROWS``. Aborted batches must also be passed to ``abort``."""
        self._sums.add(_figures(batches))
        numbered = pc.and_not(pc.greater_equal(batches["producerId"], 0), batches["control"])
        self._producers.add(batches.filter(numbered).select(PRODUCERS.names))

    def merge(self, later: HourlyStats, more: pa.Table) -> None:
        """Add the statistics of a later range, and further ones."""
        for figures in (later.sums(), more):
            self._sums.add(figures)
        self._producers.add(later.producers())

    def abort(self, batches: pa.Table) -> None:
        """Count the records of already added batches whose transaction was aborted."""
        self._sums.add(_with(batches, {"abortedRecords": batches["records"]}))

    def sums(self) -> pa.Table:
        """Return the statistics, with the columns of ``FIGURES``."""
        return self._sums.all()

    def producers(self) -> pa.Table:
        """Return the producers, with the columns of ``PRODUCERS``."""
        return self._producers.all()


def _by_place(figures: pa.Table) -> pa.Table:
    return aggregated(figures, _PLACE, _ADDED).select(FIGURES.names).cast(FIGURES)


def _figures(batches: pa.Table) -> pa.Table:
    data = pc.invert(batches["control"])
    found: dict[str, Any] = {
        name: pc.if_else(data, batches[source].cast(_LONG), None) for name, source in _OF_DATA.items()
    }
    found |= {"batches": data, "bytes": batches["batchSize"]}
    for name, marker in (("transactions", "committed"), ("abortedTransactions", "aborted")):
        found[name] = pc.fill_null(pc.equal(batches["marker"], marker), False)
    first, last, newest = (
        pc.if_else(pc.greater_equal(batches[name], 0), batches[name], None)
        for name in ("firstTimestampMs", "lastTimestampMs", "maxTimestampMs")
    )
    found |= {"oldestMs": pc.min_element_wise(first, last), "newestMs": newest}
    return _with(batches, found)


def _with(batches: pa.Table, found: Mapping[str, Any]) -> pa.Table:
    """Return statistics of batches, null for statistics that are not given."""
    codec = pc.if_else(batches["control"], pa.scalar(None, _TEXT), batches["codec"])
    known = {"segment": batches["segment"], "hourMs": batches["hourMs"], "codec": codec, **found}
    return filled(FIGURES, batches.num_rows, known)


def _distinct(rows: pa.Table) -> pa.Table:
    return group_rows_by(rows, rows.column_names).aggregate([]).select(rows.column_names)


def late_at(batches: pa.Table) -> pa.Table:
    """Return statistics that count one out-of-order record per batch."""
    return _with(batches, {"outOfOrder": 1})


def profile_of(figures: pa.Table, producers: pa.Table, topic: str, partition: int) -> pa.Table:
    """Return the hours of a partition with the columns of ``PROFILE``; the row without a time comes last."""
    found = statistics_by(figures, producers, ["hourMs"])
    place = {"topic": topic, "partition": partition, "hour": to_timestamps(one_array(found["hourMs"]))}
    return filled(PROFILE, found.num_rows, named(found) | place)


def statistics_by(figures: pa.Table, producers: pa.Table, by: Sequence[str]) -> pa.Table:
    """Return the columns ``by`` and the statistics of ``PROFILE``, sorted; rows without a time come last."""
    found = aggregated(figures, by, _ADDED)
    counted = _distinct(producers.select([*by, "producerId"]))
    numbers = group_rows_by(counted, by).aggregate([("producerId", "count")])
    content = pc.add(pc.add(found["keyBytes"], found["valueBytes"]), found["headerBytes"])
    known: dict[str, Any] = named(found)
    known |= {name: pc.fill_null(known[name], 0) for name, function in _ADDED.items() if function == "sum"}
    known |= {
        "contentBytes": pc.fill_null(content, 0),
        "ratio": pc.divide(content.cast(_DOUBLE), found["dataBytes"]),
        "codecs": pc.coalesce(
            _looked_up(found, _codecs(figures, by), "codec_list", by), pa.scalar([], PROFILE.field("codecs").type)
        ),
        "meanKeySize": pc.divide(found["keyBytes"].cast(_DOUBLE), found["records"]),
        "meanValueSize": pc.divide(found["valueBytes"].cast(_DOUBLE), found["records"]),
        "producers": pc.fill_null(_looked_up(found, numbers, "producerId_count", by), 0),
    }
    if "hourMs" in by:
        hours = found["hourMs"]
        known["hourMs"] = pc.if_else(pc.not_equal(hours, NO_HOUR), hours, None)
    schema = pa.schema([*(found.schema.field(name) for name in by), *STATISTICS])
    return filled(schema, found.num_rows, known).sort_by([(name, "ascending") for name in by])


def _looked_up(found: pa.Table, rows: pa.Table, name: str, by: Sequence[str]) -> pa.ChunkedArray:
    """Return a column of rows aligned with the rows of ``found``, null for a combination without a row."""
    places, known = (pc.binary_join_element_wise(*(each[column].cast(_TEXT) for column in by), "\0")
                     for each in (found, rows))  # fmt: skip
    return rows[name].take(pc.index_in(places, known.combine_chunks()))


def _codecs(figures: pa.Table, by: Sequence[str]) -> pa.Table:
    """Return the sorted codec names of each combination."""
    pairs = _distinct(figures.filter(figures["codec"].is_valid()).select([*by, "codec"]))
    return pairs.sort_by("codec").group_by(list(by), use_threads=False).aggregate([("codec", "list")])


def by_codec(figures: pa.Table) -> list[dict[str, Any]]:
    """Return record count, bytes and content bytes per codec."""
    found = aggregated(figures.filter(figures["codec"].is_valid()), ["codec"], _ADDED)
    return [
        {
            "codec": row["codec"],
            "records": row["records"],
            "bytes": row["dataBytes"],
            "contentBytes": row["keyBytes"] + row["valueBytes"] + row["headerBytes"],
        }
        for row in found.to_pylist()
    ]


def by_segment(figures: pa.Table, bases: Iterable[int]) -> list[dict[str, Any]]:
    """Return bytes, oldest and newest timestamp of the segments with these base offsets, including empty ones."""
    names = ["segment", "bytes", "oldestMs", "newestMs"]
    found = {row["segment"]: row for row in aggregated(figures, ["segment"], _ADDED).select(names).to_pylist()}
    empty = {"bytes": 0, "oldestMs": None, "newestMs": None}
    return [found.get(base, {"segment": base, **empty}) for base in bases]


def rows_of_segments(rows: pa.Table, segments: Iterable[int]) -> pa.Table:
    """Return the rows of some segments."""
    return rows.filter(pc.is_in(rows["segment"], pa.array(segments, _LONG)))
