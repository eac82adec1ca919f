"""A share group on a cluster, and steps that ask a cluster something about it.

Two clusters that get the same steps are compared by what the answers show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final
from uuid import UUID, uuid4

from attrs import Factory, define

from kafka_msgs import (
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    ProduceResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
)
from kafka_msgs.admin import Admin, ConfigChange, ConfigResource, NewTopic
from kafka_msgs.broker.share import SharePartitionKey
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.message import Request
from kafka_msgs.messages import read_share_group_state_request as read
from kafka_msgs.messages import read_share_group_state_summary_request as summarized
from kafka_msgs.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kafka_msgs.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kafka_msgs.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.recorders.raw_client import Conversation
from tests.support.eventually import until
from tests.support.share_requests import Said, heartbeat, share_acknowledge, share_fetch
from tests.support.virtual_brokers import batch

__all__ = [
    "MEMBERS",
    "WAIT_MS",
    "Side",
    "Step",
    "altered",
    "deleted",
    "described",
    "end",
    "fetched",
    "grouped",
    "left",
    "said",
    "shown",
    "side",
    "stated",
]

MEMBERS: Final = ("one", "two")
WAIT_MS: Final = 5_000
"""How long a fetch waits for what it gets for certain. Kafka wakes none when a lock ends: some wait for all of it."""
_LOAD_MS: Final = 25_000
"""How long the first fetch waits for a broker to load the share partition, on a machine that does much else."""
SETTINGS: Final = {
    "share.auto.offset.reset": "earliest", "share.session.timeout.ms": "3600000",
    "share.record.lock.duration.ms": "3600000",
}  # fmt: skip
"""The group's own. Nothing in it ends because a machine is slow."""
RELAXED: Final = frozenset(
    {"topicId", "leaderId", "leaderEpoch", "nodeEndpoints", "throttleTimeMs", "records", "stateEpoch"}
    | {"name", "topicName", "groupId"}
)

Step = Callable[["Side"], Any]
"""Asks one side something, and returns the answer."""


def relaxed(value: Any) -> Any:
    """Leave out of an answer in JSON form what differs between two clusters, and sort partitions."""
    if isinstance(value, dict):
        named = {key: relaxed(each) for key, each in value.items() if key not in RELAXED}
        if "partitions" in named:
            named["partitions"] = sorted(named["partitions"], key=lambda part: part.get("partitionIndex", 0))
        return named
    return [relaxed(each) for each in value] if isinstance(value, list) else value


@define(eq=False)
class Side:
    """A cluster with a topic of one partition, and a share group that reads it."""

    group: str
    topic: str
    topic_id: UUID
    members: Mapping[str, Conversation]
    leader: Conversation
    share_coordinator: Conversation
    group_coordinator: Conversation
    connect: Callable[[int], Conversation]
    epochs: dict[str, int] = Factory(lambda: dict.fromkeys(MEMBERS, 0))

    def fetch(self, member: str, said: Sequence[Said], **fields: Any) -> Any:
        """Let a member fetch, with its next epoch."""
        epoch = self.epochs[member]
        self.epochs[member] += 1
        request = share_fetch(self.group, member, epoch, self.topic_id, said=said, **fields)
        return self.members[member].ask(request, 2)

    def say(self, member: str, said: Sequence[Said], **fields: Any) -> Any:
        """Let a member acknowledge, with its next epoch."""
        epoch = self.epochs[member]
        self.epochs[member] += 1
        request = share_acknowledge(self.group, member, epoch, self.topic_id, said, **fields)
        return self.members[member].ask(request, 2)

    def produce(self, count: int) -> Any:
        """Append a batch of so many records."""
        part = PartitionProduceData(index=0, records=batch(*[b"x"] * count))
        topic = TopicProduceData(name=self.topic, partition_data=(part,))
        return self.leader.ask(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(topic,)), 12)

    def state(self) -> Any:
        """What the share coordinator keeps."""
        part = read.PartitionData(partition=0, leader_epoch=0)
        topic = read.ReadStateData(topic_id=self.topic_id, partitions=(part,))
        return self.share_coordinator.ask(ReadShareGroupStateRequest(group_id=self.group, topics=(topic,)), 0)


