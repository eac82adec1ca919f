"""Decoding and encoding of a large message of many small structs, against the peers.

MetadataResponse v12 of 100 topics with 12 partitions. Every library starts from, or arrives at, the same bytes (but
for msgspec, which has its own format and serves as a yardstick for what a fast library makes of such a tree).
"""

from __future__ import annotations

from typing import Final

from rich.console import Console

from benchmarks import content, peers
from benchmarks.measure import PROTOCOL, fastest
from benchmarks.report import Figure, Times, print_figures, rows_table
from kafka_msgs.codec.backend import BACKENDS

__all__ = ["run"]

VERSION: Final = 12
JUDGED: Final = "varied"
"""The content that targets are for; the others show how much content matters."""

OURS: Final = "python"
TARGETS: Final = {
    ("decode", peers.KAFKA_PYTHON): (2.3, 3.2),
    ("encode", peers.KAFKA_PYTHON): (4.5, 6.0),
    ("encode", peers.KIO): (9.0, 12.0),
}


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    figures = []
    for name in content.CONTENTS:
        cases = _cases(name)
        for direction in ("decode", "encode"):
            times = Times(fastest({each: getattr(case, direction) for each, case in cases.items()}, rounds))
            console.print(_times_table(f"MetadataResponse v{VERSION}, {name} content, {direction}", times))
            figures += [
                _figure(name, direction, peer, times) for peer in (peers.KAFKA_PYTHON, peers.KIO, peers.MSGSPEC)
            ]
    print_figures(console, "Executor python against its peers", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _cases(name: str) -> dict[str, peers.Case]:
    message = content.metadata(name)
    data = message.encode(VERSION)
    found = {each: peers.executor(each, message, VERSION) for each in BACKENDS}
    found[peers.KAFKA_PYTHON] = _same_bytes(peers.kafka_python("MetadataResponse", VERSION, data))
    found[peers.KIO] = _same_bytes(peers.kio(type(message), VERSION, data))
    for ours in BACKENDS:
        assert found[ours].encode() == data
        assert found[ours].decode() == message
    found[peers.MSGSPEC] = peers.msgspec_case(message, VERSION, tuples=False)
    found[peers.MSGSPEC_TUPLES] = peers.msgspec_case(message, VERSION, tuples=True)
    return found


def _same_bytes(case: peers.Case | None) -> peers.Case:
    assert case is not None, "the libraries must agree on the bytes, or the comparison means nothing"
    return case


def _times_table(title: str, times: Times) -> object:
    table = rows_table(title, "", "microseconds", "times as long as ours")
    for name, seconds in times.seconds.items():
        table.add_row(name, f"{seconds * 1e6:.1f}", f"{times.ratio(name, OURS):.2f}")
    return table


def _figure(name: str, direction: str, peer: str, times: Times) -> Figure:
    target, stretch = TARGETS.get((direction, peer), (None, None)) if name == JUDGED else (None, None)
    return Figure(f"{direction}, {name}: {peer} takes", times.ratio(peer, OURS), target=target, stretch=stretch)
