"""The transaction outcome of each row, from the marker after it.

Matches rows and markers: the next marker of the same producer in the same partition. Rows may be records or batches,
since either has an offset and a producer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["COUNTS", "NONE", "marker_of", "outcome_of"]

NONE: Final = "none"
"""The outcome of a non-transactional row."""

COUNTS: Final = (NONE, "committed")
"""The outcomes of rows that count."""

_OPEN: Final = "open"


def marker_of(key: Column) -> Column:
    """Return the outcome in the key of a control record: ``committed``, ``aborted``, or null."""
    number = F.hex(F.substring(key, 3, 2))
    return F.when(number == "0001", "committed").when(number == "0000", "aborted")


def outcome_of(producer: Sequence[str], offset: str, marker: str) -> Column:
    """Return ``committed``, ``aborted``, or ``open`` if no marker follows, for transactional rows.

    The DataFrame must contain the transactional rows and all markers. ``producer`` names the columns that identify the
    producer and partition, ``offset`` the offset column, and ``marker`` the column with the result of ``marker_of``,
    null in rows that are not markers.
    """
    # In descending order, the last marker seen is the next marker after a row. This needs one pass.
    following = Window.partitionBy(*producer).orderBy(F.col(offset).desc())
    seen = F.last(marker, ignorenulls=True).over(following.rowsBetween(Window.unboundedPreceding, 0))
    return F.coalesce(seen, F.lit(_OPEN))
