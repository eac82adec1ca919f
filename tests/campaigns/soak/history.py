"""The reports of a client process, and the verdict on its promises."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from attrs import Factory, define

from tests.campaigns.soak.protocol import PARTITIONS

__all__ = ["History", "Totals"]

_UNKNOWN: Final = -1
_FAILED: Final = -2
_ABORTED: Final = -3
_SHOWN: Final = 5
"""The maximum number of examples of each kind of broken promise."""


@define
class Totals:
    """The counts of one client. ``repeated`` records are allowed: the group had not committed their offset."""

    acknowledged: int = 0
    failed: int = 0
    aborted: int = 0
    read: int = 0
    repeated: int = 0
    lost: int = 0
    duplicated: int = 0
    misplaced: int = 0
    restarts: int = 0

    @property
    def broken(self) -> int:
        """The number of broken promises."""
        return self.lost + self.duplicated + self.misplaced


@define(eq=False)
class _Partition:
    """The records of a partition by sequence number, and the times of acknowledgements and deliveries (ms)."""

    written: array[int] = Factory(lambda: array("q"))
    read_at: array[int] = Factory(lambda: array("q"))
    acknowledged: array[int] = Factory(lambda: array("q"))
    delivered: array[int] = Factory(lambda: array("q"))
    last_offset: int = -1
    last_sequence: int = -1
    committed: int = 0


class History:
    """The reports of one client in the order of arrival. See ``protocol``."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.broken: list[str] = []
        self.errors: list[str] = []
        self.drained = False
        self._partitions = [_Partition() for _ in range(PARTITIONS)]
        self._handlers: dict[str, Callable[..., None]] = {
            "A": self._acknowledged, "F": self._failed, "X": self._aborted, "R": self._received,
            "C": self._committed, "E": self._restarted, "D": self._drained,
        }  # fmt: skip

    def add(self, line: str) -> None:
        """Take a line of the client."""
        kind, *fields = line.split(" ", 4)
        self._handlers[kind](*fields)

    @property
    def unread(self) -> int:
        """The number of acknowledged records that were not received yet."""
        return sum(len(self._missing(each)) for each in self._partitions)

    def stall(self, begin: int, end: int, *, reads: bool = False) -> float:
        """Return the longest time in seconds without an acknowledgement, or a delivery, of any partition."""
        times = (each.delivered if reads else each.acknowledged for each in self._partitions)
        return max(_longest_gap(each, begin, end) for each in times) / 1000

    def judge(self) -> None:
        """Check all acknowledged records. Call it once, after the end of the client."""
        for number, partition in enumerate(self._partitions):
            missing = self._missing(partition)
            self.totals.lost += len(missing)
            for sequence in missing[:_SHOWN]:
                self.broken.append(f"{number}/{sequence} at offset {partition.written[sequence]} was never read")
            for sequence, (written, read) in enumerate(zip(partition.written, partition.read_at, strict=False)):
                if written == _ABORTED and read >= 0:
                    self._misplaced(f"{number}/{sequence} was aborted, and was read at offset {read}")
                elif written >= 0 and 0 <= read != written:
                    self._misplaced(f"{number}/{sequence} was written at {written}, and read at {read}")

    @staticmethod
    def _missing(partition: _Partition) -> list[int]:
        read = partition.read_at
        return [
            sequence
            for sequence, written in enumerate(partition.written)
            if written >= 0 and (sequence >= len(read) or read[sequence] < 0)
        ]

    def _acknowledged(self, time: str, partition: str, sequence: str, offset: str) -> None:
        self.totals.acknowledged += 1
        place = self._partitions[int(partition)]
        place.acknowledged.append(int(time))
        _put(place.written, int(sequence), int(offset))

    def _failed(self, partition: str, sequence: str, *reason: str) -> None:
        self.totals.failed += 1
        _put(self._partitions[int(partition)].written, int(sequence), _FAILED)
        if len(self.errors) < _SHOWN:
            self.errors.append(f"{partition}/{sequence} failed: {' '.join(reason)}")

    def _aborted(self, partition: str, sequence: str) -> None:
        self.totals.aborted += 1
        _put(self._partitions[int(partition)].written, int(sequence), _ABORTED)

    def _received(self, time: str, partition: str, at: str, number: str) -> None:
        self.totals.read += 1
        place, offset, sequence = self._partitions[int(partition)], int(at), int(number)
        place.delivered.append(int(time))
        before = place.read_at[sequence] if sequence < len(place.read_at) else _UNKNOWN
        if offset <= place.last_offset:
            self._repeated(place, partition, offset, sequence, before)
        else:
            if before >= 0:
                self.totals.duplicated += 1
                self._note(f"{partition}/{sequence} is in the topic twice, at {before} and {offset}")
            elif sequence < place.last_sequence:
                self._misplaced(f"{partition}/{sequence} at offset {offset} came after {place.last_sequence}")
            place.last_offset, place.last_sequence = offset, max(sequence, place.last_sequence)
        if before < 0:
            _put(place.read_at, sequence, offset)

    def _repeated(self, place: _Partition, partition: str, offset: int, sequence: int, before: int) -> None:
        self.totals.repeated += 1
        if offset < place.committed:
            self._misplaced(f"{partition}/{sequence} was read again at {offset}, below the commit {place.committed}")
        elif before != offset:
            self._misplaced(f"{partition}/{sequence} at offset {offset} was read late")

    def _committed(self, partition: str, offset: str) -> None:
        place = self._partitions[int(partition)]
        place.committed = max(place.committed, int(offset))

    def _restarted(self, *reason: str) -> None:
        self.totals.restarts += 1
        if len(self.errors) < _SHOWN:
            self.errors.append(" ".join(reason))

    def _drained(self) -> None:
        self.drained = True

    def _misplaced(self, text: str) -> None:
        self.totals.misplaced += 1
        self._note(text)

    def _note(self, text: str) -> None:
        if len(self.broken) < 4 * _SHOWN:
            self.broken.append(text)


def _put(values: array[int], index: int, value: int) -> None:
    if index >= len(values):
        values.extend([_UNKNOWN] * (index + 1 - len(values)))
    values[index] = value


def _longest_gap(times: array[int], begin: int, end: int) -> int:
    """Return the longest gap between neighbouring times that overlaps the interval. The interval's ends close gaps."""
    first, last = bisect_right(times, begin), bisect_right(times, end)
    inside = [times[first - 1] if first else begin, *times[first:last], times[last] if last < len(times) else end]
    return max(after - before for before, after in pairwise(inside))
