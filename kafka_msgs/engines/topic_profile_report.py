"""The report of the job ``topic-profile``: sizes, hours, retention and skew of topics, from small tables.

Defines the content of the report. ``kafka_msgs.report`` renders it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from attrs import evolve

from kafka_msgs.analysis.commit_hours import SHOWN_HOURS
from kafka_msgs.analysis.hourly_stats import PROFILE, SUMMED
from kafka_msgs.engines.partition_task import REPORT_ROWS
from kafka_msgs.engines.topic_profile import PROBLEMS, ProfileSummary
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.metadata_log_state import read_metadata_log_state
from kafka_msgs.log.timestamps import newest_of
from kafka_msgs.report import BarPlot, Report, ReportPart, Section, Table, by_hour, report_of
from kafka_msgs.report.sections.retention import retention_part
from kafka_msgs.report.sections.skew import broker_part, partition_part

__all__ = ["topic_profile_report"]

_SERIES: Final = 10_000
"""The number of largest segments in the report sections about them."""
_SHOWN_TOPICS: Final = 12
_SHOWN_LINES: Final = 6
_SHOWN_PROFILE: Final = tuple(name for name in PROFILE.names if name != "hourMs")

Rows = list[dict[str, Any]]


def topic_profile_report(found: Sequence[ProfileSummary], places: Mapping[tuple[str, int], Partition]) -> Report:
    """Return the report about a run; ``places`` may include the metadata log. Raises ``OSError``."""
    topics, cluster = _topics(found), read_metadata_log_state(places.values())
    segments = _largest(chain.from_iterable(each.segments for each in found), "segment")
    # Sums are over all partitions; only tables and plots are limited.
    partitions = [{"topic": each.topic, "partition": each.number, **_two(each.sums)} for each in found if each.sums]
    wanted = {row["topic"] for row in partitions}
    placements = {place: each for place, each in cluster.placements.items() if place[0] in wanted}
    newest = newest_of(row["newestMs"] for row in segments)
    sections: list[Section | ReportPart] = [
        _table("Topics", ("topic", "partitions", *SUMMED), topics[:REPORT_ROWS], len(topics)),
        *_size_plot(topics[:_SHOWN_TOPICS]),
        *_hours_plot(found),
        retention_part(segments, cluster.configs, newest, total=sum(each.segment_count for each in found)),
        partition_part(partitions),
        broker_part(partitions, placements),
        _codecs(found),
        _profile(found),
        _problems(found),
    ]
    return report_of("What is in topics", sections)


def _two(sums: Mapping[str, int]) -> dict[str, int]:
    return {name: sums[name] for name in ("bytes", "records")}


def _largest(rows: Iterable[dict[str, Any]], *then: str) -> Rows:
    names = ("topic", "partition", *then)
    return sorted(rows, key=lambda row: (-row["bytes"], *(row[name] for name in names)))[:_SERIES]


def _table(title: str, columns: Sequence[str], rows: Rows, total: int) -> Table:
    return Table(title, tuple(columns), tuple(tuple(row[name] for name in columns) for row in rows), total=total)


def _topics(found: Iterable[ProfileSummary]) -> Rows:
    sums: dict[str, Counter[str]] = {}
    for each in found:
        if each.sums is not None:
            sums.setdefault(each.topic, Counter()).update({"partitions": 1, **each.sums})
    rows = [{"topic": topic, **dict.fromkeys(SUMMED, 0), **counts} for topic, counts in sums.items()]
    return sorted(rows, key=lambda row: (-row["bytes"], row["topic"]))


def _size_plot(by_size: Rows) -> list[Section]:
    series = {"stored": [row["bytes"] for row in by_size], "content": [row["contentBytes"] for row in by_size]}
    labels = [row["topic"] for row in by_size]
    note = f"the {_SHOWN_TOPICS} largest topics" if len(by_size) == _SHOWN_TOPICS else ""
    plot = BarPlot(title="Bytes of each topic", file="bytes.svg", labels=labels, series=series, unit="bytes", note=note)
    return [plot] if by_size else []


def _hours_plot(found: Sequence[ProfileSummary]) -> list[Section]:
    """Return a plot of hourly records for the largest topics, limited to the latest hours to keep it small."""
    sums: Counter[str] = Counter()
    for each in found:
        if each.hours:
            sums[each.topic] += each.known
    names = sorted(sums, key=lambda topic: (-sums[topic], topic))[:_SHOWN_LINES]
    if not names:
        return []
    shown = sorted(set(chain.from_iterable(each.hours for each in found)))[-SHOWN_HOURS:]
    counts = {hour: [0] * len(names) for hour in shown}
    for each in found:
        if each.topic in names:
            for hour in each.hours.keys() & counts.keys():
                counts[hour][names.index(each.topic)] += each.hours[hour]
    return [by_hour("Records an hour", "records.svg", "records an hour", names, counts)]


def _codecs(found: Iterable[ProfileSummary]) -> Table:
    sums: dict[tuple[str, str], Counter[str]] = {}
    for each in found:
        for row in each.codecs:
            counts = {name: row[name] for name in ("records", "bytes", "contentBytes")}
            sums.setdefault((each.topic, row["codec"]), Counter()).update(counts)
    rows = [
        {"topic": topic, "codec": codec, "records": each["records"], "bytes": each["bytes"],
         "ratio": each["contentBytes"] / each["bytes"]}
        for (topic, codec), each in sorted(sums.items())
    ]  # fmt: skip
    return _table("Codecs", ("topic", "codec", "records", "bytes", "ratio"), rows[:REPORT_ROWS], len(rows))


def _profile(found: Sequence[ProfileSummary]) -> Table:
    def order(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return -row["bytes"], row["topic"], row["partition"], row["hourMs"] is not None, row["hourMs"]

    rows = sorted(chain.from_iterable(each.largest for each in found), key=order)[:REPORT_ROWS]
    shown = [{**row, "hour": row["hourMs"]} for row in rows]
    total = sum(each.rows for each in found)
    return evolve(
        _table("Partitions and hours, the largest first", _SHOWN_PROFILE, shown, total), kinds={"hour": "time"}
    )


def _problems(found: Sequence[ProfileSummary]) -> Table:
    rows = [row for each in found for row in each.problems][:REPORT_ROWS]
    return _table("Problems", PROBLEMS.names, rows, sum(each.problem_count for each in found))
