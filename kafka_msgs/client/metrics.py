"""Client metrics with Kafka's names, returned by ``client.metrics()``.

Totals count from the start. Rates, averages and maxima cover the last 30 to 60 seconds, like Kafka's
``metrics.sample.window.ms`` with two samples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

__all__ = ["ClientMetrics"]

WINDOW: Final = 30.0

Gauge: TypeAlias = Callable[[str | None], Mapping[str, float]]
"""A function that returns current values by metric name, for one topic or, with None, for the client."""


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


class _RecordMetrics:
    """The metrics of the records of a client, or of one topic."""

    def __init__(self, now: float) -> None:
        self.totals = dict.fromkeys(
            (
                "record-send-total", "record-error-total", "record-retry-total", "byte-total", "records-consumed-total",
                "bytes-consumed-total",
            ), 0.0
        )  # fmt: skip
        self.windows = {name: _Window(now) for name in ("records", "bytes", "errors", "consumed", "fetched")}

    def written(self, records: int, size: int, attempts: int, now: float) -> None:
        self.totals["record-send-total"] += records
        self.totals["record-retry-total"] += records * attempts
        self.totals["byte-total"] += size
        self.windows["records"].add(records, now)
        self.windows["bytes"].add(size, now)

    def failed(self, records: int, now: float) -> None:
        self.totals["record-error-total"] += records
        self.windows["errors"].add(records, now)

    def fetched(self, records: int, size: int, now: float) -> None:
        self.totals["records-consumed-total"] += records
        self.totals["bytes-consumed-total"] += size
        self.windows["consumed"].add(records, now)
        self.windows["fetched"].add(size, now)

    def snapshot(self, now: float) -> dict[str, float]:
        read = {name: window.read(now) for name, window in self.windows.items()}
        return {
            **self.totals,
            "record-send-rate": _sum_rate(read["records"]),
            "record-error-rate": _sum_rate(read["errors"]),
            "byte-rate": _sum_rate(read["bytes"]),
            "records-consumed-rate": _sum_rate(read["consumed"]),
            "bytes-consumed-rate": _sum_rate(read["fetched"]),
            "fetch-size-avg": _average(read["fetched"]),
            "fetch-size-max": read["fetched"][2],
        }


class ClientMetrics:
    """Hooks that count events. The flows of one client call them; any thread may call ``snapshot``."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        now = clock()
        self._totals = dict.fromkeys(
            (
                "connection-creation-total", "connection-close-total", "request-total", "response-total",
                "outgoing-byte-total", "incoming-byte-total", "commit-total", "rebalance-total",
            ), 0.0
        )  # fmt: skip
        self._connections = 0
        self._windows = {
            name: _Window(now) for name in ("created", "closed", "sent", "received", "latency", "throttle", "commits")
        }
        self._records = _RecordMetrics(now)
        self._topics: dict[str, _RecordMetrics] = {}
        self._gauges: list[Gauge] = []

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

    def batch_written(
        self, topic: str, partition: int, records: int, size: int, offset: int, attempts: int, seconds: float
    ) -> None:
        """See ``ClientHooks``."""
        for each in self._of(topic):
            each.written(records, size, attempts, self._clock())

    def batch_failed(self, topic: str, partition: int, records: int, error: Exception) -> None:
        """See ``ClientHooks``."""
        for each in self._of(topic):
            each.failed(records, self._clock())

    def fetched(self, topic: str, partition: int, records: int, size: int, lag: int) -> None:
        """See ``ClientHooks``."""
        for each in self._of(topic):
            each.fetched(records, size, self._clock())

    def group_changed(
        self, group_id: str, member_id: str, generation: int, assigned: Collection[tuple[str, int]]
    ) -> None:
        """See ``ClientHooks``."""
        self._totals["rebalance-total"] += 1

    def offsets_committed(
        self, group_id: str, offsets: Mapping[tuple[str, int], int], seconds: float, error: Exception | None
    ) -> None:
        """See ``ClientHooks``."""
        self._totals["commit-total"] += 1
        self._windows["commits"].add(seconds * 1000, self._clock())

    def add_gauge(self, gauge: Gauge) -> None:
        """Add a function that returns current values by metric name. The snapshot contains their maximum."""
        self._gauges.append(gauge)

    def remove_gauge(self, gauge: Gauge) -> None:
        """Remove a function."""
        self._gauges = [each for each in self._gauges if each != gauge]

    def topic_snapshot(self, topic: str) -> dict[str, float]:
        """Return the metrics of one topic, with Kafka's names. They are zero for a topic without records."""
        now = self._clock()
        return {**(self._topics.get(topic) or _RecordMetrics(now)).snapshot(now), **self._current(topic)}

    def snapshot(self) -> dict[str, float]:
        """Return the metrics with Kafka's names. Latencies are in ms, sizes in bytes.

        They belong to Kafka's groups of client, producer, consumer fetch and consumer coordinator metrics.
        """
        now = self._clock()
        read = {name: window.read(now) for name, window in self._windows.items()}
        sent, received, latency, throttle = (read[each] for each in ("sent", "received", "latency", "throttle"))
        batches = self._records.windows["bytes"].read(now)
        return {
            **self._totals,
            **self._records.snapshot(now),
            "connection-count": float(self._connections),
            "connection-creation-rate": _rate(read["created"]),
            "connection-close-rate": _rate(read["closed"]),
            "request-rate": _rate(sent),
            "request-size-avg": _average(sent),
            "request-size-max": sent[2],
            "response-rate": _rate(received),
            "outgoing-byte-rate": _sum_rate(sent),
            "incoming-byte-rate": _sum_rate(received),
            "request-latency-avg": _average(latency),
            "request-latency-max": latency[2],
            "throttle-time-avg": _average(throttle),
            "throttle-time-max": throttle[2],
            "batch-size-avg": _average(batches),
            "batch-size-max": batches[2],
            "commit-rate": _rate(read["commits"]),
            "commit-latency-avg": _average(read["commits"]),
            "commit-latency-max": read["commits"][2],
            **self._current(None),
        }

    def _of(self, topic: str) -> tuple[_RecordMetrics, _RecordMetrics]:
        """Return the metrics that the records of a topic count in."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = _RecordMetrics(self._clock())
        return self._records, found

    def _current(self, topic: str | None) -> dict[str, float]:
        found: dict[str, float] = {}
        for gauge in self._gauges:
            for name, value in gauge(topic).items():
                found[name] = max(value, found.get(name, value))
        return found

    def _count(self, total: str, window: str, value: float) -> None:
        self._totals[total] += 1
        self._windows[window].add(value, self._clock())


def _rate(window: tuple[int, float, float, float]) -> float:
    return window[0] / window[3]


def _sum_rate(window: tuple[int, float, float, float]) -> float:
    return window[1] / window[3]


def _average(window: tuple[int, float, float, float]) -> float:
    return window[1] / window[0] if window[0] else 0.0
