"""An instance of a Streams application with the classic protocol, with the user data of a migration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import Factory, define

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.page.user_data import NEVER, read_answer, write_heartbeat
from kafka_msgs.messages import streams_group_heartbeat_request as wire
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse, TaskIds
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.versioned import encode_versioned
from tests.groups.streams.broker import Broker, topology

__all__ = ["ClassicApp", "given", "ids", "numbers", "subscription", "sums"]


def ids(numbers: Iterable[int]) -> tuple[wire.TaskIds, ...]:
    """Return tasks of subtopology 0."""
    found = tuple(sorted(numbers))
    return (wire.TaskIds(subtopology_id="0", partitions=found),) if found else ()


def numbers(tasks: Iterable[Any] | None) -> set[int]:
    """Return the partitions of tasks."""
    return {partition for each in tasks or () for partition in each.partitions}


def sums(offsets: Mapping[int, int]) -> tuple[wire.TaskOffset, ...]:
    """Return offset sums of tasks of subtopology 0."""
    return tuple(wire.TaskOffset(subtopology_id="0", partition=task, offset=offsets[task]) for task in sorted(offsets))


def given(active: Iterable[int], standby: Iterable[int] = ()) -> StreamsGroupHeartbeatResponse:
    """Return a response that assigns tasks of subtopology 0."""
    return StreamsGroupHeartbeatResponse(active_tasks=_answered(active), standby_tasks=_answered(standby))


def _answered(tasks: Iterable[int]) -> tuple[TaskIds, ...]:
    return (TaskIds(subtopology_id="0", partitions=tuple(sorted(tasks))),)


def subscription(
    name: str,
    topology: wire.Topology,
    *,
    active: Iterable[int],
    standby: Iterable[int],
    offsets: Mapping[int, int],
    ends: Mapping[int, int],
) -> bytes:
    """Return a process's metadata of the protocol ``stream``: its tasks, and the offsets of its stores."""
    heartbeat = StreamsGroupHeartbeatRequest(
        process_id=f"process-{name}",
        topology=topology,
        active_tasks=ids(active),
        standby_tasks=ids(standby),
        warmup_tasks=(),
        task_offsets=sums(offsets),
        task_end_offsets=sums(ends),
        client_tags=(),
    )
    data = write_heartbeat(heartbeat)
    return encode_versioned(ConsumerProtocolSubscription(topics=("in",), user_data=data), 3)


@define
class ClassicApp:
    """A member of one group, with tasks of subtopology 0. ``offsets`` contains the offsets of its stores."""

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

    def subscription(self) -> bytes:
        """Return the metadata of the protocol ``stream``."""
        return subscription(
            self.name,
            self.topology,
            active=self.active,
            standby=self.standby,
            offsets=self.offsets,
            ends=self.ends,
        )

    def join(self, metadata: bytes | None = None) -> JoinGroupResponse | None:
        """Join; a new member needs two requests. Return the response, or None if it is pending."""
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
        """Request and store the assignment. Return the error."""
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
        """Send a heartbeat, and join again if the coordinator requires it. Return whether it did."""
        if self.heartbeat() is not ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        answer = self.join()
        assert answer is not None
        assert answer.error_code == ErrorCode.NONE
        assert self.sync() is ErrorCode.NONE
        return True
