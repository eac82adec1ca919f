"""The report of ``kafka-msgs capture`` and of the job ``capture-report``: APIs, latencies, clients and problems.

Defines the content of the report. ``kafka_msgs.report`` renders it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from kafka_msgs.analysis.capture_stats import PROBLEM_COLUMNS, QUANTILES, TABLES, CaptureTables, Rows
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.report import LinePlot, Report, ReportPart, Section, report_of
from kafka_msgs.report.sections.clients import FEWEST, client_part
from kafka_msgs.report.sections.table_building import bars, first_rows

__all__ = ["captures_report", "highest_versions"]

_MILLIS: Final = 1000
_SHOWN_APIS: Final = 12
_SHOWN_LINES: Final = 6
_SHOWN_TIMES: Final = 300


def captures_report(found: CaptureTables) -> Report:
    """Return the report on captures."""
    summary = [_with_sound_quantiles(row) for row in found.tables["summary"]]
    kinds: Rows = [{"kind": kind, "count": n, "bytes": size} for kind, (n, size) in sorted(found.kinds.items())]
    title = "Apis and versions; times in microseconds, quantiles of ten answers or more (p99: a hundred)"
    unread = "Bytes that are not an exchange, and exchanges that could not be decoded"
    sections: list[Section | ReportPart] = [
        first_rows(title, TABLES["summary"], summary),
        *bars(
            "Latency",
            "latency.svg",
            [row for row in summary if row["answered"]],
            lambda row: f"{row['api'] or row['apiKey']} v{row['version']}",
            {name.removesuffix("Us"): name for name in (*QUANTILES, "maxUs")},
            "latency in microseconds",
            most=_SHOWN_APIS,
            which="that were called most",
            least=1,
        ),
        *_time_plot(found.tables["seconds"]),
        first_rows("Error codes in responses", TABLES["errors"], found.tables["errors"]),
        _clients_part(found),
        first_rows(unread, ("kind", "count", "bytes"), kinds),
        first_rows("Problems", PROBLEM_COLUMNS, found.problems, sum(row["count"] for row in kinds)),
    ]
    return report_of("What clients asked brokers", sections)


def highest_versions() -> dict[str, int]:
    """Return the highest version of each API in this release, by API name."""
    infos = (cls.INFO for cls in iter_message_classes())
    return {each.name.removesuffix("Request"): each.versions.highest for each in infos if each.name.endswith("Request")}


def _clients_part(found: CaptureTables) -> ReportPart:
    versions = [row for row in found.tables["clients"] if row["api"] is not None]
    return client_part(found.tables["slowClients"], versions, found.slowest, highest_versions())


def _with_sound_quantiles(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the quantiles of too few answers."""
    return {**row, **{name: None for name in QUANTILES if row["answered"] < FEWEST[name.removesuffix("Us")]}}


def _time_plot(seconds: Rows) -> list[Section]:
    """Return a plot of exchanges over time for the most called APIs, with a bounded number of points."""
    sums: Counter[str] = Counter()
    for row in seconds:
        if row["api"] is not None:
            sums[row["api"]] += row["exchanges"]
    names = sorted(sums, key=lambda name: (-sums[name], name))[:_SHOWN_LINES]
    if not names:
        return []
    first, last = seconds[0]["secondMs"], seconds[-1]["secondMs"]
    step = _MILLIS * (1 + (last - first) // (_SHOWN_TIMES * _MILLIS))
    times = range(first, last + 1, step)
    series = {name: [0] * len(times) for name in names}
    for row in seconds:
        if row["api"] in series:
            series[row["api"]][(row["secondMs"] - first) // step] += row["exchanges"]
    unit = f"exchanges in {step // _MILLIS} s"
    return [LinePlot(title="Exchanges over time", file="exchanges.svg", x=list(times), series=series, unit=unit)]
