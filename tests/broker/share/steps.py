"""A share group on a cluster, and steps that send requests to the cluster.

Two clusters that run the same steps are compared by their responses.
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
"""Maximum wait of a fetch that will certainly get records. Kafka does not wake fetches when a lock ends, so some
fetches wait this long."""
_LOAD_MS: Final = 25_000
"""Maximum wait of the first fetch, while the broker loads the share partition, on a busy machine."""
SETTINGS: Final = {
    "share.auto.offset.reset": "earliest", "share.session.timeout.ms": "3600000",
    "share.record.lock.duration.ms": "3600000",
}  # fmt: skip
"""Configs of the group. The timeouts are long enough for slow machines."""
RELAXED: Final = frozenset(
    {"topicId", "leaderId", "leaderEpoch", "nodeEndpoints", "throttleTimeMs", "records", "stateEpoch"}
    | {"name", "topicName", "groupId"}
)

Step = Callable[["Side"], Any]
"""Sends a request to one side, and returns the response."""


def relaxed(value: Any) -> Any:
    """Remove values that differ between clusters from a response in JSON form, and sort partitions."""
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
        """Send a fetch of a member, with its next epoch."""
        epoch = self.epochs[member]
        self.epochs[member] += 1
        request = share_fetch(self.group, member, epoch, self.topic_id, said=said, **fields)
        return self.members[member].ask(request, 2)

    def say(self, member: str, said: Sequence[Said], **fields: Any) -> Any:
        """Send an acknowledgement of a member, with its next epoch."""
        epoch = self.epochs[member]
        self.epochs[member] += 1
        request = share_acknowledge(self.group, member, epoch, self.topic_id, said, **fields)
        return self.members[member].ask(request, 2)

    def produce(self, count: int) -> Any:
        """Append a batch with this number of records."""
        part = PartitionProduceData(index=0, records=batch(*[b"x"] * count))
        topic = TopicProduceData(name=self.topic, partition_data=(part,))
        return self.leader.ask(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(topic,)), 12)

    def state(self) -> Any:
        """Return the share coordinator's state of the partition."""
        part = read.PartitionData(partition=0, leader_epoch=0)
        topic = read.ReadStateData(topic_id=self.topic_id, partitions=(part,))
        return self.share_coordinator.ask(ReadShareGroupStateRequest(group_id=self.group, topics=(topic,)), 0)


@contextmanager
def side(servers: str) -> Iterator[Side]:
    """Create a topic and a share group whose members have joined."""
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
        # A real broker loads the share partition concurrently with the first fetch.
        until(lambda: not made.produce(1).responses[0].partition_responses[0].error_code)
        made.fetch("one", [], max_wait_ms=_LOAD_MS)
        yield made


def coordinator(connection: Conversation, kind: int, key: str) -> int:
    """Wait until a key has a coordinator, and return its broker id."""
    found: list[Any] = []

    def known() -> bool:
        found[:] = connection.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,)), 6).coordinators
        return not found[0].error_code

    until(known)
    return int(found[0].node_id)


def joins(made: Side, member: str) -> bool:
    """Send the first heartbeat of a member. Return whether it succeeded."""
    return not made.group_coordinator.ask(heartbeat(made.group, member, 0, made.topic), 1).error_code


def join(made: Side) -> None:
    """Join all members, and wait until the share partition has state."""
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
    """Return a step that fetches with any epoch. ``group`` and ``member`` may be invalid."""
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
    """Return a step that acknowledges with any epoch."""
    group = fields.pop("group", ...)
    topic_id = fields.pop("topic_id", None)

    def ask(made: Side) -> Any:
        group_id = made.group if group is ... else group
        request = share_acknowledge(group_id, member, epoch, topic_id or made.topic_id, batches, **fields)
        return made.members["two"].ask(request, 2)

    return ask


