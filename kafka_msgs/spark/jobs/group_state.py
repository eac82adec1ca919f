"""Groups as they are at the end of ``__consumer_offsets``: members, assignments, epochs, topologies, of all kinds.

Owns the way from the records of a topic to one row per group: Spark keeps the latest record of each key, and the
records of one group, few by then, are handed to ``kafka_msgs.topics``, which computes the state of the group. Offsets
are left to ``group_offsets``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.report import Bars, Part, Report, Section, report_of
from kafka_msgs.spark.jobs.job import Job, Step, Tables
from kafka_msgs.spark.jobs.report_rows import skew_of_members
from kafka_msgs.spark.jobs.rows import GROUP, PROBLEM, classify_records, group_bytes
from kafka_msgs.spark.latest import latest_by_key
from kafka_msgs.spark.reporting import table_of
from kafka_msgs.spark.types import arrow_schema
from kafka_msgs.topics.describe import describe_group
from kafka_msgs.topics.records import InternalRecord, UnknownRecord, decode_record
from kafka_msgs.topics.replay import replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["JOB", "describe_groups", "group_state"]

_TOPIC: Final = "__consumer_offsets"
_ROLES: Final = ("partition", "active", "standby", "warmup")
_SHOWN_MEMBERS: Final = 30
_SHOWN_LETTERS: Final = 12


def _struct(**types: Any) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


_TEXT, _INT, _LONG, _SHORT = StringType(), IntegerType(), LongType(), ShortType()

_ASSIGNED: Final = _struct(status=_TEXT, role=_TEXT, topic=_TEXT, topicId=_TEXT, subtopologyId=_TEXT, partition=_INT)
_MEMBER: Final = _struct(
    memberId=_TEXT,
    instanceId=_TEXT,
    rackId=_TEXT,
    clientId=_TEXT,
    clientHost=_TEXT,
    epoch=_INT,
    previousEpoch=_INT,
    state=_TEXT,
    subscribedTopics=ArrayType(_TEXT),
    subscribedRegex=_TEXT,
    processId=_TEXT,
    topologyEpoch=_INT,
    problem=_TEXT,
    assigned=ArrayType(_ASSIGNED),
)
_TOPIC_INFO: Final = _struct(name=_TEXT, partitions=_INT, replicationFactor=_SHORT)
_SUBTOPOLOGY: Final = _struct(
    subtopologyId=_TEXT,
    sourceTopics=ArrayType(_TEXT),
    sourceTopicRegex=ArrayType(_TEXT),
    repartitionSinkTopics=ArrayType(_TEXT),
    repartitionSourceTopics=ArrayType(_TOPIC_INFO),
    stateChangelogTopics=ArrayType(_TOPIC_INFO),
)
_TOPOLOGY: Final = _struct(epoch=_INT, subtopologies=ArrayType(_SUBTOPOLOGY))
_PROBLEM: Final = _struct(logOffset=_LONG, problem=_TEXT)
_GROUP: Final = _struct(
    groupId=_TEXT,
    kind=_TEXT,
    state=_TEXT,
    epoch=_INT,
    assignmentEpoch=_INT,
    protocolType=_TEXT,
    protocol=_TEXT,
    leader=_TEXT,
    topology=_TOPOLOGY,
    members=ArrayType(_MEMBER),
)
_DESCRIPTION: Final = StructType(
    [
        *_GROUP.fields,
        StructField("logPartition", _INT),
        StructField("problems", ArrayType(_PROBLEM)),
    ]
)


def group_state(records: DataFrame, *, partitions: DataFrame | None = None) -> dict[str, DataFrame]:
    """Return the groups at the end of the log, as lazy tables.

    ``records`` are rows of ``kafka-log`` of ``__consumer_offsets``, read with ``control=true``; ``partitions``
    (``topic``, ``topicId``) names the topics that newer groups know by their ids.

    ``log`` has the records of groups, and ``descriptions`` one row per group with all of it. The other tables are made
    from these: ``groups`` has one row per group; ``members`` one per member; ``assignments`` one per partition or task
    that a member has (``status`` ``current``), will have (``target``) or must give up (``revoking``); ``topology`` one
    per subtopology of a streams group; ``problems`` one per record that could not be read. Groups with offsets only
    are not in these tables, but in those of ``group_offsets``.
    """
    inputs = {"records": records, "partitions": partitions}
    return JOB.tables({name: rows for name, rows in inputs.items() if rows is not None})


def describe_groups(log: DataFrame) -> DataFrame:
    """Return one row per group that has records of its own; ``log`` is the result of ``classify_records``."""
    own = log.where(F.col("kind") == GROUP).select("logPartition", "logOffset", "key", "value")
    latest = latest_by_key(own, partition=("logPartition",), offset="logOffset")
    by_group = latest.groupBy("logPartition", group_bytes(F.col("key")).alias("name"))
    return by_group.applyInArrow(_described, _DESCRIPTION).withColumnRenamed("groupId", "group")


def _log(tables: Tables) -> DataFrame:
    """What the job needs of the log: no commits, which are nearly all of it."""
    needed = classify_records(tables["records"]).where(F.col("kind").isin(GROUP, PROBLEM))
    return needed.select("kind", "logPartition", "logOffset", "key", "value", "file", "problem")


def _groups(tables: Tables) -> DataFrame:
    found = tables["descriptions"].where("group IS NOT NULL")
    plain = [field.name for field in _DESCRIPTION if not isinstance(field.dataType, ArrayType | StructType)]
    names = ["group" if name == "groupId" else name for name in plain]
    counts = F.size("members").alias("members"), F.col("topology.epoch").alias("topologyEpoch")
    return found.select(*names, *counts)


def _members(tables: Tables) -> DataFrame:
    members = tables["descriptions"].select("group", "kind", F.explode("members").alias("member"))
    names = [f"member.{field.name}" for field in _MEMBER if field.name != "assigned"]
    return members.select("group", "kind", *names, F.size("member.assigned").alias("assigned"))


def _assignments(tables: Tables) -> DataFrame:
    """One row for what is assigned; a topic that is known by its id only gets its name where that is at hand."""
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
    """What could not be read: parts of files, whole records, and the bytes inside a classic member."""
    descriptions = tables["descriptions"]
    records = descriptions.select("group", "logPartition", F.explode("problems").alias("each"))
    members = descriptions.select("group", "logPartition", F.explode("members").alias("each"))
    text = F.concat_ws(": ", F.lit("member"), "each.memberId", "each.problem").alias("problem")
    within = members.where("each.problem IS NOT NULL").select("group", "logPartition", text)
    rows = records.select("group", "logPartition", "each.*").unionByName(within, allowMissingColumns=True)
    damaged = tables["log"].where(F.col("kind") == PROBLEM).select("logPartition", "logOffset", "file", "problem")
    return rows.unionByName(damaged, allowMissingColumns=True)


def _report(tables: Tables) -> Report:
    groups, members, assignments = (tables[name] for name in ("groups", "members", "assignments"))
    by_role = assignments.groupBy("group", "memberId", "status", "role").agg(F.count("*").alias("count"))
    sections: list[Section | Part] = [
        table_of(groups.groupBy("kind", "state").agg(F.count("*").alias("groups")).orderBy("kind", "state"), "Groups"),
        table_of(groups.orderBy("kind", "group"), "Each group"),
        table_of(members.orderBy("group", "memberId"), "Members"),
        table_of(by_role.orderBy("group", "memberId", "status", "role"), "What members have, are to have, and give up"),
        table_of(tables["topology"].orderBy("group", "subtopologyId"), "Topologies of streams groups"),
        *_tasks_plot(assignments),
        skew_of_members(tables),
        table_of(tables["problems"], "Problems"),
    ]
    return report_of("Groups: members, assignments, epochs", sections)


def _tasks_plot(assignments: DataFrame) -> list[Section]:
    """What each member has now, by role; the members with most first, and no plot where nobody has anything."""
    current = assignments.where("status = 'current'")
    counts = [F.count(F.when(F.col("role") == role, 1)).alias(role) for role in _ROLES]
    found = current.groupBy("group", "memberId").agg(*counts, F.count("*").alias("all"))
    rows = found.orderBy(F.col("all").desc(), "group", "memberId").take(_SHOWN_MEMBERS)
    series = {role: [row[role] for row in rows] for role in _ROLES if any(row[role] for row in rows)}
    labels = [f"{row['group']}: {row['memberId'][:_SHOWN_LETTERS]}" for row in rows]
    note = f"the {_SHOWN_MEMBERS} members with most" if len(rows) == _SHOWN_MEMBERS else ""
    title = "Partitions and tasks of each member"
    return (
        [
            Bars(
                title=title,
                file="assignments.svg",
                labels=labels,
                series=series,
                unit="partitions and tasks",
                note=note,
            )
        ]
        if rows
        else []
    )


def _described(records: pa.Table) -> pa.Table:
    """Describe the group that all records are of; a record that cannot be read is reported beside it."""
    rows = records.sort_by("logOffset").to_pylist()
    typed: list[InternalRecord] = []
    problems = []
    for row in rows:
        record, problem = _read(row)
        typed += [record] if record else []
        problems += [{"logOffset": row["logOffset"], "problem": problem}] if problem else []
    common = {"logPartition": rows[0]["logPartition"], "problems": problems}
    found = [_row(_GROUP, describe_group(group)) | common for group in replay(typed).groups().values()]
    return pa.Table.from_pylist(found or [common], schema=arrow_schema(_DESCRIPTION))


def _read(row: Mapping[str, Any]) -> tuple[InternalRecord | None, str | None]:
    try:
        record = decode_record(_TOPIC, row["key"], row["value"])
    except KafkaMsgsError as error:
        return None, str(error)
    if isinstance(record, UnknownRecord):
        return record, f"this release has no records of type {record.record_type}"
    return record, None


def _row(kind: StructType, item: Any) -> dict[str, Any]:
    """Return an object as a row: each field has the value of the attribute that it is named after."""
    return {field.name: _value(field.dataType, getattr(item, _attribute(field.name))) for field in kind}


@cache
def _attribute(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _value(kind: DataType, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [_value(kind.elementType, each) for each in value]
    if isinstance(kind, StructType):
        return _row(kind, value)
    return str(value) if isinstance(value, UUID) else value


JOB: Final = Job(
    name="group-state",
    summary="Members, assignments, epochs and topologies of all groups, from __consumer_offsets.",
    steps=(
        Step("log", _log, partition_by=("kind",)),
        Step("descriptions", lambda tables: describe_groups(tables["log"])),
        Step("groups", _groups, partition_by=("kind",)),
        Step("members", _members, partition_by=("kind",)),
        Step("assignments", _assignments, partition_by=("kind",)),
        Step("topology", _topology),
        Step("problems", _problems),
    ),
    report=_report,
)
