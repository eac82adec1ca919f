"""The job ``group-state``, independent of the engine: members, assignments, epochs and topologies, as Parquet tables.

Handles the checkpoint data of the job, which is the latest record of each key, and the report data. ``group_rows`` owns
the rows. ``group_offsets`` handles offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa
from attrs import frozen

from kafka_msgs.analysis import group_rows as rows_of
from kafka_msgs.analysis.group_rows import CURRENT, DESCRIPTIONS, PROBLEMS, Row, Rows
from kafka_msgs.analysis.live_records import GROUP_RECORD, ROWS, LiveRecords, rows_since, rows_with
from kafka_msgs.analysis.record_classification import OFFSETS_TOPIC, classify_groups
from kafka_msgs.engines.checkpoint import Checkpoint
from kafka_msgs.engines.job import Job, JobInputs, JobRun
from kafka_msgs.engines.partition_reader import PartitionInput, SegmentInput
from kafka_msgs.engines.partition_task import PROBLEMS_TABLE, REPORT_ROWS, CheckpointData, Problems, ReadSpec
from kafka_msgs.errors import LogFileError
from kafka_msgs.tables.task_output import TableSpec, TaskOutput, write_partitioned, write_table

__all__ = ["StateRun", "StateSummary", "group_state_run"]

NAME: Final = "group-state"
_TABLES: Final = {
    "descriptions": TableSpec(DESCRIPTIONS),
    "groups": TableSpec(rows_of.GROUPS, keys=("group", "logPartition"), partition_by=("kind",)),
    "members": TableSpec(rows_of.MEMBERS, partition_by=("kind",)),
    "assignments": TableSpec(rows_of.ASSIGNMENTS, partition_by=("kind",)),
    "topology": TableSpec(rows_of.TOPOLOGY),
    PROBLEMS_TABLE: TableSpec(PROBLEMS),
}
_HAS: Final = ("group", "memberId", "status", "role")
_ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "groups": ("kind", "group"),
    "members": ("group", "memberId"),
    "has": _HAS,
    "topology": ("group", "subtopologyId"),
}
"""The sort columns of the summary rows."""
_SERIES: Final = 10_000
"""The number of members with the most assignments that are kept for the skew statistics."""
SHOWN_MEMBERS: Final = 30


@frozen(kw_only=True)
class StateSummary:
    """The report data of a partition: the number of rows per table, and the first rows.

    ``kinds`` counts groups by kind and state. The rows ``has`` count current, target and revoked assignments by status
    and role. The rows ``counts`` contain the number of current assignments per member, and ``most`` contains the
    members with the most assignments, by role.
    """

    from_start: bool
    totals: Mapping[str, int]
    kinds: Mapping[tuple[str, str], int]
    rows: Mapping[str, Rows]
    most: Rows
    problems: Rows


StateRun: TypeAlias = JobRun[StateSummary, tuple[StateSummary, ...]]


def group_state_run(inputs: JobInputs) -> StateRun:
    """Return the run over the partitions of ``__consumer_offsets`` in the inputs.

    Raises the errors of ``JobInputs``.
    """
    logs = inputs.logs(OFFSETS_TOPIC)
    reading = ReadSpec(
        start=partial(_StateWork, inputs.names()), tables={"rows": ROWS}, problems=PROBLEMS, damage=_damage
    )
    job = Job(name=NAME, reading=reading, tables=_TABLES, combine=lambda summaries, _: tuple(summaries))
    return JobRun(job=job, inputs=inputs.paths, logs=logs)


def _damage(log: PartitionInput, fault: LogFileError) -> Row:
    return {"logPartition": log.number, "file": fault.file, "problem": str(fault)}


class _StateWork:
    """Processes the records of one partition."""

    def __init__(
        self, names: Mapping[str, str], output: TaskOutput, log: PartitionInput, earlier: Checkpoint | None
    ) -> None:
        self._names = names
        self._log = log
        self._output = output
        self._from_start = earlier is None
        self._survivors = LiveRecords()
        if earlier is not None:
            self._survivors = LiveRecords(rows_since(earlier.tables["rows"], log.segments[0].base_offset))

    def add(self, records: pa.RecordBatch, segment: SegmentInput) -> pa.Table:
        """Process the next records; return the problems among them."""
        rows, problems = classify_groups(records, segment.name, segment.base_offset)
        self._survivors.add(rows)
        columns = {
            "group": pa.nulls(problems.num_rows, pa.string()),
            "logPartition": pa.repeat(pa.scalar(self._log.number, pa.int32()), problems.num_rows),
            **{name: problems[name] for name in problems.column_names},
        }
        return pa.table({name: columns[name] for name in PROBLEMS.names}, schema=PROBLEMS)

    def finish(self) -> CheckpointData:
        """Return the checkpoint data after the last record."""
        return CheckpointData({}, {"rows": self._survivors.finish()})

    def discard(self) -> None:
        """Do nothing: the output has no files before the last record."""

    def summary(self, problems: Problems) -> StateSummary:
        """Write the tables, and return the report data."""
        found = self._descriptions()
        tables: dict[str, Rows] = {
            "descriptions": found,
            "groups": rows_of.group_rows(found),
            "members": rows_of.member_rows(found),
            "assignments": rows_of.assignment_rows(found, self._names),
            "topology": rows_of.topology_rows(found),
            PROBLEMS_TABLE: list(rows_of.problem_rows(found)),
        }
        for name, rows in tables.items():
            self._write(name, rows)
        shown = {**tables, "has": _has(tables["assignments"]), "counts": _counts(tables)}
        return StateSummary(
            from_start=self._from_start,
            totals={name: len(rows) for name, rows in shown.items()}
            | {PROBLEMS_TABLE: len(tables[PROBLEMS_TABLE]) + problems.count},
            kinds=Counter((each["kind"], each["state"]) for each in tables["groups"]),
            rows={name: first_rows(name, shown[name]) for name in (*_ORDERS, "counts")},
            most=most_assigned(_by_role(shown["has"])),
            problems=(tables[PROBLEMS_TABLE] + problems.first.to_pylist())[:REPORT_ROWS],
        )

    def _descriptions(self) -> Rows:
        """Return the descriptions of the remaining groups, each from its records."""
        by_group: dict[bytes | None, list[tuple[int, bytes, bytes | None]]] = {}
        kept = rows_with(self._survivors.rows, GROUP_RECORD)
        for row in zip(*(kept[name].to_pylist() for name in ("offset", "key", "value")), strict=True):
            by_group.setdefault(rows_of.name_in(row[1]), []).append(row)
        return [row for records in by_group.values() for row in rows_of.description_rows(self._log.number, records)]

    def _write(self, name: str, rows: Rows) -> None:
        table = pa.Table.from_pylist(rows, schema=_TABLES[name].schema)
        # The read already writes damaged parts to another file of the same table.
        part = f"{self._log.name}-groups" if name == PROBLEMS_TABLE else self._log.name
        if _TABLES[name].partition_by:
            write_partitioned("kind", name, table, self._output, part)
        else:
            write_table(name, table.to_batches(), table.schema, self._output, part)


def first_rows(name: str, rows: Rows) -> Rows:
    """Return the sorted summary rows that a report needs."""
    if name == "counts":
        return sorted(rows, key=lambda row: (-row["assigned"], row["group"], row["memberId"]))[:_SERIES]
    columns = _ORDERS[name]

    def key(row: Row) -> tuple[tuple[bool, Any], ...]:
        return tuple((row[column] is not None, row[column]) for column in columns)

    return sorted(rows, key=key)[:REPORT_ROWS]


def most_assigned(rows: Rows) -> Rows:
    """Return the members with the most assignments, for a plot."""
    return sorted(rows, key=lambda row: (-row["all"], row["group"], row["memberId"]))[:SHOWN_MEMBERS]


def _has(assignments: Rows) -> Rows:
    counted = Counter(tuple(each[name] for name in _HAS) for each in assignments)
    return [dict(zip((*_HAS, "count"), (*place, count), strict=True)) for place, count in counted.items()]


def _counts(tables: Mapping[str, Rows]) -> Rows:
    """Return the number of partitions and tasks per member, including members without any."""
    current = (each for each in tables["assignments"] if each["status"] == CURRENT)
    counted = Counter((each["group"], each["memberId"]) for each in current)
    members = [(each["group"], each["memberId"]) for each in tables["members"]]
    return [{"group": group, "memberId": member, "assigned": counted[group, member]} for group, member in members]


def _by_role(has: Rows) -> Rows:
    found: dict[tuple[str, str], Row] = {}
    for each in has:
        if each["status"] == CURRENT:
            row = found.setdefault((each["group"], each["memberId"]), {"all": 0, **each})
            row["all"] += each["count"]
            row[each["role"]] = each["count"]
    return list(found.values())
