"""The statistics of captures, as a reducer over the rows of exchanges and faults.

``kafka-msgs capture`` and the job ``capture-report`` run this reducer. Counts are kept by connection, client, API and
version, with one number per exchange for exact quantiles; all tables are sums of them. The order of rows, ranges and
files has no influence on the tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from attrs import define, field, frozen

from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.report.sections.clients import WAITING

__all__ = [
    "COLUMNS",
    "PROBLEM_COLUMNS",
    "QUANTILES",
    "UNDECODED",
    "CaptureStats",
    "CaptureTables",
    "capture_row",
    "quantile",
    "summarize",
]

QUANTILES: Final = (0.5, 0.9, 0.99)
UNDECODED: Final = "undecoded"
"""The kind of problem of an exchange that could not be decoded. The other kinds are those of ``FaultKind``."""
_PLACE: Final = ("file", "connection", "clientHost", "clientPort", "serverHost", "serverPort")
_API: Final = ("apiKey", "api", "version")
COLUMNS: Final = (
    *_PLACE, *_API, "clientId", "requestAtUs", "latencyUs", "requestSize", "responseSize", "errors", "throttleMs",
    "clientSoftware", "problem", "_error", "_errorKind", "_errorBytes",
)  # fmt: skip
"""The columns of the source ``kafka-capture`` that the reducer needs."""
PROBLEM_COLUMNS: Final = (*_PLACE, *_API, "kind", "bytes", "problem")
_SLOWEST: Final = ("latencyUs", "requestAtUs", "clientId", "clientHost", *_API[1:], "requestSize", "responseSize")
_SHOWN: Final = 30
"""The number of slowest exchanges that are kept."""
_PROBLEMS: Final = 50
"""The number of problems that are kept."""
_SECOND_US: Final = 1_000_000
_MILLIS: Final = 1000

Row = Mapping[str, Any]
Rows = list[dict[str, Any]]


def capture_row(file: str, item: Item) -> dict[str, Any]:
    """Return an exchange or a fault of a file as a row with ``COLUMNS``, the same as of ``kafka-capture``."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row["file"] = file
    if item.connection is not None:
        client, server = item.connection.client, item.connection.server
        place = item.connection.number, client.host, client.port, server.host, server.port
        row.update(zip(_PLACE[1:], place, strict=True))
    if isinstance(item, CaptureFault):
        return row | {"_error": str(item), "_errorKind": item.kind.value, "_errorBytes": item.size}
    return row | {
        "apiKey": item.api_key,
        "api": item.api,
        "version": item.version,
        "clientId": item.client_id,
        "requestAtUs": item.request.time_us,
        "latencyUs": item.latency_us,
        "requestSize": item.request.size,
        "responseSize": item.response and item.response.size,
        "errors": [{"code": error.code, "name": error.name} for error in item.errors],
        "throttleMs": item.throttle_ms,
        "clientSoftware": item.client_software,
        "problem": "; ".join(problem.reason for problem in item.problems) or None,
    }


def problem_of(row: Row) -> dict[str, Any] | None:
    """Return the problem of a row with ``PROBLEM_COLUMNS``, or None for a decoded exchange."""
    problem = row["_error"] or row["problem"]
    if problem is None:
        return None
    size = row["_errorBytes"] if row["_error"] else row["requestSize"] + (row["responseSize"] or 0)
    found = {"kind": row["_errorKind"] or UNDECODED, "bytes": size, "problem": problem}
    return {name: found.get(name, row.get(name)) for name in PROBLEM_COLUMNS}


class _Key(NamedTuple):
    """The finest group of exchanges that is counted."""

    file: str
    connection: int
    host: str
    client_id: str | None
    api_key: int
    api: str | None
    version: int


