"""The final state of groups in ``__consumer_offsets``, as lazy tables over a DataFrame of records.

Spark keeps the latest record of each key, and passes the few remaining records of each group to
``kafka_msgs.analysis.group_rows``, which builds the row of the group. The job ``group-state`` produces the same tables
without passing rows through the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from kafka_msgs.analysis.group_rows import (
    DESCRIPTIONS,
    GROUPS,
    MEMBERS,
    description_rows,
)
from kafka_msgs.spark.jobs.job import Tables
from kafka_msgs.spark.jobs.offsets_topic_rows import GROUP, PROBLEM, classify_records, group_bytes
from kafka_msgs.spark.latest import latest_by_key
from kafka_msgs.spark.spark_types import arrow_schema, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["describe_groups", "group_state"]


def _description() -> StructType:
    """Return the Spark type of descriptions."""
    found = spark_type(pa.struct(list(DESCRIPTIONS)))
    assert isinstance(found, StructType)
    return found


def group_state(records: DataFrame, *, partitions: DataFrame | None = None) -> dict[str, DataFrame]:
    """Return the groups at the end of the log, as lazy tables.

    ``records`` are ``kafka-log`` rows of ``__consumer_offsets``, read with ``control=true``. ``partitions``
    (``topic``, ``topicId``) maps topic ids, which newer groups use, to names.

    ``log`` contains the group records, and ``descriptions`` one row per group with its full description. The other
    tables are built from these: ``groups`` has one row per group; ``members`` one per member; ``assignments`` one per
    partition or task that a member owns (``status`` ``current``), will own (``target``) or must revoke
    (``revoking``); ``topology`` one per subtopology of a streams group; ``problems`` one per unreadable record. Groups
    that have only offsets are in the tables of ``group_offsets`` instead.
    """
    inputs = {"records": records, "partitions": partitions}
    known = {name: rows for name, rows in inputs.items() if rows is not None}
    for name, build in _TABLES.items():
        known[name] = build(known)
    return {name: known[name] for name in _TABLES}


def describe_groups(log: DataFrame) -> DataFrame:
    """Return one row per group that has group records; ``log`` is the result of ``classify_records``."""
    own = log.where(F.col("kind") == GROUP).select("logPartition", "logOffset", "key", "value")
    latest = latest_by_key(own, partition=("logPartition",), offset="logOffset")
    by_group = latest.groupBy("logPartition", group_bytes(F.col("key")).alias("name"))
    return by_group.applyInArrow(_described, _description())


def _log(tables: Tables) -> DataFrame:
    """Return the rows of the log that the job needs. Commits, which are nearly all rows, are left out."""
    needed = classify_records(tables["records"]).where(F.col("kind").isin(GROUP, PROBLEM))
    return needed.select("kind", "logPartition", "logOffset", "key", "value", "file", "problem")


def _groups(tables: Tables) -> DataFrame:
    found = tables["descriptions"].where("group IS NOT NULL")
    plain = [name for name in GROUPS.names if name not in ("members", "topologyEpoch")]
    counts = F.size("members").alias("members"), F.col("topology.epoch").alias("topologyEpoch")
    return found.select(*plain, *counts)


def _members(tables: Tables) -> DataFrame:
    members = tables["descriptions"].select("group", "kind", F.explode("members").alias("member"))
    names = [f"member.{name}" for name in MEMBERS.names if name not in ("group", "kind", "assigned")]
    return members.select("group", "kind", *names, F.size("member.assigned").alias("assigned"))


def _assignments(tables: Tables) -> DataFrame:
    """Return one row per assignment. A topic given only by id gets its name if it is available."""
    members = tables["descriptions"].select("group", "kind", F.explode("members").alias("member"))
    assigned = members.select("group", "kind", "member.memberId", F.explode("member.assigned").alias("each"))
    rows = assigned.select("group", "kind", "memberId", "each.*")
    if "partitions" not in tables:
        return rows
    named = (
        tables["partitions"].where("topicId IS NOT NULL").select("topicId", F.col("topic").alias("_name")).distinct()
    )
    found = rows.join(F.broadcast(named), "topicId", "left")
    return found.withColumn("topic", F.coalesce("topic", "_name")).select(*rows.columns)


def _topology(tables: Tables) -> DataFrame:
    of_streams = tables["descriptions"].where("topology IS NOT NULL")
    each = of_streams.select("group", "topology.epoch", F.explode("topology.subtopologies").alias("each"))
    return each.select("group", F.col("epoch").alias("topologyEpoch"), "each.*")


def _problems(tables: Tables) -> DataFrame:
    """Return the unreadable data: parts of files, complete records, and bytes inside classic members."""
    descriptions = tables["descriptions"]
    records = descriptions.select("group", "logPartition", F.explode("problems").alias("each"))
    members = descriptions.select("group", "logPartition", F.explode("members").alias("each"))
    text = F.concat_ws(": ", F.lit("member"), "each.memberId", "each.problem").alias("problem")
    within = members.where("each.problem IS NOT NULL").select("group", "logPartition", text)
    rows = records.select("group", "logPartition", "each.*").unionByName(within, allowMissingColumns=True)
    damaged = tables["log"].where(F.col("kind") == PROBLEM).select("logPartition", "logOffset", "file", "problem")
    return rows.unionByName(damaged, allowMissingColumns=True)


def _described(records: pa.Table) -> pa.Table:
    """Describe one group from all its records."""
    rows = records.sort_by("logOffset").to_pylist()
    found = description_rows(rows[0]["logPartition"], ((row["logOffset"], row["key"], row["value"]) for row in rows))
    return pa.Table.from_pylist(found, schema=arrow_schema(_description()))


_TABLES: Final[Mapping[str, Callable[[Tables], DataFrame]]] = {
    "log": _log,
    "descriptions": lambda tables: describe_groups(tables["log"]),
    "groups": _groups,
    "members": _members,
    "assignments": _assignments,
    "topology": _topology,
    "problems": _problems,
}
"""The tables, each built from the inputs and earlier tables."""
