"""Reports from log directories without Spark: groups and their lag, and the content of topics.

This module combines statistics and report parts. The other modules of this package compute the statistics, and
``kafka_msgs.report.sections`` builds the parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.analysis.problems import ReadProblem
from kafka_msgs.analysis.topic_profile import TopicProfile
from kafka_msgs.analysis.topic_stats import TopicStats, merge_stats
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.metadata_log_state import read_metadata_log_state
from kafka_msgs.log.timestamps import LocalTimes, newest_of, segment_rows, with_log_times
from kafka_msgs.report import Report, ReportPart, Section, Table, report_of
from kafka_msgs.report.sections.lag import lag_part
from kafka_msgs.report.sections.retention import retention_part
from kafka_msgs.report.sections.skew import broker_part, member_part, partition_part

if TYPE_CHECKING:
    from kafka_msgs.analysis.groups import GroupsRead, GroupWithOffsets

__all__ = ["groups_report", "lag_rows", "profile_report"]

_CURRENT: Final = "current"


def groups_report(found: GroupsRead, groups: Sequence[GroupWithOffsets], partitions: Sequence[Partition]) -> Report:
    """Return the report on a selection of the groups found in partitions: time lag, trend, and skew between members.

    Raises ``OSError``.
    """
    places = {(each.topic, each.partition): LocalTimes(each) for each in partitions}
    rows, as_of = with_log_times(lag_rows(groups), places)
    parts: list[Section | ReportPart] = [_groups(groups), lag_part(rows, as_of), member_part(_members(groups))]
    return report_of("Groups, their lag and its trend", [*parts, _problems(found.problems)])


def lag_rows(groups: Iterable[GroupWithOffsets]) -> list[dict[str, Any]]:
    """Return the committed offsets of groups as rows for ``kafka_msgs.report.sections.lag``."""
    return [
        {
            "group": group.description.group_id,
            "topic": each.topic,
            "topicPartition": each.partition,
            "committedOffset": each.offset,
            "endOffset": each.end_offset,
            "lag": each.lag,
            "ahead": each.ahead,
            "metadata": each.metadata,
            "commitTimestampMs": each.commit_timestamp,
            "firstCommitMs": each.first_commit_timestamp,
            "firstCommitOffset": each.first_commit_offset,
        }
        for group in groups
        for each in group.served
    ]


def _groups(groups: Iterable[GroupWithOffsets]) -> Table:
    rows = [
        (
            each.description.group_id,
            each.description.kind,
            each.description.state,
            each.description.epoch,
            len(each.description.members),
            len(each.served),
            each.lag,
            each.last_commit,
        )
        for each in groups
    ]
    columns = ("group", "kind", "state", "epoch", "members", "partitions", "lag", "lastCommit")
    return Table("Groups", columns, tuple(rows), kinds={"lastCommit": "time"})


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


def profile_report(profile: TopicProfile, partitions: Sequence[Partition], chosen: Sequence[Partition]) -> Report:
    """Return the report on the topics of the ``chosen`` partitions: skew, sizes, retention. Raises ``OSError``.

    ``partitions`` are all partitions in the input, which may include the metadata log with placements and configs.
    """
    cluster = read_metadata_log_state(partitions)
    wanted = {each.topic for each in chosen}
    placements = {place: each for place, each in cluster.placements.items() if place[0] in wanted}
    segments = list(segment_rows(chosen))
    as_of = newest_of(row["newestMs"] for row in segments)
    rows = _partition_rows(profile, segments)
    return report_of(
        "What is in topics",
        [
            _topics(profile),
            retention_part(segments, cluster.configs, as_of),
            partition_part(rows),
            broker_part(rows, placements),
            _problems(profile.problems),
        ],
    )


def _topics(profile: TopicProfile) -> Table:
    by_topic: dict[str, list[TopicStats]] = {}
    for (topic, _, _), figures in profile.figures.items():
        by_topic.setdefault(topic, []).append(figures)
    sums = {topic: merge_stats(each) for topic, each in by_topic.items()}
    columns = (
        "topic", "records", "batches", "contentBytes", "ratio", "codecs", "tombstones", "abortedRecords", "outOfOrder",
    )  # fmt: skip
    rows = [
        (
            topic,
            each.records,
            each.batches,
            each.content_bytes,
            each.ratio,
            sorted(each.codecs),
            each.tombstones,
            each.aborted_records,
            each.out_of_order,
        )
        for topic, each in sorted(sums.items(), key=lambda pair: (-pair[1].bytes, pair[0]))
    ]
    return Table("Topics", columns, tuple(rows))


def _partition_rows(profile: TopicProfile, segments: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the file size and record count of each partition."""
    records: Counter[tuple[str, int]] = Counter()
    for (topic, partition, _), figures in profile.figures.items():
        records[topic, partition] += figures.records
    sizes: Counter[tuple[str, int]] = Counter()
    for row in segments:
        sizes[row["topic"], row["partition"]] += row["bytes"]
    return [
        {"topic": topic, "partition": number, "bytes": sizes[topic, number], "records": records[topic, number]}
        for topic, number in sorted(sizes)
    ]


def _problems(problems: Iterable[ReadProblem]) -> Table:
    rows = [(each.topic, each.partition, each.offset, each.reason) for each in problems]
    return Table("Problems", ("topic", "partition", "offset", "problem"), tuple(rows))
