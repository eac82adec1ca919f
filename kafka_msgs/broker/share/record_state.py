"""Keys and record states of share partitions, and the data of acknowledgements and persisted states (KIP-932)."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

__all__ = [
    "RENEW",
    "STATE_OF_TYPE",
    "AcknowledgementBatch",
    "AcquireMode",
    "AcquiredRecords",
    "PersisterStateBatch",
    "RecordState",
    "SharePartitionKey",
]

_ID_SIZE: Final = 16
_LARGEST: Final = 2**31 - 1


class SharePartitionKey(NamedTuple):
    """A share partition."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def text(self) -> str:
        """The key in FindCoordinator requests: the three parts separated by ``:``."""
        topic_id = urlsafe_b64encode(self.topic_id.bytes).decode().rstrip("=")
        return f"{self.group_id}:{topic_id}:{self.partition}"

    @classmethod
    def parse(cls, text: str) -> SharePartitionKey | None:
        """Return the share partition for a key text, or None for an invalid format. The group id may contain ``:``."""
        group_id, _, rest = text.rpartition(":")
        group_id, _, topic_id = group_id.rpartition(":")
        try:
            data = urlsafe_b64decode(f"{topic_id}==")
            partition = int(rest)
        except (Error, ValueError):
            return None
        if not group_id.strip() or len(data) != _ID_SIZE or not -_LARGEST - 1 <= partition <= _LARGEST:
            return None
        return cls(group_id, UUID(bytes=data), partition)


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
