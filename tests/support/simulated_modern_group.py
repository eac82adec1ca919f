"""Coordinator side of a KIP-848 group, in memory: epochs, target assignments, and current assignments of members."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

from attrs import define

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Response
from kafka_msgs.messages import consumer_group_heartbeat_response
from tests.support.simulated_network import Reply

if TYPE_CHECKING:
    from tests.support.simulated_groups import GroupCluster

__all__ = ["SimulatedModernGroup"]


@define(eq=False)
class ModernMember:
    """A member of a KIP-848 group: its epoch, its current assignment, and its target assignment."""

    epoch: int = 0
    topics: tuple[str, ...] = ()
    owned: frozenset[tuple[UUID, int]] = frozenset()
    target: frozenset[tuple[UUID, int]] = frozenset()
    seen: float = 0.0


class SimulatedModernGroup:
    """A KIP-848 group with round-robin assignment; a member gets a partition once the previous owner has revoked it."""

    def __init__(self, cluster: GroupCluster, *, session: float = 5.0, interval: float = 1.0) -> None:
        self.cluster = cluster
        self.epoch = 0
        self.session = session
        self.interval = interval
        self.members: dict[str, ModernMember] = {}
        self.fence: set[str] = set()

    def heartbeat(self, request: Any) -> Reply:
        """Handle a heartbeat, and respond with the part of the target assignment that is free."""
        name = request.member_id
        if name in self.fence:
            self.fence.discard(name)
            self.members.pop(name, None)
            return self._answer(name, ErrorCode.FENCED_MEMBER_EPOCH)
        if request.member_epoch < 0:
            self.members.pop(name, None)
            self._divide()
            return self._answer(name)
        if request.member_epoch == 0:
            self.members[name] = ModernMember()
            self.cluster.network.later(self.session, lambda: self._expire(name))
        if name not in self.members:
            return self._answer(name, ErrorCode.UNKNOWN_MEMBER_ID)
        member = self.members[name]
        member.seen = self.cluster.network.time
        if request.subscribed_topic_names is not None and request.subscribed_topic_names != member.topics:
            member.topics = request.subscribed_topic_names
            self._divide()
        if request.topic_partitions is not None:
            member.owned = frozenset((t.topic_id, n) for t in request.topic_partitions for n in t.partitions)
        member.epoch = self.epoch
        return self._answer(name)

    def _divide(self) -> None:
        self.epoch += 1
        for member in self.members.values():
            member.target = frozenset()
        for topic, count in sorted(self.cluster.counts.items()):
            takers = sorted(name for name, member in self.members.items() if topic in member.topics)
            for number in range(count if takers else 0):
                taker = self.members[takers[number % len(takers)]]
                taker.target |= {(self.cluster.topic_id(topic), number)}

    def _answer(self, name: str, code: ErrorCode = ErrorCode.NONE) -> Response:
        member = self.members.get(name, ModernMember())
        others = [each.owned for other, each in self.members.items() if other != name]
        free = member.target.difference(*others)
        topics: dict[UUID, list[int]] = defaultdict(list)
        for topic, number in sorted(free):
            topics[topic].append(number)
        assignment = consumer_group_heartbeat_response.Assignment(
            topic_partitions=tuple(
                consumer_group_heartbeat_response.TopicPartitions(topic_id=topic, partitions=tuple(found))
                for topic, found in topics.items()
            )
        )
        return consumer_group_heartbeat_response.ConsumerGroupHeartbeatResponse(
            error_code=code, member_id=name, member_epoch=member.epoch,
            heartbeat_interval_ms=round(self.interval * 1000), assignment=None if code else assignment,
        )  # fmt: skip

    def _expire(self, name: str) -> None:
        member = self.members.get(name)
        if member is None:
            return
        left = member.seen + self.session - self.cluster.network.time
        if left > 0:
            self.cluster.network.later(left, lambda: self._expire(name))
        else:
            del self.members[name]
            self._divide()

    def may_commit(self, request: Any) -> ErrorCode:
        """Return the error for a commit, or NONE."""
        member = self.members.get(request.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID if request.member_id else ErrorCode.NONE
        fits = request.generation_id_or_member_epoch == member.epoch
        return ErrorCode.NONE if fits else ErrorCode.STALE_MEMBER_EPOCH
