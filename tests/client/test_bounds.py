"""Upper bounds on a client's work, for any broker response and any request size; work is measured in executed lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_msgs.client import routing
from kafka_msgs.client.cluster_metadata import ClusterMetadata
from kafka_msgs.client.flow import Flow, Future, Wait
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.core import ProducerCore
from kafka_msgs.client.routing import CoordinatorRoute, LeaderRoute
from kafka_msgs.client.scheduler import gather
from kafka_msgs.errors import ConnectionFailedError, DeadlineError, OptionError, RequestLimitError, TooManyBrokersError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from kafka_msgs.messages.describe_cluster_response import DescribeClusterResponse
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_msgs.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.line_counter import lines_run
from tests.support.produce_cluster import ProduceCluster
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.simulated_groups import GroupCluster, User
from tests.support.simulated_network import SimulatedNetwork


def check_linear(work: Callable[[int], Callable[[], Any]]) -> None:
    """Check that four times the work runs fewer than five times the lines. ``work(size)`` prepares work of a size."""
    work(10)()
    few, many = (lines_run(work(size)) for size in (100, 400))
    assert many < 5 * few


def test_a_request_is_split_over_many_brokers_in_one_pass() -> None:
    def groups(size: int) -> Callable[[], Any]:
        request = DescribeGroupsRequest(groups=tuple(f"g{number}" for number in range(size)))
        route = routing.route_of(request)
        assert isinstance(route, CoordinatorRoute)
        assert route.many is not None
        items = route.many
        return lambda: routing.split_request(request, items, lambda item: int(str(item)[1:]))

    def partitions(size: int) -> Callable[[], Any]:
        asked = tuple(ListOffsetsPartition(partition_index=number) for number in range(size))
        request = ListOffsetsRequest(topics=(ListOffsetsTopic(name="t", partitions=asked),))
        route = routing.route_of(request)
        assert isinstance(route, LeaderRoute)
        return lambda: routing.split_request(request, route.many, lambda item: int(item[1]))

    assert len(groups(30)()) == len(partitions(30)()) == 30
    check_linear(groups)
    check_linear(partitions)


def test_metadata_of_many_topics_take_linear_work() -> None:
    def topics(size: int) -> Callable[[], Any]:
        names = [f"t{number}" for number in range(size)]
        cluster = SimulatedCluster({}, topics=dict.fromkeys(names, 1))
        deadline = cluster.core.deadline(30)
        return lambda: cluster.network.run(cluster.core.refresh(names, deadline=deadline))

    check_linear(topics)


def test_many_new_leaders_take_linear_work() -> None:
    def leaders(size: int) -> Callable[[], Any]:
        cluster = ClusterMetadata(10)
        partitions = tuple(MetadataResponsePartition(partition_index=number) for number in range(size))
        cluster.update(MetadataResponse(topics=(MetadataResponseTopic(name="t", partitions=partitions),)))

        def move() -> None:
            for number in range(size):
                cluster.set_leader("t", number, 2, 5)

        return move

    check_linear(leaders)


def test_what_happens_costs_only_the_pieces_that_wait_for_it() -> None:
    def pieces(size: int) -> Callable[[], Any]:
        values = [Future[int]() for _ in range(size)]

        def piece(value: Future[int]) -> Flow[int]:
            yield Wait((value,), 50.0)
            return value.result()

        def run() -> list[int | Exception]:
            steps = gather([piece(value) for value in values])
            (woken,) = next(steps).futures
            for number, value in enumerate(values):
                value.resolve(number)
                assert woken.done
                try:
                    (woken,) = steps.send(1.0).futures
                except StopIteration as stop:
                    return list(stop.value)
            raise AssertionError("a piece did not go on")

        return run

    assert pieces(5)() == [0, 1, 2, 3, 4]
    check_linear(pieces)


def test_pieces_go_on_at_their_own_deadlines_and_only_for_what_they_wait_for() -> None:
    value, other = Future[str](), Future[str]()
    seen: list[str] = []

    def piece(name: str, pending: Future[str], deadline: float | None) -> Flow[str]:
        now = yield Wait((pending,), deadline)
        seen.append(f"{name} at {now:g}")
        if pending.done:
            return pending.result()
        other.resolve("made by another piece")
        raise DeadlineError(waiting_for=name)

    steps = gather([piece("late", value, 9.0), piece("soon", value, 3.0), piece("woken", other, None)])
    assert next(steps).deadline == 3.0
    assert steps.send(3.0).deadline == 9.0
    assert seen == ["soon at 3", "woken at 3"]
    assert steps.send(4.0).deadline == 9.0
    assert seen == ["soon at 3", "woken at 3"]
    value.resolve("late")
    with pytest.raises(StopIteration) as stop:
        steps.send(5.0)
    late, soon, woken = stop.value.value
    assert (late, woken) == ("late", "made by another piece")
    assert isinstance(soon, DeadlineError)


def test_a_cluster_that_names_too_many_brokers_is_refused_before_any_connection() -> None:
    network = SimulatedNetwork()
    brokers = tuple(MetadataResponseBroker(node_id=n, host=f"b{n}", port=9092) for n in range(1001))
    network.add("b1:9092", lambda request: MetadataResponse(brokers=brokers, controller_id=1))
    core = network.core("b1:9092")
    with pytest.raises(TooManyBrokersError, match="1001 brokers, more than max_brokers") as caught:
        network.run(core.call(ListGroupsRequest()))
    assert (caught.value.brokers, caught.value.limit) == (1001, 1000)
    assert network.connections == 1
    assert core.cluster.brokers == {}


@pytest.mark.parametrize("name", ["max_brokers", "max_in_flight"])
@pytest.mark.parametrize("value", [0, True, 1.5])
def test_a_wrong_bound_is_named(name: str, value: object) -> None:
    with pytest.raises(OptionError) as caught:
        SimulatedNetwork().core("b1:9092", **{name: value})
    assert caught.value.option == name


class SlowBroker:
    """A broker that answers one request per second, and records the number of waiting requests."""

    def __init__(self, limit: int) -> None:
        self.network = SimulatedNetwork()
        self.waiting: list[Future[Response]] = []
        self.most = 0
        self.broker = self.network.add("b1:9092", self._handle)
        self.core = self.network.core("b1:9092", max_in_flight=limit)
        self.network.later(1.0, self._answer)

    def call(self, timeout: float = 100.0) -> Flow[DescribeClusterResponse]:
        """Send one request."""
        return self.core.call(DescribeClusterRequest(), deadline=self.core.deadline(timeout), retry=False)

    def _handle(self, request: Request[Any]) -> Future[Response]:
        pending: Future[Response] = Future()
        self.waiting.append(pending)
        self.most = max(self.most, len(self.waiting))
        return pending

    def _answer(self) -> None:
        if self.waiting:
            self.waiting.pop(0).resolve(DescribeClusterResponse(cluster_id="slow"))
        self.network.later(1.0, self._answer)


@pytest.fixture
def slow() -> Iterator[SlowBroker]:
    """A broker with at most three in-flight requests."""
    made = SlowBroker(limit=3)
    yield made
    made.core.close()
    assert made.network.task_count == 0


def test_more_calls_than_may_be_in_flight_wait_for_their_turn(slow: SlowBroker) -> None:
    answers = slow.network.run(gather([slow.call() for _ in range(20)]))
    assert [each.cluster_id for each in answers if isinstance(each, DescribeClusterResponse)] == ["slow"] * 20
    assert slow.most == 3


def test_a_call_whose_time_is_over_leaves_its_turn_to_the_next(slow: SlowBroker) -> None:
    answers = slow.network.run(gather([slow.call(5.5 if number in (4, 5, 6) else 100.0) for number in range(12)]))
    late = [number for number, each in enumerate(answers) if isinstance(each, DeadlineError)]
    assert set(late) <= {4, 5, 6}
    assert late
    assert sum(isinstance(each, DescribeClusterResponse) for each in answers) == 12 - len(late)


def test_the_end_of_a_connection_ends_the_waiting_for_a_turn(slow: SlowBroker) -> None:
    def cut() -> None:
        for transport in tuple(slow.network.transports):
            transport.cut()

    begin = slow.network.now()
    slow.network.later(2.5, cut)
    answers = slow.network.run(gather([slow.call() for _ in range(8)]))
    failed = [each for each in answers if isinstance(each, ConnectionFailedError)]
    assert len(failed) >= 5
    assert slow.network.now() == begin + 2.5


def test_a_link_refuses_more_requests_than_may_wait(slow: SlowBroker) -> None:
    def main() -> Flow[list[str | None]]:
        link = yield from slow.core.directory.any_connection(deadline=slow.core.deadline(100))
        sent = [link.send(DescribeClusterRequest()) for _ in range(3)]
        with pytest.raises(RequestLimitError) as caught:
            link.send(DescribeClusterRequest())
        assert (caught.value.address, caught.value.limit) == ("b1:9092", 3)
        assert link.in_flight == 3
        yield Wait((sent[0],), None)
        sent.append(link.send(DescribeClusterRequest()))
        for each in sent:
            yield Wait((each,), None)
        return [each.result().cluster_id for each in sent]

    assert slow.network.run(main()) == ["slow"] * 4
    assert slow.most == 3


def test_a_turn_that_nobody_uses_goes_on_to_the_next(slow: SlowBroker) -> None:
    def refuse() -> Future[Any]:
        raise ValueError("nothing was sent")

    def fails() -> Flow[Future[Any]]:
        link = yield from slow.core.directory.any_connection(deadline=slow.core.deadline(100))
        return (yield from link.send_when_ready(refuse, slow.core.deadline(100)))

    answers = slow.network.run(gather([*(slow.call() for _ in range(3)), fails(), slow.call()]))
    assert [type(each) for each in answers] == [*[DescribeClusterResponse] * 3, ValueError, DescribeClusterResponse]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_one_request_at_a_time_is_enough_for_a_member_of_a_group(protocol: str) -> None:
    cluster = GroupCluster({"t": 2})
    for partition in (0, 1):
        cluster.produce("t", partition, [b"%d" % number for number in range(10)])
    user = User(cluster, cluster.core(max_in_flight=1), group_protocol=protocol)
    user.core.subscribe(["t"])
    assert len(user.values(20)) == 20
    user.commit()
    user.close()


def test_one_request_at_a_time_is_enough_for_a_producer() -> None:
    cluster = ProduceCluster()
    core = cluster.network.core("b1:9092,b2:9092,b3:9092", max_in_flight=1)
    producer = ProducerCore(core, ProducerConfig(batch_size=100))
    values = [b"%d" % number for number in range(200)]
    cluster.add(producer, values)
    cluster.flush(producer)
    assert sorted(filter(None, cluster.values())) == sorted(values)
