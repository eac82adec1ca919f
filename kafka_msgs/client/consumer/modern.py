"""The group protocol of KIP-848: the coordinator assigns the partitions, and heartbeats carry all communication.

A heartbeat reports the changes at the member, and the partitions that it owns. The response may contain a new target
assignment. The member revokes partitions outside the target, adds the missing partitions, and reports both in the next
heartbeat. Kafka's classes are ``ConsumerMembershipManager`` and ``ConsumerHeartbeatRequestManager``.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from contextlib import suppress
from random import Random
from typing import Final
from uuid import UUID

from kafka_msgs.client.broker_errors import raise_for
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.membership import AssignmentHost, Membership, PollOverdueError
from kafka_msgs.client.flow import Flow, Wait
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ConnectionFailedError, DeadlineError
from kafka_msgs.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kafka_msgs.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic

__all__ = ["ModernMembership", "make_member_id"]

_JOIN_EPOCH: Final = 0
_LEAVE_EPOCH: Final = -1
_STATIC_LEAVE_EPOCH: Final = -2
_UNKNOWN_INTERVAL: Final = 5.0
_LEASE: Final = 3
"""The number of heartbeat intervals for which a member relies on its partitions: the session timeout is unknown."""


def make_member_id(random: Random) -> str:
    """Return a member id in the format of Kafka's consumer (KIP-1082): a random UUID in base64, without padding."""
    identity = UUID(int=random.getrandbits(128), version=4)
    return urlsafe_b64encode(identity.bytes).decode().rstrip("=")


