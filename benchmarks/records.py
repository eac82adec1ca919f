"""Reading and writing record batches of about a megabyte, with checksum verification, compared with the peers.

For the cost of retaining records, measured in a process per library, see ``records_held``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Final

from rich.console import Console

from benchmarks import records_held
from benchmarks.records_cases import AIOKAFKA, KAFKA_PYTHON, LEVELS, OURS, PEERS, Library, libraries, rows, written
from benchmarks.report import Figure, Times, print_figures, rows_table
from benchmarks.timing import PROTOCOL, Action, fastest
from kafka_msgs.records import CompressionType, read_batches

__all__ = ["run"]

TARGETS: Final[Mapping[tuple[str, str, str, str], float]] = {
    ("c", "list", "plain", AIOKAFKA): 3,
    ("c", "list", "plain", KAFKA_PYTHON): 30,
    ("c", "five fields read", "plain", AIOKAFKA): 1.9,
    ("c", "values", "plain", AIOKAFKA): 6,
    ("c", "list", "key and two headers", AIOKAFKA): 1,
    ("c", "five fields read", "key and two headers", AIOKAFKA): 1,
    ("c", "build", "plain", AIOKAFKA): 2,
    ("c", "build", "plain", KAFKA_PYTHON): 15,
}
"""Targets by form, work, content and peer; for every codec, we must be faster than every peer."""

_WORK: Final[dict[str, Callable[[Library, str], Action]]] = {
    "list": lambda library, content: partial(library.read, written(content)),
    "five fields read": lambda library, content: partial(library.fields, written(content)),
    "values": lambda library, content: partial(library.values, written(content)),
    "build": lambda library, content: partial(library.write, rows(content), CompressionType.NONE, None),
}
"""The timed operations, by their names in figures; for peers the values come from a loop over the records."""

_MEASURED: Final = {
    "plain": tuple(_WORK),
    "own timestamps": ("list",),
    "key and two headers": tuple(_WORK),
}


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    _check_peers(console)
    found = libraries()
    figures = []
    for content, works in _MEASURED.items():
        for work in works:
            _check(found, content)
            cases = {name: _WORK[work](library, content) for name, library in found.items()}
            figures += _compared(console, f"{work}, {content}", fastest(cases, rounds), (work, content))
    for codec in list(CompressionType)[1:]:
        figures += _codec(console, found, codec, rounds)
    print_figures(console, "Records against the peers", PROTOCOL.format(rounds=rounds), figures)
    return figures + records_held.run(console, rounds)


def _check_peers(console: Console) -> None:
    """Print whether aiokafka runs its own extension: figures against its pure Python would be meaningless."""
    compiled = import_module("aiokafka.record.default_records").DefaultRecordBatch.__module__
    assert "_crecords" in compiled, f"aiokafka runs {compiled}, which is not its extension"
    console.print(f"aiokafka runs its extension ({compiled})", style="dim")


def _check(found: Mapping[str, Library], content: str) -> None:
    """Check that all return the same records for our bytes, and that we read the same from their output."""
    data, given = written(content), rows(content)
    expected = [(value, time, key, headers) for time, key, value, headers in given]
    for library in found.values():
        assert library.values(data) == [value for _, _, value, _ in given]
        assert [(each.value, each.timestamp, each.key, [*each.headers]) for each in library.read(data)] == expected
        made = bytes(library.write(given, CompressionType.NONE, None))
        assert [record for each in read_batches(made) for record in each] == [*next(read_batches(data))]


def _compared(console: Console, what: str, seconds: dict[str, float], key: tuple[str, str]) -> list[Figure]:
    times = Times(seconds)
    table = rows_table(what, "", "microseconds", *(f"times as long as {ours}" for ours in OURS))
    for name, taken in seconds.items():
        table.add_row(name, f"{taken * 1e6:.0f}", *(f"{times.ratio(name, ours):.2f}" for ours in OURS))
    console.print(table)
    return [
        Figure(f"{ours}, {what}: {peer} takes", times.ratio(peer, ours), target=TARGETS.get((ours, *key, peer)))
        for ours in OURS
        for peer in PEERS
        if peer in seconds
    ]


def _codec(console: Console, found: Mapping[str, Library], codec: CompressionType, rounds: int) -> list[Figure]:
    """Compare reading and writing with one codec."""
    name, data, given = codec.name.lower(), written("text", codec), rows("text")
    reading: dict[str, Action] = {each: partial(library.read, data) for each, library in found.items()}
    figures = _compared_codec(console, f"{name} read", reading, rounds)
    for level in dict.fromkeys(LEVELS[codec].values()):
        able = [*OURS, *(peer for peer in PEERS if LEVELS[codec][peer] == level)]
        writing: dict[str, Action] = {each: partial(found[each].write, given, codec, level) for each in able}
        what = f"{name} written" if level is None else f"{name} written at level {level}"
        figures += _compared_codec(console, what, writing, rounds)
    return figures


def _compared_codec(console: Console, what: str, cases: Mapping[str, Action], rounds: int) -> list[Figure]:
    able = {each: case for each, case in cases.items() if _is_able(console, f"{each}, {what}", case)}
    return [
        Figure(figure.what, figure.value, target=1.0 if figure.what.startswith("c,") else None)
        for figure in _compared(console, what, fastest(able, rounds), (what, "text"))
    ]


def _is_able(console: Console, what: str, case: Action) -> bool:
    """Return whether a library supports the case: one that lacks the codec, or rejects such a batch, is excluded."""
    try:
        made = case()
    except Exception as error:
        console.print(f"{what}: takes no part ({type(error).__name__}: {error})", style="dim")
        return False
    records = made if isinstance(made, list) else [record for each in read_batches(bytes(made)) for record in each]
    assert len(records) == len(rows("text"))
    return True
