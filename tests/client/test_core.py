"""Client logic on an in-memory network: routing, retries, timeouts, splitting and merging."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from attrs import evolve

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.client.flow import Future, wait_for
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import ConnectionFailedError, DeadlineError, UnsupportedVersionError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from kafka_msgs.messages.describe_cluster_response import DescribeClusterResponse
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_msgs.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kafka_msgs.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_msgs.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponse, OffsetFetchResponseGroup
from tests.support.simulated_network import SimulatedBroker, SimulatedNetwork, apis


class SmallCluster:
    """Three in-memory brokers. ``leaders`` maps each partition of topic ``t`` to its leader."""

    def __init__(self) -> None:
        self.network = SimulatedNetwork()
        self.leaders = {0: 1, 1: 2, 2: 3}
        self.coordinators: dict[str, int] = {}
        self.errors: list[int] = []
        self.brokers = {node: self._add(node) for node in (1, 2, 3)}

    def _add(self, node: int) -> SimulatedBroker:
        return self.network.add(f"b{node}:9092", lambda request: self.answer(node, request))

    def answer(self, node: int, request: Request[Any]) -> Response | None:
        """Answer as broker ``node``."""
        return getattr(self, f"on_{request.INFO.name}")(node, request)  # type: ignore[no-any-return]

    def on_MetadataRequest(self, node: int, request: MetadataRequest) -> MetadataResponse:  # noqa: N802
        """Answer."""
        partitions = tuple(
            MetadataResponsePartition(partition_index=number, leader_id=leader, replica_nodes=(), isr_nodes=())
            for number, leader in self.leaders.items()
        )
        names = [topic.name for topic in request.topics or ()]
        return MetadataResponse(
            brokers=tuple(MetadataResponseBroker(node_id=each, host=f"b{each}", port=9092) for each in (1, 2, 3)),
            controller_id=2,
            topics=tuple(MetadataResponseTopic(name=name, partitions=partitions) for name in names if name == "t"),
        )

    def on_FindCoordinatorRequest(self, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:  # noqa: N802
        """Answer."""
        found = [(key, self.coordinators.get(key, 0)) for key in request.coordinator_keys]
        return FindCoordinatorResponse(
            coordinators=tuple(
                Coordinator(key=key, node_id=place, host=f"b{place}", port=9092)
                if place else Coordinator(key=key, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
                for key, place in found
            )
        )  # fmt: skip

    def on_DescribeGroupsRequest(self, node: int, request: DescribeGroupsRequest) -> DescribeGroupsResponse:  # noqa: N802
        """Answer."""
        return DescribeGroupsResponse(
            groups=tuple(
                DescribedGroup(group_id=name, group_state="Stable" if self.coordinators[name] == node else "",
                               error_code=0 if self.coordinators[name] == node else ErrorCode.NOT_COORDINATOR)
                for name in request.groups
            )
        )  # fmt: skip

    def on_OffsetFetchRequest(self, node: int, request: OffsetFetchRequest) -> OffsetFetchResponse:  # noqa: N802
        """Answer."""
        code = self.errors.pop(0) if self.errors else 0
        if request.groups:
            return OffsetFetchResponse(
                groups=tuple(
                    OffsetFetchResponseGroup(group_id=each.group_id, error_code=code) for each in request.groups
                )
            )
        return OffsetFetchResponse(error_code=code)

    def on_ListGroupsRequest(self, node: int, request: ListGroupsRequest) -> ListGroupsResponse:  # noqa: N802
        """Answer."""
        return ListGroupsResponse(throttle_time_ms=node, groups=(ListedGroup(group_id=f"g{node}"),))

    def on_ListOffsetsRequest(self, node: int, request: ListOffsetsRequest) -> ListOffsetsResponse:  # noqa: N802
        """Answer: the offset of a partition is ten times its number."""
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(self._offset(node, topic.name, each.partition_index) for each in topic.partitions),
                )
                for topic in request.topics
            )
        )

    def _offset(self, node: int, topic: str, number: int) -> ListOffsetsPartitionResponse:
        if topic != "t":
            code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            code = 0 if self.leaders[number] == node else int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return ListOffsetsPartitionResponse(partition_index=number, error_code=code, offset=number * 10)

    def on_DescribeClusterRequest(self, node: int, request: DescribeClusterRequest) -> DescribeClusterResponse:  # noqa: N802
        """Answer."""
        return DescribeClusterResponse(cluster_id=f"asked {node}", brokers=())

    def seen(self) -> dict[int, list[str]]:
        """Return the APIs requested from each broker."""
        return {node: apis(broker.requests) for node, broker in self.brokers.items()}


@pytest.fixture
def cluster() -> SmallCluster:
    """A ``SmallCluster`` of three in-memory brokers."""
    return SmallCluster()


def _group(name: str) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(group_id=name, topics=None)


def _offsets(topic: str, *partitions: int) -> ListOffsetsRequest:
    asked = tuple(ListOffsetsPartition(partition_index=number, timestamp=-1) for number in partitions)
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=asked),))


def test_a_request_for_any_broker_uses_the_bootstrap_connection(cluster: SmallCluster) -> None:
    core = cluster.network.core("b2:9092")
    assert cluster.network.run(core.call(DescribeClusterRequest())).cluster_id == "asked 2"
    assert cluster.seen() == {1: [], 2: ["DescribeCluster"], 3: []}
    assert cluster.network.connections == 1


def test_a_request_for_a_node_goes_there(cluster: SmallCluster) -> None:
    core = cluster.network.core("b2:9092")
    assert cluster.network.run(core.call(DescribeClusterRequest(), broker_id=3)).cluster_id == "asked 3"


def test_a_node_that_the_cluster_lacks_is_an_error(cluster: SmallCluster) -> None:
    core = cluster.network.core("b2:9092", timeout=5)
    with pytest.raises(ConnectionFailedError, match="broker 9: connect: the cluster has no such broker"):
        cluster.network.run(core.call(DescribeClusterRequest(), broker_id=9, retry=False))


def test_a_group_is_asked_for_at_its_coordinator_and_nothing_else_is_sent(cluster: SmallCluster) -> None:
    cluster.coordinators = {"g": 3}
    core = cluster.network.core("b1:9092")
    cluster.network.run(core.call(OffsetFetchRequest(groups=(_group("g"),))))
    assert cluster.seen() == {1: ["FindCoordinator"], 2: [], 3: ["OffsetFetch"]}


def test_a_coordinator_that_moved_is_looked_for_again(cluster: SmallCluster) -> None:
    cluster.coordinators, cluster.errors = {"g": 3}, [ErrorCode.NOT_COORDINATOR]
    core = cluster.network.core("b1:9092")
    answer = cluster.network.run(core.call(OffsetFetchRequest(group_id="g", topics=None)))
    assert answer.error_code == 0
    asked = Counter(api for each in cluster.seen().values() for api in each)
    assert asked == {"FindCoordinator": 2, "OffsetFetch": 2}


def test_an_answer_that_is_still_retriable_at_the_deadline_is_returned(cluster: SmallCluster) -> None:
    cluster.coordinators, cluster.errors = {"g": 3}, [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000
    core = cluster.network.core("b1:9092")
    begin = cluster.network.now()
    request = OffsetFetchRequest(group_id="g", topics=None)
    answer = cluster.network.run(core.call(request, deadline=core.deadline(3)))
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert 1.5 < cluster.network.now() - begin <= 3


def test_without_retry_the_first_answer_is_returned(cluster: SmallCluster) -> None:
    cluster.coordinators, cluster.errors = {"g": 3}, [ErrorCode.NOT_COORDINATOR]
    core = cluster.network.core("b1:9092")
    answer = cluster.network.run(core.call(OffsetFetchRequest(group_id="g", topics=None), retry=False))
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_several_groups_take_one_request_for_each_coordinator(cluster: SmallCluster) -> None:
    cluster.coordinators = {f"g{number}": number % 2 + 1 for number in range(1000)}
    core = cluster.network.core("b3:9092")
    answer = cluster.network.run(core.call(OffsetFetchRequest(groups=tuple(map(_group, cluster.coordinators)))))
    assert {each.group_id for each in answer.groups} == set(cluster.coordinators)
    assert cluster.seen() == {1: ["OffsetFetch"], 2: ["OffsetFetch"], 3: ["FindCoordinator"]}


class ForgetfulCluster(SmallCluster):
    """A cluster whose brokers omit the first requested coordinators and return different ones."""

    left_out = 2

    def on_FindCoordinatorRequest(self, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:  # noqa: N802
        """Answer."""
        if self.left_out:
            self.left_out -= 1
            return FindCoordinatorResponse(coordinators=(Coordinator(key="other", node_id=7, host="b7", port=9092),))
        return super().on_FindCoordinatorRequest(node, request)


def test_a_coordinator_that_is_left_out_is_not_available_yet() -> None:
    cluster = ForgetfulCluster()
    cluster.coordinators = {"g": 3}
    core = cluster.network.core("b1:9092")
    found = core.coordinator("g", CoordinatorKind.GROUP, deadline=core.deadline(30))
    assert cluster.network.run(found) == 3
    answer = cluster.network.run(core.call(DescribeGroupsRequest(groups=("g",))))
    assert [each.group_state for each in answer.groups] == ["Stable"]
    assert 7 not in core.cluster.brokers


def test_only_the_groups_that_moved_are_asked_for_again(cluster: SmallCluster) -> None:
    cluster.coordinators = {"a": 1, "b": 2, "c": 2}
    core = cluster.network.core("b3:9092")
    cluster.network.run(core.call(DescribeGroupsRequest(groups=("a", "b", "c"))))
    cluster.coordinators["b"] = 3
    answer = cluster.network.run(core.call(DescribeGroupsRequest(groups=("a", "b", "c"))))
    assert {(each.group_id, each.group_state) for each in answer.groups} == {(name, "Stable") for name in "abc"}
    asked = [request.groups for request in cluster.brokers[3].requests if isinstance(request, DescribeGroupsRequest)]
    assert asked == [("b",)]


def test_an_api_of_every_broker_is_merged(cluster: SmallCluster) -> None:
    core = cluster.network.core("b3:9092")
    answer = cluster.network.run(core.call(ListGroupsRequest()))
    assert [each.group_id for each in answer.groups] == ["g1", "g2", "g3"]
    assert answer.throttle_time_ms == 3


def test_partitions_are_asked_for_at_their_leaders_and_the_answers_are_one(cluster: SmallCluster) -> None:
    core = cluster.network.core("b3:9092")
    answer = cluster.network.run(core.call(_offsets("t", 0, 1, 2)))
    assert [topic.name for topic in answer.topics] == ["t"]
    assert {each.partition_index: each.offset for each in answer.topics[0].partitions} == {0: 0, 1: 10, 2: 20}
    asked = {node: [r for r in broker.requests if isinstance(r, ListOffsetsRequest)]
             for node, broker in cluster.brokers.items()}  # fmt: skip
    asked_for = {
        node: [p.partition_index for r in each for p in r.topics[0].partitions] for node, each in asked.items()
    }
    assert asked_for == {
        1: [0], 2: [1], 3: [2]
    }  # fmt: skip


def test_a_leader_that_moved_is_found_again(cluster: SmallCluster) -> None:
    core = cluster.network.core("b3:9092")
    cluster.network.run(core.call(_offsets("t", 0, 1, 2)))
    cluster.leaders[1] = 3
    answer = cluster.network.run(core.call(_offsets("t", 0, 1, 2)))
    assert {each.error_code for topic in answer.topics for each in topic.partitions} == {0}


def test_a_topic_that_does_not_exist_is_answered_by_a_broker_at_once(cluster: SmallCluster) -> None:
    core = cluster.network.core("b3:9092")
    begin = cluster.network.now()
    answer = cluster.network.run(core.call(_offsets("absent", 0)))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.network.now() - begin < 0.1


def test_a_version_both_have_is_used_and_none_is_an_error(cluster: SmallCluster) -> None:
    cluster.coordinators = {"g": 1}
    cluster.brokers[1].limits = {ApiKey.OFFSET_FETCH: (0, 6)}
    core = cluster.network.core("b1:9092")
    cluster.network.run(core.call(OffsetFetchRequest(group_id="g", topics=None)))
    assert cluster.brokers[1].frames[-1].header.request_api_version == 6
    cluster.brokers[2].limits = {ApiKey.DESCRIBE_CLUSTER: None}
    with pytest.raises(UnsupportedVersionError, match="DescribeClusterRequest: the broker has no version"):
        cluster.network.run(cluster.network.core("b2:9092").call(DescribeClusterRequest()))


def test_the_form_of_a_request_chooses_the_version_that_carries_it(cluster: SmallCluster) -> None:
    cluster.coordinators = {"g": 1}
    core = cluster.network.core("b1:9092")
    cluster.network.run(core.call(OffsetFetchRequest(group_id="g", topics=None)))
    cluster.network.run(core.call(OffsetFetchRequest(groups=(_group("g"),))))
    versions = [frame.header.request_api_version for frame in cluster.brokers[1].frames[1:]]
    assert versions == [7, OffsetFetchRequest.INFO.versions.highest]


def test_a_broker_that_goes_down_is_replaced_by_another(cluster: SmallCluster) -> None:
    core = cluster.network.core("b1:9092,b2:9092,b3:9092")
    first = cluster.network.run(core.call(DescribeClusterRequest())).cluster_id
    gone = int(str(first)[-1])
    cluster.network.stop(cluster.brokers[gone])
    second = cluster.network.run(core.call(DescribeClusterRequest())).cluster_id
    assert second != first


def test_the_deadline_names_the_last_failure(cluster: SmallCluster) -> None:
    core = cluster.network.core("silent:1")
    silent = cluster.network.add("silent:1", lambda _: DescribeClusterResponse())
    cluster.network.run(core.call(DescribeClusterRequest(), deadline=core.deadline(4)))
    cluster.network.stop(silent)
    begin = cluster.network.now()
    with pytest.raises(DeadlineError, match=r"the last failure was: silent:1: connect: connection refused"):
        cluster.network.run(core.call(DescribeClusterRequest(), deadline=core.deadline(4)))
    assert cluster.network.now() - begin <= 4


def test_before_the_first_connection_a_call_fails_at_once_with_the_reason(cluster: SmallCluster) -> None:
    core = cluster.network.core("nowhere:1,nowhere:2")
    begin = cluster.network.now()
    with pytest.raises(ConnectionFailedError, match=r"nowhere:\d: connect: connection refused"):
        cluster.network.run(core.call(DescribeClusterRequest(), deadline=core.deadline(4)))
    assert cluster.network.now() - begin < 1


def test_a_broker_that_never_answers_is_given_up(cluster: SmallCluster) -> None:
    answers: Future[Response] = Future()
    cluster.network.add("silent:1", lambda _: answers)
    core = cluster.network.core("silent:1", request_timeout=2.0)
    with pytest.raises(ConnectionFailedError, match="no answer to DescribeClusterRequest within 2 s"):
        cluster.network.run(core.call(DescribeClusterRequest(), retry=False))
    assert not cluster.network.transports


def test_a_broker_that_asks_for_a_pause_gets_one(cluster: SmallCluster) -> None:
    broker = cluster.network.add("busy:1", lambda _: DescribeClusterResponse(throttle_time_ms=1500, brokers=()))
    core = cluster.network.core("busy:1")
    cluster.network.run(core.call(DescribeClusterRequest()))
    begin = cluster.network.now()
    cluster.network.run(core.call(DescribeClusterRequest()))
    assert 1.5 <= cluster.network.now() - begin < 1.6
    assert len(broker.requests) == 2


def test_closing_leaves_no_connection_and_no_work(cluster: SmallCluster) -> None:
    core = cluster.network.core("b1:9092")
    cluster.network.run(core.call(ListGroupsRequest()))
    assert cluster.network.transports
    core.close()
    assert not cluster.network.transports
    assert cluster.network.task_count == 0


def test_calls_that_begin_together_make_one_first_connection(cluster: SmallCluster) -> None:
    core = cluster.network.core("b1:9092,b2:9092,b3:9092")
    calls = [cluster.network.spawn(core.refresh(deadline=core.deadline(None))) for _ in range(20)]
    for call in calls:
        cluster.network.run(wait_for(call, None))
    assert len(cluster.network.transports) == 1
    core.close()
    assert not cluster.network.transports


def test_a_connection_whose_broker_hangs_is_closed_though_nobody_waits(cluster: SmallCluster) -> None:
    hung: Future[Response] = Future()
    broker = cluster.network.add("b7:9092", lambda request: hung)
    core = cluster.network.core("b7:9092", request_timeout=5.0)
    for moment in (1.0, 3.0):
        with pytest.raises(DeadlineError):
            cluster.network.run(core.refresh(deadline=core.deadline(moment)))
    assert cluster.network.connections == 1
    cluster.network.pass_time(2.0)
    with pytest.raises(DeadlineError):
        cluster.network.run(core.refresh(deadline=core.deadline(1.0)))
    assert cluster.network.connections == 2
    assert len(broker.requests) == 3


def test_brokers_that_are_away_for_long_are_waited_for(cluster: SmallCluster) -> None:
    core = cluster.network.core("b1:9092", backoff=0.01, max_backoff=0.02)
    cluster.network.run(core.refresh(deadline=core.deadline(None)))
    for broker in cluster.brokers.values():
        cluster.network.stop(broker)
    for _ in range(2):
        with pytest.raises((DeadlineError, ConnectionFailedError)):
            cluster.network.run(core.link(1, deadline=core.deadline(20.0)))


def test_an_abandoned_call_leaves_the_connection_usable(cluster: SmallCluster) -> None:
    core = cluster.network.core("b1:9092")
    cluster.network.run(core.call(DescribeClusterRequest()))
    steps = core.call(DescribeClusterRequest())
    next(steps)
    steps.close()
    assert cluster.network.run(core.call(DescribeClusterRequest())) == DescribeClusterResponse(
        cluster_id="asked 1", brokers=()
    )
    assert cluster.network.connections == 1


def test_merging_joins_topics_and_keeps_the_first_error() -> None:
    from kafka_msgs.client.routing import merge_responses

    one = ListGroupsResponse(error_code=0, groups=(ListedGroup(group_id="a"),))
    two = evolve(one, error_code=15, groups=(ListedGroup(group_id="b"),))
    merged = merge_responses([one, two])
    assert (merged.error_code, [each.group_id for each in merged.groups]) == (15, ["a", "b"])
