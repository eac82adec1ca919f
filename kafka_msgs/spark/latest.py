"""The latest record of each key, as a compacted topic would keep it.

Owns the order of things that makes it right: offsets tell which record is the later one, and only within a partition;
a record without a value deletes its key, and so it must take part before it is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["latest_by_key"]


def latest_by_key(
    records: DataFrame,
    *,
    key: Sequence[str] = ("key",),
    partition: Sequence[str] = ("topic", "partition"),
    offset: str = "offset",
    value: str = "value",
    keep_tombstones: bool = False,
) -> DataFrame:
    """Return the record with the highest offset of each key and partition, with the columns of ``records``.

    The names of columns are by default those of ``kafka-log``. Rows whose latest ``value`` is null are tombstones:
    they are dropped at the end, unless ``keep_tombstones``. Rows without a key count as rows of one key; leave them out
    before where they are not wanted.
    """
    place = [*partition, *key]
    others = [name for name in records.columns if name not in place]
    latest = records.groupBy(*place).agg(F.max_by(F.struct(*others), offset).alias("latest"))
    rows = latest.select(*place, "latest.*").select(*records.columns)
    return rows if keep_tombstones else rows.where(F.col(value).isNotNull())
