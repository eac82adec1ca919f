"""A small Kafka cluster in memory for consumers: topics with records, committed offsets, and group coordinators.

It answers the requests of a consumer as brokers do, over a ``SimulatedNetwork``: no time passes, and a test sees every
request. Groups are of the classic protocol (``SimulatedGroup``) or of KIP-848 (``SimulatedModernGroup``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import UUID

from attrs import define, field

from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.consumer import ConsumerConfig
from kafka_msgs.client.consumer.core import ConsumerCore
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.waiting import Pending
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Request, Response
from kafka_msgs.messages import (
    consumer_group_heartbeat_response,
    fetch_response,
    find_coordinator_response,
    heartbeat_response,
    join_group_response,
    leave_group_response,
    list_offsets_response,
    metadata_response,
    offset_commit_response,
    offset_fetch_response,
    sync_group_response,
)
from kafka_msgs.records import BatchBuilder, BatchHeader, ConsumerRecord
from tests.support.network import Reply, SimulatedBroker, SimulatedNetwork

__all__ = ["GroupCluster", "SimulatedGroup", "SimulatedModernGroup", "User"]

NODES: Final = (1, 2, 3)
EARLIEST: Final = -2


class SimulatedGroup:
    """A classic group, as its coordinator keeps it. Members that do not send heartbeats are removed in time."""

    def __init__(self, cluster: GroupCluster) -> None:
        self.cluster = cluster
        self.generation = 0
        self.state = "Empty"
        self.members: dict[str, Any] = {}
        self.seen: dict[str, float] = {}
        self.joining: dict[str, Pending[Response]] = {}
        self.syncing: dict[str, Pending[Response]] = {}
        self.assignments: dict[str, bytes] = {}
        self.protocol = ""
        self._numbers = iter(range(1, 1000))

    def join(self, request: Any) -> Reply:
        """Take a member into the next generation; answer when all members have joined."""
        name = request.member_id
        if not name:
            name = f"member-{next(self._numbers)}"
            return join_group_response.JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=name)
        self.members[name] = request
        self.seen[name] = self.cluster.network.time
        pending: Pending[Response] = Pending()
        self.joining[name] = pending
        self.state = "PreparingRebalance"
        self.cluster.network.later(request.session_timeout_ms / 1000, lambda: self._expire(name))
        self._complete_join()
        return pending

    def _complete_join(self) -> None:
        if self.state != "PreparingRebalance" or set(self.joining) != set(self.members) or not self.members:
            return
        self.generation += 1
        self.state = "CompletingRebalance"
        leader = min(self.members)
        common = set.intersection(*({each.name for each in m.protocols} for m in self.members.values()))
        self.protocol = next(each.name for each in self.members[leader].protocols if each.name in common)
        for name, pending in self.joining.items():
            pending.resolve(self._joined(name, leader))
        self.joining = {}

    def _joined(self, name: str, leader: str) -> Response:
        members = [
            join_group_response.JoinGroupResponseMember(
                member_id=each,
                metadata=next(p.metadata for p in request.protocols if p.name == self.protocol),
            )
            for each, request in self.members.items()
        ]
        return join_group_response.JoinGroupResponse(
            generation_id=self.generation, protocol_type="consumer", protocol_name=self.protocol, leader=leader,
            member_id=name, members=tuple(members) if name == leader else (),
        )  # fmt: skip

    def sync(self, request: Any) -> Reply:
        """Answer with the assignment, when the leader has sent it."""
        if code := self._refusal(request):
            return sync_group_response.SyncGroupResponse(error_code=code)
        if self.state == "PreparingRebalance":
            return sync_group_response.SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        if request.assignments:
            self.assignments = {each.member_id: each.assignment for each in request.assignments}
            self.state = "Stable"
        self.syncing[request.member_id] = pending = Pending[Response]()
        if self.state == "Stable":
            for name, waiting in self.syncing.items():
                waiting.resolve(sync_group_response.SyncGroupResponse(assignment=self.assignments.get(name, b"")))
            self.syncing = {}
        return pending

    def heartbeat(self, request: Any) -> Reply:
        """Note that a member lives; say whether it must join again."""
        code = self._refusal(request)
        if not code:
            self.seen[request.member_id] = self.cluster.network.time
            code = ErrorCode.REBALANCE_IN_PROGRESS if self.state == "PreparingRebalance" else ErrorCode.NONE
        return heartbeat_response.HeartbeatResponse(error_code=code)

    def leave(self, request: Any) -> Reply:
        """Take members out."""
        for each in request.members:
            self.remove(each.member_id)
        return leave_group_response.LeaveGroupResponse()

    def remove(self, name: str) -> None:
        """Take a member out, and let the others join again."""
        if self.members.pop(name, None) is not None:
            self.joining.pop(name, None)
            self.state = "PreparingRebalance" if self.members else "Empty"
            self._complete_join()

    def _expire(self, name: str) -> None:
        request = self.members.get(name)
        if request is None:
            return
        left = self.seen[name] + request.session_timeout_ms / 1000 - self.cluster.network.time
        if name in self.joining or name in self.syncing:
            left = request.session_timeout_ms / 1000
        if left > 0:
            self.cluster.network.later(left, lambda: self._expire(name))
        else:
            self.remove(name)

    def _refusal(self, request: Any) -> ErrorCode:
        if request.member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if request.generation_id == self.generation else ErrorCode.ILLEGAL_GENERATION

    def may_commit(self, request: Any) -> ErrorCode:
        """Return why a commit is refused, or NONE."""
        if not self.members and not request.member_id:
            return ErrorCode.NONE
        if request.member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        fits = request.generation_id_or_member_epoch == self.generation
        return ErrorCode.NONE if fits else ErrorCode.ILLEGAL_GENERATION


@define(eq=False)
class ModernMember:
    """A member of a group of KIP-848: its epoch, what it owns, and what it should own."""

    epoch: int = 0
    topics: tuple[str, ...] = ()
    owned: frozenset[tuple[UUID, int]] = frozenset()
    target: frozenset[tuple[UUID, int]] = frozenset()
    seen: float = 0.0


class SimulatedModernGroup:
    """A group of KIP-848: partitions are dealt in turn; a member gets one when its earlier owner has given it up."""

    def __init__(self, cluster: GroupCluster, *, session: float = 5.0, interval: float = 1.0) -> None:
        self.cluster = cluster
        self.epoch = 0
        self.session = session
        self.interval = interval
        self.members: dict[str, ModernMember] = {}
        self.fence: set[str] = set()

    def heartbeat(self, request: Any) -> Reply:
        """Take a heartbeat, and answer with the part of the target that is free."""
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
        """Return why a commit is refused, or NONE."""
        member = self.members.get(request.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID if request.member_id else ErrorCode.NONE
        fits = request.generation_id_or_member_epoch == member.epoch
        return ErrorCode.NONE if fits else ErrorCode.STALE_MEMBER_EPOCH


@define(eq=False)
class GroupCluster:
    """Three brokers. ``counts`` has the number of partitions of each topic; partition n is led by node n % 3 + 1."""

    counts: dict[str, int]
    network: SimulatedNetwork = field(factory=SimulatedNetwork)
    coordinator: int = 2
    batches: dict[tuple[str, int], list[bytes]] = field(factory=lambda: defaultdict(list))
    ends: dict[tuple[str, int], int] = field(factory=lambda: defaultdict(int))
    starts: dict[tuple[str, int], int] = field(factory=lambda: defaultdict(int))
    committed: dict[tuple[str, str, int], int] = field(factory=dict)
    groups: dict[str, SimulatedGroup | SimulatedModernGroup] = field(factory=dict)
    brokers: dict[int, SimulatedBroker] = field(factory=dict)
    leaders: dict[tuple[str, int], int] = field(factory=dict)
    racks: dict[int, str] = field(factory=dict)
    replicas: dict[tuple[str, int], tuple[int, ...]] = field(factory=dict)
    override: Callable[[int, Request[Any]], Reply] | None = None
    fetched: list[tuple[str, int, int]] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        for node in NODES:
            self.brokers[node] = self.network.add(f"b{node}:9092", self._handler(node))

    def core(self, **settings: Any) -> ClientCore:
        """Return a client of the cluster."""
        return self.network.core("b1:9092", **settings)

    def topic_id(self, topic: str) -> UUID:
        """Return the id of a topic."""
        return UUID(int=1000 + sorted(self.counts).index(topic))

    def produce(self, topic: str, partition: int, values: Iterable[bytes]) -> None:
        """Append a batch."""
        name = topic, partition
        builder = BatchBuilder(BatchHeader(base_offset=self.ends[name], partition_leader_epoch=0))
        for value in values:
            builder.append(b"key", value, timestamp=1_000 + self.ends[name], headers=[("h", b"1")])
            self.ends[name] += 1
        self.batches[name].append(builder.build())

    @property
    def requests(self) -> list[Request[Any]]:
        """The requests to all brokers, broker by broker."""
        return [request for broker in self.brokers.values() for request in broker.requests]

    def _handler(self, node: int) -> Callable[[Request[Any]], Reply]:
        def handle(request: Request[Any]) -> Reply:
            if self.override is not None and (reply := self.override(node, request)) is not None:
                return reply
            name = request.INFO.name.removesuffix("Request")
            answer: Reply = getattr(self, f"on_{name}")(node, request)
            return answer

        return handle

    def on_Metadata(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer."""
        by_id = {self.topic_id(topic): topic for topic in self.counts}
        wanted = self.counts if request.topics is None else [t.name or by_id.get(t.topic_id) for t in request.topics]
        return metadata_response.MetadataResponse(
            cluster_id="c", controller_id=1,
            brokers=tuple(
                metadata_response.MetadataResponseBroker(node_id=n, host=f"b{n}", port=9092, rack=self.racks.get(n))
                for n in NODES
            ),
            topics=tuple(self._topic(topic) for topic in wanted if topic in self.counts),
        )  # fmt: skip

    def _topic(self, topic: str) -> metadata_response.MetadataResponseTopic:
        partitions = tuple(
            metadata_response.MetadataResponsePartition(
                partition_index=number, leader_id=self.leader(topic, number), leader_epoch=0,
                replica_nodes=self.replicas.get((topic, number), NODES), isr_nodes=NODES,
            )
            for number in range(self.counts[topic])
        )  # fmt: skip
        topic_id = self.topic_id(topic)
        return metadata_response.MetadataResponseTopic(name=topic, topic_id=topic_id, partitions=partitions)

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader of a partition."""
        return self.leaders.get((topic, partition), partition % 3 + 1)

    def on_FindCoordinator(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer: all groups have one coordinator."""
        return find_coordinator_response.FindCoordinatorResponse(
            coordinators=tuple(
                find_coordinator_response.Coordinator(
                    key=key, node_id=self.coordinator, host=f"b{self.coordinator}", port=9092
                )
                for key in request.coordinator_keys
            )
        )

    def on_ListOffsets(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer."""

        def found(topic: str, asked: Any) -> list_offsets_response.ListOffsetsPartitionResponse:
            name = topic, asked.partition_index
            offset = self.starts[name] if asked.timestamp == EARLIEST else self.ends[name]
            if asked.timestamp >= 0:
                offset = asked.timestamp - 1_000
                offset = offset if offset < self.ends[name] else -1
            return list_offsets_response.ListOffsetsPartitionResponse(
                partition_index=asked.partition_index, offset=offset, leader_epoch=0
            )

        topics = (
            list_offsets_response.ListOffsetsTopicResponse(
                name=topic.name, partitions=tuple(found(topic.name, each) for each in topic.partitions)
            )
            for topic in request.topics
        )
        return list_offsets_response.ListOffsetsResponse(topics=tuple(topics))

    def on_Fetch(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer without sessions: what is there, or nothing after the longest wait."""
        answer, filled = self._fetch(request)
        if filled:
            return answer
        pending: Pending[Response] = Pending()
        self.network.later(request.max_wait_ms / 1000, lambda: pending.resolve(self._fetch(request)[0]))
        return pending

    def _fetch(self, request: Any) -> tuple[Response, bool]:
        names = {self.topic_id(topic): topic for topic in self.counts}
        topics, filled = [], False
        for topic in request.topics:
            partitions = []
            for each in topic.partitions:
                name = names[topic.topic_id], each.partition
                data = self._records(name, each)
                filled |= bool(data.records) or bool(data.error_code)
                partitions.append(data)
            found = fetch_response.FetchableTopicResponse(topic_id=topic.topic_id, partitions=tuple(partitions))
            topics.append(found)
        return fetch_response.FetchResponse(responses=tuple(topics)), filled

    def _records(self, name: tuple[str, int], asked: Any) -> fetch_response.PartitionData:
        self.fetched.append((*name, asked.fetch_offset))
        if not self.starts[name] <= asked.fetch_offset <= self.ends[name]:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
            return fetch_response.PartitionData(partition_index=name[1], error_code=code, high_watermark=-1)
        records, size = b"", 0
        for data in self.batches[name]:
            base = int.from_bytes(data[:8], "big")
            last = base + int.from_bytes(data[23:27], "big")
            if last >= asked.fetch_offset and (not size or size + len(data) <= asked.partition_max_bytes):
                records += data
                size += len(data)
        return fetch_response.PartitionData(
            partition_index=name[1], high_watermark=self.ends[name], last_stable_offset=self.ends[name],
            log_start_offset=self.starts[name], records=records,
        )  # fmt: skip

    def on_OffsetFetch(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer."""
        if node != self.coordinator:
            groups: list[Any] = [(each.group_id, (), ErrorCode.NOT_COORDINATOR) for each in request.groups]
        else:
            groups = [(each.group_id, each.topics, ErrorCode.NONE) for each in request.groups]
        return offset_fetch_response.OffsetFetchResponse(
            groups=tuple(
                offset_fetch_response.OffsetFetchResponseGroup(
                    group_id=group, error_code=code,
                    topics=tuple(
                        offset_fetch_response.OffsetFetchResponseTopics(
                            name=topic.name,
                            partitions=tuple(
                                offset_fetch_response.OffsetFetchResponsePartitions(
                                    partition_index=number,
                                    committed_offset=self.committed.get((group, topic.name, number), -1),
                                )
                                for number in topic.partition_indexes
                            ),
                        )
                        for topic in topics
                    ),
                )
                for group, topics, code in groups
            )
        )  # fmt: skip

    def on_OffsetCommit(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Take offsets of members, and of anybody while the group is empty."""
        group = self.groups.get(request.group_id)
        code = ErrorCode.NONE if group is None else group.may_commit(request)
        if node != self.coordinator:
            code = ErrorCode.NOT_COORDINATOR
        topics = []
        for topic in request.topics:
            for each in topic.partitions:
                if not code:
                    self.committed[request.group_id, topic.name, each.partition_index] = each.committed_offset
            partitions = tuple(
                offset_commit_response.OffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=code
                )
                for each in topic.partitions
            )
            topics.append(offset_commit_response.OffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        return offset_commit_response.OffsetCommitResponse(topics=tuple(topics))

    def group(self, group_id: str) -> SimulatedGroup:
        """Return a classic group; make it if there is none."""
        group = self.groups.setdefault(group_id, SimulatedGroup(self))
        assert isinstance(group, SimulatedGroup)
        return group

    def on_JoinGroup(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer."""
        if node != self.coordinator:
            return join_group_response.JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return self.group(request.group_id).join(request)

    def on_SyncGroup(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer."""
        if node != self.coordinator:
            return sync_group_response.SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return self.group(request.group_id).sync(request)

    def on_Heartbeat(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer."""
        if node != self.coordinator:
            return heartbeat_response.HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return self.group(request.group_id).heartbeat(request)

    def on_LeaveGroup(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer."""
        return self.group(request.group_id).leave(request)

    def on_ConsumerGroupHeartbeat(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Answer."""
        if node != self.coordinator:
            return consumer_group_heartbeat_response.ConsumerGroupHeartbeatResponse(
                error_code=ErrorCode.NOT_COORDINATOR
            )
        group = self.groups.setdefault(request.group_id, SimulatedModernGroup(self))
        assert isinstance(group, SimulatedModernGroup)
        return group.heartbeat(request)


class User:
    """A consumer, and short ways to use it."""

    def __init__(self, cluster: GroupCluster, **settings: Any) -> None:
        settings = {"group_id": "g", "auto_offset_reset": "earliest", **settings}
        background = settings.pop("background", False)
        self.network = cluster.network
        self.core = ConsumerCore(cluster.core(), ConsumerConfig(**settings), background=background)

    def poll(self, timeout: float = 5.0, room: int = 1_000) -> list[ConsumerRecord]:
        """Poll once."""
        return self.network.run(self.core.poll(self.network.time + timeout, room))

    def values(self, count: int) -> list[bytes]:
        """Poll until there are so many records; return their values."""
        found: list[ConsumerRecord] = []
        for _ in range(100):
            found += self.poll(1.0)
            if len(found) >= count:
                break
        return sorted(bytes(record.value or b"") for record in found)

    def commit(self, offsets: Any = None) -> None:
        """Commit."""
        self.network.run(self.core.commit(offsets, self.network.time + 30))

    def position(self, name: TopicPartition) -> int:
        """Return a position."""
        return self.network.run(self.core.position(name, self.network.time + 30))

    def crash(self) -> None:
        """End without a word to the group."""
        self.core.client.close()
        for task in (self.core._member, self.core._upkeep, *self.core._fetcher.tasks):
            if task is not None:
                task.cancel()

    def close(self) -> None:
        """Close it."""
        self.network.run(self.core.close(self.network.time + 30))
        self.core.client.close()
