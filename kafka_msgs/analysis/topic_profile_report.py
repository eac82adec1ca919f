"""The report of the job ``topic-profile``: sizes, hours, retention and skew of topics, from small tables.

Defines the content of the report. ``kafka_msgs.report`` renders it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import evolve

from kafka_msgs.analysis.commit_hours import SHOWN_HOURS
from kafka_msgs.analysis.hourly_stats import PROFILE, SUMMED
from kafka_msgs.analysis.job import REPORT_ROWS
from kafka_msgs.analysis.profile_job import PROBLEMS, ProfileSummary
from kafka_msgs.log.metadata_log_state import MetadataLogState
from kafka_msgs.log.timestamps import newest_of
from kafka_msgs.report import BarPlot, Report, ReportPart, Section, Table, by_hour, report_of
from kafka_msgs.report.sections.retention import retention_part
from kafka_msgs.report.sections.skew import broker_part, partition_part

__all__ = ["topic_profile_report"]

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
        _table("Topics", ("topic", "partitions", *SUMMED), topics[:REPORT_ROWS], len(topics)),
        *_size_plot(topics[:_SHOWN_TOPICS]),
        *_hours_plot(found),
        retention_part(found.segments, cluster.configs, newest, total=found.segment_count),
        partition_part(partitions),
        broker_part(partitions, placements),
        _codecs(found),
        evolve(
            _table("Partitions and hours, the largest first", _SHOWN_PROFILE, profile, found.rows),
            kinds={"hour": "time"},
        ),
        _table("Problems", PROBLEMS.names, problems, problem_count),
    ]
    return report_of("What is in topics", sections)


def _table(title: str, columns: Sequence[str], rows: Rows, total: int) -> Table:
    return Table(title, tuple(columns), tuple(tuple(row[name] for name in columns) for row in rows), total=total)


def _topics(found: ProfileSummary) -> Rows:
    sums = found.partitions.group_by("topic").aggregate([("partition", "count"), *((name, "sum") for name in SUMMED)])
    names = {"topic": "topic", "partition_count": "partitions", **{f"{name}_sum": name for name in SUMMED}}
    rows = sums.rename_columns([names[name] for name in sums.column_names]).to_pylist()
    return sorted(rows, key=lambda row: (-row["bytes"], row["topic"]))


def _size_plot(by_size: Rows) -> list[Section]:
    series = {"stored": [row["bytes"] for row in by_size], "content": [row["contentBytes"] for row in by_size]}
    labels = [row["topic"] for row in by_size]
    note = f"the {_SHOWN_TOPICS} largest topics" if len(by_size) == _SHOWN_TOPICS else ""
    plot = BarPlot(title="Bytes of each topic", file="bytes.svg", labels=labels, series=series, unit="bytes", note=note)
    return [plot] if by_size else []


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
    return _table("Codecs", ("topic", "codec", "records", "bytes", "ratio"), rows[:REPORT_ROWS], len(rows))
