"""The outcome of the transaction that a row belongs to, from the marker after it.

Owns how rows find their marker: the next one of the same producer in the same partition. Rows may be records or whole
batches, as both have an offset and a producer.
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
"""The outcome of a row that is not in a transaction."""

COUNTS: Final = (NONE, "committed")
"""The outcomes of rows that count."""

_OPEN: Final = "open"


def marker_of(key: Column) -> Column:
    """Return the outcome that the key of a control record states: ``committed``, ``aborted``, or null."""
    number = F.hex(F.substring(key, 3, 2))
    return F.when(number == "0001", "committed").when(number == "0000", "aborted")


def outcome_of(producer: Sequence[str], offset: str, marker: str) -> Column:
    """Return ``committed``, ``aborted``, or ``open`` where no marker follows, for rows of transactions.

    The rows that are asked must be those of transactions and all markers. ``producer`` names the columns that tell
    which producer in which partition, ``offset`` that of the place in the log, ``marker`` what ``marker_of`` gave, null
    in rows that are not markers.
    """
    # From the last row to the first, so that the marker that follows a row is the last one seen, in one pass.
    following = Window.partitionBy(*producer).orderBy(F.col(offset).desc())
    seen = F.last(marker, ignorenulls=True).over(following.rowsBetween(Window.unboundedPreceding, 0))
    return F.coalesce(seen, F.lit(_OPEN))
