"""Small messages against the peers, and the messages that we are worst at.

First a HeartbeatResponse of seven bytes, where a call's overhead is everything; then every message that a peer has,
too, with a value in each field and one element in each array.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from attrs import frozen
from rich.console import Console

from benchmarks import content, peers
from benchmarks.measure import PROTOCOL, fastest
from benchmarks.report import Figure, Times, print_figures, rows_table
from kafka_msgs import HeartbeatResponse, Message, message_classes

__all__ = ["run"]

OURS: Final = "python"
METHOD: Final = "python, class method"
SHOWN: Final = 15


@frozen
class Measured:
    """One message at one version, measured in all libraries that have it."""

    name: str
    version: int
    size: int
    decode: Times
    encode: Times

    def ratios(self) -> dict[tuple[str, str], float]:
        """Return how many times as long as we each peer takes, by direction and peer."""
        both = {"decode": self.decode, "encode": self.encode}
        return {
            (direction, peer): times.ratio(peer, OURS)
            for direction, times in both.items()
            for peer in (peers.KAFKA_PYTHON, peers.KIO)
            if peer in times.seconds
        }


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    figures = _heartbeat(console, rounds)
    measured = [
        _measured(name, version, cases, rounds) for name, version, cases in _comparable() if cases.keys() > {OURS}
    ]
    figures += _summary(measured)
    _print_worst(console, measured)
    print_figures(console, f"All {len(measured)} messages that a peer has", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _heartbeat(console: Console, rounds: int) -> list[Figure]:
    message, version = HeartbeatResponse(), 4
    data = message.encode(version)
    cases = _cases(message, version)
    cases[METHOD] = peers.Case(lambda: HeartbeatResponse.decode(data, version), lambda: message.encode(version))
    table = rows_table(f"HeartbeatResponse v{version}, {len(data)} bytes", "nanoseconds", *cases)
    figures = []
    for direction in ("decode", "encode"):
        times = Times(fastest({name: getattr(case, direction) for name, case in cases.items()}, rounds))
        table.add_row(direction, *(f"{seconds * 1e9:.0f}" for seconds in times.seconds.values()))
        figures += [
            Figure(f"HeartbeatResponse, {direction}: {peer} takes", times.ratio(peer, OURS))
            for peer in (peers.KAFKA_PYTHON, peers.KIO)
        ]
    console.print(table)
    return figures


def _comparable() -> Iterator[tuple[str, int, dict[str, peers.Case]]]:
    """Yield every message at the latest version that a peer has as well, and the cases."""
    for cls in message_classes():
        for version in reversed(list(cls.INFO.versions)):
            cases = _cases(content.populated(cls, version), version)
            if len(cases) > 1:
                yield cls.INFO.name, version, cases
                break


def _cases(message: Message, version: int) -> dict[str, peers.Case]:
    data = message.encode(version)
    cases = {
        OURS: peers.executor(OURS, message, version),
        peers.KAFKA_PYTHON: peers.kafka_python(message.INFO.name, version, data),
        peers.KIO: peers.kio(type(message), version, data),
    }
    return {name: case for name, case in cases.items() if case is not None}


def _measured(name: str, version: int, cases: dict[str, peers.Case], rounds: int) -> Measured:
    decode = Times(fastest({each: case.decode for each, case in cases.items()}, rounds))
    encode = Times(fastest({each: case.encode for each, case in cases.items()}, rounds))
    return Measured(name, version, len(cases[OURS].encode()), decode, encode)


def _summary(measured: list[Measured]) -> list[Figure]:
    figures = []
    for direction in ("decode", "encode"):
        for peer in (peers.KAFKA_PYTHON, peers.KIO):
            ratios = [each.ratios()[direction, peer] for each in measured if (direction, peer) in each.ratios()]
            what = f"{len(ratios)} messages, {direction}: {peer} takes"
            figures += [Figure(f"{what} (median)", median(ratios)), Figure(f"{what} (our worst)", min(ratios))]
    return figures


def _print_worst(console: Console, measured: list[Measured]) -> None:
    table = rows_table(
        f"The {SHOWN} messages we are worst at, by the least of their ratios",
        "message",
        "version",
        "bytes",
        "decode ns",
        "kafka-python",
        "kio",
        "encode ns",
        "kafka-python",
        "kio",
    )
    for each in sorted(measured, key=lambda one: min(one.ratios().values()))[:SHOWN]:
        cells = [each.name, str(each.version), str(each.size)]
        for direction, times in (("decode", each.decode), ("encode", each.encode)):
            cells.append(f"{times.seconds[OURS] * 1e9:.0f}")
            ratios = (each.ratios().get((direction, peer)) for peer in (peers.KAFKA_PYTHON, peers.KIO))
            cells += ["" if ratio is None else f"{ratio:.2f}x" for ratio in ratios]
        table.add_row(*cells)
    console.print(table)