@define
class _Counts:
    """The counts of exchanges: sums and maxima by name, the latencies, and the error codes with their names."""

    sums: Counter[str] = field(factory=Counter)
    largest: dict[str, int] = field(factory=dict)
    latencies: list[int] = field(factory=list)
    errors: Counter[tuple[int, str | None]] = field(factory=Counter)

    def add(self, row: Row) -> None:
        throttle, response = row["throttleMs"] or 0, row["responseSize"]
        self.sums["exchanges"] += 1
        self.sums["requestBytes"] += row["requestSize"]
        self.sums["responseBytes"] += response or 0
        self.sums["throttled"] += throttle > 0
        self.sums["throttleMs"] += throttle
        self.sums["problems"] += row["problem"] is not None
        self._keep("maxRequestSize", row["requestSize"])
        if response is not None:
            self._keep("maxResponseSize", response)
        if row["latencyUs"] is not None:
            self.latencies.append(row["latencyUs"])
        self.errors.update((error["code"], error["name"]) for error in row["errors"])

    @classmethod
    def from_row(
        cls, sums: dict[str, int], largest: dict[str, int], latencies: list[int], errors: list[Any]
    ) -> _Counts:
        named = {(code, name): count for code, name, count in errors}
        return cls(Counter(sums), largest, latencies, Counter(named))

    def merge(self, other: _Counts) -> None:
        self.sums.update(other.sums)
        for name, value in other.largest.items():
            self._keep(name, value)
        self.latencies += other.latencies
        self.errors.update(other.errors)

    def _keep(self, name: str, value: int) -> None:
        self.largest[name] = max(value, self.largest.get(name, value))


@frozen(kw_only=True)
class CaptureTables:
    """The tables of the job without their timestamps, and the data of the report.

    ``slowest`` are the slowest exchanges that do not wait on purpose. ``kinds`` counts the problems and their bytes by
    kind, and ``problems`` are the first ones.
    """

    summary: Rows
    errors: Rows
    clients: Rows
    slow_clients: Rows
    seconds: Rows
    slowest: Rows
    kinds: Mapping[str, tuple[int, int]]
    problems: Rows

    @property
    def damaged(self) -> bool:
        """Whether bytes are missing or damaged."""
        return any(kind == UNDECODED or FaultKind(kind).is_damage for kind in self.kinds)


