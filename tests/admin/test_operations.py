"""What operations do when some of what they ask about fails, moves or is not there. The brokers are in memory."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import pytest

from kafka_msgs.admin import (
    AclOperation,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    Gathered,
    GroupDescription,
    GroupState,
    GroupType,
    MemberToRemove,
    OffsetChange,
    OffsetSpec,
    OffsetTarget,
    Results,
    ScramMechanism,
    ScramUpsertion,
    StreamsGroupDescription,
)
from kafka_msgs.admin.configs import alter_configs, describe_configs
from kafka_msgs.admin.groups import describe_consumer_groups, describe_groups, list_groups, remove_group_members
from kafka_msgs.admin.partitions import list_offsets
from kafka_msgs.admin.resets import plan_group_offsets, reset_group_offsets
from kafka_msgs.admin.topics import describe_topic_partitions
from kafka_msgs.admin.users import alter_user_scram_credentials
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.client import TopicPartition
from kafka_msgs.enums import authorized_operations
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ConnectionFailedError, UnsupportedVersionError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages import consumer_group_describe_response as consumer
from kafka_msgs.messages import describe_configs_response as configs
from kafka_msgs.messages import describe_groups_response as classic
from kafka_msgs.messages import describe_topic_partitions_response as pages
from kafka_msgs.messages import incremental_alter_configs_response as altered
from kafka_msgs.messages import leave_group_response as leave
from kafka_msgs.messages import list_offsets_response as ends
from kafka_msgs.messages import offset_commit_response as commits
from kafka_msgs.messages import offset_fetch_response as stored
from kafka_msgs.messages import share_group_describe_response as share
from kafka_msgs.messages import streams_group_describe_response as streams
from kafka_msgs.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from kafka_msgs.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from kafka_msgs.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_assignment import TopicPartition as Assigned
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.describe_configs_request import DescribeConfigsRequest
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kafka_msgs.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kafka_msgs.messages.list_offsets_request import ListOffsetsRequest
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequest
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from kafka_msgs.messages.share_group_describe_request import ShareGroupDescribeRequest
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafka_msgs.prefixed import encode_versioned
from tests.support.simulated_cluster import SimulatedCluster

Answers = dict[type[Request[Any]], Callable[[int, Any], Response]]

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def test_results_hold_values_and_errors() -> None:
    late = TimeoutError("late")
    results = Results({"a": 1, "b": late, "c": None})
    assert results["a"] == 1
    assert results["c"] is None
    assert (list(results), len(results), "b" in results, "d" in results) == (["a", "b", "c"], 3, True, False)
    assert (results.ok, results.errors) == ({"a": 1, "c": None}, {"b": late})
    for fails in (lambda: results["b"], results.all, lambda: dict(results), lambda: list(results.values())):
        with pytest.raises(TimeoutError):
            fails()
    with pytest.raises(KeyError):
        _ = results["d"]
    assert Results({"a": 1}).all() == {"a": 1} == dict(Results({"a": 1}))


def test_gathered_lists_need_every_broker_unless_one_asks_for_what_was_found() -> None:
    partial = Gathered(("a", "b"), {3: TimeoutError("late")})
    assert partial.found == ("a", "b")
    for fails in (partial.all, lambda: list(partial), lambda: len(partial)):
        with pytest.raises(TimeoutError):
            fails()
    whole = Gathered(("a", "b"), {})
    assert (list(whole), len(whole), whole.all()) == (["a", "b"], 2, ("a", "b"))


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (-(2**31), None),
        (0, frozenset()),
        (1 << 3 | 1 << 4, {AclOperation.READ, AclOperation.WRITE}),
        (1 << 30, {AclOperation.UNKNOWN}),
    ],
)
def test_authorized_operations_are_bits(bits: int, expected: Any) -> None:
    assert authorized_operations(bits) == expected


LISTED = {
    1: (ListedGroup(group_id="classic", protocol_type="consumer", group_state="Stable", group_type="classic"),),
    2: (
        ListedGroup(group_id="new", protocol_type="consumer", group_state="Stable", group_type="consumer"),
        ListedGroup(group_id="app", protocol_type="streams", group_state="Empty", group_type="streams"),
    ),
    3: (ListedGroup(group_id="queue", protocol_type="share", group_state="Empty", group_type="share"),),
}


def listing(node: int, request: ListGroupsRequest) -> ListGroupsResponse:
    return ListGroupsResponse(groups=LISTED[node])


def test_groups_are_listed_at_every_broker() -> None:
    cluster = SimulatedCluster({ListGroupsRequest: listing})
    groups = cluster.network.run(list_groups(cluster.core))
    assert [(each.group_id, each.type) for each in groups] == [
        ("classic", GroupType.CLASSIC),
        ("new", GroupType.CONSUMER),
        ("app", GroupType.STREAMS),
        ("queue", GroupType.SHARE),
    ]


def test_a_broker_that_is_gone_is_missing_from_the_list_and_named() -> None:
    cluster = SimulatedCluster({ListGroupsRequest: listing})
    cluster.network.stop(cluster.brokers[2])
    groups = cluster.network.run(list_groups(cluster.core, timeout=2.0))
    assert [each.group_id for each in groups.found] == ["classic", "queue"]
    assert list(groups.errors) == [2]
    with pytest.raises(Exception, match="broker-2"):
        groups.all()


MEMBER = classic.DescribedGroupMember(
    member_id="m",
    client_id="c",
    client_host="/127.0.0.1",
    member_metadata=encode_versioned(ConsumerProtocolSubscription(topics=("t",)), 1),
    member_assignment=encode_versioned(
        ConsumerProtocolAssignment(assigned_partitions=(Assigned(topic="t", partitions=(0, 2)),)), 1
    ),
)


def classic_answer(node: int, request: DescribeGroupsRequest) -> classic.DescribeGroupsResponse:
    return classic.DescribeGroupsResponse(
        groups=tuple(
            classic.DescribedGroup(
                group_id=each,
                group_state="Stable",
                protocol_type="consumer",
                protocol_data="range",
                members=(MEMBER,),
                error_code=69 if each == "missing" else 0,
            )
            for each in request.groups
        )
    )


def consumer_answer(node: int, request: ConsumerGroupDescribeRequest) -> consumer.ConsumerGroupDescribeResponse:
    topics = (consumer.TopicPartitions(topic_name="t", partitions=(1,)),)
    member = consumer.Member(
        member_id="m", member_epoch=3, assignment=consumer.Assignment(topic_partitions=topics), member_type=1
    )
    return consumer.ConsumerGroupDescribeResponse(
        groups=tuple(
            consumer.DescribedGroup(group_id=each, group_state="Stable", group_epoch=3, members=(member,))
            if each == "new"
            else consumer.DescribedGroup(group_id=each, error_code=69)
            for each in request.group_ids
        )
    )


DESCRIBE: Answers = {
    ListGroupsRequest: listing,
    DescribeGroupsRequest: classic_answer,
    ConsumerGroupDescribeRequest: consumer_answer,
    ShareGroupDescribeRequest: lambda node, request: share.ShareGroupDescribeResponse(
        groups=tuple(share.DescribedGroup(group_id=each, group_state="Empty") for each in request.group_ids)
    ),
    StreamsGroupDescribeRequest: lambda node, request: streams.StreamsGroupDescribeResponse(
        groups=tuple(streams.DescribedGroup(group_id=each, group_state="Empty") for each in request.group_ids)
    ),
}


def test_groups_of_any_type_are_described_each_by_its_own_api() -> None:
    cluster = SimulatedCluster(DESCRIBE)
    groups = cluster.network.run(describe_groups(cluster.core, ["classic", "new", "app", "queue", "missing"]))
    assert isinstance(groups["app"], StreamsGroupDescription)
    assert {name: each.type for name, each in groups.ok.items() if isinstance(each, GroupDescription)} == {
        "classic": GroupType.CLASSIC,
        "new": GroupType.CONSUMER,
        "queue": GroupType.SHARE,
    }
    assert list(groups.errors) == ["missing"]
    assert [request.groups for _, request in cluster.asked(DescribeGroupsRequest)] == [("classic", "missing")]
    assert [request.group_ids for _, request in cluster.asked(ConsumerGroupDescribeRequest)] == [("new",)]


def test_consumers_of_both_protocols_have_one_description() -> None:
    cluster = SimulatedCluster(DESCRIBE)
    groups = cluster.network.run(describe_consumer_groups(cluster.core, ["new", "classic"])).all()
    new, old = groups["new"], groups["classic"]
    assert (new.type, new.epoch, new.members[0].assignment, new.members[0].classic) == (
        GroupType.CONSUMER,
        3,
        (T1,),
        False,
    )
    assert (old.type, old.epoch, old.members[0].assignment, old.members[0].classic) == (
        GroupType.CLASSIC,
        None,
        (T0, T2),
        True,
    )
    assert (old.assignor, old.state, old.members[0].subscribed_topics) == ("range", GroupState.STABLE, ("t",))


def test_a_broker_without_consumer_groups_is_asked_for_classic_ones() -> None:
    cluster = SimulatedCluster(DESCRIBE, limits={69: None})
    groups = cluster.network.run(describe_consumer_groups(cluster.core, ["classic"]))
    assert groups["classic"].type is GroupType.CLASSIC
    assert cluster.apis() == ["FindCoordinator", "DescribeGroups"]


def test_a_malformed_member_is_described_with_its_fault() -> None:
    def answer(node: int, request: DescribeGroupsRequest) -> classic.DescribeGroupsResponse:
        member = classic.DescribedGroupMember(member_id="m", member_metadata=b"\x00\x01\x00", member_assignment=b"")
        group = classic.DescribedGroup(group_id="classic", protocol_type="consumer", members=(member,))
        return classic.DescribeGroupsResponse(groups=(group,))

    cluster = SimulatedCluster({**DESCRIBE, DescribeGroupsRequest: answer})
    (member,) = cluster.network.run(describe_groups(cluster.core, ["classic"]))["classic"].members
    assert getattr(member, "problem", None)


def test_all_members_of_a_group_are_removed_static_ones_by_their_instance() -> None:
    def answer(node: int, request: DescribeGroupsRequest) -> classic.DescribeGroupsResponse:
        members = (
            classic.DescribedGroupMember(member_id="m-1", group_instance_id="static"),
            classic.DescribedGroupMember(member_id="m-2"),
        )
        return classic.DescribeGroupsResponse(groups=(classic.DescribedGroup(group_id="g", members=members),))

    def left(node: int, request: LeaveGroupRequest) -> leave.LeaveGroupResponse:
        codes = (0, ErrorCode.UNKNOWN_MEMBER_ID)
        return leave.LeaveGroupResponse(members=tuple(leave.MemberResponse(error_code=each) for each in codes))

    cluster = SimulatedCluster({DescribeGroupsRequest: answer, LeaveGroupRequest: left})
    results = cluster.network.run(remove_group_members(cluster.core, "g", reason="maintenance"))
    ((_, request),) = cluster.asked(LeaveGroupRequest)
    assert [(each.member_id, each.group_instance_id, each.reason) for each in request.members] == [
        ("", "static", "maintenance"),
        ("m-2", None, "maintenance"),
    ]
    assert list(results.ok) == [MemberToRemove(instance_id="static")]
    assert list(results.errors) == [MemberToRemove("m-2")]


def offsets(
    start: int = 0, end: int = 100, at_time: int = -1, errors: dict[TopicPartition, int] | None = None
) -> Callable[[int, ListOffsetsRequest], ends.ListOffsetsResponse]:
    """Return leaders whose partitions all have these offsets."""

    def answer(node: int, request: ListOffsetsRequest) -> ends.ListOffsetsResponse:
        known = {-2: start, -1: end}
        return ends.ListOffsetsResponse(
            topics=tuple(
                ends.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        ends.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=known.get(each.timestamp, at_time),
                            error_code=(errors or {}).get(TopicPartition(topic.name, each.partition_index), 0),
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    return answer


def committed(values: dict[TopicPartition, int]) -> Callable[[int, OffsetFetchRequest], stored.OffsetFetchResponse]:
    def answer(node: int, request: OffsetFetchRequest) -> stored.OffsetFetchResponse:
        partitions = tuple(
            stored.OffsetFetchResponsePartitions(partition_index=each.partition, committed_offset=offset)
            for each, offset in values.items()
        )
        topics = (stored.OffsetFetchResponseTopics(name="t", partitions=partitions),)
        return stored.OffsetFetchResponse(groups=(stored.OffsetFetchResponseGroup(group_id="g", topics=topics),))

    return answer


@pytest.mark.parametrize(
    ("target", "after"),
    [
        (OffsetTarget.earliest(), (10, 10)),
        (OffsetTarget.latest(), (100, 100)),
        (OffsetTarget.timestamp(1_700_000_000_000), (40, 40)),
        (OffsetTarget.offset(50), (50, 50)),
        (OffsetTarget.offset(5), (10, 10)),
        (OffsetTarget.offset(500), (100, 100)),
        (OffsetTarget.shift(-3), (27, 57)),
        (OffsetTarget.shift(1000), (100, 100)),
        (OffsetTarget.shift(-1000), (10, 10)),
        (OffsetTarget.current(), (30, 60)),
        ({T0: 33, T1: 999}, (33, 100)),
    ],
)
def test_where_offsets_go(target: Any, after: tuple[int, int]) -> None:
    answers: Answers = {ListOffsetsRequest: offsets(10, 100, 40), OffsetFetchRequest: committed({T0: 30, T1: 60})}
    cluster = SimulatedCluster(answers, topics={"t": 3})
    plan = cluster.network.run(plan_group_offsets(cluster.core, "g", target)).all()
    assert plan == {T0: OffsetChange(30, after[0]), T1: OffsetChange(60, after[1])}
    assert cluster.asked(OffsetCommitRequest) == []


def test_a_partition_without_an_offset_cannot_be_shifted_and_its_current_place_is_the_end() -> None:
    answers: Answers = {ListOffsetsRequest: offsets(), OffsetFetchRequest: committed({T0: 30, T1: -1})}
    cluster = SimulatedCluster(answers, topics={"t": 3})
    shifted = cluster.network.run(plan_group_offsets(cluster.core, "g", OffsetTarget.shift(1), [T0, T1]))
    assert (shifted[T0].after, list(shifted.errors)) == (31, [T1])
    current = cluster.network.run(plan_group_offsets(cluster.core, "g", OffsetTarget.current(), [T0, T1]))
    assert [each.after for each in current.values()] == [30, 100]


def test_a_time_after_the_last_record_is_the_end() -> None:
    cluster = SimulatedCluster(
        {ListOffsetsRequest: offsets(), OffsetFetchRequest: committed({T0: 30})}, topics={"t": 1}
    )
    plan = cluster.network.run(plan_group_offsets(cluster.core, "g", OffsetTarget.timestamp(9)))
    assert plan[T0] == OffsetChange(30, 100)


def test_a_reset_commits_what_can_be_planned_and_reports_the_rest() -> None:
    def commit(node: int, request: OffsetCommitRequest) -> commits.OffsetCommitResponse:
        def code(number: int) -> int:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED if number == 1 else ErrorCode.NONE

        partitions = tuple(
            commits.OffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=code(each.partition_index)
            )
            for each in request.topics[0].partitions
        )
        return commits.OffsetCommitResponse(
            topics=(commits.OffsetCommitResponseTopic(name="t", partitions=partitions),)
        )

    answers: Answers = {
        ListOffsetsRequest: offsets(errors={T2: ErrorCode.TOPIC_AUTHORIZATION_FAILED}),
        OffsetFetchRequest: committed({T0: 30, T1: 60, T2: 90}),
        OffsetCommitRequest: commit,
    }
    cluster = SimulatedCluster(answers, topics={"t": 3})
    results = cluster.network.run(reset_group_offsets(cluster.core, "g", OffsetTarget.earliest()))
    assert results.ok == {T0: OffsetChange(30, 0)}
    assert list(results.errors) == [T1, T2]
    ((_, request),) = cluster.asked(OffsetCommitRequest)
    assert [each.partition_index for each in request.topics[0].partitions] == [0, 1]


def test_each_leader_is_asked_once_and_a_moved_leader_is_found_again() -> None:
    moved: list[int] = []

    def answer(node: int, request: ListOffsetsRequest) -> ends.ListOffsetsResponse:
        numbers = [each.partition_index for each in request.topics[0].partitions]
        first = 1 in numbers and not moved
        moved.extend([node] if first else [])
        return offsets(errors={T1: ErrorCode.NOT_LEADER_OR_FOLLOWER} if first else {})(node, request)

    cluster = SimulatedCluster({ListOffsetsRequest: answer}, topics={"t": 6})
    wanted = {TopicPartition("t", number): -1 for number in range(6)}
    found = cluster.network.run(list_offsets(cluster.core, wanted)).all()
    assert list(found) == list(wanted)
    asked = [
        (node, [each.partition_index for each in request.topics[0].partitions])
        for node, request in cluster.asked(ListOffsetsRequest)
    ]
    assert sorted(asked[:3]) == [(1, [0, 3]), (2, [1, 4]), (3, [2, 5])]
    assert asked[3:] == [(2, [1])]


def test_partitions_that_do_not_exist_fail_at_once_and_alone() -> None:
    cluster = SimulatedCluster({ListOffsetsRequest: offsets()}, topics={"t": 1})
    start = cluster.network.now()
    found = cluster.network.run(list_offsets(cluster.core, {T0: -1, T2: -1, TopicPartition("none", 0): -1}))
    assert found[T0].offset == 100
    assert {str(error.error.name) for error in found.errors.values() if isinstance(error, BrokerError)} == {
        "UNKNOWN_TOPIC_OR_PARTITION"
    }
    assert cluster.network.now() < start + 1


def test_a_leader_that_is_gone_takes_only_its_own_partitions_with_it() -> None:
    cluster = SimulatedCluster({ListOffsetsRequest: offsets()}, topics={"t": 3})
    cluster.network.stop(cluster.brokers[2])
    found = cluster.network.run(list_offsets(cluster.core, dict.fromkeys([T0, T1, T2], -1), timeout=2.0))
    assert list(found.ok) == [T0, T2]
    assert [type(error) for error in found.errors.values()] == [ConnectionFailedError]


def test_an_item_that_the_broker_does_not_mention_has_failed() -> None:
    cluster = SimulatedCluster({ListOffsetsRequest: lambda node, request: ends.ListOffsetsResponse()}, topics={"t": 1})
    found = cluster.network.run(list_offsets(cluster.core, {T0: -1}))
    with pytest.raises(BrokerError, match="does not mention it"):
        _ = found[T0]


def test_configurations_of_a_broker_are_asked_of_that_broker() -> None:
    def describe(node: int, request: DescribeConfigsRequest) -> configs.DescribeConfigsResponse:
        entry = configs.DescribeConfigsResourceResult(name="node", value=str(node))
        return configs.DescribeConfigsResponse(
            results=tuple(
                configs.DescribeConfigsResult(
                    resource_type=each.resource_type, resource_name=each.resource_name, configs=(entry,)
                )
                for each in request.resources
            )
        )

    cluster = SimulatedCluster({DescribeConfigsRequest: describe})
    brokers = [ConfigResource(ConfigResourceType.BROKER, str(node)) for node in (3, 2)]
    found = cluster.network.run(describe_configs(cluster.core, brokers)).all()
    assert [each["node"].value for each in found.values()] == ["3", "2"]


def test_a_resource_that_fails_takes_no_other_with_it() -> None:
    def alter(node: int, request: IncrementalAlterConfigsRequest) -> altered.IncrementalAlterConfigsResponse:
        return altered.IncrementalAlterConfigsResponse(
            responses=tuple(
                altered.AlterConfigsResourceResponse(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    error_code=ErrorCode.INVALID_CONFIG if each.resource_name == "b" else 0,
                    error_message="not so",
                )
                for each in request.resources
            )
        )

    cluster = SimulatedCluster({IncrementalAlterConfigsRequest: alter})
    topics = [ConfigResource(ConfigResourceType.TOPIC, name) for name in "ab"]
    result = cluster.network.run(alter_configs(cluster.core, {each: [ConfigChange("x", "1")] for each in topics}))
    assert result[topics[0]] is None
    with pytest.raises(BrokerError, match=r"INVALID_CONFIG.*not so"):
        _ = result[topics[1]]


def test_pages_of_partitions_are_joined() -> None:
    def page(node: int, request: DescribeTopicPartitionsRequest) -> pages.DescribeTopicPartitionsResponse:
        first = request.cursor.partition_index if request.cursor else 0
        numbers = range(first, min(first + 2, 5))
        partitions = tuple(pages.DescribeTopicPartitionsResponsePartition(partition_index=each) for each in numbers)
        topic = pages.DescribeTopicPartitionsResponseTopic(name="t", partitions=partitions)
        following = pages.Cursor(topic_name="t", partition_index=first + 2) if first + 2 < 5 else None
        return pages.DescribeTopicPartitionsResponse(topics=(topic,), next_cursor=following)

    cluster = SimulatedCluster({DescribeTopicPartitionsRequest: page})
    topics = cluster.network.run(describe_topic_partitions(cluster.core, ["t"], partitions_per_request=2))
    assert [each.partition_index for each in topics["t"].partitions] == [0, 1, 2, 3, 4]
    assert len(cluster.asked(DescribeTopicPartitionsRequest)) == 3


def test_a_password_leaves_salted_and_is_shown_nowhere() -> None:
    """The salt, the messages and the signature are those of the example in RFC 7677, section 3."""
    cluster = SimulatedCluster(
        {AlterUserScramCredentialsRequest: lambda node, request: AlterUserScramCredentialsResponse()}
    )
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    upsertion = ScramUpsertion("user", ScramMechanism.SCRAM_SHA_256, "pencil", salt=salt)
    assert "pencil" not in repr(upsertion)
    cluster.network.run(alter_user_scram_credentials(cluster.core, [upsertion]))
    ((_, request),) = cluster.asked(AlterUserScramCredentialsRequest)
    assert b"pencil" not in request.encode(0)
    nonce = "rOprNGfwEbeRWgbNEkqO"
    both = nonce + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    exchange = f"n=user,r={nonce},r={both},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={both}"
    server_key = hmac.digest(request.upsertions[0].salted_password, b"Server Key", "sha256")
    signature = hmac.digest(server_key, exchange.encode(), "sha256")
    assert b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_broker_that_would_take_a_specification_for_a_timestamp_is_not_asked() -> None:
    cluster = SimulatedCluster({ListOffsetsRequest: offsets()}, topics={"t": 3}, limits={ApiKey.LIST_OFFSETS: (1, 6)})
    wanted = {T0: OffsetSpec.MAX_TIMESTAMP, T1: OffsetSpec.EARLIEST, T2: OffsetSpec.LATEST_TIERED}
    found = cluster.network.run(list_offsets(cluster.core, wanted))
    assert list(found.ok) == [T1]
    assert {
        key: error.supported.lowest for key, error in found.errors.items() if isinstance(error, UnsupportedVersionError)
    } == {
        T0: 7,
        T2: 9,
    }
    asked = [
        each.timestamp
        for _, request in cluster.asked(ListOffsetsRequest)
        for topic in request.topics
        for each in topic.partitions
    ]
    assert asked == [OffsetSpec.EARLIEST]


def test_a_filter_that_brokers_do_not_know_is_never_dropped() -> None:
    cluster = SimulatedCluster({ListGroupsRequest: listing}, limits={ApiKey.LIST_GROUPS: (0, 3)})
    groups = cluster.network.run(list_groups(cluster.core, states=[GroupState.EMPTY]))
    assert groups.found == ()
    assert groups.errors.keys() == {1, 2, 3}
    assert cluster.asked(ListGroupsRequest) == []


def test_a_group_whose_type_could_not_be_found_out_is_not_said_to_be_missing() -> None:
    def partly(node: int, request: ListGroupsRequest) -> ListGroupsResponse:
        return (
            listing(node, request)
            if node == 1
            else ListGroupsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        )

    cluster = SimulatedCluster({**DESCRIBE, ListGroupsRequest: partly})
    groups = cluster.network.run(describe_groups(cluster.core, ["classic", "queue"]))
    assert list(groups.ok) == ["classic"]
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        _ = groups["queue"]
