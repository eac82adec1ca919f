"""The report of the job ``topic-profile`` and of ``kafka-msgs profile``: sizes, hours, retention and skew of topics.

Defines the content of the report. ``kafka_msgs.report`` renders it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kafka_msgs.analysis.arrow_tables import aggregated
from kafka_msgs.analysis.commit_hours import SHOWN_HOURS
from kafka_msgs.analysis.hourly_stats import PROFILE, SUMMED
from kafka_msgs.analysis.profile_job import PROBLEMS, ProfileSummary
from kafka_msgs.analysis.topic_profile import ProfileRead
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.metadata_log_state import MetadataLogState, read_metadata_log_state
from kafka_msgs.log.timestamps import newest_of
from kafka_msgs.report import Report, ReportPart, Section, Table, by_hour, report_of
from kafka_msgs.report.sections.retention import retention_part
from kafka_msgs.report.sections.skew import broker_part, partition_part
from kafka_msgs.report.sections.table_building import bars, first_rows

__all__ = ["read_profile_report", "topic_profile_report"]

_SHOWN_TOPICS: Final = 12
_SHOWN_LINES: Final = 6
_SHOWN_PROFILE: Final = tuple(name for name in PROFILE.names if name != "hourMs")

Rows = list[dict[str, Any]]


def topic_profile_report(
    found: ProfileSummary, problems: Rows, problem_count: int, cluster: MetadataLogState
) -> Report:
    """Return the report about a run; ``cluster`` has the placements and configs of topics, if they are known."""
    # Sums are over all partitions; only tables and plots are limited. Sums of fractions depend on the order.
    ordered = found.partitions.sort_by([("topic", "ascending"), ("partition", "ascending")])
    partitions = ordered.select(["topic", "partition", "bytes", "records"]).to_pylist()
    wanted = {row["topic"] for row in partitions}
    placements = {place: each for place, each in cluster.placements.items() if place[0] in wanted}
    newest = newest_of(row["newestMs"] for row in found.segments)
    topics = _topics(found)
    profile = [{**row, "hour": row["hourMs"]} for row in found.largest]
    sections: list[Section | ReportPart] = [
        first_rows("Topics", ("topic", "partitions", *SUMMED), topics),
        *bars(
            "Bytes of each topic",
            "bytes.svg",
            topics,
            lambda row: str(row["topic"]),
            {"stored": "bytes", "content": "contentBytes"},
            "bytes",
            most=_SHOWN_TOPICS,
            which="largest topics",
        ),
        *_hours_plot(found),
        retention_part(found.segments, cluster.configs, newest, total=found.segment_count),
        partition_part(partitions),
        broker_part(partitions, placements),
        _codecs(found),
        first_rows("Partitions and hours, the largest first", _SHOWN_PROFILE, profile, found.rows, hour="time"),
        first_rows("Problems", PROBLEMS.names, problems, problem_count),
    ]
    return report_of("What is in topics", sections)


def read_profile_report(profile: ProfileRead, partitions: Sequence[Partition]) -> Report:
    """Return the same report about a profile that was read in memory. Raises ``OSError``.

    ``partitions`` are all partitions of the input, which may include the metadata log with placements and configs.
    """
    problems = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "file": each.file,
            "batchPosition": each.position,
            "problem": each.reason,
        }
        for each in profile.problems
    ]
    cluster = read_metadata_log_state(partitions)
    return topic_profile_report(profile.summary, problems, len(problems), cluster)


def _topics(found: ProfileSummary) -> Rows:
    sums = aggregated(found.partitions, ["topic"], {"partition": "count", **dict.fromkeys(SUMMED, "sum")})
    rows = ({**row, "partitions": row["partition"]} for row in sums.to_pylist())
    return sorted(rows, key=lambda row: (-row["bytes"], row["topic"]))


def _hours_plot(found: ProfileSummary) -> list[Section]:
    """Return a plot of hourly records for the largest topics, limited to the latest hours to keep it small."""
    names = sorted(found.hours, key=lambda topic: (-found.known[topic], topic))[:_SHOWN_LINES]
    if not names:
        return []
    shown = sorted({hour for hours in found.hours.values() for hour in hours})[-SHOWN_HOURS:]
    counts = {hour: [found.hours[name].get(hour, 0) for name in names] for hour in shown}
    return [by_hour("Records an hour", "records.svg", "records an hour", names, counts)]


def _codecs(found: ProfileSummary) -> Table:
    rows = [
        {"topic": topic, "codec": codec, **sums, "ratio": sums["contentBytes"] / sums["bytes"]}
        for (topic, codec), sums in sorted(found.codecs.items())
    ]
    return first_rows("Codecs", ("topic", "codec", "records", "bytes", "ratio"), rows)