@define
class CaptureStats:
    """The state of some rows of captures."""

    _counts: dict[_Key, _Counts] = field(factory=dict)
    _software: dict[tuple[str, int], str] = field(factory=dict)
    _seconds: dict[tuple[int, str | None], tuple[int, int | None]] = field(factory=dict)
    _kinds: dict[str, tuple[int, int]] = field(factory=dict)
    _slowest: Rows = field(factory=list)
    _problems: Rows = field(factory=list)

    def add(self, row: Row) -> None:
        """Add a row with ``COLUMNS``."""
        problem = problem_of(row)
        if problem is not None:
            self._add_kind(problem["kind"], (1, problem["bytes"]))
            _keep(self._problems, problem, _problem_key, _PROBLEMS)
        if row["_error"] is None:
            self._add_exchange(row)

    def _add_exchange(self, row: Row) -> None:
        key = _Key(*(row[name] for name in ("file", "connection", "clientHost", "clientId", *_API)))
        self._counts.setdefault(key, _Counts()).add(row)
        if row["clientSoftware"] is not None:
            self._add_software(key[:2], row["clientSoftware"])
        second = row["requestAtUs"] // _SECOND_US * _MILLIS
        self._add_second((second, key.api), (1, row["latencyUs"]))
        if row["latencyUs"] is not None and key.api not in WAITING:
            _keep(self._slowest, {name: row[name] for name in _SLOWEST}, _slowness, _SHOWN)

    def merge(self, later: CaptureStats) -> CaptureStats:
        """Return the state of both. Both operands become unusable."""
        for key, counts in later._counts.items():
            self._counts.setdefault(key, _Counts()).merge(counts)
        for connection, software in later._software.items():
            self._add_software(connection, software)
        for second, count in later._seconds.items():
            self._add_second(second, count)
        for kind, each in later._kinds.items():
            self._add_kind(kind, each)
        for row in later._slowest:
            _keep(self._slowest, row, _slowness, _SHOWN)
        for row in later._problems:
            _keep(self._problems, row, _problem_key, _PROBLEMS)
        return self

    def checkpoint(self) -> str:
        """Return the complete state as JSON."""
        counts = [
            [key, each.sums, each.largest, each.latencies, [[*error, count] for error, count in each.errors.items()]]
            for key, each in self._counts.items()
        ]
        pairs = [[[*key], [*value]] for key, value in self._seconds.items()]
        software = [[*connection, name] for connection, name in self._software.items()]
        return json.dumps([counts, software, pairs, self._kinds, self._slowest, self._problems])

    @classmethod
    def from_checkpoint(cls, text: str) -> CaptureStats:
        """Return the state in a checkpoint."""
        counts, software, seconds, kinds, slowest, problems = json.loads(text)
        return cls(
            counts={_Key(*key): _Counts.from_row(*values) for key, *values in counts},
            software={(file, connection): name for file, connection, name in software},
            seconds={(second, api): (count, longest) for (second, api), (count, longest) in seconds},
            kinds={kind: (count, size) for kind, (count, size) in kinds.items()},
            slowest=slowest,
            problems=problems,
        )

    def finish(self) -> CaptureTables:
        """Return the tables."""
        return CaptureTables(
            summary=self.summary(),
            errors=self.errors(),
            clients=self.clients(),
            slow_clients=self.slow_clients(),
            seconds=self.seconds(),
            slowest=sorted(self._slowest, key=_slowness)[:_SHOWN],
            kinds=self._kinds,
            problems=sorted(self._problems, key=_problem_key)[:_PROBLEMS],
        )

    def summary(self) -> Rows:
        """Return a row for each API and version, the most frequent first."""
        rows = [
            {
                **dict(zip(_API, place, strict=True)),
                "exchanges": counts.sums["exchanges"],
                "answered": len(counts.latencies),
                **_latencies(counts.latencies),
                **{name: counts.sums[name] for name in ("requestBytes", "responseBytes")},
                **{name: counts.largest.get(name) for name in ("maxRequestSize", "maxResponseSize")},
                "problems": counts.sums["problems"],
                "errors": counts.errors.total(),
                "clients": len({key.client_id for key in keys} - {None}),
            }
            for place, keys, counts in self._groups(lambda key: key[-3:])
        ]
        return sorted(rows, key=lambda row: (-row["exchanges"], row["apiKey"], row["version"]))

    def errors(self) -> Rows:
        """Return a row for each error code of an API and version, the most frequent first."""
        rows = [
            {**dict(zip(_API, place, strict=True)), "code": code, "name": name, "count": count}
            for place, _, counts in self._groups(lambda key: key[-3:])
            for (code, name), count in counts.errors.items()
        ]
        return sorted(rows, key=lambda row: (-row["count"], row["apiKey"], row["version"], row["code"]))

    def clients(self) -> Rows:
        """Return a row for each API and version of a client id."""
        rows = [
            {
                **dict(zip(("clientId", *_API), place, strict=True)),
                "exchanges": counts.sums["exchanges"],
                "hosts": len({key.host for key in keys}),
                "maxUs": max(counts.latencies, default=None),
                **{name: counts.sums[name] for name in ("requestBytes", "responseBytes")},
            }
            for place, keys, counts in self._groups(lambda key: key[-4:])
        ]
        return sorted(rows, key=lambda row: _sortable(row[name] for name in ("clientId", "apiKey", "version")))

    def slow_clients(self) -> Rows:
        """Return a row for each client id and software. The software of a connection is the one that it sent."""
        rows = [
            {
                **dict(zip(("clientId", "software"), place, strict=True)),
                "hosts": len({key.host for key in keys}),
                "connections": len({key[:2] for key in keys}),
                "exchanges": counts.sums["exchanges"],
                "answered": len(counts.latencies),
                **self._prompt(keys),
                **{name: counts.sums[name] for name in ("throttled", "throttleMs")},
                "errors": counts.errors.total(),
                "problems": counts.sums["problems"],
            }
            for place, keys, counts in self._groups(lambda key: (key.client_id, self._software.get(key[:2])))
        ]
        return sorted(rows, key=lambda row: _sortable(row[name] for name in ("clientId", "software")))

    def seconds(self) -> Rows:
        """Return a row for each second and API."""
        return [
            {"secondMs": second, "api": api, "exchanges": count, "maxUs": longest}
            for (second, api), (count, longest) in sorted(self._seconds.items(), key=lambda pair: _sortable(pair[0]))
        ]

    def _prompt(self, keys: Iterable[_Key]) -> dict[str, Any]:
        """Return the latencies of the exchanges that do not wait on purpose."""
        times = [latency for key in keys if key.api not in WAITING for latency in self._counts[key].latencies]
        return {"measured": len(times), **_latencies(times)}

    def _groups(
        self, place_of: Callable[[_Key], tuple[Any, ...]]
    ) -> Iterator[tuple[tuple[Any, ...], list[_Key], _Counts]]:
        """Yield each group of keys, with their merged counts."""
        groups: dict[tuple[Any, ...], list[_Key]] = {}
        for key in self._counts:
            groups.setdefault(place_of(key), []).append(key)
        for place, keys in groups.items():
            total = _Counts()
            for key in keys:
                total.merge(self._counts[key])
            yield place, keys, total

    def _add_software(self, connection: tuple[str, int], software: str) -> None:
        self._software[connection] = min(software, self._software.get(connection, software))

    def _add_second(self, second: tuple[int, str | None], more: tuple[int, int | None]) -> None:
        count, longest = self._seconds.get(second, (0, None))
        known = [each for each in (longest, more[1]) if each is not None]
        self._seconds[second] = count + more[0], max(known, default=None)

    def _add_kind(self, kind: str, more: tuple[int, int]) -> None:
        count, size = self._kinds.get(kind, (0, 0))
        self._kinds[kind] = count + more[0], size + more[1]


