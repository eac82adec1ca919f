"""The report of the job ``group-state``: groups, members, their assignments and skew, from small tables.

Defines the content of the report. ``kafka_msgs.report`` renders it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kafka_msgs.analysis.group_rows import GROUPS, MEMBERS, PROBLEMS, TOPOLOGY, Rows
from kafka_msgs.analysis.group_state_job import SHOWN_MEMBERS, StateSummary
from kafka_msgs.report import BarPlot, Report, ReportPart, Section, Table, report_of
from kafka_msgs.report.sections.skew import member_part
from kafka_msgs.report.sections.table_building import first_rows

__all__ = ["group_state_report"]

_ROLES: Final = ("partition", "active", "standby", "warmup")
_SHOWN_LETTERS: Final = 12
_HAS: Final = ("group", "memberId", "status", "role", "count")


def group_state_report(found: StateSummary, problems: Rows, problem_count: int) -> Report:
    """Return the report about a run."""
    unreadable = [{**dict.fromkeys(PROBLEMS.names), **row} for row in (*found.problems, *problems)]
    sections: list[Section | ReportPart] = [
        _kinds(found),
        _table("Each group", "groups", GROUPS.names, found),
        _table("Members", "members", MEMBERS.names, found),
        _table("What members have, are to have, and give up", "has", _HAS, found),
        _table("Topologies of streams groups", "topology", TOPOLOGY.names, found),
        *_tasks_plot(found.most),
        member_part(found.rows["counts"], total=found.totals.get("counts", 0)),
        first_rows("Problems", PROBLEMS.names, unreadable, found.totals.get("problems", 0) + problem_count),
    ]
    return report_of("Groups: members, assignments, epochs", sections)


def _kinds(found: StateSummary) -> Table:
    rows = [{"kind": kind, "state": state, "groups": count} for (kind, state), count in sorted(found.kinds.items())]
    return first_rows("Groups", ("kind", "state", "groups"), rows)


def _table(title: str, name: str, columns: Sequence[str], found: StateSummary) -> Table:
    rows = [{column: _plain(row[column]) for column in columns} for row in found.rows[name]]
    return first_rows(title, columns, rows, found.totals.get(name, 0))


def _plain(value: Any) -> Any:
    """Return a value without its field names."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return tuple(map(_plain, value.values())) if isinstance(value, dict) else value


def _tasks_plot(rows: Rows) -> list[Section]:
    """Return a plot of current assignments per member by role, in descending order; no plot if all are empty."""
    if not rows:
        return []
    series = {role: [row.get(role, 0) for row in rows] for role in _ROLES if any(row.get(role) for row in rows)}
    return [
        BarPlot(
            title="Partitions and tasks of each member",
            file="assignments.svg",
            labels=[f"{row['group']}: {row['memberId'][:_SHOWN_LETTERS]}" for row in rows],
            series=series,
            unit="partitions and tasks",
            note=f"the {SHOWN_MEMBERS} members with most" if len(rows) == SHOWN_MEMBERS else "",
        )
    ]