def stated(module: Any, verb: str, *, topic_id: UUID | None = None, group: str | None = None, **part: Any) -> Step:
    """Return a step that sends the share coordinator a request about one share partition."""
    topic = {"ReadStateSummary": "ReadStateSummaryData"}.get(verb, f"{verb}StateData")
    request = {"ReadStateSummary": "ReadShareGroupStateSummaryRequest"}.get(verb, f"{verb}ShareGroupStateRequest")
    partition = module.PartitionData(**{"partition": 0, **part})

    def ask(made: Side) -> Any:
        asked_id = topic_id or made.topic_id
        asked = getattr(module, topic)(topic_id=asked_id, partitions=(partition,))
        group_id = made.group if group is None else group
        asking = made.share_coordinator
        if group_id:
            # Each share partition, including invalid ones, has its own coordinator.
            asking = made.connect(
                coordinator(made.leader, 2, SharePartitionKey(group_id, asked_id, partition.partition).text)
            )
        return ask_newest(asking, getattr(module, request)(group_id=group_id, topics=(asked,)))

    return ask


def ask_newest(connection: Conversation, request: Request[Any]) -> Any:
    """Send a request in the latest version."""
    return connection.ask(request, request.INFO.versions.highest)


def grouped(make: Callable[[Side], Request[Any]], group: str | None = None) -> Step:
    """Return a step that sends a request to the coordinator of the group, or of another group."""

    def ask(made: Side) -> Any:
        asking = made.connect(coordinator(made.leader, 0, group)) if group else made.group_coordinator
        return ask_newest(asking, make(made))

    return ask


def altered(start: int, partition: int = 0, topic: str | None = None, group: str | None = None) -> Step:
    """Return a step that sends AlterShareGroupOffsets for a partition."""

    def make(made: Side) -> AlterShareGroupOffsetsRequest:
        part = AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=start)
        asked = AlterShareGroupOffsetsRequestTopic(topic_name=topic or made.topic, partitions=(part,))
        return AlterShareGroupOffsetsRequest(group_id=made.group if group is None else group, topics=(asked,))

    return grouped(make, group)


def deleted(topic: str | None = None, group: str | None = None) -> Step:
    """Return a step that sends DeleteShareGroupOffsets for a topic."""

    def make(made: Side) -> DeleteShareGroupOffsetsRequest:
        asked = DeleteShareGroupOffsetsRequestTopic(topic_name=topic or made.topic)
        return DeleteShareGroupOffsetsRequest(group_id=made.group if group is None else group, topics=(asked,))

    return grouped(make, group)


def described(partitions: tuple[int, ...] | None = (0,), topic: str | None = None) -> Step:
    """Return a step that sends DescribeShareGroupOffsets for some partitions of a topic, or for all."""

    def make(made: Side) -> DescribeShareGroupOffsetsRequest:
        asked = DescribeShareGroupOffsetsRequestTopic(topic_name=topic or made.topic, partitions=partitions or ())
        topics = None if partitions is None else (asked,)
        group = DescribeShareGroupOffsetsRequestGroup(group_id=made.group, topics=topics)
        return DescribeShareGroupOffsetsRequest(groups=(group,))

    return grouped(make)


def left(member: str) -> Step:
    """Return a step that sends the last heartbeat of a member."""
    return grouped(lambda made: heartbeat(made.group, member, -1))


def shown(answer: Any, version: int | None = None) -> Any:
    """Return a response in JSON form, without values that differ between clusters."""
    if version is None:
        version = 12 if isinstance(answer, ProduceResponse) else answer.INFO.versions.highest
    return relaxed(answer.to_json(version))


def end(made: Side) -> Iterator[Any]:
    """Yield the state and the offsets of the group after a script."""
    yield shown(made.state(), 0)
    topic = DescribeShareGroupOffsetsRequestTopic(topic_name=made.topic, partitions=(0,))
    groups = (DescribeShareGroupOffsetsRequestGroup(group_id=made.group, topics=(topic,)),)
    offsets = shown(made.group_coordinator.ask(DescribeShareGroupOffsetsRequest(groups=groups), 1), 1)
    yield [each["partitions"] for each in offsets["groups"][0]["topics"]]
