"""Committed offsets of all groups, latest and history, from the records of ``__consumer_offsets``.

Defines the rules that a coordinator applies when it loads the topic: the record with the highest offset of each group,
topic and partition wins, a record without a value is a deletion, and a record in a transaction counts if the
transaction was committed. Empty groups are included. ``group_state`` describes the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from kafka_msgs.spark.functions import from_kafka
from kafka_msgs.spark.jobs.group_state import describe_groups
from kafka_msgs.spark.jobs.job import Tables
from kafka_msgs.spark.jobs.offsets_topic_rows import COMMIT, MARKER, PROBLEM, classify_records, timed
from kafka_msgs.spark.jobs.transaction_outcomes import COUNTS, NONE, marker_of, outcome_of
from kafka_msgs.spark.latest import latest_by_key

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["group_offsets"]

_KEY: Final = ("group", "topic", "topicPartition")
_FIELDS: Final = {
    "committedOffset": "offset",
    "leaderEpoch": "leader_epoch",
    "metadata": "metadata",
    "commitTimestamp": "commit_timestamp",
    "expireTimestamp": "expire_timestamp",
    "topicId": "topic_id",
}
"""The columns of a commit and their fields in the value."""

_TIMES: Final = ("commitTimestamp", "expireTimestamp")
_COMMIT: Final = tuple(each for name in _FIELDS for each in ((name, f"{name}Ms") if name in _TIMES else (name,)))
_LOG: Final = ("logPartition", "logOffset", "logTimestamp", "logTimestampMs")


def group_offsets(
    records: DataFrame, *, end_offsets: DataFrame | None = None, partitions: DataFrame | None = None
) -> dict[str, DataFrame]:
    """Return the committed offsets of groups, as lazy tables.

    ``records`` are ``kafka-log`` rows of ``__consumer_offsets``, read with ``control=true`` and
    ``isolation=read_uncommitted``. ``end_offsets`` (``topic``, ``partition``, ``endOffset``) provides the log end
    offsets for lags, or else ``partitions`` (the same with ``topicId``, as ``partitions_frame`` returns it).

    ``log`` contains all records, with commits decoded. ``history`` has a row for each commit and each deletion
    (``tombstone``); ``outcome`` is the outcome of its transaction, ``none`` without one.
    ``offsets`` contains the committed offsets at the end of the log: offset, metadata, times, and ``lag`` in records,
    null if the log end offset is unknown. A time has two columns, such as ``commitTimestamp``, and
    ``commitTimestampMs`` in milliseconds since the epoch. ``pending`` contains the offsets in open transactions.
    ``groups`` has one row per group, ``problems`` one per unreadable record or batch.
    """
    inputs = {"records": records, "end_offsets": end_offsets, "partitions": partitions}
    known = {name: rows for name, rows in inputs.items() if rows is not None}
    for name, build in _TABLES.items():
        known[name] = build(known)
    return {name: known[name] for name in _TABLES}


def _log(tables: Tables) -> DataFrame:
    """Return all rows, with commits decoded and everything else as bytes. Later steps read this table, not the log."""
    rows = classify_records(tables["records"])
    commit = F.col("kind") == COMMIT
    # The oldest keys and values use today's layout; only the leading number of the key differs.
    key = F.concat(F.unhex(F.lit("0001")), F.substring("key", F.lit(3), F.length("key")))
    read = rows.withColumns(
        {
            "_key": from_kafka(F.when(commit, key), "OffsetCommitKey"),
            "_value": from_kafka(F.when(commit, F.col("value")), "OffsetCommitValue", columns=tuple(_FIELDS.values())),
        }
    )
    problem = F.coalesce("problem", "_key._error", "_value._error")
    return read.select(
        F.when(problem.isNotNull(), PROBLEM).otherwise(F.col("kind")).alias("kind"),
        F.col("_key.group").alias("group"),
        F.col("_key.topic").alias("topic"),
        F.col("_key.partition").alias("topicPartition"),
        *_committed(),
        F.when(commit, F.col("value").isNull()).alias("tombstone"),
        "transactional",
        "producerId",
        F.when(F.col("control"), marker_of(F.col("key"))).alias("marker"),
        *_LOG,
        "file",
        problem.alias("problem"),
        F.when(~commit, F.col("key")).alias("key"),
        F.when(~commit, F.col("value")).alias("value"),
    )


def _history(tables: Tables) -> DataFrame:
    """Return all commits, the transactional ones with the outcome of their transaction."""
    log = tables["log"]
    commit = F.col("kind") == COMMIT
    ending = log.where((F.col("kind") == MARKER) | commit & F.col("transactional"))
    outcome = outcome_of(("logPartition", "producerId"), "logOffset", "marker")
    resolved = ending.withColumn("outcome", outcome).where(commit)
    plain = log.where(commit & ~F.col("transactional")).withColumn("outcome", F.lit(NONE))
    columns = (*_KEY, *_COMMIT, "tombstone", "transactional", "producerId", "outcome", *_LOG, "file")
    return plain.unionByName(resolved).select(*columns)


def _committed() -> list[Column]:
    found: list[Column] = []
    for column, field in _FIELDS.items():
        value = F.col(f"_value.{field}")
        found += timed(column, value) if column in _TIMES else [value.alias(column)]
    return found


def _latest(tables: Tables) -> DataFrame:
    """Return the last effective row of each key. A deletion takes effect immediately, even in an open transaction."""
    history = tables["history"]
    counting = history.where(F.col("tombstone") | F.col("outcome").isin(*COUNTS))
    return latest_by_key(counting, key=_KEY, partition=("logPartition",), offset="logOffset", keep_tombstones=True)


def _offsets(tables: Tables) -> DataFrame:
    committed = _latest(tables).where("NOT tombstone").select(*_KEY, *_COMMIT, "transactional", *_LOG)
    ends = tables.get("end_offsets", tables.get("partitions"))
    if ends is None:
        return committed.withColumns(dict.fromkeys(("endOffset", "lag", "ahead"), F.lit(None).cast("long")))
    known = ends.select("topic", F.col("partition").alias("topicPartition"), "endOffset")
    found = committed.join(F.broadcast(known), ["topic", "topicPartition"], "left")
    distance = F.col("endOffset") - F.col("committedOffset")
    return found.select(*committed.columns, "endOffset", _positive(distance, "lag"), _positive(-distance, "ahead"))


def _positive(number: Column, name: str) -> Column:
    return F.when(number.isNotNull(), F.greatest(number, F.lit(0))).cast("long").alias(name)


def _pending(tables: Tables) -> DataFrame:
    """Return the pending commits of open transactions: the last row per producer and key, unless deleted later."""
    history = tables["history"]
    waiting = history.where("outcome = 'open' AND NOT tombstone")
    place = ("logPartition", "producerId")
    last = latest_by_key(waiting, key=_KEY, partition=place, offset="logOffset", value="committedOffset")
    deleted = history.where("tombstone").groupBy("logPartition", *_KEY).agg(F.max("logOffset").alias("_deleted"))
    left = last.join(deleted, ["logPartition", *_KEY], "left").where("_deleted IS NULL OR logOffset > _deleted")
    return left.select(*_KEY, "producerId", *_COMMIT, *_LOG)


def _groups(tables: Tables) -> DataFrame:
    """Return all groups at the end of the log: groups with group records, and groups that have only offsets."""
    offsets = (
        tables["offsets"]
        .groupBy("group")
        .agg(
            F.count("*").alias("partitions"),
            F.sum("lag").alias("lag"),
            F.sum("ahead").alias("ahead"),
            F.max("commitTimestampMs").alias("lastCommitMs"),
        )
        .select("group", "partitions", "lag", "ahead", *timed("lastCommit"))
    )
    found = _described(tables).join(offsets, "group", "full")
    # A coordinator loads a group that has only offsets as an empty classic group.
    return found.fillna({"kind": "classic", "state": "Empty", "members": 0, "partitions": 0})


def _described(tables: Tables) -> DataFrame:
    """Return one description per group. Of several, the one in the partition with the group's latest commit counts."""
    place = ["group", "logPartition"]
    last = tables["offsets"].groupBy(*place).agg(F.max("commitTimestampMs").alias("_last"))
    described = describe_groups(tables["log"]).where("group IS NOT NULL").join(last, place, "left")
    own = F.struct("kind", "state", "epoch", F.size("members").alias("members"))
    order = F.struct(F.col("_last").isNotNull(), "_last", "logPartition")
    return described.groupBy("group").agg(F.max_by(own, order).alias("_own")).select("group", "_own.*")


def _problems(tables: Tables) -> DataFrame:
    return tables["log"].where(F.col("kind") == PROBLEM).select("logPartition", "logOffset", "file", "problem")


_TABLES: Final[Mapping[str, Callable[[Tables], DataFrame]]] = {
    "log": _log,
    "history": _history,
    "offsets": _offsets,
    "pending": _pending,
    "groups": _groups,
    "problems": _problems,
}
"""The tables, each built from the inputs and earlier tables."""
