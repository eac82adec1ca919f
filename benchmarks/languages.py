"""The same bytes in other languages: nine messages, large and small, decoded and encoded in Java, Go and Rust.

Each language, including kafka-msgs, has a process that runs as long as the benchmark, and the processes take turns.
Warm: the same message repeatedly, in CPU time of the whole process. Cold: single calls in wall time, each after the
process has read 64 MB of other memory. Each language that has the message must write the same bytes. Languages without
installed tools are named and skipped.

Decoding produces different objects: Kafka's Java and Rust's ``kafka-protocol`` keep records as views of the input, as
Rust does with strings, and Go's kmsg keeps bytes as views. kafka-msgs copies all data.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

from rich.console import Console

from benchmarks.languages_cases import cases
from benchmarks.languages_peers import LANGUAGES, OURS, Language, Peer
from benchmarks.report import Figure, Times, print_figures, rows_table

__all__ = ["measured", "run", "verdicts"]

DIRECTIONS: Final = ("decode", "encode")
PROTOCOL: Final = (
    "a process for each language, taking turns. Warm: processor time of the process, fastest of {rounds} rounds of "
    "20 ms, after a second of it. Cold: on the clock, median of {cold} single calls after 64 MB of other memory"
)
_WARM_UP: Final = 1.0
"""The CPU seconds of repeated calls before a case is measured."""
_SHORTEST: Final = 0.02
"""The minimum CPU seconds of a round."""
_LARGE: Final = 1000
"""The minimum size of a large message, in bytes."""
_METADATA: Final = "MetadataResponse.12"
_COLD_CALLS: Final = 3
"""The number of cold calls per case and round."""

Cell: TypeAlias = tuple[str, str, str]
"""Cache state, direction, and message name."""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures; name and skip languages without installed tools."""
    if sys.platform != "linux":
        console.print(
            "other languages: not measured, since the processor time of other processes is read as Linux has it"
        )
        return []
    present = []
    for language in LANGUAGES:
        if missing := language.missing():
            console.print(missing)
        else:
            present.append(language)
    files = {name: message.encode(version) for name, (message, version) in cases().items()}
    times = measured(present, files, rounds)
    _print_times(console, [language.name for language in present], files, times)
    figures = [*_figures(files, times), *verdicts({name: len(data) for name, data in files.items()}, times)]
    print_figures(console, "Other languages", PROTOCOL.format(rounds=rounds, cold=_COLD_CALLS * rounds), figures)
    return figures


def measured(languages: Sequence[Language], files: Mapping[str, bytes], rounds: int) -> dict[Cell, Times]:
    """Return the seconds of one call by cache state, direction and message, in each language that has the message."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as running:
        for name, data in files.items():
            Path(directory, name).write_bytes(data)
        commands = {language.name: language.built() for language in languages}
        peers = {name: running.enter_context(Peer(command, Path(directory))) for name, command in commands.items()}
        found: dict[Cell, Times] = {}
        for name in files:
            having = {language: peer for language, peer in peers.items() if name in peer.names}
            for direction in DIRECTIONS:
                found["warm", direction, name] = _warm(having, direction, name, rounds)
                found["cold", direction, name] = _cold(having, direction, name, rounds * _COLD_CALLS)
    return found


def _warm(peers: Mapping[str, Peer], direction: str, name: str, rounds: int) -> Times:
    calls = {language: _calls_needed(peer, direction, name) for language, peer in peers.items()}
    seconds = [
        (language, peers[language].warm(direction, name, calls[language]) / calls[language])
        for language in _turns(list(peers), rounds)
    ]
    return Times(_each(peers, seconds, min))


def _cold(peers: Mapping[str, Peer], direction: str, name: str, rounds: int) -> Times:
    seconds = [(language, peers[language].cold(direction, name)) for language in _turns(list(peers), rounds)]
    return Times(_each(peers, seconds, median))


def _turns(languages: list[str], rounds: int) -> Iterator[str]:
    """Yield the languages in turn, alternating the order."""
    for number in range(rounds):
        yield from languages[:: 1 if number % 2 else -1]


def _each(
    peers: Mapping[str, Peer], seconds: list[tuple[str, float]], chosen: Callable[[list[float]], float]
) -> dict[str, float]:
    return {each: chosen([taken for language, taken in seconds if language == each]) for each in peers}


def _calls_needed(peer: Peer, direction: str, name: str) -> int:
    """Call until it is warm; return the number of calls per round."""
    calls, spent = 1, 0.0
    while (seconds := peer.warm(direction, name, calls)) < _SHORTEST or spent < _WARM_UP:
        spent += seconds
        calls *= 2 if seconds < _SHORTEST else 1
    return calls


def _print_times(
    console: Console, languages: list[str], files: Mapping[str, bytes], times: Mapping[Cell, Times]
) -> None:
    for caches in ("warm", "cold"):
        table = rows_table(f"Nine messages, {caches}, nanoseconds a call", "", "bytes", *languages)
        for (which, direction, name), each in times.items():
            if which == caches:
                cells = (f"{each.seconds[one] * 1e9:,.0f}" if one in each.seconds else "-" for one in languages)
                table.add_row(f"{direction}, {name}", f"{len(files[name]):,}", *cells)
        console.print(table)


def _figures(files: Mapping[str, bytes], times: Mapping[Cell, Times]) -> Iterator[Figure]:
    yield from (Figure(f"{name}: bytes", len(data), "") for name, data in files.items())
    for (caches, direction, name), each in times.items():
        what = f"{caches}, {direction}, {name}"
        yield Figure(f"{what}: {OURS}", each.seconds[OURS] * 1e6, "us")
        for language in each.seconds:
            if language != OURS:
                yield Figure(f"{what}: {language} takes", each.ratio(language, OURS))


def verdicts(sizes: Mapping[str, int], times: Mapping[Cell, Times]) -> Iterator[Figure]:
    """Yield the figures with targets, for the measured languages."""
    decoding = {name: times["warm", "decode", name] for name in sizes}
    encoding = {name: times["warm", "encode", name] for name, size in sizes.items() if size >= _LARGE}
    if go := [each.ratio("Go", OURS) for each in decoding.values() if "Go" in each.seconds]:
        yield Figure("decode: messages of nine that take longer in Go", sum(ratio > 1 for ratio in go), "", target=7)
        yield Figure("decode: Go takes (our worst)", min(go), target=round(1 / 1.5, 2))
    if java := {name: decoding[name].ratio("Java", OURS) for name in encoding if "Java" in decoding[name].seconds}:
        yield Figure(f"decode, {_METADATA}: Java takes", java.pop(_METADATA), target=round(1 / 1.5, 2))
        yield Figure("decode, other large messages: Java takes (our worst)", min(java.values()), target=1 / 2.5)
    for name, each in encoding.items():
        if rest := [each.ratio(language, OURS) for language in each.seconds if language != OURS]:
            yield Figure(f"encode, {name}: the fastest of the others takes", min(rest), target=1.0)
