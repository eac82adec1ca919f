"""The report of the job ``group-state``: groups, members, their assignments and skew, from small tables.

Defines the content of the report. ``kafka_msgs.report`` renders it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

from kafka_msgs.analysis.group_rows import GROUPS, MEMBERS, PROBLEMS, TOPOLOGY, Rows
from kafka_msgs.engines.group_state import SHOWN_MEMBERS, StateSummary, first_rows, most_assigned
from kafka_msgs.engines.partition_task import REPORT_ROWS
from kafka_msgs.report import BarPlot, Report, ReportPart, Section, Table, report_of
from kafka_msgs.report.sections.skew import member_part

__all__ = ["group_state_report"]

_ROLES: Final = ("partition", "active", "standby", "warmup")
_SHOWN_LETTERS: Final = 12
_HAS: Final = ("group", "memberId", "status", "role", "count")


def group_state_report(found: Sequence[StateSummary]) -> Report:
    """Return the report about a run."""
    sections: list[Section | ReportPart] = [
        _kinds(found),
        _table("Each group", "groups", GROUPS.names, found),
        _table("Members", "members", MEMBERS.names, found),
        _table("What members have, are to have, and give up", "has", _HAS, found),
        _table("Topologies of streams groups", "topology", TOPOLOGY.names, found),
        *_tasks_plot(most_assigned(list(chain.from_iterable(each.most for each in found)))),
        member_part(_rows("counts", found), total=sum(each.totals["counts"] for each in found)),
        _problems(found),
    ]
    return report_of("Groups: members, assignments, epochs", sections)


def _kinds(found: Iterable[StateSummary]) -> Table:
    counted: Counter[tuple[str, str]] = Counter()
    for each in found:
        counted.update(each.kinds)
    rows = tuple((*of, count) for of, count in sorted(counted.items()))
    return _shown("Groups", ("kind", "state", "groups"), rows[:REPORT_ROWS], len(rows))


def _rows(name: str, found: Iterable[StateSummary]) -> Rows:
    return first_rows(name, list(chain.from_iterable(each.rows[name] for each in found)))


def _table(title: str, name: str, columns: Sequence[str], found: Sequence[StateSummary]) -> Table:
    rows = [tuple(_plain(row[column]) for column in columns) for row in _rows(name, found)]
    return _shown(title, columns, rows, sum(each.totals[name] for each in found))


def _problems(found: Sequence[StateSummary]) -> Table:
    rows = [row for each in found for row in each.problems][:REPORT_ROWS]
    shown = [tuple(row.get(column) for column in PROBLEMS.names) for row in rows]
    return _shown("Problems", PROBLEMS.names, shown, sum(each.totals["problems"] for each in found))


def _shown(title: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], total: int) -> Table:
    return Table(title, tuple(columns), tuple(rows), total=total)


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
