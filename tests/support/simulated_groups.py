"""A small Kafka cluster in memory for consumers: topics with records, committed offsets, and group coordinators.

It responds to consumer requests as brokers do, over a ``SimulatedNetwork``: no real time passes, and a test sees every
request. ``simulated_classic_group`` and ``simulated_modern_group`` contain the groups of the two protocols.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from attrs import define, field

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer import ConsumerConfig
from kafka_msgs.client.consumer.core import ConsumerCore
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Future
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Request, Response
from kafka_msgs.messages import (
    consumer_group_heartbeat_response,
    fetch_response,
    find_coordinator_response,
    heartbeat_response,
    join_group_response,
    list_offsets_response,
    metadata_response,
    offset_commit_response,
    offset_fetch_response,
    sync_group_response,
)
from kafka_msgs.records import BatchBuilder, BatchHeader, ConsumerRecord
from tests.support.simulated_classic_group import SimulatedGroup
from tests.support.simulated_modern_group import SimulatedModernGroup
from tests.support.simulated_network import Reply, SimulatedBroker, SimulatedNetwork

__all__ = ["GroupCluster", "User"]

NODES: Final = (1, 2, 3)
EARLIEST: Final = -2


def _unknown_topic(partition: int) -> fetch_response.PartitionData:
    return fetch_response.PartitionData(
        partition_index=partition, error_code=ErrorCode.UNKNOWN_TOPIC_ID, high_watermark=-1
    )


def _identity(topic: Any) -> dict[str, Any]:
    """Return the name and the id by which a request names a topic."""
    return {name: value for name in ("name", "topic_id") if (value := getattr(topic, name, None)) is not None}


@define(eq=False)
class GroupCluster:
    """Three brokers. ``counts`` maps topics to partition counts; node n % 3 + 1 leads partition n."""

    counts: dict[str, int]
    limits: Mapping[int, tuple[int, int] | None] | None = None
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
    generations: dict[str, int] = field(factory=lambda: defaultdict(int))
    """How often each topic was deleted and created again."""

    def __attrs_post_init__(self) -> None:
        for node in NODES:
            self.brokers[node] = self.network.add(f"b{node}:9092", self._handler(node), self.limits)

    def core(self, **settings: Any) -> ClientCore:
        """Return the core of a client of the cluster."""
        return self.network.core("b1:9092", **settings)

    def topic_id(self, topic: str) -> UUID:
        """Return the id of a topic."""
        return UUID(int=1000 * (1 + self.generations[topic]) + sorted(self.counts).index(topic))

    def recreate(self, topic: str) -> None:
        """Delete a topic and its committed offsets, and create it again under the same name."""
        self.generations[topic] += 1
        for partition in range(self.counts[topic]):
            name = topic, partition
            self.batches[name].clear()
            self.ends[name] = self.starts[name] = 0
        self.committed = {key: offset for key, offset in self.committed.items() if key[1] != topic}

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
        """Return metadata."""
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
        """Return the one coordinator of all groups. Older requests contain one group."""
        node, host = self.coordinator, f"b{self.coordinator}"
        if not request.coordinator_keys:
            return find_coordinator_response.FindCoordinatorResponse(node_id=node, host=host, port=9092)
        return find_coordinator_response.FindCoordinatorResponse(
            coordinators=tuple(
                find_coordinator_response.Coordinator(key=key, node_id=node, host=host, port=9092)
                for key in request.coordinator_keys
            )
        )

    def on_ListOffsets(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Return the requested offsets."""

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
        """Return the available records without sessions, or an empty response after the maximum wait."""
        answer, filled = self._fetch(request)
        if filled:
            return answer
        pending: Future[Response] = Future()
        self.network.later(request.max_wait_ms / 1000, lambda: pending.resolve(self._fetch(request)[0]))
        return pending

    def _fetch(self, request: Any) -> tuple[Response, bool]:
        names = {self.topic_id(topic): topic for topic in self.counts} | {UUID(int=0): ""}
        topics, filled = [], False
        for topic in request.topics:
            partitions = []
            for each in topic.partitions:
                name = topic.topic or names.get(topic.topic_id)
                data = self._records((name, each.partition), each) if name else _unknown_topic(each.partition)
                filled |= bool(data.records) or bool(data.error_code)
                partitions.append(data)
            topics.append(
                fetch_response.FetchableTopicResponse(
                    topic=topic.topic, topic_id=topic.topic_id, partitions=tuple(partitions)
                )
            )
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
        """Return committed offsets. Older requests contain one group."""
        code = ErrorCode.NONE if node == self.coordinator else ErrorCode.NOT_COORDINATOR
        message = offset_fetch_response
        if not request.groups:
            topics = self._committed(
                request.group_id, request.topics, message.OffsetFetchResponseTopic, message.OffsetFetchResponsePartition
            )
            return message.OffsetFetchResponse(topics=topics, error_code=code)
        return message.OffsetFetchResponse(
            groups=tuple(
                message.OffsetFetchResponseGroup(
                    group_id=each.group_id,
                    error_code=code,
                    topics=self._committed(
                        each.group_id,
                        each.topics,
                        message.OffsetFetchResponseTopics,
                        message.OffsetFetchResponsePartitions,
                    ),
                )
                for each in request.groups
            )
        )

    def _committed(self, group: str, topics: Iterable[Any], topic_class: Any, partition_class: Any) -> tuple[Any, ...]:
        return tuple(
            topic_class(
                **_identity(topic),
                partitions=tuple(
                    partition_class(
                        partition_index=number,
                        committed_offset=self.committed.get((group, self._name(topic), number), -1),
                    )
                    for number in topic.partition_indexes
                ),
            )
            for topic in topics
        )

    def _name(self, topic: Any) -> str:
        """Return the name of a topic of a request, which may have its id only; empty for an unknown id."""
        return topic.name or {self.topic_id(each): each for each in self.counts}.get(topic.topic_id, "")

    def on_OffsetCommit(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Commit offsets from members, or from any client while the group is empty."""
        group = self.groups.get(request.group_id)
        code = ErrorCode.NONE if group is None else group.may_commit(request)
        if node != self.coordinator:
            code = ErrorCode.NOT_COORDINATOR
        topics = []
        for topic in request.topics:
            name = self._name(topic)
            error = code if name else ErrorCode.UNKNOWN_TOPIC_ID
            for each in topic.partitions:
                if not error:
                    self.committed[request.group_id, name, each.partition_index] = each.committed_offset
            partitions = tuple(
                offset_commit_response.OffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=error
                )
                for each in topic.partitions
            )
            topics.append(offset_commit_response.OffsetCommitResponseTopic(**_identity(topic), partitions=partitions))
        return offset_commit_response.OffsetCommitResponse(topics=tuple(topics))

    def group(self, group_id: str) -> SimulatedGroup:
        """Return a classic group; create it if it does not exist."""
        group = self.groups.setdefault(group_id, SimulatedGroup(self))
        assert isinstance(group, SimulatedGroup)
        return group

    def on_JoinGroup(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Join a member to the group."""
        if node != self.coordinator:
            return join_group_response.JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return self.group(request.group_id).join(request)

    def on_SyncGroup(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Return the assignment of a member."""
        if node != self.coordinator:
            return sync_group_response.SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return self.group(request.group_id).sync(request)

    def on_Heartbeat(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Record a heartbeat."""
        if node != self.coordinator:
            return heartbeat_response.HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return self.group(request.group_id).heartbeat(request)

    def on_LeaveGroup(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Remove members from the group."""
        return self.group(request.group_id).leave(request)

    def on_ConsumerGroupHeartbeat(self, node: int, request: Any) -> Reply:  # noqa: N802
        """Handle a heartbeat of the consumer protocol."""
        if node != self.coordinator:
            return consumer_group_heartbeat_response.ConsumerGroupHeartbeatResponse(
                error_code=ErrorCode.NOT_COORDINATOR
            )
        group = self.groups.setdefault(request.group_id, SimulatedModernGroup(self))
        assert isinstance(group, SimulatedModernGroup)
        return group.heartbeat(request)


class User:
    """A consumer with shorthand methods."""

    def __init__(self, cluster: GroupCluster, client: ClientCore | None = None, **settings: Any) -> None:
        settings = {"group_id": "g", "auto_offset_reset": "earliest", **settings}
        background = settings.pop("background", False)
        self.network = cluster.network
        self.core = ConsumerCore(client or cluster.core(), ConsumerConfig(**settings), background=background)

    def poll(self, timeout: float = 5.0, room: int = 1_000) -> list[ConsumerRecord]:
        """Poll once."""
        return self.network.run(self.core.poll(self.network.time + timeout, room))

    def values(self, count: int) -> list[bytes]:
        """Poll until this many records have arrived; return their values."""
        found: list[ConsumerRecord] = []
        for _ in range(100):
            found += self.poll(1.0)
            if len(found) >= count:
                break
        return sorted(bytes(record.value or b"") for record in found)

    def commit(self, offsets: Any = None) -> None:
        """Commit."""
        self.network.run(self.core.positions.commit(offsets, self.network.time + 30))

    def position(self, name: TopicPartition) -> int:
        """Return a position."""
        return self.network.run(self.core.positions.position(name, self.network.time + 30))

    def crash(self) -> None:
        """Stop without notifying the group."""
        self.core.client.close()
        for task in self.core.tasks:
            task.cancel()

    def close(self) -> None:
        """Close the consumer."""
        self.network.run(self.core.close(self.network.time + 30))
        self.core.client.close()
