"""An instance of a Streams application that still speaks the classic protocol, with the user data of a migration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import Factory, define

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.streams.user_data import NEVER, read_answer, write_heartbeat
from kafka_msgs.messages import streams_group_heartbeat_request as wire
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.prefixed import encode_versioned
from tests.groups.streams.broker import Broker, topology

__all__ = ["ClassicApp", "ids", "numbers"]


def ids(numbers: Iterable[int]) -> tuple[wire.TaskIds, ...]:
    """Return tasks of subtopology 0."""
    found = tuple(sorted(numbers))
    return (wire.TaskIds(subtopology_id="0", partitions=found),) if found else ()


def numbers(tasks: Iterable[Any] | None) -> set[int]:
    """Return the partitions of tasks."""
    return {partition for each in tasks or () for partition in each.partitions}


@define
class ClassicApp:
    """A member of one group, with tasks of subtopology 0. ``offsets`` are those of its stores."""

    broker: Broker
    name: str
    member_id: str = ""
    generation: int = -1
    active: set[int] = Factory(set)
    standby: set[int] = Factory(set)
    offsets: Mapping[int, int] = Factory(dict)
    ends: Mapping[int, int] = Factory(dict)
    topology: wire.Topology = Factory(topology)
    instance_id: str | None = None
    next_rebalance_ms: int = NEVER

    def user_data(self) -> bytes:
        """What the member reports in a subscription."""
        return write_heartbeat(
            StreamsGroupHeartbeatRequest(
                process_id=f"process-{self.name}",
                topology=self.topology,
                active_tasks=ids(self.active),
                standby_tasks=ids(self.standby),
                warmup_tasks=(),
                task_offsets=_sums(self.offsets),
                task_end_offsets=_sums(self.ends),
                client_tags=(),
            )
        )

    def subscription(self) -> bytes:
        """The metadata of the protocol ``stream``."""
        return encode_versioned(ConsumerProtocolSubscription(topics=("in",), user_data=self.user_data()), 3)

    def join(self, metadata: bytes | None = None) -> JoinGroupResponse | None:
        """Join; as a new member in two steps. Return the answer, or None if it comes later."""
        request = JoinGroupRequest(
            group_id="g",
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="stream", metadata=metadata or self.subscription()),),
        )
        answer: JoinGroupResponse | None = self.broker.ask(request, client_id=self.name)
        if answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return self.join(metadata)
        if answer is not None and answer.error_code == ErrorCode.NONE:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self) -> ErrorCode:
        """Take over the assignment. Return the error."""
        answer = self.broker.ask(
            SyncGroupRequest(
                group_id="g",
                member_id=self.member_id,
                generation_id=self.generation,
                group_instance_id=self.instance_id,
                protocol_type="consumer",
                protocol_name="stream",
            )
        )
        if answer.error_code == ErrorCode.NONE:
            given, self.next_rebalance_ms = read_answer(answer.assignment)
            self.active, self.standby = numbers(given.active_tasks), numbers(given.standby_tasks)
        return ErrorCode(answer.error_code)

    def heartbeat(self) -> ErrorCode:
        """Send a heartbeat. Return the error."""
        request = HeartbeatRequest(
            group_id="g",
            member_id=self.member_id,
            generation_id=self.generation,
            group_instance_id=self.instance_id,
        )
        return ErrorCode(self.broker.ask(request).error_code)

    def leave(self) -> None:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        self.broker.ask(LeaveGroupRequest(group_id="g", members=(identity,)))

    def follow(self) -> bool:
        """Send a heartbeat, and join again if the coordinator says so. Return whether it did."""
        if self.heartbeat() is not ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        answer = self.join()
        assert answer is not None
        assert answer.error_code == ErrorCode.NONE
        assert self.sync() is ErrorCode.NONE
        return True


def _sums(offsets: Mapping[int, int]) -> tuple[wire.TaskOffset, ...]:
    return tuple(
        wire.TaskOffset(subtopology_id="0", partition=partition, offset=offset) for partition, offset in offsets.items()
    )
