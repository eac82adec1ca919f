"""Decoding and encoding of a large message of many small structs, compared with the peers.

The message is a MetadataResponse v12 of 100 topics with 12 partitions. Every library starts from, or produces, the same
bytes, except msgspec, which has its own format and serves as a reference for a fast library on such a tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from rich.console import Console

from benchmarks import message_cases, peers
from benchmarks.report import Figure, Times, print_figures, rows_table
from benchmarks.timing import PROTOCOL, Action, fastest
from kafka_msgs import DecodeError

__all__ = ["MESSAGE", "VERSION", "run"]

MESSAGE: Final = "MetadataResponse"
VERSION: Final = 12

TARGETS: Final[Mapping[tuple[str, ...], tuple[float, float | None]]] = {
    ("c", "decode", "fixed", peers.KIO): (7, 9.5),
    ("c", "decode", "varied", peers.KIO): (4, 5),
    ("c", "decode", "worst", peers.KIO): (2.1, 2.4),
    ("c", "decode", "varied", peers.KAFKA_PYTHON): (16, 21),
    ("c", "decode", "varied", peers.MSGSPEC): (3.2, 4.2),
    ("c", "encode", "varied", peers.KIO): (180, 210),
    ("c", "encode", "varied", peers.KAFKA_PYTHON): (90, 100),
    ("c", "encode", "varied", peers.MSGSPEC): (2.2, 2.8),
    ("python", "decode", "varied", peers.KAFKA_PYTHON): (2.3, 3.2),
    ("python", "encode", "varied", peers.KAFKA_PYTHON): (4.5, 6),
    ("python", "encode", "varied", peers.KIO): (9, 12),
}
"""Targets and stretch targets, by executor, direction, content and peer."""

COMPARED: Final = (peers.KAFKA_PYTHON, peers.KIO, peers.MSGSPEC, peers.MSGSPEC_TUPLES)
REFUSED: Final = "last byte missing"


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    figures = []
    for name in message_cases.CONTENTS:
        cases = _cases(name)
        for direction in ("decode", "encode"):
            times = Times(fastest({each: getattr(case, direction) for each, case in cases.items()}, rounds))
            console.print(_times_table(f"{MESSAGE} v{VERSION}, {name} content, {direction}", times))
            figures += [_figure(ours, direction, name, peer, times) for ours in peers.OURS for peer in COMPARED]
    figures += _refusals(rounds)
    print_figures(console, "Our executors against their peers", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _cases(name: str) -> dict[str, peers.Case]:
    message = message_cases.metadata(name)
    data = message.encode(VERSION)
    found = {each: peers.executor(each, message, VERSION) for each in peers.OURS}
    found[peers.KAFKA_PYTHON] = _same_bytes(peers.kafka_python(MESSAGE, VERSION, data))
    found[peers.KIO] = _same_bytes(peers.kio(type(message), VERSION, data))
    for ours in peers.OURS:
        assert found[ours].encode() == data
        assert found[ours].decode() == message
    found[peers.MSGSPEC] = peers.msgspec_case(message, VERSION, tuples=False)
    found[peers.MSGSPEC_TUPLES] = peers.msgspec_case(message, VERSION, tuples=True)
    return found


def _same_bytes(case: peers.Case | None) -> peers.Case:
    assert case is not None, "the libraries must agree on the bytes, or the comparison means nothing"
    return case


def _times_table(title: str, times: Times) -> object:
    table = rows_table(title, "", "microseconds", *(f"times as long as {ours}" for ours in peers.OURS))
    for name, seconds in times.seconds.items():
        table.add_row(name, f"{seconds * 1e6:.1f}", *(f"{times.ratio(name, ours):.2f}" for ours in peers.OURS))
    return table


def _figure(ours: str, direction: str, name: str, peer: str, times: Times) -> Figure:
    target, stretch = TARGETS.get((ours, direction, name, peer), (None, None))
    return Figure(f"{ours}, {direction}, {name}: {peer} takes", times.ratio(peer, ours), target=target, stretch=stretch)


def _refusals(rounds: int) -> list[Figure]:
    """Compare a rejected message, whose error the reference interpreter explains, with a valid one."""
    message = message_cases.metadata("varied")
    data = message.encode(VERSION)
    figures = []
    for ours in peers.OURS:
        decode = peers.codec(ours, type(message), VERSION).decode
        times = Times(fastest({"whole": partial(decode, data), REFUSED: _refused(decode, data[:-1])}, min(rounds, 5)))
        figures.append(Figure(f"{ours}, decode, varied: {REFUSED} takes", times.ratio(REFUSED, "whole")))
    return figures


def _refused(decode: Any, data: bytes) -> Action:
    def action() -> str:
        try:
            decode(data)
        except DecodeError as error:
            return str(error)
        raise AssertionError("it must be refused, or this measures something else")

    return action
