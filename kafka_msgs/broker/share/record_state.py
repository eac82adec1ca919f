"""Record states in a share partition, and the data of acknowledgements and persisted states (KIP-932)."""

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
    """The state of an in-flight record, by Kafka's numbers. ACKNOWLEDGED and ARCHIVED are final."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def terminal(self) -> bool:
        """Whether the state is final."""
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class AcquireMode(IntEnum):
    """The acquire mode of a fetch: whole batches, or at most the requested number of records (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


RENEW: Final = 4
"""The acknowledgement type that renews a lock (KIP-1222)."""

STATE_OF_TYPE: Final[Mapping[int, RecordState]] = {
    0: RecordState.ARCHIVED,
    1: RecordState.ACKNOWLEDGED,
    2: RecordState.AVAILABLE,
    3: RecordState.ARCHIVED,
}
"""The record state after each acknowledgement type: gap, accept, release and reject."""


class AcknowledgementBatch(NamedTuple):
    """A member's acknowledgement of the records from ``first`` to ``last``: one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class AcquiredRecords(NamedTuple):
    """Acquired records and their delivery count."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.last - self.first + 1


class PersisterStateBatch(NamedTuple):
    """The state of the records from ``first`` to ``last``, as the share coordinator stores it."""

    first: int
    last: int
    state: RecordState
    delivery_count: int
