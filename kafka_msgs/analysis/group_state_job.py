"""The job ``group-state``: members, assignments, epochs and topologies of groups.

Reduces the group records of ``__consumer_offsets`` to the latest record of each key. ``group_rows`` owns the rows.
``group_offsets_job`` handles offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from attrs import evolve, field, frozen

from kafka_msgs.analysis import group_rows as rows_of
from kafka_msgs.analysis.arrow_tables import filled, named
from kafka_msgs.analysis.group_rows import CURRENT, DESCRIPTIONS, PROBLEMS, Row, Rows
from kafka_msgs.analysis.job import (
    PROBLEMS_TABLE,
    REPORT_ROWS,
    ClusterFacts,
    Job,
    LogRange,
    SavedState,
    add_summaries,
)
from kafka_msgs.analysis.live_records import ROWS, LiveRecords, rows_since
from kafka_msgs.analysis.offset_tables import described_groups
from kafka_msgs.analysis.record_classification import classify
from kafka_msgs.tables.task_output import TableSpec, TaskOutput

__all__ = ["GROUP_STATE", "SHOWN_MEMBERS", "GroupState", "StateSummary", "first_rows", "most_assigned"]

_TABLES: Final = {
    "descriptions": TableSpec(DESCRIPTIONS),
    "groups": TableSpec(rows_of.GROUPS, partition_by=("kind",)),
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
    """The report data of partitions: the number of rows per table, and the first rows.

    ``kinds`` counts groups by kind and state. The rows ``has`` count current, target and revoked assignments by status
    and role. The rows ``counts`` contain the number of current assignments per member, and ``most`` contains the
    members with the most assignments, by role. ``problems`` are the unreadable bytes inside of members.
    """

    totals: Mapping[str, int] = field(factory=dict)
    kinds: Mapping[tuple[str, str], int] = field(factory=dict)
    rows: Mapping[str, Rows] = field(factory=lambda: {name: [] for name in (*_ORDERS, "counts")})
    most: Rows = field(factory=list)
    problems: Rows = field(factory=list)


def merge_summaries(found: Sequence[StateSummary]) -> StateSummary:
    """Return the report data of all partitions."""
    whole = add_summaries([StateSummary(), *found])
    rows = {name: first_rows(name, each) for name, each in whole.rows.items()}
    return evolve(whole, rows=rows, most=most_assigned(whole.most), problems=whole.problems[:REPORT_ROWS])


class GroupState:
    """The state of a range of a partition."""

    def __init__(self, output: TaskOutput, of: LogRange, saved: SavedState | None) -> None:
        self._range = of
        self._output = output
        rows = rows_since((saved or SavedState()).table("rows", ROWS), of.first_offset)
        self._survivors = LiveRecords(rows, open_start=of.sequence > 0)

    def add(self, records: pa.RecordBatch, file: str, segment: int) -> pa.Table:
        """Process the next records; return the problems among them."""
        found = classify(records, file, segment)
        self._survivors.add(found.others)
        return filled(PROBLEMS, found.problems.num_rows, named(found.problems) | {"logPartition": self._range.number})

    def merge(self, later: GroupState) -> None:
        """Add the state of the next range."""
        self._survivors = self._survivors.merge(later._survivors)

    def checkpoint(self) -> SavedState:
        """Return the complete state after the last record."""
        return SavedState({}, {"rows": self._survivors.finish()})

    def finish(self, facts: ClusterFacts) -> StateSummary:
        """Write the tables, and return the report data."""
        found = rows_of.description_rows(self._range.number, described_groups(self._survivors.finish()))
        tables: dict[str, Rows] = {
            "descriptions": found,
            "groups": rows_of.group_rows(found),
            "members": rows_of.member_rows(found),
            "assignments": rows_of.assignment_rows(found, facts.names),
            "topology": rows_of.topology_rows(found),
            PROBLEMS_TABLE: list(rows_of.problem_rows(found)),
        }
        for name, rows in tables.items():
            table = pa.Table.from_pylist(rows, schema=_TABLES[name].schema)
            if _TABLES[name].partition_by:
                self._output.append_by("kind", name, table)
            else:
                self._output.append(name, table)
        shown = {**tables, "has": _has(tables["assignments"]), "counts": _counts(tables)}
        return StateSummary(
            totals={name: len(rows) for name, rows in shown.items()},
            kinds=Counter((each["kind"], each["state"]) for each in tables["groups"]),
            rows={name: first_rows(name, shown[name]) for name in (*_ORDERS, "counts")},
            most=most_assigned(_by_role(shown["has"])),
            problems=tables[PROBLEMS_TABLE][:REPORT_ROWS],
        )


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


GROUP_STATE: Final = Job(
    name="group-state",
    topics=("__consumer_offsets",),
    start=GroupState,
    state_tables={"rows": ROWS},
    needs_facts=True,
    tables=_TABLES,
    appended=frozenset([PROBLEMS_TABLE]),
    merge=merge_summaries,
)
"""The job."""
