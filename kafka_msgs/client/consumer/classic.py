"""The classic group protocol: members join, the leader divides the partitions, and all members send heartbeats.

If all assignors are cooperative, a member keeps its partitions during a rebalance, and gives up only partitions that
move (KIP-429). Otherwise it first gives up all partitions. Static members (KIP-345) keep their membership across
restarts. Kafka's classes are ``AbstractCoordinator`` and ``ConsumerCoordinator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from kafka_msgs.client.broker_connection import BrokerConnection
from kafka_msgs.client.broker_errors import raise_for
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.assignors import ASSIGNORS, Assignor
from kafka_msgs.client.consumer.consumer_protocol import (
    UserData,
    decode_assignment,
    encode_assignment,
    encode_subscription,
    encode_user_data,
    read_joined_member,
)
from kafka_msgs.client.consumer.membership import AssignmentHost, Membership, PollOverdueError
from kafka_msgs.client.consumer.racks import NO_RACKS, Racks
from kafka_msgs.client.flow import Flow, Future, Wait
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ConnectionFailedError, DeadlineError
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

__all__ = ["ClassicMembership"]

_PROTOCOL_TYPE: Final = "consumer"
_NO_GENERATION: Final = -1


class ClassicMembership(Membership):
    """A member of a classic group."""

    def __init__(self, host: AssignmentHost, group_id: str) -> None:
        super().__init__(host, group_id)
        self._assignors: tuple[Assignor, ...] = tuple(ASSIGNORS[name] for name in self.config.assignors)
        self._cooperative = all(each.cooperative for each in self._assignors)
        self._joined = False
        self._previous_partitions: tuple[tuple[TopicPartition, ...], int] = ((), _NO_GENERATION)
        self._topics: frozenset[str] = frozenset()
        self._divided: tuple[frozenset[str], Mapping[str, int], Racks] | None = None
        """The input of the leader's last assignment: the topics of all members, partition counts, and racks."""
        self._beat: Future[Any] | None = None
        self._beat_by = 0.0
        self._beat_sent = self._synced = 0.0
        """The uptimes at which the last heartbeat and the last SyncGroup request were sent."""

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has accepted the member into the group."""
        return self.generation != _NO_GENERATION

    def leave(self, deadline: float) -> Flow[None]:
        """Send LeaveGroup. A static member skips the request and stays in the group until its session expires."""
        if not self.member_id or self.config.group_instance_id is not None:
            return
        connection = yield from self._link(deadline)
        if connection.highest_version(LeaveGroupRequest) < 3:
            request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        else:
            member = MemberIdentity(member_id=self.member_id, reason="the consumer is being closed")
            request = LeaveGroupRequest(group_id=self.group_id, members=(member,))
        self.member_id, self.generation, self._joined = "", _NO_GENERATION, False
        yield Wait(((yield from connection.send_when_ready(lambda: connection.send(request), deadline)),), deadline)

    def _run_member(self) -> Flow[None]:
        try:
            if not self._joined:
                yield from self._join_group()
            yield from self._heartbeat_until_rebalance()
        except PollOverdueError:
            yield from self._release_membership()
        self._joined = False

    def _recover(self, error: BrokerError) -> Flow[None]:
        self._joined = False
        if error.error == ErrorCode.REBALANCE_IN_PROGRESS:
            return
        if error.error not in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            raise error
        self.generation = _NO_GENERATION
        if error.error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        yield from self.host.lose_partitions(self.host.partitions.names)

    def _join_group(self) -> Flow[None]:
        """Revoke the partitions that must be given up, join the group, and apply the new assignment."""
        yield from self._until_topics()
        self._topics = self.host.topics
        owned = self.host.partitions.names
        given_up = {each for each in owned if each.topic not in self._topics} if self._cooperative else owned
        if given_up:
            yield from self._meanwhile(self.host.revoke(given_up))
        joined = yield from self._join()
        yield from self._apply_assignment((yield from self._sync(joined)))

    def _until_topics(self) -> Flow[None]:
        yield from self._until_poll()
        while not self.host.topics:
            yield Wait((self.host.changed.pending,), None)

    def _join(self) -> Flow[JoinGroupResponse]:
        """Send JoinGroup, and send it again if the coordinator first assigns a member id (KIP-394)."""
        while True:
            answer = yield from self._ask(self._join_request(), self.config.rebalance_timeout)
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
                continue
            raise_for(answer.error_code, api="JoinGroup", subject=self.group_id)
            self.member_id, self.generation = answer.member_id, answer.generation_id
            return answer

    def _join_request(self) -> JoinGroupRequest:
        owned, rack = self.host.partitions.names, self.config.client_rack or None
        protocols = (
            JoinGroupRequestProtocol(
                name=each.name,
                metadata=encode_subscription(
                    self._topics,
                    owned,
                    generation=self.generation,
                    rack=rack,
                    user_data=self._user_data(each),
                ),
            )
            for each in self._assignors
        )
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=round(self.config.session_timeout * 1000),
            rebalance_timeout_ms=round(self.config.rebalance_timeout * 1000),
            member_id=self.member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=_PROTOCOL_TYPE,
            protocols=tuple(protocols),
        )

    def _user_data(self, assignor: Assignor) -> bytes | None:
        partitions, generation = self._previous_partitions
        if assignor.user_data is UserData.GENERATION:
            generation = self.generation
        return encode_user_data(assignor.user_data, partitions, generation)

    def _sync(self, joined: JoinGroupResponse) -> Flow[list[TopicPartition]]:
        """Send SyncGroup and return the partitions of this member. A leader sends the assignment of all members."""
        assignments: tuple[SyncGroupRequestAssignment, ...] = ()
        self._divided = None
        self.host.watch(frozenset())
        if joined.leader == joined.member_id:
            assignments = yield from self._assign_partitions(joined)
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        self._synced = self.network.uptime()
        answer = yield from self._ask(request, self.config.rebalance_timeout)
        raise_for(answer.error_code, api="SyncGroup", subject=self.group_id)
        return decode_assignment(answer.assignment)

    def _assign_partitions(self, joined: JoinGroupResponse) -> Flow[tuple[SyncGroupRequestAssignment, ...]]:
        """Compute the assignment of all members. A returning static leader keeps the earlier assignment (KIP-814)."""
        assignor = ASSIGNORS[joined.protocol_name or ""]
        members = [
            read_joined_member(each.member_id, each.group_instance_id, each.metadata, assignor.user_data)
            for each in joined.members
        ]
        topics = frozenset[str]().union(*(member.topics for member in members))
        yield from self.client.refresh(topics, deadline=self.client.deadline(None))
        counts = self._partition_counts(topics)
        racks = self._racks(counts) if any(member.rack for member in members) else NO_RACKS
        self._divided = topics, counts, racks
        self.host.watch(topics)
        if joined.skip_assignment:
            return ()
        assigned = assignor.assign(counts, members, racks)
        return tuple(
            SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
            for member_id, partitions in assigned.items()
        )

    def _partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        counts = {topic: len(self.client.cluster.partitions(topic)) for topic in topics}
        return {topic: count for topic, count in counts.items() if count}

    def _racks(self, topics: Iterable[str]) -> Racks:
        """Return the racks of the replicas of each partition."""
        cluster = self.client.cluster
        racks = {broker_id: broker.rack for broker_id, broker in cluster.brokers.items() if broker.rack}
        return {
            TopicPartition(topic, number): frozenset(
                racks[broker_id] for broker_id in info.replicas if broker_id in racks
            )
            for topic in topics
            for number, info in cluster.partitions(topic).items()
        }

    def _apply_assignment(self, assigned: list[TopicPartition]) -> Flow[None]:
        """Apply an assignment. If partitions were revoked, rejoin so that other members can get them."""
        self._next_beat = self.network.now() + self.config.heartbeat_interval
        self._beat = None
        self._joined = True
        self.lease_ends = self._synced + self.config.session_timeout
        self._previous_partitions = tuple(assigned), self.generation
        owned = self.host.partitions.names
        revoked, added = owned.difference(assigned), [each for each in assigned if each not in owned]
        if revoked:
            yield from self._meanwhile(self.host.revoke(revoked))
        yield from self._meanwhile(self.host.assign(added))
        if revoked:
            self._joined = False
            yield from self._join_group()

    def _heartbeat_until_rebalance(self) -> Flow[None]:
        """Send heartbeats until the member must rejoin."""
        while not self._must_rejoin():
            if self._poll_overdue():
                raise PollOverdueError
            connection = yield from self._link(self.client.deadline(None))
            self._check_beat(connection)
            until = self._next_beat if self._beat is None else self._beat_by
            waiting = [self.host.changed.pending, *([] if self._beat is None else [self._beat])]
            yield Wait(waiting, self._until(until))

    def _must_rejoin(self) -> bool:
        """Whether the topics changed, or, for the leader, the partition counts or the racks of the replicas."""
        if self.host.topics != self._topics:
            return True
        if self._divided is None:
            return False
        topics, counts, racks = self._divided
        if self._partition_counts(topics) != counts:
            return True
        return bool(racks) and self._racks(counts) != racks

    def _check_beat(self, connection: BrokerConnection) -> None:
        """Process the response to the last heartbeat, and send the next heartbeat when it is due."""
        now = self.network.now()
        if self._beat is not None and self._beat.done:
            beat, self._beat = self._beat, None
            raise_for(beat.result().error_code, api="Heartbeat", subject=self.group_id)
            self.lease_ends = self._beat_sent + self.config.session_timeout
            self.host.arrived.notify()
            self._failures = 0
        elif self._beat is not None and now >= self._beat_by:
            self._beat = None
            connection.close()
            raise DeadlineError(waiting_for=f"Heartbeat of group {self.group_id}")
        if self._beat is None and now >= self._next_beat:
            self._send_beat(connection)

    def _send_beat(self, connection: BrokerConnection) -> None:
        """Send a heartbeat, unless the connection is full: its in-flight requests show that the member is alive."""
        now = self.network.now()
        self._next_beat = now + self.config.heartbeat_interval
        if connection.is_full:
            return
        self._beat_by = now + min(self.client.config.request_timeout, self.config.session_timeout)
        self._beat_sent = self.network.uptime()
        self._beat = connection.send(
            HeartbeatRequest(
                group_id=self.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.config.group_instance_id,
            )
        )

    def _meanwhile(self, flow: Flow[None]) -> Flow[None]:
        """Run a flow, and send heartbeats until it ends. Responses are processed later."""
        task = self.network.spawn(flow)
        try:
            while not task.done:
                yield Wait((task,), self._until(self._next_beat))
                if not task.done and self._poll_overdue():
                    raise PollOverdueError
                if not task.done and self.generation != _NO_GENERATION:
                    try:
                        self._send_beat((yield from self._link(self.client.deadline(None))))
                    except (ConnectionFailedError, DeadlineError, BrokerError):
                        self._next_beat = self.network.now() + self.config.heartbeat_interval
        finally:
            task.cancel()
        task.result()

    def _release_membership(self) -> Flow[None]:
        """Leave the group after the poll interval has expired."""
        lost = self.host.drop_all()
        with suppress(ConnectionFailedError, DeadlineError, BrokerError):  # on failure, its session expires
            yield from self.leave(self.client.deadline(None))
        self.generation, self._joined = _NO_GENERATION, False
        yield from self.host.lose_partitions(lost)
