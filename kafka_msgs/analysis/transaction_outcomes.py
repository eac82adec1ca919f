"""The transaction outcome of each log row, given by the next marker of the same producer.

Rows are records, commits or batches: all have a producer and an offset.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.analysis.arrow_tables import group_rows_by, one_array

__all__ = ["first_markers", "next_markers"]


def next_markers(producers: pa.Array, offsets: pa.Array, markers: pa.Array) -> pa.Array:
    """Return the marker after each row, or the row itself if it is a marker; null in an open transaction.

    ``markers`` is null in rows that are not markers. The rows belong to one partition, in any order.
    """
    table = pa.table({"producer": producers, "offset": offsets, "marker": markers})
    order = pc.sort_indices(table, [("producer", "ascending"), ("offset", "ascending")])
    ordered = table.take(order).combine_chunks()
    producer, marker = one_array(ordered["producer"]), one_array(ordered["marker"])
    following = pc.fill_null_backward(marker)
    whose = pc.fill_null_backward(pc.if_else(marker.is_valid(), producer, pa.scalar(None, producer.type)))
    same = pc.fill_null(pc.equal(whose, producer), False)
    found = pc.if_else(same, following, pa.scalar(None, marker.type))
    return found.take(pc.sort_indices(order))


def first_markers(markers: pa.Table, producer: str, offset: str) -> pa.Table:
    """Return the first of the markers of each producer, given the names of the columns."""
    first = group_rows_by(markers, [producer]).aggregate([(offset, "min")])[f"{offset}_min"]
    return markers.filter(pc.is_in(markers[offset], one_array(first))).combine_chunks()
