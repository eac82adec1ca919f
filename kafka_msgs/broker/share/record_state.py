"""The states of records in a share partition, and what members and the share coordinator say about them (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

__all__ = [
    "RENEW",
    "STATE_OF_TYPE",
    "AcknowledgementBatch",
    "AcquireMode",
    "AcquiredRecords",
    "PersisterStateBatch",
    "RecordState",
]


class RecordState(IntEnum):
    """The state of a record in flight, by Kafka's numbers. Nothing follows on ACKNOWLEDGED and ARCHIVED."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def terminal(self) -> bool:
        """Whether the record is done with."""
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class AcquireMode(IntEnum):
    """How many records a fetch gets: whole batches, or at most what it asked for (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


RENEW: Final = 4
"""The type of acknowledgement that begins the time of a lock again (KIP-1222)."""

STATE_OF_TYPE: Final[Mapping[int, RecordState]] = {
    0: RecordState.ARCHIVED,
    1: RecordState.ACKNOWLEDGED,
    2: RecordState.AVAILABLE,
    3: RecordState.ARCHIVED,
}
"""What becomes of a record by the type of its acknowledgement: gap, accept, release and reject."""


class AcknowledgementBatch(NamedTuple):
    """What a member says about the records from ``first`` to ``last``: one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class AcquiredRecords(NamedTuple):
    """Records that a member got, and how often they were delivered by now."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        """How many offsets there are."""
        return self.last - self.first + 1


class PersisterStateBatch(NamedTuple):
    """The state of the records from ``first`` to ``last``, as the share coordinator keeps it."""

    first: int
    last: int
    state: RecordState
    delivery_count: int
