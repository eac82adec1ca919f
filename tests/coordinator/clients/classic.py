"""A consumer with the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.coordinator.clients.base import Client, ignore
from tests.coordinator.consumer_protocol import assigned, assignment, subscribed_topics, subscription
from tests.coordinator.script_state import Body, World

__all__ = ["ClassicClient"]

_REBALANCE, _GENERATION, _UNKNOWN, _FENCED, _ID_REQUIRED = 27, 22, 25, 82, 79


class ClassicClient(Client):
    """Joins and syncs, assigns partitions as the leader, commits, leaves or crashes, and returns."""

    def __init__(self, world: World, group: str, name: str, *, instance: str | None = None) -> None:
        super().__init__(world, group, name)
        self.instance = instance
        self.member = ""
        self.generation = -1
        self.joined: Body | None = None
        self.stable = False
        self.owned: dict[str, list[int]] = {}
        self.attempt = 0
        self.session = self.random.choice((6000, 10_000, 45_000))
        self.topics = self._some_topics()
        self.protocols = self.random.choice((["range"], ["range", "cooperative-sticky"]))

    def _some_topics(self) -> list[str]:
        return self.random.choice((["in"], ["in"], ["in", "u"], ["x3", "in"]))

    def step(self) -> None:
        """Send a request. A client that waits for other members may crash."""
        if self.busy and self.random.random() < 0.02:
            self.fall_silent()
        super().step()

    def actions(self) -> Mapping[Callable[[], None], int]:
        """Return the possible next actions, with weights."""
        if self.joined is not None and not self.stable:
            return {self.synchronise: 30, self.heartbeat: 2, ignore: 2, self.fall_silent: 1}
        if not self.stable:
            return {self.join: 6, ignore: 4}
        return {
            self.heartbeat: 50,
            self.commit: 8,
            self.fetch: 3,
            self.commit_in_transaction: 2,
            self.join: 3,
            self.resubscribe: 3,
            self.leave: 3,
            self.fall_silent: 2,
        }

    def _identity(self) -> dict[str, Any]:
        return {"groupId": self.group, "memberId": self.member, "groupInstanceId": self.instance}

    def _current(self, then: Callable[[Body], None]) -> Callable[[Body], None]:
        """Return a handler that ignores the response if the client has crashed since."""
        attempt = self.attempt

        def answered(answer: Body) -> None:
            if attempt == self.attempt:
                then(answer)

        return answered

    def join(self) -> None:
        """Join with the owned partitions. The response may come much later."""
        self.joined, self.stable = None, False
        version = self.random.randint(0, 3)
        metadata = subscription(self.topics, self.owned, version=version, generation=self.generation)
        body = {
            **self._identity(),
            "sessionTimeoutMs": self.session,
            "rebalanceTimeoutMs": self.random.choice((5000, 60_000)),
            "protocolType": "consumer",
            "protocols": [{"name": name, "metadata": metadata} for name in self.protocols],
            "reason": None,
        }
        self.request("JoinGroup", body, self._current(self._join_answered), lowest=5 if self.instance else 0)

    def _join_answered(self, answer: Body) -> None:
        error = answer["errorCode"]
        if error == 0:
            self.joined, self.member, self.generation = answer, answer["memberId"], answer["generationId"]
        elif error == _ID_REQUIRED:
            self.member = answer["memberId"]
        else:
            self._failed(error)

    def synchronise(self) -> None:
        """Request the assignment. The leader sends the assignments of all members."""
        assert self.joined is not None
        shares = self._shares(self.joined["members"]) if self.joined["members"] else {}
        body = {
            **self._identity(),
            "generationId": self.generation,
            "protocolType": "consumer",
            "protocolName": self.joined["protocolName"],
            "assignments": [{"memberId": member, "assignment": assignment(share)} for member, share in shares.items()],
        }
        self.request("SyncGroup", body, self._current(self._sync_answered), lowest=3 if self.instance else 0)

    def _shares(self, members: list[Body]) -> dict[str, dict[str, list[int]]]:
        shares: dict[str, dict[str, list[int]]] = {member["memberId"]: {} for member in members}
        for topic, count in self.world.topics.items():
            takers = [entry["memberId"] for entry in members if topic in subscribed_topics(entry["metadata"])]
            for partition in range(count if takers else 0):
                shares[takers[partition % len(takers)]].setdefault(topic, []).append(partition)
        return shares

    def _sync_answered(self, answer: Body) -> None:
        if answer["errorCode"] == 0:
            self.owned, self.stable = assigned(answer["assignment"]), True
        else:
            self._failed(answer["errorCode"])

    def _failed(self, error: int) -> None:
        """Drop the state that the error invalidates; the next step joins again."""
        if error in (_REBALANCE, _GENERATION, _UNKNOWN, _FENCED):
            self.joined, self.stable = None, False
        if error in (_UNKNOWN, _FENCED):
            self.member, self.generation, self.owned = "", -1, {}

    def heartbeat(self) -> None:
        """Send a heartbeat."""
        body = {**self._identity(), "generationId": self.generation}
        self.request(
            "Heartbeat", body, lambda answer: self._failed(answer["errorCode"]), lowest=3 if self.instance else 0
        )

    def resubscribe(self) -> None:
        """Join again with another subscription."""
        self.topics = self._some_topics()
        self.join()

    def leave(self) -> None:
        """Leave permanently. A static member is removed by its instance id."""
        entry = {"memberId": self.member if not self.instance else "", "groupInstanceId": self.instance}
        body = {"groupId": self.group, "memberId": self.member, "members": [entry]}
        self.request("LeaveGroup", body, ignore, lowest=3 if self.instance else 0)
        self._forget()

    def fall_silent(self) -> None:
        """Crash: send no request until the next join."""
        self.attempt += 1
        self.busy = False
        self._forget()

    def _forget(self) -> None:
        self.member, self.generation, self.owned, self.joined, self.stable = "", -1, {}, None, False

    def _topics_to_commit(self) -> list[dict[str, Any]]:
        partition = {"partitionIndex": self.random.randint(0, 2), "committedOffset": self.random.randint(0, 99)}
        return [{"name": self.random.choice(("in", "u")), "partitions": [partition]}]

    def commit(self) -> None:
        """Commit an offset as a member."""
        topics = self._topics_to_commit()
        body = {**self._identity(), "generationIdOrMemberEpoch": self.generation, "topics": topics}
        self.request("OffsetCommit", body, ignore, lowest=7 if self.instance else 2, highest=9)

    def commit_in_transaction(self) -> None:
        """Commit an offset as a member within a transaction."""
        producer = self.random.choice((7, 8))
        self.world.producers.append(producer)
        body = {
            **self._identity(),
            "transactionalId": "x",
            "producerId": producer,
            "producerEpoch": 0,
            "generationId": self.generation,
            "generationIdOrMemberEpoch": self.generation,
            "topics": self._topics_to_commit(),
        }
        self.request("TxnOffsetCommit", body, ignore, lowest=3, highest=5)

    def fetch(self) -> None:
        """Fetch offsets."""
        stable = self.random.random() < 0.5
        body = {"groupId": self.group, "topics": None, "groups": [{"groupId": self.group}], "requireStable": stable}
        self.request("OffsetFetch", body, ignore, lowest=2, highest=9)
