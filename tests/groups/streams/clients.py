"""Simulated instances of a Streams application with either protocol, modelled on the Java clients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from kafka_msgs.client.streams import Changelog, LocalTask, StreamsMember, TaskPhase
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.consumer_protocol import decode_subscription
from kafka_msgs.groups.page.user_data import NEVER, read_answer, read_heartbeat, write_answer
from kafka_msgs.messages import streams_group_heartbeat_request as wire
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafka_msgs.messages.sync_group_response import SyncGroupResponse
from tests.groups.streams.broker import Broker
from tests.groups.streams.classic_app import given, numbers, subscription

__all__ = ["ClassicClient", "Client", "StreamsClient"]

END: Final = 100_000
"""The end offset of each changelog."""
_STEP: Final = END // 2
"""The number of records that a store restores between two actions."""


class Client(ABC):
    """An instance with its own process. Tasks are numbers: partitions of subtopology 0."""

    def __init__(self, broker: Broker, name: str, topology: wire.Topology) -> None:
        self.broker = broker
        self.name = name
        self.topology = topology
        self.stores: dict[int, int] = {}

    @property
    @abstractmethod
    def active(self) -> set[int]:
        """The active tasks that the instance runs."""

    @abstractmethod
    def act(self) -> None:
        """Take the next action: send one request, or process a response."""

    @abstractmethod
    def leave(self) -> None:
        """Leave permanently."""

    @abstractmethod
    def forget_requests(self) -> None:
        """Forget pending requests, because the coordinator has moved."""

    def restore(self, followed: set[int]) -> None:
        """Advance the stores; stores of active tasks reach the end."""
        for task in self.active:
            self.stores[task] = END
        for task in followed:
            self.stores[task] = min(END, self.stores.get(task, 0) + _STEP)


class StreamsClient(Client):
    """An instance with the streams protocol."""

    def __init__(self, broker: Broker, name: str, topology: wire.Topology) -> None:
        super().__init__(broker, name, topology)
        self.member = StreamsMember("g", name, topology, process_id=f"process-{name}", rebalance_timeout_ms=60_000)

    @property
    def active(self) -> set[int]:
        return {number for _, number in self.member.owned.active}

    def act(self) -> None:
        owned = self.member.owned
        self.restore({number for _, number in owned.standby | owned.warmup})
        error = self.member.handle_response(self.broker.ask(self.member.heartbeat(self.broker.now, self._state())))
        if error is ErrorCode.NONE:
            self.member.reconcile()

    def _state(self) -> Mapping[tuple[str, int], LocalTask]:
        owned = self.member.owned
        found = {}
        for task, position in self.stores.items():
            known = Changelog(position=position, high_watermark=position, end=END)
            held = ("0", task)
            phase = TaskPhase.RESTORING if held in owned.standby | owned.warmup else TaskPhase.DORMANT
            found[held] = LocalTask(TaskPhase.PROCESSING if held in owned.active else phase, [known])
        return found

    def leave(self) -> None:
        self.broker.ask(self.member.leave())

    def forget_requests(self) -> None:
        self.member.handle_no_response()


class ClassicClient(Client):
    """An instance with the classic protocol and cooperative rebalancing. It can lead a classic group."""

    def __init__(self, broker: Broker, name: str, topology: wire.Topology) -> None:
        super().__init__(broker, name, topology)
        self.member_id = ""
        self.generation = -1
        self.owned: set[int] = set()
        self.standby: set[int] = set()
        self.next_rebalance_ms = NEVER
        self.waits: int | None = None
        self.is_member = False

    @property
    def active(self) -> set[int]:
        return self.owned

    def forget_requests(self) -> None:
        if self.waits is not None:
            self.waits, self.is_member = None, False

    def act(self) -> None:
        if self.waits is not None:
            if self.waits not in self.broker.late:
                return
            answer = self.broker.late.pop(self.waits)
            self.waits = None
            if isinstance(answer, JoinGroupResponse):
                self._joined(answer)
            else:
                self._synced(answer)
        elif not self.is_member or self.broker.now >= self.next_rebalance_ms:
            self._join()
        else:
            self._heartbeat()

    def _heartbeat(self) -> None:
        self.restore(self.standby)
        request = HeartbeatRequest(group_id="g", member_id=self.member_id, generation_id=self.generation)
        self._failed(ErrorCode(self.broker.ask(request).error_code))

    def _failed(self, error: ErrorCode) -> bool:
        """Process an error: the member joins again, and loses its tasks if its generation or id is invalid."""
        if error is ErrorCode.NONE:
            return False
        self.is_member = False
        if error in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
            self.owned, self.standby, self.generation = set(), set(), -1
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        return True

    def _join(self) -> None:
        self.is_member, self.next_rebalance_ms = False, NEVER
        metadata = subscription(
            self.name,
            self.topology,
            active=self.owned,
            standby=self.standby,
            offsets=self.stores,
            ends=dict.fromkeys(self.owned | self.standby, END),
        )
        request = JoinGroupRequest(
            group_id="g",
            member_id=self.member_id,
            session_timeout_ms=20_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="stream", metadata=metadata),),
        )
        self.waits = self.broker.send(request, client_id=self.name)

    def _joined(self, answer: JoinGroupResponse) -> None:
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        if self._failed(error):
            return
        self.member_id, self.generation = answer.member_id, answer.generation_id
        request = SyncGroupRequest(
            group_id="g",
            member_id=self.member_id,
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name="stream",
            assignments=self._led(answer) if answer.leader == self.member_id else (),
        )
        self.waits = self.broker.send(request, client_id=self.name)

    def _led(self, answer: JoinGroupResponse) -> tuple[SyncGroupRequestAssignment, ...]:
        """Assign the tasks: each member keeps its tasks up to its share, and gets tasks without an owner."""
        image = self.broker.coordinator.image
        metadata = {member.member_id: bytes(member.metadata) for member in answer.members}
        had = {each: numbers(read_heartbeat(data).active_tasks) for each, data in metadata.items()}
        count = image.topics["in"].partitions
        share = -(-count // len(had))
        shares = {each: set(sorted(tasks)[:share]) for each, tasks in had.items()}
        free = [task for task in range(count) if not any(task in tasks for tasks in had.values())]
        for task in free:
            min(shares.values(), key=len).add(task)
        assert all(decode_subscription(data).topics for data in metadata.values())
        return tuple(
            SyncGroupRequestAssignment(
                member_id=each,
                assignment=write_answer(
                    given(tasks),
                    {},
                    image,
                    metadata[each],
                ),
            )
            for each, tasks in shares.items()
        )

    def _synced(self, answer: SyncGroupResponse) -> None:
        if self._failed(ErrorCode(answer.error_code)):
            return
        told, self.next_rebalance_ms = read_answer(bytes(answer.assignment))
        before, self.owned = self.owned, numbers(told.active_tasks)
        self.standby = numbers(told.standby_tasks)
        self.is_member = before <= self.owned

    def leave(self) -> None:
        if self.member_id:
            identity = MemberIdentity(member_id=self.member_id)
            self.broker.ask(LeaveGroupRequest(group_id="g", members=(identity,)))
