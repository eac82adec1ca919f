"""Small messages compared with the peers, and our slowest messages.

The first message is a HeartbeatResponse of seven bytes, for which call overhead dominates; then follows every message
that a peer also supports, at its latest version: with defaults, and with random values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from statistics import median
from typing import Final

from attrs import frozen
from rich.console import Console

from benchmarks import message_cases, peers
from benchmarks.report import Figure, Times, print_figures, rows_table
from benchmarks.timing import PROTOCOL, fastest
from kafka_msgs import HeartbeatResponse, Message, iter_message_classes

__all__ = ["run"]

PEERS: Final = (peers.KAFKA_PYTHON, peers.KIO)
DIRECTIONS: Final = ("decode", "encode")
SEEDS: Final = range(10)

HEARTBEAT_TARGETS: Final = {("c", "decode", peers.KIO): 2.7, ("c", "encode", peers.KIO): 38.0}
NEVER_SLOWER: Final = {"c": 1.0}
"""The minimum ratio for any message, by executor."""


@frozen
class Measured:
    """One message with one content, measured in all libraries that support it."""

    name: str
    version: int
    content: str
    size: int
    times: Mapping[str, Times]

    def ratio(self, ours: str, direction: str, peer: str) -> float | None:
        """Return the peer's time divided by our time, or None if the peer is excluded."""
        times = self.times[direction]
        return times.ratio(peer, ours) if peer in times.seconds else None

    def worst(self, ours: str) -> float:
        """Return the minimum of all ratios."""
        found = (self.ratio(ours, direction, peer) for direction in DIRECTIONS for peer in PEERS)
        return min(ratio for ratio in found if ratio is not None)


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    protocol = PROTOCOL.format(rounds=rounds)
    figures = _heartbeat(console, rounds)
    print_figures(console, "The smallest message", protocol, figures)
    measured = [
        _measured(cls, name, cases, rounds)
        for cls in iter_message_classes()
        for name, cases in _contents(cls)
        if not cases.keys().isdisjoint(PEERS)
    ]
    _print_worst(console, measured)
    summary = [figure for name in ("default", "random") for figure in _summary(name, measured)]
    print_figures(console, "All messages that a peer has", protocol, summary)
    return figures + summary


def _heartbeat(console: Console, rounds: int) -> list[Figure]:
    message, version = HeartbeatResponse(), 4
    data = message.encode(version)
    cases = _cases(message, version)
    method = f"{peers.OURS[0]}, class method"
    cases[method] = peers.Case(partial(HeartbeatResponse.decode, data, version), partial(message.encode, version))
    table = rows_table(f"HeartbeatResponse v{version}, {len(data)} bytes", "nanoseconds", *cases)
    figures = []
    for direction in DIRECTIONS:
        times = Times(fastest({name: getattr(case, direction) for name, case in cases.items()}, rounds))
        table.add_row(direction, *(f"{seconds * 1e9:.0f}" for seconds in times.seconds.values()))
        figures += [
            Figure(
                f"{ours}, {direction}, HeartbeatResponse: {peer} takes",
                times.ratio(peer, ours),
                target=HEARTBEAT_TARGETS.get((ours, direction, peer)),
            )
            for ours in (*peers.OURS, method)
            for peer in PEERS
        ]
    console.print(table)
    return figures


def _contents(cls: type[Message]) -> Iterator[tuple[str, dict[str, peers.Case]]]:
    """Yield the contents of a message at its latest version, and the cases of the libraries that can take part."""
    version = _latest(cls)
    default = _cases(cls(), version)
    yield "default", default
    if len(default) > len(peers.OURS):
        yield (
            "random",
            _shared(default, [partial(message_cases.randomized, cls, version, seed) for seed in SEEDS], version),
        )


def _shared(wanted: Mapping[str, object], makers: list[Callable[[], Message]], version: int) -> dict[str, peers.Case]:
    """Return the cases of the first value that all of ``wanted`` support, or of the value that most support."""
    best: dict[str, peers.Case] = {}
    for make in makers:
        cases = _cases(make(), version)
        best = max(best, cases, key=len)
        if best.keys() >= wanted.keys():
            break
    return best


def _latest(cls: type[Message]) -> int:
    return max(cls.INFO.versions)


def _cases(message: Message, version: int) -> dict[str, peers.Case]:
    data = message.encode(version)
    cases: dict[str, peers.Case | None] = {ours: peers.executor(ours, message, version) for ours in peers.OURS}
    cases[peers.KAFKA_PYTHON] = peers.kafka_python(message.INFO.name, version, data)
    cases[peers.KIO] = peers.kio(type(message), version, data)
    return {name: case for name, case in cases.items() if case is not None}


def _measured(cls: type[Message], name: str, cases: dict[str, peers.Case], rounds: int) -> Measured:
    times = {
        direction: Times(fastest({each: getattr(case, direction) for each, case in cases.items()}, rounds))
        for direction in DIRECTIONS
    }
    return Measured(cls.INFO.name, _latest(cls), name, len(cases[peers.OURS[0]].encode()), times)


def _summary(name: str, measured: list[Measured]) -> Iterator[Figure]:
    those = [each for each in measured if each.content == name]
    for ours in peers.OURS:
        for direction in DIRECTIONS:
            for peer in PEERS:
                found = (each.ratio(ours, direction, peer) for each in those)
                ratios = [ratio for ratio in found if ratio is not None]
                what = f"{ours}, {direction}, {len(ratios)} messages, {name}: {peer} takes"
                yield Figure(f"{what} (median)", median(ratios))
                yield Figure(f"{what} (our worst)", min(ratios), target=NEVER_SLOWER.get(ours))


def _print_worst(console: Console, measured: list[Measured]) -> None:
    ours = peers.OURS[0]
    heads = [head for direction in DIRECTIONS for head in (f"{direction} ns", *PEERS)]
    title = f"Executor {ours} on every message that a peer has, the worst first"
    table = rows_table(title, "message", "version", "content", "bytes", *heads)
    for each in sorted(measured, key=lambda one: one.worst(ours)):
        cells = [each.name, str(each.version), each.content, str(each.size)]
        for direction in DIRECTIONS:
            cells.append(f"{each.times[direction].seconds[ours] * 1e9:.0f}")
            ratios = (each.ratio(ours, direction, peer) for peer in PEERS)
            cells += ["" if ratio is None else f"{ratio:.2f}x" for ratio in ratios]
        table.add_row(*cells)
    console.print(table)
