"""Selected fields of a large message: a proxy changes brokers, and a monitor reads topics.

The message is a MetadataResponse v12 of 100 topics with 12 partitions and 20 brokers. The address of every broker is
changed; then fields are only read. The baselines decode the whole message, or use Kafka's own Java. Warm: the same
bytes repeatedly. Cold: after other memory has been read, which is typical for a proxy, whose CPU does other work
in between.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from rich.console import Console

from benchmarks import codec_metadata, kafka_java, message_cases, peers
from benchmarks.report import Figure, Times, print_figures, rows_table
from benchmarks.timing import PROTOCOL, Action, cold, fastest
from kafka_msgs import MetadataResponse, evolve
from kafka_msgs.codec.executors import part_functions
from kafka_msgs.codec.options import DEFAULT_OPTIONS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.codec.selection import select_fields

__all__ = ["run"]

VERSION: Final = codec_metadata.VERSION
NAME: Final = f"{codec_metadata.MESSAGE}.{VERSION}.varied"
WHOLE: Final = "decode, evolve, encode"
DECODED: Final = "decode"
FIELDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "brokers[].host": lambda _: "localhost",
    "brokers[].port": lambda _: 19092,
}
STRUCTS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "brokers[]": lambda broker: evolve(broker, host="localhost", port=19092)
}
PATCHES: Final = {"patch of two fields": FIELDS, "patch of structs": STRUCTS}
PEEKS: Final = {"peek of the controller": "controller_id", "peek of names of topics": "topics[].name"}

TARGETS: Final = {("warm", "patch of two fields", WHOLE): 15.0, ("warm", "patch of two fields", kafka_java.JAVA): 8.0}


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures; without Java and Maven, omit the figures of Java."""
    data = message_cases.metadata("varied").encode(VERSION)
    java = _java(console, data)
    figures = []
    for caches, measured in (("warm", fastest), ("cold", cold)):
        for ours in peers.OURS:
            seconds = measured(_cases(ours, data), rounds)
            if ours == peers.OURS[0]:
                seconds |= {kafka_java.JAVA: java[caches]} if java else {}
            times = Times(seconds)
            console.print(_table(f"{NAME}, {len(data):,} bytes, {ours}, {caches}", times))
            figures += _figures(ours, caches, times)
    print_figures(console, "Parts of a message", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _cases(ours: str, data: bytes) -> dict[str, Action]:
    codec = peers.codec(ours, MetadataResponse, VERSION)

    def whole() -> bytes:
        message = codec.decode(data)
        brokers = tuple(evolve(broker, host="localhost", port=19092) for broker in message.brokers)
        return codec.encode(evolve(message, brokers=brokers))

    cases: dict[str, Action] = {WHOLE: whole}
    for name, edits in PATCHES.items():
        patch = part_functions(select_fields(codec.plan, tuple(edits)), DEFAULT_OPTIONS, ours).patch
        cases[name] = partial(patch, data, 0, tuple(edits.values()))
        assert cases[name]() == whole(), "all must write the same bytes, or the comparison means nothing"
    cases[DECODED] = partial(codec.decode, data)
    for name, path in PEEKS.items():
        cases[name] = partial(part_functions(select_fields(codec.plan, (path,)), DEFAULT_OPTIONS, ours).read, data)
    return cases


def _figures(ours: str, caches: str, times: Times) -> list[Figure]:
    pairs: list[tuple[str, str]] = [
        (name, peer) for name in PATCHES for peer in (WHOLE, kafka_java.JAVA) if peer in times.seconds
    ]
    pairs += [(name, DECODED) for name in PEEKS]
    return [
        Figure(
            f"{ours}, {caches}, {name}: {peer} takes",
            times.ratio(peer, name),
            target=TARGETS.get((caches, name, peer)) if ours == "c" else None,
        )
        for name, peer in pairs
    ]


def _table(title: str, times: Times) -> object:
    table = rows_table(title, "", "microseconds")
    for name, seconds in times.seconds.items():
        table.add_row(name, f"{seconds * 1e6:,.1f}")
    return table


def _java(console: Console, data: bytes) -> dict[str, float]:
    """Return the seconds that Java takes to rewrite the brokers, warm and cold, or nothing without Java and Maven."""
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        console.print(f"{kafka_java.JAVA}: not measured, since there is no {' and no '.join(missing)} here")
        return {}
    plan = compile_plan(MetadataResponse, VERSION)
    patch = part_functions(select_fields(plan, tuple(FIELDS)), DEFAULT_OPTIONS).patch
    files = {NAME: data, f"{NAME}.rewritten": patch(data, 0, tuple(FIELDS.values()))}
    results = kafka_java.measured("KafkaRewrite", files, [NAME])
    return {each["params"]["caches"]: kafka_java.fastest_iteration(each) for each in results}