@contextmanager
def side(servers: str) -> Iterator[Side]:
    """Make a topic and a share group whose members have joined."""
    name = f"share-{uuid4().hex[:8]}"
    with ExitStack() as stack, Admin(servers) as admin:
        admin.create_topics([NewTopic(name, 1, 1)]).all()
        changes = [ConfigChange(name=key, value=each) for key, each in SETTINGS.items()]
        admin.alter_configs({ConfigResource(ConfigResourceType.GROUP, name): changes}).all()
        metadata: list[Any] = []

        def led() -> bool:
            metadata[:] = [admin.client.call(MetadataRequest(topics=(MetadataRequestTopic(name=name),)))]
            topic = metadata[0].topics[0]
            return not topic.error_code and topic.partitions[0].leader_id >= 0

        until(led)
        topic = metadata[0].topics[0]
        ports = {broker.node_id: broker.port for broker in metadata[0].brokers}
        leader = topic.partitions[0].leader_id

        def connect(node: int) -> Conversation:
            return stack.enter_context(Conversation(ports[node], client_id="share"))

        first = connect(leader)
        key = SharePartitionKey(name, topic.topic_id, 0)
        made = Side(
            name,
            name,
            topic.topic_id,
            {each: connect(leader) for each in MEMBERS},
            first,
            connect(coordinator(first, 2, key.text)),
            connect(coordinator(first, 0, name)),
            connect,
        )
        join(made)
        # A real broker loads the share partition beside the first fetch.
        until(lambda: not made.produce(1).responses[0].partition_responses[0].error_code)
        made.fetch("one", [], max_wait_ms=_LOAD_MS)
        yield made


def coordinator(connection: Conversation, kind: int, key: str) -> int:
    """Wait until a broker coordinates a key, and return it."""
    found: list[Any] = []

    def known() -> bool:
        found[:] = connection.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,)), 6).coordinators
        return not found[0].error_code

    until(known)
    return int(found[0].node_id)


def joins(made: Side, member: str) -> bool:
    """Send the first heartbeat of a member. Return whether it is a member now."""
    return not made.group_coordinator.ask(heartbeat(made.group, member, 0, made.topic), 1).error_code


def join(made: Side) -> None:
    """Let the members join, and wait until the share partition has state."""
    for member in MEMBERS:
        until(partial(joins, made, member))

    def has_state() -> bool:
        part = summarized.PartitionData(partition=0)
        topic = summarized.ReadStateSummaryData(topic_id=made.topic_id, partitions=(part,))
        request = ReadShareGroupStateSummaryRequest(group_id=made.group, topics=(topic,))
        answer = made.share_coordinator.ask(request, 1)
        return bool(answer.results[0].partitions[0].state_epoch)

    until(has_state)


def fetched(member: str, epoch: int, said: Sequence[Said] = (), version: int = 2, **fields: Any) -> Step:
    """A fetch with any epoch. ``group`` and ``member`` may be wrong."""
    where = {name: fields.pop(name) for name in ("group", "topic_id", "partitions") if name in fields}

    def ask(made: Side) -> Any:
        request = share_fetch(
            where.get("group", made.group),
            member,
            epoch,
            where.get("topic_id", made.topic_id),
            where.get("partitions", (0,)),
            said=said,
            **fields,
        )
        return made.members["two"].ask(request, version)

    return ask


def said(member: str, epoch: int, *batches: Said, **fields: Any) -> Step:
    """An acknowledgement with any epoch."""
    group = fields.pop("group", ...)
    topic_id = fields.pop("topic_id", None)

    def ask(made: Side) -> Any:
        group_id = made.group if group is ... else group
        request = share_acknowledge(group_id, member, epoch, topic_id or made.topic_id, batches, **fields)
        return made.members["two"].ask(request, 2)

    return ask


