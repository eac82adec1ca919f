"""The shared parts of the Python clients: the records to send, the printed lines, and the end of the process."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from threading import Event, Thread
from typing import Any, Final

from tests.campaigns.soak.protocol import BURST, OUTSTANDING, PARTITIONS

__all__ = ["PATIENCE", "SETTLE", "Worker"]

PATIENCE: Final = 90.0
"""The delivery timeout of the producers in seconds."""
SETTLE: Final = 5.0
"""The request timeout, and the time limit of a commit, in seconds."""
_PAUSE: Final = 0.02
_PAD: Final = b" " + b"." * 90


class Worker:
    """A client process: its addresses, its sequence numbers and its lines."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers = servers
        self.topic = topic
        self.draining = Event()
        self.ending = Event()
        self._lines: list[str] = []
        self._sent = [0] * PARTITIONS
        self._done = [0] * PARTITIONS

    def due(self) -> list[tuple[int, int, bytes, bytes]]:
        """Return the records of a tick: partition, sequence number, key and value."""
        found = []
        for partition in range(PARTITIONS):
            for _ in range(BURST):
                sequence = self._sent[partition]
                if sequence - self._done[partition] < OUTSTANDING:
                    self._sent[partition] += 1
                    found.append((partition, sequence, b"k%d" % partition, b"%d" % sequence + _PAD))
        return found

    def acknowledged(self, partition: int, sequence: int, offset: int) -> None:
        """Report an acknowledged record."""
        self._done[partition] += 1
        self._report(f"A {_now()} {partition} {sequence} {offset}")

    def failed(self, partition: int, sequence: int, error: object, *, aborted: bool = False) -> None:
        """Report a record that failed, or that was aborted with its transaction."""
        self._done[partition] += 1
        self._report(f"X {partition} {sequence}" if aborted else f"F {partition} {sequence} {_one_line(error)}")

    def delivered(self, partition: int, sequence: int) -> Callable[[Any, object], None]:
        """Return the ``on_delivery`` function of a record: it takes metadata and an error."""

        def report(metadata: Any, error: object) -> None:
            if error is None:
                self.acknowledged(partition, sequence, metadata.offset)
            else:
                self.failed(partition, sequence, error)

        return report

    def received(self, records: Iterable[tuple[int, int, bytes]]) -> None:
        """Report received records: partition, offset and value."""
        now = _now()
        for partition, offset, value in records:
            self._report(f"R {now} {partition} {offset} {bytes(value).partition(b' ')[0].decode()}")

    def committed(self, offsets: Iterable[tuple[int, int]]) -> None:
        """Report committed offsets."""
        for partition, offset in offsets:
            self._report(f"C {partition} {offset}")

    def run(self, write: Callable[[Worker], None], read: Callable[[Worker], None]) -> None:
        """Run a writer and a reader until the campaign ends them."""
        writer = Thread(target=self._live, args=("writer", write, self.draining), daemon=True)
        reader = Thread(target=self._live, args=("reader", read, self.ending), daemon=True)
        writer.start()
        reader.start()
        printer = Thread(target=self._print_until, args=(reader,))
        printer.start()
        for _ in sys.stdin:
            self.draining.set()
        if not self.draining.is_set():
            sys.exit("the campaign has ended")
        writer.join(PATIENCE + SETTLE)
        self.ending.set()
        printer.join(4 * SETTLE)

    def _live(self, role: str, work: Callable[[Worker], None], end: Event) -> None:
        """Run a writer or a reader. After an error, report it and begin again."""
        while not end.is_set():
            try:
                work(self)
            except Exception as error:
                self._report(f"E {role} {_one_line(error)}")
                end.wait(0.2)
        if role == "writer":
            self._report("D")

    def _print_until(self, reader: Thread) -> None:
        while reader.is_alive():
            time.sleep(_PAUSE)
            self._print()
        self._print()

    def _print(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            sys.stdout.write("".join(line + "\n" for line in lines))
            sys.stdout.flush()

    def _report(self, line: str) -> None:
        self._lines.append(line)


def _now() -> int:
    return int(time.time() * 1000)


def _one_line(error: object) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
