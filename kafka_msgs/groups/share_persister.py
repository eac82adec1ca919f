"""The group coordinator's interface to the share coordinator: initialize and delete the state of share partitions.

In Kafka this is the interface ``Persister``.
"""

from __future__ import annotations

from typing import Final, Protocol
from uuid import UUID

__all__ = ["UNSET", "NoOpSharePersister", "SharePersister"]

UNSET: Final = -1
"""The start offset of a share partition before its first fetch: ``share.auto.offset.reset`` then sets the start."""


class SharePersister(Protocol):
    """Stores the state of share partitions. Each method raises ``GroupError`` if it fails."""

    def initialize(self, group_id: str, topic_id: UUID, partition: int, *, state_epoch: int, start_offset: int) -> None:
        """Initialize the state of a share partition, at an epoch that counts its initializations."""

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        """Delete the state of a share partition."""


class NoOpSharePersister:
    """A persister without storage: every call succeeds."""

    def initialize(self, group_id: str, topic_id: UUID, partition: int, *, state_epoch: int, start_offset: int) -> None:
        """Do nothing."""

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        """Do nothing."""
