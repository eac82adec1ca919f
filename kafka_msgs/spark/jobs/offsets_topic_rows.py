"""The classification of ``__consumer_offsets`` rows before decoding, and the time columns of job tables.

Contains the Spark expressions that classify a row as a commit, a group record, a marker, or a problem. Only rows that
need decoding are passed to Python. A time in a table is a timestamp. A column with the suffix ``Ms`` contains Kafka's
number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["COMMIT", "GROUP", "MARKER", "PROBLEM", "classify_records", "group_bytes", "milliseconds", "timed"]

COMMIT, GROUP, MARKER, PROBLEM = "commit", "group", "marker", "problem"

_TYPE_SIZE, _LENGTH_SIZE = 2, 2
_COMMIT_TYPES = (b"\0\0", b"\0\1")
_NO_TIME: Final = -1
_MOST_MS: Final = (2**63 - 1) // 1000
"""The latest time in milliseconds that Spark can represent."""


def classify_records(records: DataFrame) -> DataFrame:
    """Return rows of ``kafka-log`` with the columns ``kind`` and ``problem``, and with renamed log columns.

    ``kind`` is ``commit`` for a committed offset, ``group`` for the other records of a coordinator, ``marker`` for
    control records, and ``problem`` for unreadable data; the column ``problem`` contains the reason. The log columns
    are ``logPartition``, ``logOffset``, ``logTimestamp`` and ``logTimestampMs``, because commits also contain
    partitions and offsets.
    """
    record_type = F.substring("key", 1, _TYPE_SIZE)
    too_short = F.coalesce(F.length(record_type), F.lit(0)) < _TYPE_SIZE
    keyless = F.when(~F.col("control") & too_short, F.lit("the key does not say what the record is"))
    kind = (
        F.when(F.col("problem").isNotNull(), PROBLEM)
        .when(F.col("control"), MARKER)
        .when(record_type.isin(*map(F.lit, _COMMIT_TYPES)), COMMIT)
        .otherwise(GROUP)
    )
    place = {"partition": "logPartition", "offset": "logOffset", "timestamp": "logTimestamp"}
    problem = F.coalesce("_error", keyless)
    counted = records.withColumn("logTimestampMs", milliseconds())
    return counted.withColumn("problem", problem).withColumn("kind", kind).withColumnsRenamed(place)


def milliseconds() -> Column:
    """Return the timestamp of a record as Kafka's number, -1 for none; null in a damage row."""
    return F.when(F.col("offset").isNotNull(), F.coalesce(F.unix_millis("timestamp"), F.lit(_NO_TIME)))


def timed(name: str, number: Column | None = None) -> tuple[Column, Column]:
    """Return two columns for a time: ``name``, a timestamp, and ``nameMs``, its milliseconds since the epoch.

    The timestamp is null for -1, Kafka's number for no time, and for a time that Spark cannot represent. ``number`` is
    the column of milliseconds, by default ``nameMs``.
    """
    given = F.col(f"{name}Ms") if number is None else number
    held = (given != _NO_TIME) & given.between(-_MOST_MS, _MOST_MS)
    return F.when(held, F.timestamp_millis(given)).alias(name), given.alias(f"{name}Ms")


def group_bytes(key: Column) -> Column:
    """Return the group name as bytes. It is the first field after the type in keys of all types."""
    start = _TYPE_SIZE + _LENGTH_SIZE + 1
    return F.substring(key, F.lit(start), _number(key, _TYPE_SIZE + 1, _LENGTH_SIZE))


def _number(data: Column, start: int, size: int) -> Column:
    return F.conv(F.hex(F.substring(data, start, size)), 16, 10).cast("int")
