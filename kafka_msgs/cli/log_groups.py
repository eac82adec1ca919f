"""Groups for commands: read from log directories with progress, selected by name, with their read problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_msgs.cli.arrow_import import require_arrow
from kafka_msgs.cli.render.output import echo
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.report_options import save_report
from kafka_msgs.errors import JobPathError
from kafka_msgs.log.partition_discovery import end_offsets_in, partitions_in, topic_names

if TYPE_CHECKING:
    from kafka_msgs.analysis.groups import GroupsRead, GroupWithOffsets
    from kafka_msgs.analysis.in_memory import ReadProblem

__all__ = ["names_in", "read_groups_from", "report_groups", "report_problems", "select_groups"]


def read_groups_from(log_dirs: Sequence[Path], end_offsets: Path | None = None, *, windows: bool = False) -> GroupsRead:
    """Return the groups in log directories; lags use the file ``end_offsets``, or the partitions in the directories.

    ``windows`` adds the latest commits, which the status needs.

    Raises ``MissingExtraError``, ``JobPathError`` and ``OSError``.
    """
    require_arrow("--log-dirs")
    from kafka_msgs.analysis.groups import read_groups
    from kafka_msgs.analysis.record_classification import OFFSETS_TOPIC
    from kafka_msgs.analysis.share_offsets import SHARE_STATE_TOPIC

    partitions = partitions_in(log_dirs)
    if not any(partition.topic == OFFSETS_TOPIC for partition in partitions):
        reason = f"there is no partition of {OFFSETS_TOPIC} in it"
        raise JobPathError(path=", ".join(map(str, log_dirs)), reason=reason)
    given = None if end_offsets is None else end_offsets_in(end_offsets)
    read = [partition for partition in partitions if partition.topic in (OFFSETS_TOPIC, SHARE_STATE_TOPIC)]
    with progress_over([segment.path for partition in read for segment in partition.segments]) as progress:
        return read_groups(partitions, given, windows=windows, progress=progress)


def names_in(log_dirs: Sequence[Path]) -> dict[str, str]:
    """Return topic names by their ids, as text, for the topics in the log directories."""
    return {str(topic_id): name for topic_id, name in topic_names(partitions_in(log_dirs)).items()}


def select_groups(groups_in_files: GroupsRead, requested: Sequence[str]) -> list[GroupWithOffsets]:
    """Return the named groups, or all groups without names; raises ``click.ClickException`` for an unknown name."""
    names = {group.description.group_id for group in groups_in_files.groups}
    for name in requested:
        if name not in names:
            raise click.ClickException(f"there is no group {name!r}")
    return [group for group in groups_in_files.groups if not requested or group.description.group_id in requested]


def report_groups(
    groups_in_files: GroupsRead, groups: Sequence[GroupWithOffsets], log_dirs: Sequence[Path], directory: Path | None
) -> None:
    """Write the report on the selected groups to a directory, if it is set; raises ``OSError``."""
    if directory is not None:
        from kafka_msgs.analysis.reports import groups_report

        save_report(groups_report(groups_in_files, groups, partitions_in(log_dirs)), directory, log_dirs)


def report_problems(problems: Sequence[ReadProblem]) -> None:
    """Print read problems on standard error, and exit with status 1 if there were any."""
    for problem in problems:
        location = "" if problem.offset is None else f" at offset {problem.offset}"
        echo(f"{problem.topic}-{problem.partition}{location}: {problem.reason}", err=True)
    if problems:
        click.get_current_context().exit(1)
