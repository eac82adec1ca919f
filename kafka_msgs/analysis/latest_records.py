"""The latest records of ``__share_group_state`` and ``__transaction_state``, as a reducer.

A record replaces the earlier ones of its key. The updates of a share partition build on its last snapshot, so both are
kept. ``kafka_msgs.internal_topics.replay`` computes the state.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain

from attrs import define, field

from kafka_msgs.internal_topics.records import InternalRecord, TopicRecord
from kafka_msgs.internal_topics.replay import TopicState, replay
from kafka_msgs.messages.share_snapshot_key import ShareSnapshotKey
from kafka_msgs.messages.share_update_key import ShareUpdateKey

__all__ = ["LatestRecords"]


@define
class LatestRecords:
    """The state of a range: for each key its last record, or its last snapshot and the updates after it."""

    _records: dict[Hashable, list[tuple[int, InternalRecord]]] = field(factory=dict)

    def add(self, record: InternalRecord, offset: int = 0) -> None:
        """Add the next record of the range. ``offset`` is its offset in the log."""
        self._append(_place(record), [(offset, record)])

    def merge(self, later: LatestRecords) -> LatestRecords:
        """Return the state of this range and of the range after it. Both operands become unusable."""
        for place, records in later._records.items():
            self._append(place, records)
        return self

    def checkpoint(self) -> list[tuple[int, InternalRecord]]:
        """Return the offsets and records, from which ``add`` rebuilds the state."""
        return list(self._iter())

    def state(self) -> TopicState:
        """Return the state after the last record. Raises the errors of ``replay``."""
        return replay(record for _, record in self._iter())

    def _iter(self) -> Iterator[tuple[int, InternalRecord]]:
        return chain.from_iterable(self._records.values())

    def _append(self, place: Hashable, records: list[tuple[int, InternalRecord]]) -> None:
        kept = self._records.pop(place, [])
        if not _is_update(records[0][1]):
            kept.clear()
        kept += records
        self._records[place] = kept


def _place(record: InternalRecord) -> Hashable:
    """Return the key that a record affects."""
    key = record.key
    if isinstance(key, ShareSnapshotKey | ShareUpdateKey):
        return key.group_id, key.topic_id, key.partition
    return key


def _is_update(record: InternalRecord) -> bool:
    return isinstance(record, TopicRecord) and isinstance(record.key, ShareUpdateKey) and record.value is not None
