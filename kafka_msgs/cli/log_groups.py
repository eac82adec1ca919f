"""Groups for commands: read from log directories with progress, selected by name, with their read problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import click

from kafka_msgs.analysis.groups import (
    OFFSETS_TOPIC,
    GroupsRead,
    GroupWithOffsets,
    ReadProblem,
    add_end_offsets,
    read_groups,
)
from kafka_msgs.analysis.share_offsets import SHARE_STATE_TOPIC, add_share_offsets, is_share, read_share_states
from kafka_msgs.cli.render.output import echo
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.report_options import save_report
from kafka_msgs.errors import JobPathError
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import Progress, end_offsets_in, end_offsets_of, partitions_in, topic_names

__all__ = ["names_in", "read_groups_from", "report_groups", "report_problems", "select_groups"]


def read_groups_from(log_dirs: Sequence[Path], end_offsets: Path | None = None) -> GroupsRead:
    """Return the groups in log directories; lags use the file ``end_offsets``, or the partitions in the directories.

    The offsets of share groups are in a separate topic, which is read only if the directories have such groups. Raises
    ``JobPathError`` and ``OSError``.
    """
    partitions = partitions_in(log_dirs)
    requested = _of_topic(partitions, OFFSETS_TOPIC)
    if not requested:
        reason = f"there is no partition of {OFFSETS_TOPIC} in it"
        raise JobPathError(path=", ".join(map(str, log_dirs)), reason=reason)
    given = None if end_offsets is None else end_offsets_in(end_offsets)
    with _progress_over(requested) as progress:
        groups = read_groups(requested, {}, progress=progress)
    # A running broker appends records: ends are read after the commits, so that no commit is beyond its end.
    if not any(map(is_share, groups.groups)):
        return add_end_offsets(groups, end_offsets_of(partitions) if given is None else given)
    shared = _of_topic(partitions, SHARE_STATE_TOPIC)
    with _progress_over(shared) as progress:
        states = read_share_states(shared, progress=progress)
    ends = end_offsets_of(partitions) if given is None else given
    return add_share_offsets(add_end_offsets(groups, ends), states, topic_names(partitions), ends)


def _of_topic(partitions: Iterable[Partition], topic: str) -> list[Partition]:
    return [partition for partition in partitions if partition.topic == topic]


def _progress_over(partitions: Iterable[Partition]) -> AbstractContextManager[Progress]:
    return progress_over([segment.path for partition in partitions for segment in partition.segments])


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
