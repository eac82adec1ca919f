"""Client metrics with Kafka's names, returned by ``client.metrics()``.

Totals count from the start. Rates, averages and maxima cover the last 30 to 60 seconds, like Kafka's
``metrics.sample.window.ms`` with two samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["ClientMetrics"]

WINDOW: Final = 30.0


class _Window:
    """Count, sum and maximum of values in the current window and the previous one."""

    __slots__ = ("_before", "_began", "_now")

    def __init__(self, now: float) -> None:
        self._began = now
        self._now = (0, 0.0, 0.0)
        self._before: tuple[int, float, float] | None = None

    def add(self, value: float, now: float) -> None:
        self._roll(now)
        count, total, highest = self._now
        self._now = count + 1, total + value, max(highest, value)

    def read(self, now: float) -> tuple[int, float, float, float]:
        """Return count, sum, maximum and length in seconds."""
        self._roll(now)
        before = self._before or (0, 0.0, 0.0)
        length = now - self._began + (WINDOW if self._before is not None else 0.0)
        count, total, highest = (self._now[0] + before[0], self._now[1] + before[1], max(self._now[2], before[2]))
        return count, total, highest, max(length, 1.0)

    def _roll(self, now: float) -> None:
        windows = int((now - self._began) / WINDOW)
        if windows > 0:
            self._before = self._now if windows == 1 else (0, 0.0, 0.0)
            self._now = (0, 0.0, 0.0)
            self._began += windows * WINDOW


class ClientMetrics:
    """Hooks that count events. The flows of one client call them; any thread may call ``snapshot``."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        now = clock()
        self._totals = dict.fromkeys(
            ("connection-creation-total", "connection-close-total", "request-total", "response-total"), 0.0
        ) | dict.fromkeys(("outgoing-byte-total", "incoming-byte-total"), 0.0)
        self._connections = 0
        self._windows = {
            name: _Window(now) for name in ("created", "closed", "sent", "received", "latency", "throttle")
        }

    def connected(self, address: str, broker_id: int | None, seconds: float) -> None:
        """See ``ClientHooks``."""
        self._connections += 1
        self._count("connection-creation-total", "created", 1.0)

    def disconnected(self, address: str, broker_id: int | None, error: Exception | None) -> None:
        """See ``ClientHooks``."""
        self._connections = max(0, self._connections - 1)
        self._count("connection-close-total", "closed", 1.0)

    def request_sent(self, address: str, broker_id: int | None, api: str, version: int, size: int) -> None:
        """See ``ClientHooks``."""
        self._totals["outgoing-byte-total"] += size
        self._count("request-total", "sent", size)

    def response_received(
        self, address: str, broker_id: int | None, api: str, version: int, size: int, queued: float, waited: float
    ) -> None:
        """See ``ClientHooks``."""
        self._totals["incoming-byte-total"] += size
        self._count("response-total", "received", size)
        self._windows["latency"].add((queued + waited) * 1000, self._clock())

    def throttled(self, address: str, broker_id: int | None, seconds: float) -> None:
        """See ``ClientHooks``."""
        self._windows["throttle"].add(seconds * 1000, self._clock())

    def snapshot(self) -> dict[str, float]:
        """Return the metrics with Kafka's names (group ``client-metrics``). Latencies are in ms, sizes in bytes."""
        now = self._clock()
        read = {name: window.read(now) for name, window in self._windows.items()}
        sent, received, latency, throttle = (read[each] for each in ("sent", "received", "latency", "throttle"))
        return {
            **self._totals,
            "connection-count": float(self._connections),
            "connection-creation-rate": _rate(read["created"]),
            "connection-close-rate": _rate(read["closed"]),
            "request-rate": _rate(sent),
            "request-size-avg": _average(sent),
            "request-size-max": sent[2],
            "response-rate": _rate(received),
            "outgoing-byte-rate": sent[1] / sent[3],
            "incoming-byte-rate": received[1] / received[3],
            "request-latency-avg": _average(latency),
            "request-latency-max": latency[2],
            "throttle-time-avg": _average(throttle),
            "throttle-time-max": throttle[2],
        }

    def _count(self, total: str, window: str, value: float) -> None:
        self._totals[total] += 1
        self._windows[window].add(value, self._clock())


def _rate(window: tuple[int, float, float, float]) -> float:
    return window[0] / window[3]


def _average(window: tuple[int, float, float, float]) -> float:
    return window[1] / window[0] if window[0] else 0.0
