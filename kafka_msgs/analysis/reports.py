"""The report of ``kafka-msgs groups`` and ``lag`` on log directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict

from kafka_msgs.analysis.in_memory import ReadProblem
from kafka_msgs.analysis.lag_status import with_times_and_statuses
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.timestamps import local_timestamps
from kafka_msgs.report import Report, ReportPart, Section, Table, report_of
from kafka_msgs.report.sections.lag import lag_part
from kafka_msgs.report.sections.skew import member_part
from kafka_msgs.report.sections.table_building import SHOWN, first_rows

if TYPE_CHECKING:
    from kafka_msgs.analysis.groups import GroupsRead, GroupWithOffsets

__all__ = ["groups_report", "lag_rows"]

_CURRENT: Final = "current"


def groups_report(found: GroupsRead, groups: Sequence[GroupWithOffsets], partitions: Sequence[Partition]) -> Report:
    """Return the report on a selection of the groups found in partitions: lag, trend, status, and skew between members.

    Statuses need the windows of ``read_groups``. Raises ``OSError``.
    """
    rows, as_of = with_times_and_statuses(lag_rows(groups), local_timestamps(partitions))
    parts: list[Section | ReportPart] = [_groups(groups), lag_part(rows, as_of), member_part(_members(groups))]
    return report_of("Groups, their lag and its trend", [*parts, _problems(found.problems)])


def lag_rows(groups: Iterable[GroupWithOffsets]) -> list[dict[str, Any]]:
    """Return the committed offsets of groups as rows for ``kafka_msgs.report.sections.lag``."""
    return [{"group": group.description.group_id, **each.row()} for group in groups for each in group.served]


def _groups(groups: Iterable[GroupWithOffsets]) -> Table:
    rows = [{**each.row(), "lastCommit": each.last_commit} for each in groups]
    columns = ("group", "kind", "state", "epoch", "members", "partitions", "lag", "lastCommit")
    return first_rows("Groups", columns, rows, most=SHOWN, lastCommit="time")


def _members(groups: Iterable[GroupWithOffsets]) -> list[dict[str, Any]]:
    return [
        {
            "group": group.description.group_id,
            "memberId": member.member_id,
            "assigned": sum(each.status == _CURRENT for each in member.assigned),
        }
        for group in groups
        for member in group.description.members
    ]


def _problems(problems: Iterable[ReadProblem]) -> Table:
    rows = [{**asdict(each), "problem": each.reason} for each in problems]
    return first_rows("Problems", ("topic", "partition", "offset", "problem"), rows, most=SHOWN)
