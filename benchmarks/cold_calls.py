"""Cold calls compared with calls in a loop: the cost for a client that encodes and decodes occasionally.

kafka-msgs and kafka-python encode and decode an OffsetCommitRequest of half a kilobyte in three ways: repeatedly
(warm); once after other work has evicted the CPU caches (cold); and for the first time in a new process (first),
including the imports of the first calls. Libraries take turns.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from typing import Final

from rich.console import Console

from benchmarks import peers
from benchmarks.import_time import environment
from benchmarks.report import Figure, Times, print_figures, rows_table
from benchmarks.timing import Action, cold, fastest
from kafka_msgs import OffsetCommitRequest
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic

__all__ = ["run"]

VERSION: Final = 8
OURS: Final = "kafka-msgs"
PROTOCOL: Final = (
    "libraries take turns, {rounds} rounds. Warm: fastest round, processor time. Cold: median of single calls after a "
    "copy of 64 MB and the parsing of a module. First: fastest of new processes, processor time"
)
_FIRST: Final = """
import sys, time
data = sys.stdin.buffer.read()
start = time.process_time()
{imports}
imported = time.process_time()
{calls}
end = time.process_time()
print(end - imported, end - start)
"""
FIRST: Final = {
    OURS: _FIRST.format(
        imports="from kafka_msgs import OffsetCommitRequest",
        calls=f"OffsetCommitRequest.decode(data, {VERSION}).encode({VERSION})",
    ),
    peers.KAFKA_PYTHON: _FIRST.format(
        imports="from kafka.protocol.consumer import OffsetCommitRequest",
        calls=f"OffsetCommitRequest.decode(data, version={VERSION})\n"
        f"OffsetCommitRequest(group_id='billing', topics=[]).encode(version={VERSION})",
    ),
}
"""The program of a new process, by library. kafka-python cannot encode decoded messages, so it encodes an empty one."""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    message = _message()
    data = message.encode(VERSION)
    cases = {OURS: peers.executor(peers.OURS[0], message, VERSION)}
    other = peers.kafka_python("OffsetCommitRequest", VERSION, data)
    assert other is not None, "the libraries must agree on the bytes, or the comparison means nothing"
    cases[peers.KAFKA_PYTHON] = other
    calls: dict[str, Action] = {name: partial(_both, case.encode, case.decode) for name, case in cases.items()}
    first, with_import = _first(data, rounds)
    times = {
        "warm": Times(fastest(calls, rounds)),
        "cold": Times(cold(calls, 5 * rounds)),
        "first": Times(first),
        "first with the import": Times(with_import),
    }
    table = rows_table(f"Encoding and decoding {len(data)} bytes once", "library", *(f"{each}, us" for each in times))
    for name in calls:
        table.add_row(name, *(f"{each.seconds[name] * 1e6:.1f}" for each in times.values()))
    console.print(table)
    targets = {"cold": 20.0}
    figures = [
        Figure(
            f"encode and decode half a KB, {name}: {peers.KAFKA_PYTHON} takes",
            each.ratio(peers.KAFKA_PYTHON, OURS),
            target=targets.get(name),
        )
        for name, each in times.items()
    ]
    figures.append(Figure("a cold call over a warm one", times["cold"].seconds[OURS] / times["warm"].seconds[OURS]))
    print_figures(console, "Cold calls beside warm ones", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _message() -> OffsetCommitRequest:
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=index, committed_offset=10_000 + 7 * index, committed_metadata="")
        for index in range(5)
    )
    topics = tuple(OffsetCommitRequestTopic(name=f"orders-{number}", partitions=partitions) for number in range(4))
    return OffsetCommitRequest(
        group_id="billing", member_id="billing-9f6c", generation_id_or_member_epoch=3, topics=topics
    )


def _both(encode: Action, decode: Action) -> None:
    encode()
    decode()


def _first(data: bytes, rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return the seconds of the first calls of a process, without and with its import.

    The minimum over all rounds counts. A round before them compiles the modules.
    """
    calls, both = dict.fromkeys(FIRST, float("inf")), dict.fromkeys(FIRST, float("inf"))
    with tempfile.TemporaryDirectory() as bytecode:
        for number in range(rounds + 1):
            for name in list(FIRST)[:: 1 if number % 2 else -1]:
                done = subprocess.run(
                    [sys.executable, "-c", FIRST[name]],
                    env=environment(bytecode),
                    input=data,
                    capture_output=True,
                    check=True,
                    timeout=60,
                )
                if number:
                    without, all_of_it = map(float, done.stdout.split())
                    calls[name] = min(calls[name], without)
                    both[name] = min(both[name], all_of_it)
    return calls, both
