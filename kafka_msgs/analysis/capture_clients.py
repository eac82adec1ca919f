"""Client statistics of captures without Spark, the same as in the job ``capture-report``.

This module counts. ``kafka_msgs.report.sections.clients`` defines the report part.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush, heappushpop
from typing import Any, Final

from attrs import define, field

from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.exchanges import Exchange
from kafka_msgs.capture.summary import QUANTILES, CaptureSummary, quantile
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.report import Report, ReportPart, Table, report_of
from kafka_msgs.report.sections.clients import WAITING, client_part

__all__ = ["ClientTally", "captures_report", "highest_versions"]

_SHOWN: Final = 30
"""The number of slowest exchanges that are kept."""


def highest_versions() -> dict[str, int]:
    """Return the highest version of each API in this release, by API name."""
    infos = (cls.INFO for cls in iter_message_classes())
    return {each.name.removesuffix("Request"): each.versions.highest for each in infos if each.name.endswith("Request")}


@define
class _Client:
    hosts: set[str] = field(factory=set)
    connections: set[tuple[str, int]] = field(factory=set)
    exchanges: int = 0
    answered: int = 0
    prompt: list[int] = field(factory=list)
    throttled: int = 0
    throttle_ms: int = 0
    errors: int = 0
    problems: int = 0

    def add(self, exchange: Exchange, connection: tuple[str, int]) -> None:
        throttle = exchange.throttle_ms or 0
        self.hosts.add(exchange.connection.client.host)
        self.connections.add(connection)
        self.exchanges += 1
        self.answered += exchange.response is not None
        self.prompt += [exchange.latency_us] if _is_prompt(exchange) and exchange.latency_us is not None else []
        self.throttled += throttle > 0
        self.throttle_ms += throttle
        self.errors += len(exchange.errors)
        self.problems += bool(exchange.problems)

    def merge(self, other: _Client) -> None:
        self.hosts |= other.hosts
        self.connections |= other.connections
        self.prompt += other.prompt
        for name in ("exchanges", "answered", "throttled", "throttle_ms", "errors", "problems"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def row(self) -> dict[str, Any]:
        times = sorted(self.prompt)
        return {
            "hosts": len(self.hosts),
            "connections": len(self.connections),
            "exchanges": self.exchanges,
            "answered": self.answered,
            "measured": len(times),
            **{f"p{share * 100:g}Us": quantile(times, share) for share in QUANTILES},
            "maxUs": times[-1] if times else None,
            "throttled": self.throttled,
            "throttleMs": self.throttle_ms,
            "errors": self.errors,
            "problems": self.problems,
        }


def _is_prompt(exchange: Exchange) -> bool:
    return exchange.api not in WAITING


class ClientTally:
    """Counts the items of ``read_exchanges`` as they are added, and keeps one number per exchange."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, int, str | None], _Client] = {}
        self._software: dict[tuple[str, int], str] = {}
        self._versions: set[tuple[str | None, str, int]] = set()
        self._slowest: list[tuple[int, int, dict[str, Any]]] = []
        self._count = 0

    def add(self, file: str, item: Item) -> None:
        """Count an exchange of a file; a fault does not count."""
        if not isinstance(item, Exchange):
            return
        connection = file, item.connection.number
        if item.client_software is not None:
            known = self._software.setdefault(connection, item.client_software)
            self._software[connection] = min(known, item.client_software)
        if item.api is not None:
            self._versions.add((item.client_id, item.api, item.version))
        self._clients.setdefault((*connection, item.client_id), _Client()).add(item, connection)
        self._keep(item)

    def _keep(self, item: Exchange) -> None:
        """Keep an exchange if it is among the slowest ones."""
        if item.latency_us is None or item.response is None or not _is_prompt(item):
            return
        self._count += 1
        row = {
            "clientId": item.client_id,
            "clientHost": item.connection.client.host,
            "api": item.api,
            "version": item.version,
            "latencyUs": item.latency_us,
            "requestAtUs": item.request.time_us,
            "requestSize": item.request.size,
            "responseSize": item.response.size,
        }
        entry = item.latency_us, -self._count, row
        if len(self._slowest) < _SHOWN:
            heappush(self._slowest, entry)
        else:
            heappushpop(self._slowest, entry)

    def rows(self) -> list[dict[str, Any]]:
        """Return the statistics per client id and software, with the column names of the table ``slowClients``."""
        merged: dict[tuple[str | None, str | None], _Client] = {}
        for (file, number, client_id), client in self._clients.items():
            merged.setdefault((client_id, self._software.get((file, number))), _Client()).merge(client)
        return [{"clientId": each, "software": software} | client.row() for (each, software), client in merged.items()]

    def part(self) -> ReportPart:
        """Return the report part about these clients."""
        versions = [dict(zip(("clientId", "api", "version"), each, strict=True)) for each in self._versions]
        slowest = [row for _, _, row in sorted(self._slowest, key=lambda entry: entry[:2], reverse=True)]
        return client_part(self.rows(), versions, slowest, highest_versions())


def captures_report(summary: CaptureSummary, clients: ClientTally) -> Report:
    """Return the report on captures: APIs, clients, and items that are not exchanges."""
    apis = Table("Apis and versions", _APIS, tuple(_api_rows(summary)))
    faults = tuple((kind.value, count, summary.fault_bytes.get(kind, 0)) for kind, count in summary.faults.items())
    unread = Table("Bytes that are not an exchange", ("kind", "count", "bytes"), faults)
    return report_of("What clients asked brokers", [apis, clients.part(), unread])


_APIS: Final = (
    "apiKey", "api", "version", "exchanges", "answered", "maxUs", "requestBytes", "responseBytes", "problems", "errors",
)  # fmt: skip


def _api_rows(summary: CaptureSummary) -> Iterator[tuple[Any, ...]]:
    for each in sorted(summary.apis, key=lambda api: -api.exchanges):
        yield (
            each.api_key,
            each.api,
            each.version,
            each.exchanges,
            each.answered,
            each.longest,
            each.request_bytes,
            each.response_bytes,
            each.problems,
            sum(each.errors.values()),
        )
