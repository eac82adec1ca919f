"""Administration of real streams groups (KIP-1071): a simulated member, and a Kafka Streams application."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.admin import (
    AclOperation,
    Admin,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    GroupState,
    GroupType,
    NewTopic,
    OffsetAndMetadata,
    OffsetTarget,
    StreamsGroupDescription,
)
from kafka_msgs.client import Client, TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, CommitFailedError
from kafka_msgs.messages import streams_group_heartbeat_request as heartbeat
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tests.support.cluster_topics import make_topics, new_name
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.streams_application import streams_application

OWN = new_name("streams-admin")
APP, ORDERS, INPUT = f"{OWN}-app", f"{OWN}-orders", f"{OWN}-input"
CHANGELOG = f"{APP}-totals-changelog"
S0, S1 = TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1)


@pytest.fixture(scope="module")
def admin(kafka_cluster: ClusterAddresses) -> Iterator[Admin]:
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        make_topics(kafka_cluster, NewTopic(ORDERS, 2))
        yield admin


def beat(client: Client, group: str, epoch: int, topology: heartbeat.Topology | None = None) -> Any:
    joining = epoch == 0
    return client.call(
        StreamsGroupHeartbeatRequest(
            group_id=group,
            member_id=f"{group}-member",
            member_epoch=epoch,
            rebalance_timeout_ms=10_000 if joining else -1,
            topology=topology,
            active_tasks=() if joining else None,
            standby_tasks=() if joining else None,
            warmup_tasks=() if joining else None,
            process_id="process-1" if joining else None,
            user_endpoint=heartbeat.Endpoint(host="here", port=8080) if joining else None,
            client_tags=(heartbeat.KeyValue(key="zone", value="eu"),) if joining else None,
        )
    )


TOPOLOGY = heartbeat.Topology(
    subtopologies=(
        heartbeat.Subtopology(
            subtopology_id="0",
            source_topics=(ORDERS,),
            state_changelog_topics=(heartbeat.TopicInfo(name=CHANGELOG, replication_factor=1),),
        ),
    )
)


def test_h12_to_h15_a_real_group_with_a_member(kafka_cluster: ClusterAddresses, admin: Admin) -> None:
    with Client(kafka_cluster.bootstrap_servers, client_id="played") as client:
        epoch = beat(client, APP, 0, TOPOLOGY).member_epoch

        def stable() -> bool:
            nonlocal epoch
            epoch = max(epoch, beat(client, APP, epoch).member_epoch)
            group = admin.describe_streams_groups([APP]).ok.get(APP)
            return group is not None and bool(group.members[0].target_assignment.active_tasks)

        until(stable)
        group = admin.describe_streams_groups([APP], include_authorized_operations=True).all()[APP]
        (member,) = group.members
        (subtopology,) = group.subtopologies
        assert (member.client_id, member.process_id, member.client_tags) == ("played", "process-1", {"zone": "eu"})
        assert (member.user_endpoint and member.user_endpoint.port, member.is_classic) == (8080, False)
        (tasks,) = member.target_assignment.active_tasks
        assert (tasks.subtopology_id, sorted(tasks.partitions)) == ("0", [0, 1])
        assert subtopology.source_topics == (ORDERS,)
        assert subtopology.state_changelog_topics[CHANGELOG].partitions == 2
        assert AclOperation.DELETE in (group.authorized_operations or ())
        assert group.coordinator is not None
        assert group.coordinator.id in kafka_cluster.nodes
        listed = {each.group_id: each for each in admin.list_groups(types=[GroupType.STREAMS])}
        assert listed[APP].type is GroupType.STREAMS

        refused = admin.alter_streams_group_offsets(APP, {S0: 5})
        assert [type(error) for error in refused.errors.values()] == [CommitFailedError]
        with pytest.raises(BrokerError) as not_empty:
            admin.delete_streams_groups([APP]).all()
        assert not_empty.value.error is ErrorCode.NON_EMPTY_GROUP
        beat(client, APP, -1)
    empty = admin.describe_groups([APP])[APP]
    assert isinstance(empty, StreamsGroupDescription)
    assert (empty.group_state, empty.members) == (GroupState.EMPTY, ())

    admin.alter_streams_group_offsets(APP, {S0: 5, S1: OffsetAndMetadata(6, 0, "x")}).all()
    offsets = admin.list_streams_group_offsets({APP: None}).all()[APP]
    assert {key: value.offset for key, value in offsets.items()} == {S0: 5, S1: 6}
    admin.delete_streams_group_offsets(APP, [ORDERS]).all()
    assert dict(admin.list_streams_group_offsets({APP: None})[APP]) == {}
    admin.delete_streams_groups([APP]).all()
    with pytest.raises(BrokerError) as gone:
        admin.describe_streams_groups([APP]).all()
    assert gone.value.error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_real_application_is_described_reset_and_deleted(
    kafka_cluster: ClusterAddresses, admin: Admin, tmp_path: Path
) -> None:
    """The description of the application matches the output of Kafka's own tool."""
    make_topics(kafka_cluster, NewTopic(INPUT, 2))
    kafka_cluster.console_producer(INPUT, [f'{{"order":{n},"item":"tea","quantity":1}}' for n in range(20)])
    name = f"{OWN}-totals"
    inputs = {TopicPartition(INPUT, 0), TopicPartition(INPUT, 1)}
    short = ConfigChange("streams.session.timeout.ms", "6000")
    admin.alter_configs({ConfigResource(ConfigResourceType.GROUP, name): [short]}).all()
    with streams_application(kafka_cluster.bootstrap_servers, name, tmp_path, INPUT, instances=2):

        def running() -> bool:
            group = admin.describe_streams_groups([name]).ok.get(name)
            if group is None or group.group_state is not GroupState.STABLE or len(group.members) != 2:
                return False
            stored = admin.list_group_offsets(name).ok
            return sum(stored[each].offset for each in inputs if each in stored) == 20

        until(running)
        group = admin.describe_streams_groups([name])[name]
        printed = kafka_cluster.streams_groups("--describe", "--group", name, "--members", "--verbose")
        printed_state = kafka_cluster.streams_groups("--describe", "--group", name, "--state", "--verbose")
        printed_offsets = kafka_cluster.streams_groups("--describe", "--group", name, "--offsets", "--verbose")
        stored = admin.list_group_offsets(name).all()
    assert {member.member_id for member in group.members} <= set(printed.split())
    assert {name, "Stable", str(group.group_epoch), str(group.target_assignment_epoch)} <= set(printed_state.split())
    assert {each.subtopology_id for each in group.subtopologies} == {"0", "1"}
    active = [
        (task.subtopology_id, number)
        for member in group.members
        for task in member.assignment.active_tasks
        for number in task.partitions
    ]
    assert sorted(active) == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]

    theirs = {
        TopicPartition(words[1], int(words[2])): (words[3], words[4])
        for words in map(str.split, printed_offsets.splitlines())
        if words[:1] == [name]
    }
    assert inputs <= theirs.keys()
    ours = {key: (str(each.offset), str(each.leader_epoch)) for key, each in stored.items()}
    assert ours == {key: row for key, row in theirs.items() if row[0] != "-"}

    until(lambda: not admin.describe_streams_groups([name])[name].members)
    changes = admin.reset_group_offsets(name, OffsetTarget.earliest(), sorted(inputs)).all()
    assert {change.after for change in changes.values()} == {0}
    assert {each: change.before for each, change in changes.items() if change.before >= 0} == {
        each: stored[each].offset for each in inputs if each in stored
    }
    assert {each.offset for each in admin.list_group_offsets(name, sorted(inputs)).values()} == {0}
    admin.delete_streams_groups([name]).all()
    assert name not in {each.group_id for each in admin.list_groups()}