class ModernMembership(Membership):
    """A member of a KIP-848 consumer group."""

    def __init__(self, host: AssignmentHost, group_id: str, random: Random) -> None:
        super().__init__(host, group_id)
        self.member_id = make_member_id(random)
        self.generation = _JOIN_EPOCH
        self._interval = _UNKNOWN_INTERVAL
        self._target: frozenset[tuple[UUID, int]] | None = None
        self._sent_topics: frozenset[str] | None = None
        self._sent_owned: frozenset[tuple[UUID, int]] | None = None
        self._acknowledged = True
        """Whether a heartbeat has reported the owned partitions since the last new target. The coordinator waits for
        this report even if the member gave up the partitions earlier.
        """

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has accepted the member into the group."""
        return self.generation > _JOIN_EPOCH

    def leave(self, deadline: float) -> Flow[None]:
        """Send the heartbeat that ends the membership. A static member reports that it may return."""
        if self.generation <= _JOIN_EPOCH:
            return
        instance = self.config.group_instance_id
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=_LEAVE_EPOCH if instance is None else _STATIC_LEAVE_EPOCH,
            instance_id=instance,
        )
        self._start_over()
        connection = yield from self._link(deadline)
        yield Wait(((yield from connection.send_when_ready(lambda: connection.send(request), deadline)),), deadline)

    def _run_member(self) -> Flow[None]:
        yield from self._until_topics()
        if self._poll_overdue():
            lost = self.host.drop_all()
            with suppress(ConnectionFailedError, DeadlineError, BrokerError):  # on failure, its session expires
                yield from self.leave(self.client.deadline(None))
            self._start_over()
            yield from self.host.lose_partitions(lost)
            yield from self._until_poll()
        try:
            yield from self._heartbeat()
            yield from self._reconcile()
            yield from self._until_next_heartbeat()
        except PollOverdueError:
            return

    def _recover(self, error: BrokerError) -> Flow[None]:
        if error.error not in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            raise error
        self._start_over()
        yield from self.host.lose_partitions(self.host.partitions.names)

    def _forget(self) -> None:
        """Send all fields again after a failure, because the coordinator may have missed the last heartbeat."""
        super()._forget()
        self._send_all_fields()

    def _start_over(self) -> None:
        self.generation = _JOIN_EPOCH
        self._target = None
        self._send_all_fields()

    def _send_all_fields(self) -> None:
        self._sent_topics = self._sent_owned = None

    def _until_topics(self) -> Flow[None]:
        while not self.host.topics and self.host.broker_pattern is None:
            yield Wait((self.host.changed.pending,), None)

    def _until_next_heartbeat(self) -> Flow[None]:
        """Wait until the next heartbeat is due. Return immediately if there are changes to report."""
        while True:
            now = self.network.now()
            if now >= self._next_beat or self._poll_overdue() or self._has_changes():
                return
            yield Wait((self.host.changed.pending,), self._until(self._next_beat))

    def _has_changes(self) -> bool:
        return not self._acknowledged or self._owned() != self._sent_owned or self.host.topics != self._sent_topics

    def _owned(self) -> frozenset[tuple[UUID, int]]:
        """Return the owned partitions by topic id, since a recreated topic has a new id."""
        cluster = self.client.cluster
        found = ((each.topic_id or cluster.topic_id(each.name.topic), each.name) for each in self.host.partitions)
        return frozenset((topic_id, name.partition) for topic_id, name in found if topic_id is not None)

    def _heartbeat(self) -> Flow[None]:
        """Send a heartbeat, and process the response."""
        request, topics, owned = self._request(), self.host.topics, self._owned()
        sent = self.network.uptime()
        answer = yield from self._ask(request)
        raise_for(answer.error_code, api="ConsumerGroupHeartbeat", subject=self.group_id, message=answer.error_message)
        self._sent_topics, self._sent_owned, self._acknowledged = topics, owned, True
        self._failures = 0
        self._apply_response(answer)
        self.lease_ends = sent + _LEASE * self._interval
        self.host.arrived.notify()

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        everything = self._sent_owned is None
        topics, owned = self.host.topics, self._owned()
        names_owned = everything or not self._acknowledged or owned != self._sent_owned
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.generation,
            instance_id=self.config.group_instance_id,
            rack_id=(self.config.client_rack or None) if everything else None,
            rebalance_timeout_ms=round(self.config.rebalance_timeout * 1000) if everything else -1,
            subscribed_topic_names=tuple(sorted(topics)) if everything or topics != self._sent_topics else None,
            subscribed_topic_regex=self.host.broker_pattern if everything else None,
            server_assignor=self.config.remote_assignor if everything else None,
            topic_partitions=_by_topic(owned) if names_owned else None,
        )

    def _apply_response(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self.member_id = answer.member_id or self.member_id
        self.generation = answer.member_epoch
        self._interval = answer.heartbeat_interval_ms / 1000 or self._interval
        self._next_beat = self.network.now() + self._interval
        if answer.assignment is not None:
            target = frozenset(
                (topic.topic_id, number) for topic in answer.assignment.topic_partitions for number in topic.partitions
            )
            self._acknowledged = self._acknowledged and target == self._target
            self._target = target

    def _reconcile(self) -> Flow[None]:
        """Revoke and add partitions until the member owns all target partitions with known topics."""
        while self._target is not None:
            target = yield from self._target_names(self._target)
            owned = self.host.partitions.names
            revoked, added = owned - target, target - owned
            if revoked:
                yield from self._meanwhile(self.host.revoke(revoked))
            elif added:
                yield from self._meanwhile(self.host.assign(sorted(added)))
            else:
                return

    def _target_names(self, target: frozenset[tuple[UUID, int]]) -> Flow[frozenset[TopicPartition]]:
        """Return the target with topic names, excluding topics that are not in the metadata yet.

        A topic that the member reads keeps its name even if the metadata no longer contains it; the coordinator revokes
        its partitions.
        """
        cluster = self.client.cluster
        self.host.notice_topics()
        owned = {each.topic_id: each.name.topic for each in self.host.partitions}
        unknown = {topic for topic, _ in target if topic not in owned and cluster.topic_name(topic) is None}
        if unknown:
            topics = tuple(MetadataRequestTopic(topic_id=topic, name=None) for topic in sorted(unknown))
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
            cluster.update((yield from self.client.call(request, deadline=self.client.deadline(None))))
            self.host.notice_topics()
        named = ((owned.get(topic) or cluster.topic_name(topic), number) for topic, number in target)
        return frozenset(TopicPartition(name, number) for name, number in named if name is not None)

    def _meanwhile(self, flow: Flow[None]) -> Flow[None]:
        """Run a flow, and send heartbeats until it ends."""
        task, failure = self.network.spawn(flow), None
        try:
            while not task.done:
                yield Wait((task,), self._until(self._next_beat if failure is None else None))
                if not task.done and self._poll_overdue():
                    raise PollOverdueError
                if not task.done and failure is None:
                    try:
                        yield from self._heartbeat()
                    except Exception as error:
                        failure = error
        finally:
            task.cancel()
        task.result()
        if failure is not None:
            raise failure


def _by_topic(owned: frozenset[tuple[UUID, int]]) -> tuple[TopicPartitions, ...]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(owned):
        topics.setdefault(topic_id, []).append(partition)
    return tuple(TopicPartitions(topic_id=topic, partitions=tuple(found)) for topic, found in topics.items())
