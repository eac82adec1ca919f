"""A group coordinator in memory with members that send heartbeats, for tests of streams groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import GroupCoordinator
from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.memory_log import MemoryLog
from kafka_msgs.groups.runtime.output import CoordinatorOutput, RecordAppend
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.topics_image import CoordinatorTopicImage
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.message import Request
from kafka_msgs.messages import streams_group_heartbeat_request as wire
from kafka_msgs.messages.create_topics_request import CreatableTopic
from kafka_msgs.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafka_msgs.messages.streams_group_describe_response import DescribedGroup
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

__all__ = ["Broker", "changelog", "join_classic", "page", "subtopology", "tasks", "topology"]

AT_ONCE = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}


def changelog(name: str, partitions: int = 0, **fields: Any) -> wire.TopicInfo:
    return wire.TopicInfo(name=name, partitions=partitions, **fields)


def subtopology(key: str = "0", *sources: str, **fields: Any) -> wire.Subtopology:
    return wire.Subtopology(subtopology_id=key, source_topics=sources, **fields)


def topology(*subtopologies: wire.Subtopology, epoch: int = 0) -> wire.Topology:
    return wire.Topology(epoch=epoch, subtopologies=subtopologies or (subtopology("0", "in"),))


def tasks(**by: Sequence[int]) -> tuple[wire.TaskIds, ...]:
    """Return task ids: ``tasks(_0=[0, 1])`` are partitions 0 and 1 of subtopology 0."""
    return tuple(
        wire.TaskIds(subtopology_id=key.lstrip("_"), partitions=tuple(partitions)) for key, partitions in by.items()
    )


class Broker:
    """A coordinator of one partition. ``creates`` contains the topics that the last response requires."""

    def __init__(
        self,
        profile: Profile = SHIPPED,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        self.log = MemoryLog()
        self.fields = fields
        self.config = CoordinatorConfig(**{"offsets_topic_num_partitions": 1, **AT_ONCE, **(config or {})})
        self.profile = profile
        self.now = 1000
        self.epoch = 0
        self.creates: tuple[CreatableTopic, ...] = ()
        self.batches: list[RecordAppend] = []
        self.late: dict[int, Any] = {}
        self._sent = 0
        self.racks: dict[str, int] = {}
        self._start()
        self.topics(**({"in": 2} if topics is None else topics))

    def _start(self) -> None:
        self.coordinator = GroupCoordinator(self.log.append, config=self.config, profile=self.profile, **self.fields)
        self.log.on_commit = self.coordinator.committed
        self.epoch += 1
        self.coordinator.elect(0, self.epoch, now=self.now)
        self.coordinator.load(0, self.log.records(0))
        self.coordinator.loaded(0, now=self.now)

    def reload(self) -> None:
        """Start a new coordinator with the records of the log."""
        image = self.coordinator.image
        self._start()
        self.coordinator.set_image(image, now=0)

    def topics(self, **partitions: int) -> None:
        """Create topics, or add partitions to them."""
        before = self.coordinator.image
        put = [
            CoordinatorTopicImage(name=name, id=UUID(bytes=name.encode().ljust(16)[:16]), racks=((),) * count)
            for name, count in partitions.items()
        ]
        self.coordinator.set_image(before.changed(put=put), now=self.now)

    def features(self, **levels: int) -> None:
        """Set feature levels by name."""
        before = self.coordinator.image
        self.coordinator.set_image(evolve(before, version=before.version + 1, features=levels), now=self.now)

    def delete_topic(self, name: str) -> None:
        self.coordinator.set_image(self.coordinator.image.changed(delete=(name,)), now=self.now)

    def ask(self, request: Request[Any], **context: Any) -> Any:
        """Send a request. Return the response, or None if it is pending."""
        given = RequestContext(**{"version": request.INFO.versions.highest, **context})
        outcome = self.coordinator.handle(request, given, now=self.now, opaque="asked")
        self._note(outcome)
        for answer in outcome.answers:
            if answer.opaque == "asked":
                self.creates = answer.topics_to_create
                return answer.response
        return None

    def send(self, request: Request[Any], **context: Any) -> int:
        """Send a request. Return its number, the key under which its response appears in ``late``."""
        self._sent += 1
        given = RequestContext(**{"version": request.INFO.versions.highest, **context})
        self._note(self.coordinator.handle(request, given, now=self.now, opaque=self._sent))
        return self._sent

    def _note(self, outcome: CoordinatorOutput) -> None:
        self.late |= {answer.opaque: answer.response for answer in outcome.answers if isinstance(answer.opaque, int)}
        self.batches = [batch for batch in outcome.batches if isinstance(batch, RecordAppend)]

    @property
    def records(self) -> list[TopicRecord]:
        """The records of the last command."""
        return [record for batch in self.batches for record in batch.records]

    @property
    def kinds(self) -> list[str]:
        """The record kinds of the last command. Tombstones are prefixed with a minus."""
        names = [(str(record.key.INFO.name), record.value) for record in self.records if record.key is not None]
        prefix, suffix = "StreamsGroup", "Key"
        return [
            ("-" if value is None else "") + name.removeprefix(prefix).removesuffix(suffix) for name, value in names
        ]

    def advance(self, ms: int) -> None:
        self.now += ms
        self._note(self.coordinator.tick(self.now))

    def heartbeat(self, member: str = "A", epoch: int = 0, group: str = "g", **fields: Any) -> Any:
        """Send a heartbeat. A join includes the required fields."""
        context = {name: fields.pop(name) for name in ("version", "client_id") if name in fields}
        if epoch == 0:
            fields = {
                "topology": topology(),
                "rebalance_timeout_ms": 60_000,
                "active_tasks": (),
                "standby_tasks": (),
                "warmup_tasks": (),
                "process_id": f"process-{member}",
                "client_tags": (),
                **fields,
            }
        fields.setdefault("endpoint_information_epoch", -1)
        request = StreamsGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)
        return self.ask(request, **context)

    def error(self, member: str = "A", epoch: int = 0, **fields: Any) -> ErrorCode:
        """Return the error of a heartbeat."""
        return ErrorCode(self.heartbeat(member, epoch, **fields).error_code)

    def group(self, group_id: str = "g") -> StreamsGroup:
        group = self.coordinator.shards[0].state.groups[group_id]
        assert isinstance(group, StreamsGroup)
        return group

    def describe(self, group_id: str = "g") -> DescribedGroup:
        answer = self.ask(StreamsGroupDescribeRequest(group_ids=(group_id,)), version=1)
        described: DescribedGroup = answer.groups[0]
        return described

    def settle(self, *members: str, rounds: int = 12) -> dict[str, StreamsGroupHeartbeatResponse]:
        """Send heartbeats of members with their assigned tasks, for some rounds; return the last responses."""
        last: dict[str, Any] = {}
        for _ in range(rounds):
            for name in members:
                known = self.group().members[name]
                owned = [
                    tuple(
                        wire.TaskIds(subtopology_id=key, partitions=tuple(sorted(p for k, p in held if k == key)))
                        for key in sorted({key for key, _ in held})
                    )
                    for held in (known.assigned.active, known.assigned.standby, known.assigned.warmup)
                ]
                last[name] = self.heartbeat(
                    name, known.epoch, active_tasks=owned[0], standby_tasks=owned[1], warmup_tasks=owned[2]
                )
        return last

    def active(self, member: str) -> set[tuple[str, int]]:
        """Return the active tasks that are assigned to a member."""
        return set(self.group().members[member].assigned.active)

    def target(self, member: str) -> set[tuple[str, int]]:
        """Return the active tasks in a member's target assignment."""
        return set(self.group().targets[member].active)


def page(**fields: Any) -> Broker:
    """Return a broker with the profile of the KIP page."""
    return Broker(KIP_1071_PAGE, **fields)


def join_classic(broker: Broker, group_id: str) -> None:
    """Join a member with the classic protocol to a group."""
    metadata = b"\0\0\0\0\0\0\0\0\0\0"
    broker.ask(
        JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="stream", metadata=metadata),),
        ),
        version=3,
    )
