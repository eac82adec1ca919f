"""Share partition keys: a group, a topic and a partition (Kafka's ``SharePartitionKey``)."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from typing import Final, NamedTuple
from uuid import UUID

__all__ = ["SharePartitionKey"]

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
