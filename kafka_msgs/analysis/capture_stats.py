"""The statistics of captures, as a reducer over the rows of exchanges and faults.

``kafka-msgs capture`` and the job ``capture-report`` run this reducer. Counts are kept by connection, client, API and
version, with one number per exchange for exact quantiles; all tables are sums of them. The order of rows, ranges and
files has no influence on the tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, TypeAlias

from attrs import define, field, frozen

from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.exchanges import Exchange
from kafka_msgs.capture.faults import FaultKind
from kafka_msgs.report.sections.clients import WAITING

__all__ = [
    "ALL_COLUMNS",
    "COLUMNS",
    "FAULT_COLUMNS",
    "PROBLEM_COLUMNS",
    "QUANTILES",
    "TABLES",
    "UNDECODED",
    "CaptureStats",
    "CaptureTables",
    "capture_row",
    "quantile",
    "summarize",
]

QUANTILES: Final = {"p50Us": 0.5, "p90Us": 0.9, "p99Us": 0.99}
"""The columns of quantiles, and their shares."""
UNDECODED: Final = "undecoded"
"""The kind of problem of an undecoded exchange. Faults have their ``FaultKind``."""
_PLACE: Final = ("file", "connection", "clientHost", "clientPort", "serverHost", "serverPort")
_API: Final = ("apiKey", "api", "version")
COLUMNS: Final = (
    *_PLACE, *_API, "clientId", "requestAtUs", "latencyUs", "requestSize", "responseSize", "errors", "throttleMs",
    "clientSoftware", "problem", "_error", "_errorKind", "_errorBytes",
)  # fmt: skip
"""The columns of the source ``kafka-capture`` that the reducer needs."""
_BYTES: Final = ("requestBytes", "responseBytes")
_LATENCIES: Final = (*QUANTILES, "maxUs")
TABLES: Final = {
    "summary": (
        *_API, "exchanges", "answered", *_LATENCIES, *_BYTES, "maxRequestSize", "maxResponseSize", "problems",
        "errors", "clients",
    ),
    "errors": (*_API, "code", "name", "count"),
    "clients": ("clientId", *_API, "exchanges", "hosts", "maxUs", *_BYTES),
    "slowClients": (
        "clientId", "software", "hosts", "connections", "exchanges", "answered", "measured", *_LATENCIES, "throttled",
        "throttleMs", "errors", "problems",
    ),
    "seconds": ("secondMs", "api", "exchanges", "maxUs"),
}  # fmt: skip
"""The columns of the tables."""
PROBLEM_COLUMNS: Final = (*_PLACE, *_API, "kind", "bytes", "problem")
_KEY: Final = ("file", "connection", "clientHost", "clientId", *_API)
"""The columns of the finest group of exchanges that is counted."""
_SLOWEST: Final = ("latencyUs", "requestAtUs", "clientId", "clientHost", *_API[1:], "requestSize", "responseSize")
_SHOWN: Final = 30
"""The number of slowest exchanges that are kept."""
_PROBLEMS: Final = 50
"""The number of problems that are kept."""
_SECOND_US: Final = 1_000_000
_MILLIS: Final = 1000

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = list[dict[str, Any]]
_Key: TypeAlias = tuple[Any, ...]

_Values: TypeAlias = Mapping[str, Callable[[Any], Any]]
"""Columns of ``kafka-capture``, as functions of an exchange or a fault."""
_OF_CONNECTIONS: Final[_Values] = {
    "connection": attrgetter("connection.number"),
    "clientHost": attrgetter("connection.client.host"),
    "clientPort": attrgetter("connection.client.port"),
    "serverHost": attrgetter("connection.server.host"),
    "serverPort": attrgetter("connection.server.port"),
}
_OF_EXCHANGES: Final[_Values] = {
    **_OF_CONNECTIONS,
    "apiKey": attrgetter("api_key"),
    "api": attrgetter("api"),
    "version": attrgetter("version"),
    "correlationId": attrgetter("correlation_id"),
    "clientId": attrgetter("client_id"),
    "requestAt": attrgetter("request.time_us"),
    "requestAtUs": attrgetter("request.time_us"),
    "responseAt": lambda each: each.response and each.response.time_us,
    "responseAtUs": lambda each: each.response and each.response.time_us,
    "latencyUs": attrgetter("latency_us"),
    "requestSize": attrgetter("request.size"),
    "responseSize": lambda each: each.response and each.response.size,
    "errors": lambda each: [{"path": one.path, "code": one.code, "name": one.name} for one in each.errors],
    "throttleMs": attrgetter("throttle_ms"),
    "clientSoftware": attrgetter("client_software"),
    "problem": lambda each: "; ".join(problem.reason for problem in each.problems) or None,
    "requestJson": lambda each: _json(each.request_json),
    "responseJson": lambda each: _json(each.response_json),
    "request": attrgetter("request.payload"),
    "response": lambda each: each.response and each.response.payload,
}
_OF_FILES: Final[_Values] = {"_error": str, "_errorKind": attrgetter("kind.value"), "_errorBytes": attrgetter("size")}
"""The columns of a fault outside of connections."""
FAULT_COLUMNS: Final = tuple(_OF_FILES)
_OF_FAULTS: Final[_Values] = {**_OF_CONNECTIONS, **_OF_FILES}
ALL_COLUMNS: Final = ("file", *_OF_EXCHANGES, *FAULT_COLUMNS)
"""The columns of ``kafka-capture`` in order."""


def capture_row(file: str, item: Item, columns: Sequence[str] = COLUMNS) -> dict[str, Any]:
    """Return an exchange or a fault of a file as a row with these columns of ``kafka-capture``."""
    own = _OF_EXCHANGES if isinstance(item, Exchange) else _OF_FAULTS if item.connection else _OF_FILES
    row = {name: value(item) if (value := own.get(name)) else None for name in columns}
    return row | {"file": file}


def problem_of(row: Row) -> dict[str, Any] | None:
    """Return the problem of a row with ``PROBLEM_COLUMNS``, or None for a decoded exchange."""
    problem = row["_error"] or row["problem"]
    if problem is None:
        return None
    size = row["_errorBytes"] if row["_error"] else row["requestSize"] + (row["responseSize"] or 0)
    found = {"kind": row["_errorKind"] or UNDECODED, "bytes": size, "problem": problem}
    return {name: found.get(name, row.get(name)) for name in PROBLEM_COLUMNS}


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
    """The rows of the ``TABLES``, and the data of the report.

    ``slowest`` are the slowest exchanges that do not wait on purpose. ``kinds`` counts the problems and their bytes by
    kind, and ``problems`` are the first ones.
    """

    tables: Mapping[str, Rows]
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
        key = tuple(row[name] for name in _KEY)
        self._counts.setdefault(key, _Counts()).add(row)
        if row["clientSoftware"] is not None:
            self._add_software(key[:2], row["clientSoftware"])
        second = row["requestAtUs"] // _SECOND_US * _MILLIS
        self._add_second((second, row["api"]), (1, row["latencyUs"]))
        if row["latencyUs"] is not None and row["api"] not in WAITING:
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
            counts={tuple(key): _Counts.from_row(*values) for key, *values in counts},
            software={(file, connection): name for file, connection, name in software},
            seconds={(second, api): (count, longest) for (second, api), (count, longest) in seconds},
            kinds={kind: (count, size) for kind, (count, size) in kinds.items()},
            slowest=slowest,
            problems=problems,
        )

    def finish(self) -> CaptureTables:
        """Return the tables and the data of the report."""
        return CaptureTables(
            tables={name: self.table(name) for name in TABLES},
            slowest=sorted(self._slowest, key=_slowness)[:_SHOWN],
            kinds=self._kinds,
            problems=sorted(self._problems, key=_problem_key)[:_PROBLEMS],
        )

    def table(self, name: str) -> Rows:
        """Return the rows of a table, in a fixed order."""
        rows = {
            "summary": lambda: self._grouped(_API),
            "errors": self._errors,
            "clients": lambda: self._grouped(("clientId", *_API)),
            "slowClients": lambda: self._grouped(("clientId", "software"), WAITING),
            "seconds": self._by_second,
        }[name]()
        first = {"summary": "exchanges", "errors": "count"}.get(name)
        columns = TABLES[name]
        found = [{column: row.get(column) for column in columns} for row in rows]
        return sorted(found, key=lambda row: (-row[first] if first else 0, _sortable(row[each] for each in columns)))

    def _grouped(self, by: Sequence[str], without: Collection[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield the statistics of groups of exchanges. The latencies are measured without some APIs."""
        groups: dict[_Key, list[dict[str, Any]]] = {}
        for key in self._counts:
            # The software of a connection is the one that it sent.
            row = {**dict(zip(_KEY, key, strict=True)), "software": self._software.get(key[:2]), "key": key}
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        for place, rows in groups.items():
            total, measured = _Counts(), _Counts()
            for row in rows:
                total.merge(self._counts[row["key"]])
                measured.latencies += self._counts[row["key"]].latencies if row["api"] not in without else ()
            yield {
                **dict(zip(by, place, strict=True)),
                **total.sums,
                **total.largest,
                **_latencies(measured.latencies),
                "measured": len(measured.latencies),
                "answered": len(total.latencies),
                "errors": total.errors.total(),
                "hosts": len({row["clientHost"] for row in rows}),
                "connections": len({row["key"][:2] for row in rows}),
                "clients": len({row["clientId"] for row in rows} - {None}),
            }

    def _errors(self) -> Iterator[dict[str, Any]]:
        found: dict[_Key, Counter[tuple[int, str | None]]] = {}
        for key, counts in self._counts.items():
            found.setdefault(key[-3:], Counter()).update(counts.errors)
        for place, errors in found.items():
            for (code, name), count in errors.items():
                yield {**dict(zip(_API, place, strict=True)), "code": code, "name": name, "count": count}

    def _by_second(self) -> Iterator[dict[str, Any]]:
        for (second, api), (count, longest) in self._seconds.items():
            yield {"secondMs": second, "api": api, "exchanges": count, "maxUs": longest}

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


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


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
    return {name: quantile(times, share) for name, share in QUANTILES.items()} | {"maxUs": times[-1] if times else None}


def quantile(ascending: Sequence[int], share: float) -> float | None:
    """Return the interpolated quantile for a share of the values, or None without values."""
    if not ascending:
        return None
    place = (len(ascending) - 1) * share
    low = int(place)
    below, above = next(pairwise(ascending[low : low + 2]), (ascending[low], ascending[low]))
    return below + (above - below) * (place - low)
