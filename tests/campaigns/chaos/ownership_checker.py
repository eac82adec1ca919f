"""Checks the responses of coordinators for exclusive ownership: no partition has two owners at the same time.

In a classic group, ownership is per generation: the assignments of one generation do not overlap. In a consumer
group (KIP-848), a member owns its assigned partitions until it reports their revocation, or until the coordinator
removes it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS
from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.coordinators.leadership import leader_of
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.groups.runtime.timeline_map import partition_for_key
from kafka_msgs.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequest
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.versioned import decode_versioned

__all__ = ["Owners"]


class Owners:
    """Observes the responses of a cluster. ``broken`` describes violations; ``answers`` counts responses."""

    def __init__(self, cluster: Cluster, broken: list[str]) -> None:
        self.broken = broken
        self.answers = 0
        self._cluster = cluster
        self._generations: defaultdict[tuple[str, int], dict[object, str]] = defaultdict(dict)
        self._given: defaultdict[str, dict[str, frozenset[object]]] = defaultdict(dict)
        self._owned: defaultdict[str, dict[str, frozenset[object]]] = defaultdict(dict)
        self._committed: dict[tuple[str, str, int], int] = {}
        cluster.response_observers.append(self._see)

    def _see(self, call: ServerCall[Any], response: Any) -> None:
        self.answers += 1
        request = call.request
        if isinstance(request, SyncGroupRequest) and not response.error_code and response.assignment:
            self._see_sync(request, response)
        elif isinstance(request, ConsumerGroupHeartbeatRequest):
            self._see_heartbeat(request, response)
        elif isinstance(request, OffsetCommitRequest):
            self._see_commit(request, response)

    def _see_sync(self, request: SyncGroupRequest, response: Any) -> None:
        assignment = decode_versioned(ConsumerProtocolAssignment, bytes(response.assignment)).message
        owners = self._generations[request.group_id, request.generation_id]
        for topic in assignment.assigned_partitions:
            for partition in topic.partitions:
                owner = owners.setdefault((topic.topic, partition), request.member_id)
                if owner != request.member_id:
                    self.broken.append(
                        f"{topic.topic}-{partition} has two owners in generation {request.generation_id} of "
                        f"{request.group_id}"
                    )

    def _see_heartbeat(self, request: ConsumerGroupHeartbeatRequest, response: Any) -> None:
        given, owned = self._given[request.group_id], self._owned[request.group_id]
        if response.error_code:
            return
        member = response.member_id or request.member_id
        if request.member_epoch < 0:
            given.pop(member, None)
            owned.pop(member, None)
            return
        if response.assignment is not None:
            given[member] = _pairs(response.assignment.topic_partitions)
        if request.member_epoch == 0:
            owned[member] = frozenset()
        elif request.topic_partitions is not None:
            owned[member] = _pairs(request.topic_partitions)
        owned[member] = owned.get(member, frozenset()) | given.get(member, frozenset())
        self._compare(request.group_id, member)

    def _compare(self, group_id: str, member: str) -> None:
        owned = self._owned[group_id]
        for other in [each for each in owned if each != member and owned[each] & owned[member]]:
            if other in self._members(group_id):
                both = owned[other] & owned[member]
                self.broken.append(f"{member} and {other} of {group_id} own {sorted(map(str, both))}")
            del owned[other]

    def _members(self, group_id: str) -> Any:
        """Return the current members of a group from the coordinator's state."""
        topic = self._cluster.image.topics[CONSUMER_OFFSETS]
        partition = partition_for_key(group_id, len(topic.partitions))
        leader = leader_of(self._cluster, CONSUMER_OFFSETS, partition)
        assert leader is not None
        state = GroupCoordinatorService.of_broker(self._cluster, leader).coordinator.shards[partition].state
        return getattr(state.groups.get(group_id), "members", ())

    def _see_commit(self, request: OffsetCommitRequest, response: Any) -> None:
        """Check that committed offsets never decrease, because members read on from the last commit."""
        if response is None or not request.member_id:
            return
        codes = [each.error_code for topic in response.topics for each in topic.partitions]
        parts = [(topic, each) for topic in request.topics for each in topic.partitions]
        for code, (topic, each) in zip(codes, parts, strict=True):
            key = request.group_id, topic.name or str(topic.topic_id), each.partition_index
            before = self._committed.get(key, 0)
            if not code and each.committed_offset < before:
                self.broken.append(f"the offset of {key} went back from {before} to {each.committed_offset}")
            elif not code:
                self._committed[key] = each.committed_offset


def _pairs(topics: Any) -> frozenset[object]:
    return frozenset((topic.topic_id, partition) for topic in topics for partition in topic.partitions)
