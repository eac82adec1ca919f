"""Slow clients: latencies, throttling, errors and old versions per client, and the slowest exchanges.

Latencies exclude requests that wait on purpose, which a broker holds until it has a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafka_msgs.report.model import ReportPart, Section
from kafka_msgs.report.sections.table_building import Row, Rows, bars, grouped, largest_first, metrics_of, table_from

__all__ = ["FEWEST", "WAITING", "client_part"]

WAITING: Final = ("Fetch", "FetchSnapshot", "JoinGroup", "ShareFetch", "SyncGroup")
"""The APIs whose requests wait on purpose, for data or for other group members."""

_MICROS: Final = 1_000_000
_MILLIS: Final = 1000
_SHOWN_BARS: Final = 12
_SHOWN_APIS: Final = 3
_LATENCIES: Final = ("p50", "p90", "p99", "max")
FEWEST: Final = {"p50": 10, "p90": 10, "p99": 100, "max": 1}
"""The number of latencies that a quantile needs to be shown."""
_CLIENT: Final = (
    "clientId", "software", "exchanges", "answered", "measured", *_LATENCIES, "throttled", "throttle", "errors",
    "problems", "hosts", "connections", "oldVersions",
)  # fmt: skip
_METRICS: Final = {
    "kafka_client_exchanges": "exchanges",
    **{f"kafka_client_latency_{name}_seconds": name for name in _LATENCIES},
    "kafka_client_throttle_seconds": "throttle",
    "kafka_client_errors": "errors",
    "kafka_client_problems": "problems",
}
_SLOWEST: Final = ("latency", "clientId", "clientHost", "api", "version", "at", "requestSize", "responseSize")
_NOTE: Final = (
    f"latencies of the measured: answered, without the apis that wait on purpose ({', '.join(WAITING)}); quantiles "
    "of ten or more (p99: a hundred); oldVersions: the lowest versions, of "
    "those that are furthest below the highest one of this release"
)


def client_part(clients: Rows, versions: Rows, slowest: Rows, highest: Mapping[str, int]) -> ReportPart:
    """Return the part about clients, the slowest first.

    A row of ``clients`` is a client id with a ``software``: ``hosts``, ``connections``, ``exchanges``, ``answered``;
    ``p50Us`` to ``maxUs``, in microseconds, of the ``measured`` exchanges, which exclude ``WAITING``; ``throttled``
    (number of throttled responses), ``throttleMs`` (their total), ``errors`` and ``problems``. A row of ``versions``
    has ``clientId``, ``api`` and ``version``. A row of ``slowest`` is an exchange: ``clientId``, ``clientHost``,
    ``api``, ``version``, ``latencyUs``, ``requestAtUs``, ``requestSize``, ``responseSize``. ``highest`` maps APIs to
    their highest version.
    """
    old = _old_versions(versions, highest)
    found = [_client(row, old.get(row["clientId"], "")) for row in clients]
    by_latency = largest_first(found, "max", "clientId", "software")
    exchanges = [{**row, "latency": row["latencyUs"] / _MICROS, "at": row["requestAtUs"] // _MILLIS} for row in slowest]
    sections: list[Section] = [
        table_from("Clients, the slowest first", by_latency, _CLIENT, _NOTE),
        *_plot(by_latency),
        table_from("The slowest exchanges that do not wait on purpose", exchanges, _SLOWEST),
    ]
    return ReportPart(tuple(sections), metrics_of(by_latency, _METRICS, client="clientId"))


def _client(row: Row, old: str) -> dict[str, Any]:
    times = {name: _seconds(row, name) for name in _LATENCIES}
    throttle = row.get("throttleMs")
    return {**row, **times, "throttle": None if throttle is None else throttle / _MILLIS, "oldVersions": old}


def _seconds(row: Row, name: str) -> float | None:
    """Return a latency in seconds, or None for a quantile of too few latencies."""
    micros = row.get(f"{name}Us")
    return None if micros is None or row["measured"] < FEWEST[name] else micros / _MICROS


def _old_versions(rows: Rows, highest: Mapping[str, int]) -> dict[Any, str]:
    """Return, as text, the versions of each client that are furthest below the highest versions."""
    found = {}
    for (client,), each in grouped(rows, "clientId").items():
        lowest = {api: min(row["version"] for row in some) for (api,), some in grouped(each, "api").items()}
        gaps = {api: highest[api] - version for api, version in lowest.items() if highest.get(api, -1) > version}
        worst = sorted(gaps, key=lambda api: (-gaps[api], api))[:_SHOWN_APIS]
        found[client] = ", ".join(f"{api} v{lowest[api]} of v{highest[api]}" for api in worst)
    return found


def _plot(clients: Rows) -> list[Section]:
    shown = [
        {"clientId": row["clientId"]} | {name: row[name] and row[name] * _MILLIS for name in _LATENCIES}
        for row in clients
        if row["max"] is not None
    ]
    return bars(
        "Latency of the slowest clients",
        "clients.svg",
        shown,
        lambda row: str(row["clientId"]),
        {name: name for name in _LATENCIES},
        "latency in milliseconds",
        most=_SHOWN_BARS,
        least=_MILLIS / _MICROS,
    )
