"""All committed offsets of a group (KIP-88), and of many groups in one request (KIP-709).

The first half runs on brokers in memory and checks every request. The second half runs on a real cluster. The numbers
in test names are requirement numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_msgs.admin import Admin, GroupState, NewTopic, OffsetAndMetadata
from kafka_msgs.admin.group_offsets import list_group_offsets, list_offsets_of_groups, offset_fetch_request
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.client import Client, TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, EncodeError, UnsupportedVersionError
from kafka_msgs.messages import offset_fetch_response as v8
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponse, OffsetFetchResponseTopic
from tests.support.cluster_topics import make_topics, new_name
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.simulated_cluster import SimulatedCluster

OWN = new_name("kip88")

Stored = dict[str, dict[TopicPartition, int]]

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
STORED: Stored = {"g": {T0: 5, T1: 7, U0: 9}, "other": {T0: 1}}


def partition(number: int, offset: int, error: int = 0) -> dict[str, Any]:
    return {"partition_index": number, "committed_offset": offset, "metadata": "m", "error_code": error}


def group_answer(group_id: str, offsets: dict[TopicPartition, int], error: int = 0) -> v8.OffsetFetchResponseGroup:
    topics = {each.topic for each in offsets}
    return v8.OffsetFetchResponseGroup(
        group_id=group_id,
        error_code=error,
        topics=tuple(
            v8.OffsetFetchResponseTopics(
                name=topic,
                partitions=tuple(
                    v8.OffsetFetchResponsePartitions(**partition(each.partition, offset))
                    for each, offset in offsets.items()
                    if each.topic == topic
                ),
            )
            for topic in sorted(topics)
        ),
    )


def answer(stored: Stored) -> Callable[[int, OffsetFetchRequest], OffsetFetchResponse]:
    """Return a coordinator that holds the given offsets, for requests of version 8 and later."""

    def fetch(node: int, request: OffsetFetchRequest) -> OffsetFetchResponse:
        return OffsetFetchResponse(
            groups=tuple(group_answer(each.group_id, stored.get(each.group_id, {})) for each in request.groups)
        )

    return fetch


def in_turn(*answers: OffsetFetchResponse) -> Callable[[int, OffsetFetchRequest], OffsetFetchResponse]:
    """Return a coordinator that sends these responses in order."""
    left = list(answers)
    return lambda node, request: left.pop(0)


def failed(error: int) -> OffsetFetchResponse:
    return OffsetFetchResponse(groups=(v8.OffsetFetchResponseGroup(group_id="g", error_code=error),))


def up_to(version: int, lowest: int = 1) -> dict[int, tuple[int, int] | None]:
    return {ApiKey.OFFSET_FETCH: (lowest, version)}


def test_b1_offsets_are_by_topic_and_partition() -> None:
    cluster = SimulatedCluster({OffsetFetchRequest: answer(STORED)})
    offsets = cluster.network.run(list_group_offsets(cluster.core, "g"))
    assert offsets.all() == {
        T0: OffsetAndMetadata(5, -1, "m"),
        T1: OffsetAndMetadata(7, -1, "m"),
        U0: OffsetAndMetadata(9, -1, "m"),
    }
    assert offsets["t", 0].offset == 5  # type: ignore[index]
    assert offsets.errors == {}


def test_b2_one_find_coordinator_and_one_offset_fetch_with_null_topics() -> None:
    cluster = SimulatedCluster({OffsetFetchRequest: answer(STORED)}, coordinators={"g": 3})
    cluster.network.run(list_group_offsets(cluster.core, "g"))
    assert cluster.apis() == ["FindCoordinator", "OffsetFetch"]
    ((node, request),) = cluster.asked(OffsetFetchRequest)
    assert node == 3
    assert [(each.group_id, each.topics) for each in request.groups] == [("g", None)]
    assert cluster.version_of(OffsetFetchRequest) == 9


def test_b3_nothing_joins_the_group() -> None:
    cluster = SimulatedCluster({OffsetFetchRequest: answer(STORED)})
    cluster.network.run(list_group_offsets(cluster.core, "g"))
    (request,) = (request for _, request in cluster.asked(OffsetFetchRequest))
    assert request.groups[0].member_id is None
    assert request.groups[0].member_epoch == -1
    assert cluster.asked(JoinGroupRequest) == []


def test_b4_the_request_of_all_partitions_needs_version_2() -> None:
    assert offset_fetch_request({"g": None}, 2) == OffsetFetchRequest(group_id="g", topics=None)
    assert offset_fetch_request({"g": None}, 2).encode(2) == bytes.fromhex("000167ffffffff")
    with pytest.raises(UnsupportedVersionError) as refused:
        offset_fetch_request({"g": None}, 1)
    assert refused.value.supported.lowest == 2
    with pytest.raises(EncodeError):
        OffsetFetchRequest(group_id="g", topics=None).encode(1)


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_b5_a_retriable_error_finds_the_coordinator_again(error: ErrorCode) -> None:
    answers = in_turn(failed(error), OffsetFetchResponse(groups=(group_answer("g", STORED["g"]),)))
    cluster = SimulatedCluster({OffsetFetchRequest: answers})
    offsets = cluster.network.run(list_group_offsets(cluster.core, "g"))
    assert offsets[T0].offset == 5
    assert cluster.apis() == ["FindCoordinator", "OffsetFetch", "FindCoordinator", "OffsetFetch"]


def test_b5_the_coordinator_may_have_moved() -> None:
    def moved(node: int, request: OffsetFetchRequest) -> OffsetFetchResponse:
        cluster.coordinators["g"] = 2
        return answer(STORED)(node, request) if node == 2 else failed(ErrorCode.NOT_COORDINATOR)

    cluster = SimulatedCluster({OffsetFetchRequest: moved}, coordinators={"g": 1})
    assert cluster.network.run(list_group_offsets(cluster.core, "g"))[T0].offset == 5
    assert [node for node, _ in cluster.asked(OffsetFetchRequest)] == [1, 2]


def test_b5_a_final_error_is_raised_at_once() -> None:
    cluster = SimulatedCluster({OffsetFetchRequest: in_turn(failed(ErrorCode.GROUP_AUTHORIZATION_FAILED))})
    with pytest.raises(BrokerError) as raised:
        cluster.network.run(list_group_offsets(cluster.core, "g"))
    assert (raised.value.error, raised.value.api, raised.value.subject) == (30, "OffsetFetch", "g")


def test_b5_the_deadline_ends_the_trials_with_the_last_error() -> None:
    cluster = SimulatedCluster({OffsetFetchRequest: lambda node, request: failed(ErrorCode.NOT_COORDINATOR)})
    start = cluster.network.now()
    with pytest.raises(BrokerError) as raised:
        cluster.network.run(list_group_offsets(cluster.core, "g", timeout=5.0))
    assert raised.value.error is ErrorCode.NOT_COORDINATOR
    assert cluster.network.now() <= start + 5.0
    assert len(cluster.asked(OffsetFetchRequest)) > 3


def test_b10_the_number_of_requests_does_not_depend_on_partitions() -> None:
    many: Stored = {"g": {TopicPartition(f"topic-{n % 50}", n): n for n in range(5000)}}
    cluster = SimulatedCluster({OffsetFetchRequest: answer(many)})
    offsets = cluster.network.run(list_group_offsets(cluster.core, "g"))
    assert {key: value.offset for key, value in offsets.items()} == many["g"]
    assert cluster.apis() == ["FindCoordinator", "OffsetFetch"]


def test_a10_partitions_that_are_asked_for_are_asked_by_name() -> None:
    cluster = SimulatedCluster({OffsetFetchRequest: answer({"g": {T0: 5, T1: -1}})})
    offsets = cluster.network.run(list_group_offsets(cluster.core, "g", [T0, T1]))
    ((_, request),) = cluster.asked(OffsetFetchRequest)
    assert [(each.name, each.partition_indexes) for each in request.groups[0].topics] == [("t", (0, 1))]
    assert [each.offset for each in offsets.values()] == [5, -1]


def test_a14_a_group_error_of_version_1_is_in_the_partitions() -> None:
    loading = OffsetFetchResponse(topics=(topic(partition(0, -1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)),))
    ready = OffsetFetchResponse(topics=(topic(partition(0, 5)),))
    cluster = SimulatedCluster({OffsetFetchRequest: in_turn(loading, ready)}, limits=up_to(1))
    offsets = cluster.network.run(list_group_offsets(cluster.core, "g", [T0]))
    assert offsets[T0].offset == 5
    assert len(cluster.asked(OffsetFetchRequest)) == 2


def topic(*partitions: dict[str, Any]) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name="t", partitions=tuple(v8.OffsetFetchResponsePartition(**each) for each in partitions)
    )


@pytest.mark.parametrize("version", [2, 3, 5, 7])
def test_a15_no_offsets_and_an_error_are_different(version: int) -> None:
    empty, forbidden = OffsetFetchResponse(), OffsetFetchResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    cluster = SimulatedCluster({OffsetFetchRequest: in_turn(empty, forbidden)}, limits=up_to(version))
    assert cluster.network.run(list_group_offsets(cluster.core, "g")).all() == {}
    with pytest.raises(BrokerError):
        cluster.network.run(list_group_offsets(cluster.core, "g"))
    ((_, request), _) = cluster.asked(OffsetFetchRequest)
    assert (request.group_id, request.topics) == ("g", None)
    assert cluster.version_of(OffsetFetchRequest) == version


def test_a16_a_broker_without_version_2_is_not_asked() -> None:
    cluster = SimulatedCluster({}, limits=up_to(1))
    with pytest.raises(UnsupportedVersionError):
        cluster.network.run(list_group_offsets(cluster.core, "g"))
    assert cluster.asked(OffsetFetchRequest) == []


def test_a17_errors_of_partitions_are_seen_at_their_partitions() -> None:
    response = OffsetFetchResponse(
        topics=(topic(partition(0, 5), partition(1, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)),)
    )
    cluster = SimulatedCluster({OffsetFetchRequest: in_turn(response)}, limits=up_to(2))
    offsets = cluster.network.run(list_group_offsets(cluster.core, "g"))
    assert offsets[T0].offset == 5
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        _ = offsets[T1]
    with pytest.raises(BrokerError):
        offsets.all()
    assert list(offsets.errors) == [T1]
    assert list(offsets.ok) == [T0]


def test_a18_an_error_has_no_partitions_and_null_is_never_an_answer() -> None:
    with pytest.raises(EncodeError):
        OffsetFetchResponse(topics=None).encode(2)  # type: ignore[arg-type]
    assert OffsetFetchResponse(error_code=16).encode(2) == bytes.fromhex("00000000 0010")


def test_an_unstable_offset_is_waited_for() -> None:
    unstable = v8.OffsetFetchResponsePartitions(**partition(0, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT))
    topics = (v8.OffsetFetchResponseTopics(name="t", partitions=(unstable,)),)
    first = OffsetFetchResponse(groups=(v8.OffsetFetchResponseGroup(group_id="g", topics=topics),))
    answers = in_turn(first, OffsetFetchResponse(groups=(group_answer("g", {T0: 5}),)))
    cluster = SimulatedCluster({OffsetFetchRequest: answers})
    offsets = cluster.network.run(list_group_offsets(cluster.core, "g", require_stable=True))
    assert offsets[T0].offset == 5
    assert all(request.require_stable for _, request in cluster.asked(OffsetFetchRequest))


def test_a_thousand_groups_take_one_request_for_each_coordinator() -> None:
    names = [f"group-{number}" for number in range(1000)]
    stored: Stored = {name: {T0: number} for number, name in enumerate(names)}
    places = {name: number % 3 + 1 for number, name in enumerate(names)}
    cluster = SimulatedCluster({OffsetFetchRequest: answer(stored)}, coordinators=places)
    groups = cluster.network.run(list_offsets_of_groups(cluster.core, dict.fromkeys(names)))
    assert [groups[name][T0].offset for name in names] == list(range(1000))
    assert cluster.apis() == ["FindCoordinator", *["OffsetFetch"] * 3]
    assert sorted(node for node, _ in cluster.asked(OffsetFetchRequest)) == [1, 2, 3]


def test_brokers_before_version_8_get_one_request_for_each_group() -> None:
    cluster = SimulatedCluster(
        {OffsetFetchRequest: lambda node, request: OffsetFetchResponse(topics=(topic(partition(0, 5)),))},
        limits={**up_to(7), ApiKey.FIND_COORDINATOR: (0, 3)},
    )
    groups = cluster.network.run(list_offsets_of_groups(cluster.core, {"g": None, "other": [T0]}))
    assert [group[T0].offset for group in groups.values()] == [5, 5]
    assert [(request.group_id, request.topics is None) for _, request in cluster.asked(OffsetFetchRequest)] == [
        ("g", True),
        ("other", False),
    ]
    assert [request.key for _, request in cluster.asked(FindCoordinatorRequest)] == ["g", "other"]


def test_one_group_that_fails_takes_no_other_with_it() -> None:
    def fetch(node: int, request: OffsetFetchRequest) -> OffsetFetchResponse:
        errors = {"forbidden": 30}
        groups = request.groups
        return OffsetFetchResponse(
            groups=tuple(group_answer(e.group_id, {T0: 5}, errors.get(e.group_id, 0)) for e in groups)
        )

    cluster = SimulatedCluster({OffsetFetchRequest: fetch})
    groups = cluster.network.run(list_offsets_of_groups(cluster.core, {"g": None, "forbidden": None}))
    assert groups["g"][T0].offset == 5
    assert list(groups.errors) == ["forbidden"]
    with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
        groups.all()


def test_a_broker_that_is_gone_takes_only_its_own_groups_with_it() -> None:
    cluster = SimulatedCluster({OffsetFetchRequest: answer(STORED)}, coordinators={"g": 1, "other": 2})
    cluster.network.stop(cluster.brokers[2])
    groups = cluster.network.run(list_offsets_of_groups(cluster.core, {"g": None, "other": None}, timeout=3.0))
    assert groups["g"][T0].offset == 5
    assert list(groups.errors) == ["other"]


@pytest.fixture(scope="module")
def admin(kafka_cluster: ClusterAddresses) -> Iterator[Admin]:
    """Yield an admin of a real cluster with two topics."""
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        make_topics(kafka_cluster, NewTopic(f"{OWN}-a", 2), NewTopic(f"{OWN}-b", 1))
        yield admin


A0, A1, B0 = TopicPartition(f"{OWN}-a", 0), TopicPartition(f"{OWN}-a", 1), TopicPartition(f"{OWN}-b", 0)


def test_a8_a_group_without_members_gives_all_of_its_offsets(admin: Admin) -> None:
    admin.alter_group_offsets(f"{OWN}-empty", {A0: 11, A1: OffsetAndMetadata(12, 3, "note"), B0: 13}).all()
    assert admin.list_group_offsets(f"{OWN}-empty").all() == {
        A0: OffsetAndMetadata(11, -1, ""),
        A1: OffsetAndMetadata(12, 3, "note"),
        B0: OffsetAndMetadata(13, -1, ""),
    }
    assert admin.describe_groups([f"{OWN}-empty"])[f"{OWN}-empty"].members == ()


def test_a10_real_brokers_answer_for_what_was_asked(admin: Admin) -> None:
    admin.alter_group_offsets(f"{OWN}-some", {A0: 11}).all()
    asked = admin.list_group_offsets(f"{OWN}-some", [A0, A1])
    assert {key: value.offset for key, value in asked.items()} == {A0: 11, A1: -1}


def test_a15_a_real_group_that_does_not_exist_has_no_offsets(admin: Admin) -> None:
    assert admin.list_group_offsets(f"{OWN}-never-seen").all() == {}


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_of_a_real_broker_says_the_same(
    kafka_cluster: ClusterAddresses, admin: Admin, version: int
) -> None:
    admin.alter_group_offsets(f"{OWN}-versions", {A0: 11, B0: 13}).all()
    with Client(kafka_cluster.bootstrap_servers) as client:
        response = client.call(offset_fetch_request({f"{OWN}-versions": None}, version), version=version)
    (group,) = response.groups if version >= 8 else (response,)
    found = {
        (topic.name, each.partition_index): each.committed_offset for topic in group.topics for each in topic.partitions
    }
    assert (found, group.error_code) == ({A0: 11, B0: 13}, 0)


def test_a12_a_real_broker_that_is_not_the_coordinator_says_so_at_the_top(
    kafka_cluster: ClusterAddresses, admin: Admin
) -> None:
    place = admin.find_coordinators([f"{OWN}-empty"])[f"{OWN}-empty"]
    elsewhere = next(node for node in kafka_cluster.nodes if node != place)
    with Client(kafka_cluster.bootstrap_servers) as client:
        response = client.call(offset_fetch_request({f"{OWN}-empty": None}, 2), version=2, broker_id=elsewhere)
    assert (response.error_code, response.topics) == (ErrorCode.NOT_COORDINATOR, ())


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.NONE), (2, ErrorCode.NOT_COORDINATOR)])
def test_a11_no_topics_give_no_topics_and_version_1_cannot_say_why(
    kafka_cluster: ClusterAddresses, admin: Admin, version: int, code: ErrorCode
) -> None:
    group = f"{OWN}-asked-for-nothing"
    admin.alter_group_offsets(group, {A0: 11}).all()
    place = admin.find_coordinators([group])[group]
    elsewhere = next(node for node in kafka_cluster.nodes if node != place)
    with Client(kafka_cluster.bootstrap_servers) as client:
        for node, expected in ((place, ErrorCode.NONE), (elsewhere, code)):
            response = client.call(offset_fetch_request({group: []}, version), version=version, broker_id=node)
            assert (response.topics, response.error_code) == ((), expected)


def test_many_real_groups_are_listed_as_kafkas_tool_lists_them(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    names = [f"{OWN}-many-{number}" for number in range(20)]
    for number, name in enumerate(names):
        admin.alter_group_offsets(name, {A0: number, B0: 2 * number}).all()
    ours = admin.list_offsets_of_groups(dict.fromkeys(names)).all()
    printed = kafka_cluster.consumer_groups("--describe", *(word for name in names for word in ("--group", name)))
    rows = [line.split() for line in printed.splitlines() if line.startswith(f"{OWN}-many-")]
    theirs = {(row[0], row[1], int(row[2])): int(row[3]) for row in rows}
    assert theirs == {
        (name, *partition): offset.offset for name, offsets in ours.items() for partition, offset in offsets.items()
    }
    assert {each.state for each in admin.list_groups() if each.group_id in names} == {GroupState.EMPTY}