def stated(module: Any, verb: str, *, topic_id: UUID | None = None, group: str | None = None, **part: Any) -> Step:
    """A request to the share coordinator about one share partition."""
    topic = {"ReadStateSummary": "ReadStateSummaryData"}.get(verb, f"{verb}StateData")
    request = {"ReadStateSummary": "ReadShareGroupStateSummaryRequest"}.get(verb, f"{verb}ShareGroupStateRequest")
    partition = module.PartitionData(**{"partition": 0, **part})

    def ask(made: Side) -> Any:
        asked_id = topic_id or made.topic_id
        asked = getattr(module, topic)(topic_id=asked_id, partitions=(partition,))
        group_id = made.group if group is None else group
        asking = made.share_coordinator
        if group_id:
            # Each share partition, also one that cannot be, has a coordinator of its own.
            asking = made.connect(
                coordinator(made.leader, 2, SharePartitionKey(group_id, asked_id, partition.partition).text)
            )
        return ask_newest(asking, getattr(module, request)(group_id=group_id, topics=(asked,)))

    return ask


def ask_newest(connection: Conversation, request: Request[Any]) -> Any:
    """Ask at the newest version."""
    return connection.ask(request, request.INFO.versions.highest)


def grouped(make: Callable[[Side], Request[Any]], group: str | None = None) -> Step:
    """A request to the coordinator of the group, or of another group."""

    def ask(made: Side) -> Any:
        asking = made.connect(coordinator(made.leader, 0, group)) if group else made.group_coordinator
        return ask_newest(asking, make(made))

    return ask


def altered(start: int, partition: int = 0, topic: str | None = None, group: str | None = None) -> Step:
    """AlterShareGroupOffsets of a partition."""

    def make(made: Side) -> AlterShareGroupOffsetsRequest:
        part = AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=start)
        asked = AlterShareGroupOffsetsRequestTopic(topic_name=topic or made.topic, partitions=(part,))
        return AlterShareGroupOffsetsRequest(group_id=made.group if group is None else group, topics=(asked,))

    return grouped(make, group)


def deleted(topic: str | None = None, group: str | None = None) -> Step:
    """DeleteShareGroupOffsets of a topic."""

    def make(made: Side) -> DeleteShareGroupOffsetsRequest:
        asked = DeleteShareGroupOffsetsRequestTopic(topic_name=topic or made.topic)
        return DeleteShareGroupOffsetsRequest(group_id=made.group if group is None else group, topics=(asked,))

    return grouped(make, group)


def described(partitions: tuple[int, ...] | None = (0,), topic: str | None = None) -> Step:
    """DescribeShareGroupOffsets of some partitions of a topic, or of all."""

    def make(made: Side) -> DescribeShareGroupOffsetsRequest:
        asked = DescribeShareGroupOffsetsRequestTopic(topic_name=topic or made.topic, partitions=partitions or ())
        topics = None if partitions is None else (asked,)
        group = DescribeShareGroupOffsetsRequestGroup(group_id=made.group, topics=topics)
        return DescribeShareGroupOffsetsRequest(groups=(group,))

    return grouped(make)


def left(member: str) -> Step:
    """The last heartbeat of a member."""
    return grouped(lambda made: heartbeat(made.group, member, -1))


def shown(answer: Any, version: int | None = None) -> Any:
    """Return an answer in JSON form, without what differs between two clusters."""
    if version is None:
        version = 12 if isinstance(answer, ProduceResponse) else answer.INFO.versions.highest
    return relaxed(answer.to_json(version))


def end(made: Side) -> Iterator[Any]:
    """What is known of the group after a script."""
    yield shown(made.state(), 0)
    topic = DescribeShareGroupOffsetsRequestTopic(topic_name=made.topic, partitions=(0,))
    groups = (DescribeShareGroupOffsetsRequestGroup(group_id=made.group, topics=(topic,)),)
    offsets = shown(made.group_coordinator.ask(DescribeShareGroupOffsetsRequest(groups=groups), 1), 1)
    yield [each["partitions"] for each in offsets["groups"][0]["topics"]]
