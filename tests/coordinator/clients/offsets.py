"""A client that commits, fetches and deletes offsets without being a member, including in transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.coordinator.clients.base import Client, ignore

__all__ = ["OffsetsClient"]


class OffsetsClient(Client):
    """Commits, fetches and deletes offsets."""

    def actions(self) -> Mapping[Callable[[], None], int]:
        """Return the possible next actions, with weights."""
        return {self.commit: 30, self.commit_in_transaction: 20, self.end: 8, self.fetch: 20, self.delete: 5}

    def _some_topics(self) -> list[dict[str, Any]]:
        names = self.random.sample(("in", "u", "x3"), self.random.randint(1, 2))
        return [{"name": name, "partitions": self._some_partitions()} for name in names]

    def _some_partitions(self) -> list[dict[str, Any]]:
        return [
            {
                "partitionIndex": number,
                "committedOffset": self.random.randint(0, 999),
                "committedLeaderEpoch": self.random.choice((-1, 0, 3)),
                "committedMetadata": self.random.choice((None, "", "m")),
            }
            for number in self.random.sample(range(4), self.random.randint(1, 3))
        ]

    def commit(self) -> None:
        """Commit offsets."""
        body = {
            "groupId": self.group,
            "generationIdOrMemberEpoch": -1,
            "memberId": "",
            "retentionTimeMs": self.random.choice((-1, -1, 30_000)),
            "topics": self._some_topics(),
        }
        self.request("OffsetCommit", body, ignore, highest=9)

    def commit_in_transaction(self) -> None:
        """Commit offsets that take effect when the transaction commits."""
        producer = self.random.choice((7, 8))
        self.world.producers.append(producer)
        body = {
            "transactionalId": "x",
            "groupId": self.group,
            "producerId": producer,
            "producerEpoch": self.random.choice((0, 0, 0, 1)),
            "generationIdOrMemberEpoch": -1,
            "generationId": -1,
            "memberId": "",
            "topics": self._some_topics(),
        }
        self.request("TxnOffsetCommit", body, ignore, highest=5)

    def end(self) -> None:
        """End a transaction."""
        self.world.end_transaction()

    def fetch(self) -> None:
        """Fetch all or some offsets of this group, sometimes also of another group."""
        topics = self.random.choice((None, [{"name": "in", "partitionIndexes": [0, 1, 5]}]))
        groups = [{"groupId": self.group, "topics": topics}, {"groupId": "h", "topics": None}]
        stable = self.random.random() < 0.5
        body = {
            "groupId": self.group,
            "topics": topics or [],
            "groups": groups[: self.random.choice((1, 1, 2))],
            "requireStable": stable,
        }
        self.request("OffsetFetch", body, ignore, highest=9)

    def delete(self) -> None:
        """Delete offsets."""
        partitions = [{"partitionIndex": number} for number in self.random.sample(range(4), 2)]
        body = {"groupId": self.group, "topics": [{"name": "in", "partitions": partitions}]}
        self.request("OffsetDelete", body, ignore)