def summarize(items: Iterable[Item], file: str = "") -> CaptureTables:
    """Return the statistics of a capture file, from the items of ``read_exchanges``."""
    stats = CaptureStats()
    for item in items:
        stats.add(capture_row(file, item))
    return stats.finish()


def _keep(rows: Rows, row: dict[str, Any], key: Callable[[Row], Any], most: int) -> None:
    """Add a row to the first ``most`` rows in an order. At most as many other rows remain."""
    rows.append(row)
    if len(rows) > 2 * most:
        rows[:] = sorted(rows, key=key)[:most]


def _slowness(row: Row) -> tuple[Any, ...]:
    return -row["latencyUs"], *_sortable([row[name] for name in _SLOWEST[1:]])


def _problem_key(row: Row) -> tuple[Any, ...]:
    return _sortable([row["file"], row["connection"]])


def _sortable(values: Iterable[Any]) -> tuple[tuple[bool, Any], ...]:
    """Return a sort key of values of which some may be None."""
    return tuple((each is not None, each) for each in values)


def _latencies(values: Iterable[int]) -> dict[str, float | None]:
    times = sorted(values)
    quantiles = {f"p{share * 100:g}Us": quantile(times, share) for share in QUANTILES}
    return {**quantiles, "maxUs": times[-1] if times else None}


def quantile(ascending: Sequence[int], share: float) -> float | None:
    """Return the interpolated quantile for a share of the values, or None without values."""
    if not ascending:
        return None
    place = (len(ascending) - 1) * share
    low = int(place)
    below, above = next(pairwise(ascending[low : low + 2]), (ascending[low], ascending[low]))
    return below + (above - below) * (place - low)
