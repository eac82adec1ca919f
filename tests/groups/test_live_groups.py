"""The groups of a running broker of the release: a coordinator loaded from its log describes them like the broker.

Members of all four types join groups on a cluster. Then the test fetches and loads the log of ``__consumer_offsets``,
and sends the same requests to both sides. It uses no recording, so the broker has the release of the definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import evolve

from kafka_msgs.client import Client
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import GroupCoordinator
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.memory_log import MemoryLog
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, CoordinatorTopicImage, TopicsImage
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import InternalRecord, UnknownRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.message import Request
from kafka_msgs.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_msgs.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafka_msgs.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_msgs.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafka_msgs.messages.share_group_describe_request import ShareGroupDescribeRequest
from kafka_msgs.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafka_msgs.messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from kafka_msgs.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafka_msgs.records import read_batches
from tests.support.cluster_topics import new_name, new_topic
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses

_OFFSETS: Final = "__consumer_offsets"
_FETCH_BY_NAME: Final = 12
_NOW: Final = 1_800_000_000_000


class _Groups:
    """One group of each type, and one with offsets only. The members send only their joins, and no heartbeats."""

    def __init__(self, client: Client, topic: str) -> None:
        self.client = client
        self.topic = topic
        self.by_kind = {kind: new_name(kind) for kind in ("classic", "consumer", "share", "streams", "offsets")}

    def join(self) -> None:
        self._join_classic()
        for member, fields in (
            ("A", {"subscribed_topic_names": (self.topic,)}),
            ("B", {"subscribed_topic_names": (), "subscribed_topic_regex": f"{self.topic}|no-.*"}),
        ):
            self._ask(
                ConsumerGroupHeartbeatRequest(
                    group_id=self.by_kind["consumer"],
                    member_id=member,
                    rebalance_timeout_ms=300_000,
                    topic_partitions=(),
                    **fields,
                )
            )
        for member in ("A", "B"):
            self._ask(
                ShareGroupHeartbeatRequest(
                    group_id=self.by_kind["share"], member_id=member, subscribed_topic_names=(self.topic,)
                )
            )
            self._ask(self._streams(member))
        self._commit("offsets")

    def _join_classic(self) -> None:
        group = self.by_kind["classic"]
        joined = self._ask(
            JoinGroupRequest(
                group_id=group,
                session_timeout_ms=60_000,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\0\1"),),
            ),
            3,
        )
        mine = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")
        generation, member_id = joined.generation_id, joined.member_id
        self._ask(
            SyncGroupRequest(group_id=group, generation_id=generation, member_id=member_id, assignments=(mine,)), 3
        )
        self._commit("classic", generation_id_or_member_epoch=generation, member_id=member_id)

    def _streams(self, member: str) -> StreamsGroupHeartbeatRequest:
        subtopology = Subtopology(subtopology_id="0", source_topics=(self.topic,))
        return StreamsGroupHeartbeatRequest(
            group_id=self.by_kind["streams"],
            member_id=member,
            rebalance_timeout_ms=300_000,
            topology=Topology(epoch=1, subtopologies=(subtopology,)),
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
            process_id=f"process-{member}",
            client_tags=(),
        )

    def _commit(self, kind: str, **member: Any) -> None:
        reached = tuple(OffsetCommitRequestPartition(partition_index=each, committed_offset=each) for each in (0, 2))
        topics = (OffsetCommitRequestTopic(name=self.topic, partitions=reached),)
        self._ask(OffsetCommitRequest(group_id=self.by_kind[kind], topics=topics, **member), 8)

    def _ask(self, request: Request[Any], version: int | None = None) -> Any:
        response = self.client.call(request, version=version)
        assert getattr(response, "error_code", 0) == 0, response
        return response

    def questions(self) -> Iterator[tuple[Request[Any], int]]:
        """Yield the requests for both sides, each with its version."""
        yield DescribeGroupsRequest(groups=(self.by_kind["classic"], self.by_kind["offsets"])), 6
        yield ConsumerGroupDescribeRequest(group_ids=(self.by_kind["consumer"],)), 1
        yield ShareGroupDescribeRequest(group_ids=(self.by_kind["share"],)), 1
        yield StreamsGroupDescribeRequest(group_ids=(self.by_kind["streams"],)), 1
        groups = tuple(OffsetFetchRequestGroup(group_id=each, topics=None) for each in self.by_kind.values())
        yield OffsetFetchRequest(groups=groups), 9
        yield ListGroupsRequest(), 5

    def answers(self) -> list[Any]:
        return [self.own(self.client.call(request, version=version)) for request, version in self.questions()]

    def own(self, response: Any) -> Any:
        """Return a response limited to these groups, sorted by name."""
        mine = [group for group in response.groups if group.group_id in self.by_kind.values()]
        return evolve(response, throttle_time_ms=0, groups=tuple(sorted(mine, key=lambda group: str(group.group_id))))


def _log(client: Client, partition: int) -> Iterator[InternalRecord | TransactionEnd]:
    """Yield all committed records of a partition of ``__consumer_offsets``."""
    position, end = 0, 1
    while position < end:
        wanted = FetchPartition(partition=partition, fetch_offset=position, partition_max_bytes=2**20)
        request = FetchRequest(max_wait_ms=100, topics=(FetchTopic(topic=_OFFSETS, partitions=(wanted,)),))
        [topic] = client.call(request, version=_FETCH_BY_NAME).responses
        [found] = topic.partitions
        assert found.error_code == 0
        end = found.high_watermark
        for batch in read_batches(found.records or b""):
            yield from decode_batches(_OFFSETS, [batch])
            position = batch.last_offset + 1


def _image(client: Client, topic: str) -> TopicsImage:
    [found] = client.call(MetadataRequest(topics=(MetadataRequestTopic(name=topic),))).topics
    return EMPTY_IMAGE.changed(
        put=[CoordinatorTopicImage(name=topic, id=found.topic_id, racks=((),) * len(found.partitions))]
    )


def _of_groups(records: Iterable[InternalRecord | TransactionEnd], groups: Iterable[str]) -> list[Any]:
    """Return the records of some groups. Other groups belong to concurrent tests."""
    names = set(groups)
    known = [each for each in records if not isinstance(each, (TransactionEnd, UnknownRecord))]
    return [each for each in known if {getattr(each.key, "group_id", None), getattr(each.key, "group", None)} & names]


def _loaded(client: Client, topic: str, groups: Iterable[str]) -> GroupCoordinator:
    [offsets] = client.call(MetadataRequest(topics=(MetadataRequestTopic(name=_OFFSETS),))).topics
    partitions = len(offsets.partitions)
    config = CoordinatorConfig(offsets_topic_num_partitions=partitions)
    made = GroupCoordinator(MemoryLog().append, config=config)
    made.set_image(_image(client, topic), now=_NOW)
    for partition in range(partitions):
        made.elect(partition, 1, now=_NOW)
        made.load(partition, _of_groups(_log(client, partition), groups))
        made.loaded(partition, now=_NOW)
    return made


def test_the_log_of_a_running_broker_answers_as_the_broker_does(kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, 3)
    with Client(kafka_cluster.bootstrap_servers, client_id="member") as client:
        groups = _Groups(client, topic)
        groups.join()
        told: list[Any] = []
        loaded: list[GroupCoordinator] = []

        def settled() -> bool:
            """Return whether nothing changed while the log was read, such as resolved patterns or expired sessions."""
            told[:] = groups.answers()
            loaded[:] = [_loaded(client, topic, groups.by_kind.values())]
            return told == groups.answers()

        until(settled)

    [coordinator] = loaded
    found = []
    for request, version in groups.questions():
        context = RequestContext(version=version, client_id="member")
        [answer] = coordinator.handle(request, context, now=_NOW).answers
        found.append(groups.own(answer.response.decode(answer.response.encode(version), version)))
    assert found == told
    listed = {group.group_id: group.group_type for group in found[-1].groups}
    assert listed == {name: kind if kind != "offsets" else "classic" for kind, name in groups.by_kind.items()}
