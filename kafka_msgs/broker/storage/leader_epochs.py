"""The leader epochs of a partition and their start offsets (KIP-101, KIP-320).

In Kafka this is ``org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache``. ``kafka_msgs.log`` reads and writes
its file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from kafka_msgs.log.small_files import LeaderEpoch

__all__ = ["NO_EPOCH", "LeaderEpochCache"]

NO_EPOCH: Final = -1
"""The result for an unknown epoch."""


class LeaderEpochCache:
    """The epochs in ascending order, each with its start offset."""

    def __init__(self, entries: Iterable[LeaderEpoch] = ()) -> None:
        self._entries: list[LeaderEpoch] = []
        for epoch, start in entries:
            self.assign(epoch, start)

    @property
    def entries(self) -> tuple[LeaderEpoch, ...]:
        """All epochs, the oldest first."""
        return tuple(self._entries)

    @property
    def latest(self) -> int | None:
        """The latest epoch, or None if there is none."""
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Start ``epoch`` at an offset, and return whether the cache changed.

        Later epochs, and epochs that start at that offset or above, are removed.
        """
        entries = self._entries
        if entries and entries[-1].epoch == epoch and start_offset >= entries[-1].start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(LeaderEpoch(epoch, start_offset))
        return True

    def of(self, offset: int) -> int | None:
        """Return the epoch of the record at ``offset``, or None if it is below the first epoch."""
        at = bisect_right(self._entries, offset, key=attrgetter("start_offset")) - 1
        return self._entries[at].epoch if at >= 0 else None

    def end_offset(self, epoch: int, log_end_offset: int) -> LeaderEpoch:
        """Return the highest epoch up to ``epoch``, and the offset after its last record. Both are -1 if unknown."""
        if epoch == NO_EPOCH or self.latest is None:
            return LeaderEpoch(NO_EPOCH, -1)
        if epoch == self.latest:
            return LeaderEpoch(epoch, log_end_offset)
        after = bisect_right(self._entries, epoch, key=attrgetter("epoch"))
        if after == len(self._entries):
            return LeaderEpoch(NO_EPOCH, -1)
        known = self._entries[after - 1].epoch if after else epoch
        return LeaderEpoch(known, self._entries[after].start_offset)

    def truncate_start(self, offset: int) -> bool:
        """Remove epochs that ended at ``offset`` or below, and return whether anything changed."""
        at = bisect_right(self._entries, offset, key=attrgetter("start_offset")) - 1
        if at < 0 or (at == 0 and self._entries[0].start_offset == offset):
            return False
        self._entries[: at + 1] = [LeaderEpoch(self._entries[at].epoch, offset)]
        return True

    def truncate_end(self, offset: int) -> bool:
        """Remove epochs that start at ``offset`` or above, and return whether anything changed."""
        before = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= offset:
            self._entries.pop()
        return len(self._entries) != before
