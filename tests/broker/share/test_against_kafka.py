"""The same share groups on a real cluster and on an embedded one: the answers and the state are equal.

Members send ShareFetch and ShareAcknowledge themselves. The script is made while it runs on the embedded cluster, so
that it speaks of records that members have, and of some that they do not have. Then a real cluster gets the same
requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
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
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.share import ShareKey
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.message import Request
from kafka_msgs.messages import delete_share_group_state_request as erased
from kafka_msgs.messages import initialize_share_group_state_request as initialized
from kafka_msgs.messages import read_share_group_state_request as read
from kafka_msgs.messages import read_share_group_state_summary_request as summarized
from kafka_msgs.messages import write_share_group_state_request as written
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
from tests.recorders.asking import Conversation
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.share_requests import ACCEPT, REJECT, RELEASE, RENEW, Said, heartbeat, share_acknowledge, share_fetch
from tests.support.virtual_brokers import batch

STEPS: Final = 80
MEMBERS: Final = ("one", "two")
SEEDS: Final = 2
KEPT: Final = {"log.retention.ms": "-1"}
"""The records of tests are years old, and stay."""
WAIT_MS: Final = 25_000
"""How long a fetch waits for what it gets for certain, on a machine that does much else."""
DELIVERIES: Final = 5
"""How often records are delivered at most: ``share.delivery.count.limit``."""
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
        settings = {"share_auto_offset_reset": "earliest", "share_record_lock_duration_ms": "60000"}
        changes = [ConfigChange(name=key.replace("_", "."), value=each) for key, each in settings.items()]
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
        key = ShareKey(name, topic.topic_id, 0)
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
        made.fetch("one", [], max_wait_ms=WAIT_MS)
        yield made


def coordinator(connection: Conversation, kind: int, key: str) -> int:
    """Wait until a broker coordinates a key, and return it."""
    found: list[Any] = []

    def known() -> bool:
        found[:] = connection.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,)), 6).coordinators
        return not found[0].error_code

    until(known)
    return int(found[0].node_id)


def join(made: Side) -> None:
    """Let the members join, and wait until the share partition has state."""
    for member in MEMBERS:
        until(lambda: not made.group_coordinator.ask(heartbeat(made.group, member, 0, made.topic), 1).error_code)  # noqa: B023

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
            asking = made.connect(coordinator(made.leader, 2, ShareKey(group_id, asked_id, partition.partition).text))
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


ACCEPTED: Final = (0, 0, (ACCEPT,))
NOWHERE: Final = UUID(int=7)
FIXED: Final[list[Step]] = [
    fetched("two", 1),
    said("two", 1, ACCEPTED),
    said("two", -1, ACCEPTED),
    said("two", 0, ACCEPTED),
    fetched("two", -1),
    fetched("two", 0, [ACCEPTED]),
    fetched("two", 0, group=None),
    said("two", 0, ACCEPTED, group=None),
    fetched("", 0),
    fetched("x" * 37, 0),
    fetched("two", 0, partitions=(0, 1, -1)),
    fetched("two", 2),
    fetched("two", 1, partitions=()),
    fetched("two", 2, version=1),
    fetched("two", 3, partitions=(), forgotten=(1, -1)),
    fetched("two", 4, partitions=()),
    fetched("two", 5, max_bytes=0),
    fetched("two", 6, max_records=0),
    fetched("two", 7, is_renew_ack=True),
    fetched("two", 7, is_renew_ack=True, max_wait_ms=0, min_bytes=0, max_bytes=0, max_records=0),
    fetched("two", 8, [ACCEPTED], partitions=(5,)),
    said("two", 9, ACCEPTED),
    said("two", 10, (0, 3, (ACCEPT,))),
    said("two", 11, (3, 0, (ACCEPT,))),
    said("two", 12, (0, 1, ())),
    said("two", 13, (0, 1, (ACCEPT, ACCEPT, ACCEPT))),
    said("two", 14, (0, 0, (RENEW,))),
    said("two", 15, (0, 0, (5,))),
    said("two", 16, (0, 0, (-1,))),
    said("two", 17, (1, 1, (ACCEPT,)), (0, 0, (ACCEPT,))),
    said("two", 18),
    said("two", 19, ACCEPTED, partition=7),
    said("two", 99, ACCEPTED),
    lambda made: made.produce(3),
    fetched("two", 20, partitions=()),
    said("two", 21, (1, 1, (RENEW,)), is_renew_ack=True),
    said("two", 22, (1, 3, (RELEASE, ACCEPT, REJECT))),
    described(),
    described(None),
    described(topic="nowhere"),
    altered(2),
    deleted(),
    lambda made: made.state(),
    said("two", -1, ACCEPTED),
    said("two", 23, ACCEPTED),
    lambda made: made.say("one", [ACCEPTED]),
    left("one"),
    left("two"),
    altered(2, partition=9),
    altered(2, topic="nowhere"),
    altered(2, group=""),
    altered(2),
    lambda made: made.state(),
    described(),
    deleted(topic="nowhere"),
    deleted(group="nowhere"),
    deleted(group=""),
    deleted(),
    deleted(),
    described(),
    lambda made: made.state(),
    stated(initialized, "Initialize", state_epoch=-1),
    stated(initialized, "Initialize", partition=-1),
    stated(initialized, "Initialize", partition=9),
    stated(initialized, "Initialize", topic_id=NOWHERE),
    stated(initialized, "Initialize", group=""),
    stated(initialized, "Initialize", state_epoch=5, start_offset=7),
    stated(initialized, "Initialize", state_epoch=4),
    stated(read, "Read", leader_epoch=-1),
    stated(read, "Read", partition=-1),
    stated(read, "Read", partition=9),
    stated(read, "Read", leader_epoch=6),
    stated(read, "Read", leader_epoch=5),
    stated(written, "Write", leader_epoch=-1),
    stated(written, "Write", state_epoch=-1),
    stated(written, "Write", leader_epoch=5),
    stated(written, "Write", leader_epoch=6, state_epoch=4),
    stated(written, "Write", partition=9),
    stated(
        written,
        "Write",
        leader_epoch=7,
        state_epoch=5,
        start_offset=9,
        delivery_complete_count=1,
        state_batches=(written.StateBatch(first_offset=8, last_offset=12, delivery_state=2, delivery_count=1),),
    ),
    stated(read, "Read", leader_epoch=7),
    stated(summarized, "ReadStateSummary"),
    stated(summarized, "ReadStateSummary", partition=-1),
    stated(summarized, "ReadStateSummary", topic_id=NOWHERE),
    stated(erased, "Delete", partition=-1),
    stated(erased, "Delete", topic_id=NOWHERE),
    stated(erased, "Delete"),
    stated(erased, "Delete"),
    stated(summarized, "ReadStateSummary"),
]


class Script:
    """Makes steps for members, from what the answers on one side say."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.freed = False
        self.held: dict[str, list[tuple[int, int, int]]] = {member: [] for member in MEMBERS}

    def step(self) -> Step:
        """Return the next step."""
        member = self.random.choice(MEMBERS)
        kind = self.random.choices(("produce", "fetch", "say", "fetch and say", "wrong"), (3, 6, 4, 3, 1))[0]
        if kind == "produce":
            count = self.random.randint(1, 12)
            return lambda side: side.produce(count)
        if kind in ("fetch", "fetch and say"):
            said: Sequence[Said] = []
            self.freed = False
            if kind != "fetch":
                said = self._said(member)
            fields = {
                "max_records": self.random.choice((1, 2, 5, 20)),
                "batch_size": self.random.choice((1, 4, 100)),
                "share_acquire_mode": self.random.randint(0, 1),
                # Whether a fetch sees what it releases itself depends on time, unless it waits for that.
                "max_wait_ms": WAIT_MS if self.freed else 0,
            }
            return self._noted(member, lambda side: side.fetch(member, said, **fields))
        if kind == "say":
            said = self._said(member)
            return lambda side: side.say(member, said)
        wrong = self._wrong(member)
        return lambda side: side.say(member, [wrong])

    def _wrong(self, member: str) -> Said:
        """An acknowledgement that is refused: of records that the member does not have, or of an unknown type."""
        held = [piece for other in MEMBERS if other != member for piece in self.held[other]]
        if held and self.random.random() < 0.5:
            first, last, _ = self.random.choice(held)
            return first, last, [ACCEPT]
        first = self.random.randint(0, 60)
        return self.random.choice([(first, first - 1, [ACCEPT]), (first, first, [5]), (10_000, 10_001, [ACCEPT])])

    def _noted(self, member: str, ask: Step) -> Step:
        def run(side: Side) -> Any:
            answer = ask(side)
            for topic in answer.responses:
                for part in topic.partitions:
                    self.held[member] += [
                        (each.first_offset, each.last_offset, each.delivery_count) for each in part.acquired_records
                    ]
            return answer

        return run

    def _said(self, member: str) -> list[Said]:
        """Acknowledgements of some of what the member got: of whole pieces, of parts, and for each record.

        ``freed`` is True afterwards if they make records available again.
        """
        said: list[Said] = []
        left: list[tuple[int, int, int]] = []
        self.freed = False
        for first, last, delivered in sorted(self.held[member]):
            how = self.random.choice(("keep", "all", "part", "each"))
            if how == "keep":
                left.append((first, last, delivered))
                continue
            end = last if how != "part" else self.random.randint(first, last)
            count = end - first + 1 if how == "each" else 1
            said.append((first, end, [self.random.choice((ACCEPT, RELEASE, REJECT)) for _ in range(count)]))
            self.freed |= delivered < DELIVERIES and RELEASE in said[-1][2]
            if end < last:
                left.append((end + 1, last, delivered))
        self.held[member] = left
        return said


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
    offsets = shown(made.leader.ask(DescribeShareGroupOffsetsRequest(groups=groups), 1), 1)
    yield [each["partitions"] for each in offsets["groups"][0]["topics"]]


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_scripts_get_the_answers_of_a_real_cluster(kafka_cluster: ClusterAddresses, seed: int) -> None:
    script, steps = Script(seed), list[Step]()
    with EmbeddedBroker(configs=KEPT) as broker, side(broker.bootstrap_servers) as ours:
        answers = []
        for _ in range(STEPS):
            steps.append(script.step())
            answers.append(shown(steps[-1](ours)))
        answers += end(ours)
        assert broker.problems == []
    with side(kafka_cluster.bootstrap_servers) as theirs:
        expected = [shown(step(theirs)) for step in steps]
        expected += end(theirs)
    assert [each for each in zip(range(STEPS + 2), expected, answers, strict=True) if each[1] != each[2]] == []


@pytest.mark.oracle
def test_requests_of_all_kinds_get_the_answers_of_a_real_cluster(kafka_cluster: ClusterAddresses) -> None:
    with EmbeddedBroker(configs=KEPT) as broker, side(broker.bootstrap_servers) as ours:
        answers = [shown(step(ours)) for step in FIXED]
        assert broker.problems == []
    with side(kafka_cluster.bootstrap_servers) as theirs:
        expected = [shown(step(theirs)) for step in FIXED]
    assert [each for each in zip(range(len(FIXED)), expected, answers, strict=True) if each[1] != each[2]] == []
