"""What a group coordinator asks of the share coordinator: to begin and to forget the state of share partitions.

In Kafka this is the interface ``Persister``.
"""

from __future__ import annotations

from typing import Final, Protocol
from uuid import UUID

__all__ = ["UNSET", "NoOpSharePersister", "SharePersister"]

UNSET: Final = -1
"""The start offset of a share partition before its first fetch: then ``share.auto.offset.reset`` says where it begins.
"""


class SharePersister(Protocol):
    """Keeps the state of share partitions. Each method raises ``GroupError`` if it cannot do what it is asked."""

    def initialize(self, group_id: str, topic_id: UUID, partition: int, *, state_epoch: int, start_offset: int) -> None:
        """Begin to keep the state of a share partition, at an epoch that counts such beginnings."""

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        """Forget the state of a share partition."""


class NoOpSharePersister:
    """Keeps no state: whatever is asked counts as done."""

    def initialize(self, group_id: str, topic_id: UUID, partition: int, *, state_epoch: int, start_offset: int) -> None:
        """Do nothing."""

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        """Do nothing."""
