"""The latest record of each key, as a compacted topic would keep it.

Defines the correct order of operations. Only offsets within a partition determine the later record. A record without a
value deletes its key, so tombstones are dropped only after the selection.
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

    The default column names match ``kafka-log``. Keys whose latest ``value`` is null are tombstones, and are dropped at
    the end unless ``keep_tombstones`` is set. Rows without a key count as rows of one key; filter them out first if you
    do not need them.
    """
    place = [*partition, *key]
    others = [name for name in records.columns if name not in place]
    latest = records.groupBy(*place).agg(F.max_by(F.struct(*others), offset).alias("latest"))
    rows = latest.select(*place, "latest.*").select(*records.columns)
    return rows if keep_tombstones else rows.where(F.col(value).isNotNull())
