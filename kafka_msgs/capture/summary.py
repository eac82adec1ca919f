"""Capture statistics: exchanges, latencies, sizes, errors and clients, by API and version.

This module defines the counts and the quantiles. The Spark job computes the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from attrs import define, field, frozen

from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.exchanges import Exchange
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.error_codes import ErrorCode

__all__ = ["QUANTILES", "ApiSummary", "CaptureSummary", "CaptureTally", "quantile", "summarize"]

QUANTILES: Final = (0.5, 0.9, 0.99)


@frozen(kw_only=True)
class ApiSummary:
    """The exchanges of one API and version.

    Times are in microseconds, or None without responses; ``latencies`` correspond to ``QUANTILES``. Sizes are totals in
    bytes. ``errors`` counts nonzero error codes by name, or by number for codes without a name in the release.
    ``clients`` counts exchanges by client id. ``problems`` counts the exchanges that could not be decoded completely.
    """

    api_key: int
    api: str | None
    version: int
    exchanges: int
    answered: int
    latencies: tuple[float | None, ...]
    longest: int | None
    request_bytes: int
    response_bytes: int
    problems: int
    errors: dict[str, int]
    clients: dict[str | None, int]


@frozen(kw_only=True)
class CaptureSummary:
    """The content of a capture: its APIs by key and version, and its faults, counted and in bytes, by kind."""

    apis: tuple[ApiSummary, ...]
    faults: dict[FaultKind, int]
    fault_bytes: dict[FaultKind, int]

    @property
    def damaged(self) -> bool:
        """Whether bytes are missing or damaged."""
        return any(kind.is_damage for kind in self.faults) or any(api.problems for api in self.apis)


@define
class _Tally:
    exchanges: int = 0
    latencies: list[int] = field(factory=list)
    request_bytes: int = 0
    response_bytes: int = 0
    problems: int = 0
    errors: Counter[int] = field(factory=Counter)
    clients: Counter[str | None] = field(factory=Counter)

    def add(self, exchange: Exchange) -> None:
        self.exchanges += 1
        self.request_bytes += exchange.request.size
        if exchange.response is not None and exchange.latency_us is not None:
            self.latencies.append(exchange.latency_us)
            self.response_bytes += exchange.response.size
        self.problems += bool(exchange.problems)
        self.errors.update(error.code for error in exchange.errors)
        self.clients[exchange.client_id] += 1

    def summary(self, api_key: int, api: str | None, version: int) -> ApiSummary:
        times = sorted(self.latencies)
        return ApiSummary(
            api_key=api_key,
            api=api,
            version=version,
            exchanges=self.exchanges,
            answered=len(times),
            latencies=tuple(quantile(times, each) for each in QUANTILES),
            longest=times[-1] if times else None,
            request_bytes=self.request_bytes,
            response_bytes=self.response_bytes,
            problems=self.problems,
            errors={_error_name(code): count for code, count in sorted(self.errors.items())},
            clients=dict(self.clients.most_common()),
        )


class CaptureTally:
    """A counter of items from ``read_exchanges``; it stores one number per exchange."""

    def __init__(self) -> None:
        self._apis: dict[tuple[int, int], _Tally] = {}
        self._names: dict[int, str | None] = {}
        self._faults: Counter[FaultKind] = Counter()
        self._fault_bytes: Counter[FaultKind] = Counter()

    def add(self, item: Item) -> None:
        """Count an exchange or a fault."""
        if isinstance(item, CaptureFault):
            self._faults[item.kind] += 1
            self._fault_bytes[item.kind] += item.size
        else:
            self._names[item.api_key] = item.api
            self._apis.setdefault((item.api_key, item.version), _Tally()).add(item)

    def summary(self) -> CaptureSummary:
        """Return the statistics of the added items."""
        found = sorted(self._apis)
        apis = tuple(self._apis[each].summary(each[0], self._names[each[0]], each[1]) for each in found)
        return CaptureSummary(apis=apis, faults=dict(self._faults), fault_bytes=dict(self._fault_bytes))


def summarize(items: Iterable[Item]) -> CaptureSummary:
    """Return the statistics of a capture, from the items of ``read_exchanges``."""
    tally = CaptureTally()
    for item in items:
        tally.add(item)
    return tally.summary()


def quantile(ascending: Sequence[int], share: float) -> float | None:
    """Return the interpolated quantile for a share of the values, or None without values."""
    if not ascending:
        return None
    place = (len(ascending) - 1) * share
    low = int(place)
    below, above = next(pairwise(ascending[low : low + 2]), (ascending[low], ascending[low]))
    return below + (above - below) * (place - low)


def _error_name(code: int) -> str:
    known = ErrorCode.from_code(code)
    return str(code) if known is None else known.name
