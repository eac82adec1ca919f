"""Requirements G9 to G12: states, static members, task offsets, and records."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.groups.streams.group import StreamsGroup, StreamsGroupState
from kafka_msgs.groups.streams.protocol import APPLIERS
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.messages.delete_groups_request import DeleteGroupsRequest
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.streams_group_heartbeat_request import Endpoint, TaskOffset
from tests.groups.streams.broker import Broker, changelog, join_classic, subtopology, topology

BOTH = pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE], ids=["shipped", "page"])
OK = ErrorCode.NONE


def test_y30_g9_1_there_are_six_states() -> None:
    names = [state.value for state in StreamsGroupState]
    assert names == ["Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"]


@BOTH
def test_g9_2_the_state_follows_from_members_and_epochs(profile: Profile) -> None:
    broker = Broker(profile, topics={})
    seen = []

    def look() -> None:
        seen.append(broker.group().state_name())

    epoch = broker.heartbeat().member_epoch
    look()
    broker.topics(**{"in": 2})
    broker.heartbeat("A", epoch)
    look()
    broker.heartbeat("B")
    look()
    broker.heartbeat("B", -1)
    look()
    broker.heartbeat("A", -1)
    look()
    assert seen == ["NotReady", "Stable", "Reconciling", "Assigning", "Empty"]


@BOTH
def test_g9_2_a_deleted_group_is_gone(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    broker.heartbeat("A", -1)
    broker.ask(DeleteGroupsRequest(groups_names=("g",)))
    assert not broker.coordinator.shards[0].state.groups


@BOTH
def test_y15_g9_3_describe_and_list_write_the_state_alike(profile: Profile) -> None:
    broker = Broker(profile, topics={})
    broker.heartbeat()
    listed = broker.ask(ListGroupsRequest()).groups[0]
    assert (broker.describe().group_state, listed.group_state) == ("NotReady", "NotReady")
    assert (listed.group_type, listed.protocol_type) == ("streams", "streams")


# Static members


@BOTH
def test_g10_1_the_instance_id_is_kept_and_shown(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat(instance_id="i")
    assert broker.group().members["A"].metadata.instance_id == "i"
    assert broker.describe().members[0].instance_id == "i"


@BOTH
def test_g10_2_a_static_member_may_leave_for_a_while(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat(instance_id="i")
    epoch, held = broker.group().epoch, broker.active("A")
    assert broker.heartbeat("A", -2, instance_id="i").member_epoch == -2
    assert (broker.group().epoch, broker.active("A")) == (epoch, held)
    broker.advance(45_000)
    assert broker.group().epoch > epoch
    assert broker.group().is_empty


@BOTH
def test_g10_3_a_new_member_takes_the_place(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat(instance_id="i", process_id="p")
    held = broker.active("A")
    broker.heartbeat("A", -2, instance_id="i")
    answer = broker.heartbeat("B", instance_id="i", process_id="p")
    assert answer.error_code == OK
    assert set(broker.group().targets) == {"B"}
    assert broker.active("B") == held


@BOTH
def test_g10_4_an_instance_id_has_one_member(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat(instance_id="i")
    assert broker.error("B", instance_id="i") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert broker.error("B", 1, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert broker.error("B", 1, instance_id="other") is ErrorCode.UNKNOWN_MEMBER_ID


@BOTH
@pytest.mark.parametrize(("change", "bumps"), [({}, False), ({"rack_id": "r"}, True), ({"process_id": "q"}, True)])
def test_g10_5_what_changed_meanwhile_calls_for_an_assignment(
    profile: Profile, change: dict[str, Any], bumps: bool
) -> None:
    broker = Broker(profile)
    broker.heartbeat(instance_id="i", process_id="p")
    broker.heartbeat("A", -2, instance_id="i")
    epoch = broker.group().epoch
    broker.heartbeat("B", **{"instance_id": "i", "process_id": "p", **change})
    assert (broker.group().epoch > epoch) is bumps


# Task offsets


def _offset(value: int, partition: int = 0) -> tuple[TaskOffset, ...]:
    return (TaskOffset(subtopology_id="0", partition=partition, offset=value),)


@BOTH
def test_g11_2_offsets_are_one_sum_for_each_task(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    broker.heartbeat("A", epoch, task_offsets=_offset(10 + 5), task_end_offsets=_offset(20))
    member = broker.describe().members[0]
    assert [each.offset for each in member.task_offsets] == [15]
    assert [each.offset for each in member.task_end_offsets] == [20]
    assert broker.error("A", epoch, task_offsets=_offset(1) * 2) is ErrorCode.INVALID_REQUEST


@BOTH
def test_g11_8_offsets_are_lost_when_the_coordinator_moves(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    broker.heartbeat("A", epoch, task_offsets=_offset(15))
    assert broker.records == []
    broker.reload()
    assert broker.describe().members[0].task_offsets == ()
    broker.heartbeat("A", epoch, task_offsets=_offset(16))
    assert [each.offset for each in broker.describe().members[0].task_offsets] == [16]


# Records


@BOTH
def test_g12_1_the_records_of_a_first_member(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    assert broker.kinds == [
        "MemberMetadata",
        "Topology",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]


@BOTH
def test_g12_2_each_further_member_adds_its_metadata(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 9})
    broker.heartbeat("A")
    for name in "BCD":
        broker.heartbeat(name)
        assert broker.kinds.count("MemberMetadata") == 1
        assert "Topology" not in broker.kinds


@BOTH
def test_g12_3_a_change_of_metadata_replaces_the_record(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    first = broker.records[0]
    broker.heartbeat("A", epoch, rack_id="r")
    assert (broker.kinds[0], broker.records[0].key) == ("MemberMetadata", first.key)


@BOTH
def test_g12_4_leaving_writes_three_tombstones(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    broker.heartbeat("A", -1)
    assert [kind for kind in broker.kinds if kind.startswith("-")] == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
    ]


@BOTH
def test_g12_5_an_empty_group_is_deleted_after_a_time(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    broker.advance(44_000)
    assert "-Metadata" not in broker.kinds
    broker.heartbeat("A", -1)
    broker.advance(600_000)
    assert not broker.coordinator.shards[0].state.groups


@BOTH
def test_g12_6_a_source_that_grows_gives_a_new_assignment(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    before = broker.group().metadata_hash
    broker.topics(**{"in": 3})
    broker.heartbeat("A", epoch)
    assert broker.group().metadata_hash != before
    assert {"Metadata", "TargetAssignmentMember", "TargetAssignmentMetadata"} <= set(broker.kinds)


@BOTH
def test_g12_7_a_target_is_written_as_a_difference(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 3})
    for name in "ABC":
        broker.heartbeat(name)
    broker.settle("A", "B", "C")
    broker.heartbeat("A", broker.group().members["A"].epoch, rack_id="r")
    assert broker.kinds.count("TargetAssignmentMember") == 0
    assert broker.kinds.count("TargetAssignmentMetadata") == 1
    broker.heartbeat("C", -1)
    broker.heartbeat("A", broker.group().members["A"].epoch)
    assert broker.kinds.count("TargetAssignmentMember") == 1


@BOTH
@pytest.mark.parametrize("error", [ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE])
def test_g12_8_records_are_appended_together_or_not_at_all(profile: Profile, error: ErrorCode) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    assert len(broker.batches) == 1
    assert broker.batches[0].atomic
    group = broker.group()
    before = (group.epoch, dict(group.members), dict(group.targets), dict(group.active_processes))
    broker.log.fail_next = GroupError(error=error)
    assert broker.error("B") is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (group.epoch, dict(group.members), dict(group.targets), dict(group.active_processes)) == before
    assert broker.error("A", epoch) is OK


@BOTH
def test_g12_9_a_record_that_does_not_fit_changes_nothing(profile: Profile) -> None:
    broker = Broker(profile)
    broker.log.fail_next = GroupError(error=ErrorCode.MESSAGE_TOO_LARGE)
    assert broker.error(client_id="c" * 30_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not broker.coordinator.shards[0].state.groups


def _facts(group: StreamsGroup) -> dict[str, Any]:
    names = ("epoch", "metadata_hash", "assignment_epoch", "assignment_timestamp", "validated_epoch", "configs")
    tables = ("members", "targets", "static_members", "settled", "active_processes", "standby_processes")
    return {
        **{name: getattr(group, name) for name in names},
        **{name: dict(getattr(group, name)) for name in tables},
        "topology": group.topology_epoch,
    }


@BOTH
@pytest.mark.parametrize("seed", range(5))
def test_g12_10_the_log_gives_the_state_again(profile: Profile, seed: int) -> None:
    random = Random(seed)
    broker = Broker(profile, topics={"in": 5, "c": 5}, config={"group_streams_num_standby_replicas": 1})
    stateful = topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),)))
    for step in range(40):
        name = random.choice("ABCD")
        known = broker.coordinator.shards[0].state.groups.get("g")
        epoch = known.members[name].epoch if isinstance(known, StreamsGroup) and name in known.members else 0
        if epoch and random.random() < 0.2:
            broker.heartbeat(name, -1)
        elif epoch > 0:
            broker.heartbeat(name, epoch, active_tasks=(), standby_tasks=(), warmup_tasks=())
        else:
            endpoint = Endpoint(host=name, port=1) if step % 3 else None
            broker.heartbeat(name, topology=stateful, process_id=random.choice("pq"), user_endpoint=endpoint)
    before = _facts(broker.group())
    broker.reload()
    assert _facts(broker.group()) == before
    latest = {record.key: record for record in broker.log.records(0) if isinstance(record, TopicRecord)}
    broker.log.partitions[0] = list(latest.values())
    broker.reload()
    assert _facts(broker.group()) == before


@BOTH
def test_g12_11_a_deleted_group_leaves_no_record(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    broker.heartbeat("A", -1)
    assert broker.ask(DeleteGroupsRequest(groups_names=("g",))).results[0].error_code == OK
    latest = {record.key: record.value for record in broker.log.records(0) if isinstance(record, TopicRecord)}
    assert set(latest.values()) == {None}


def test_appliers_know_all_records_of_the_protocol() -> None:
    assert sorted(key.INFO.name for key in APPLIERS) == [
        "StreamsGroupCurrentMemberAssignmentKey",
        "StreamsGroupMemberMetadataKey",
        "StreamsGroupMetadataKey",
        "StreamsGroupTargetAssignmentMemberKey",
        "StreamsGroupTargetAssignmentMetadataKey",
        "StreamsGroupTopologyKey",
    ]


@BOTH
def test_g15_12_an_empty_classic_group_becomes_a_streams_group(profile: Profile) -> None:
    broker = Broker(profile)
    join_classic(broker, "g")
    assert broker.error() is ErrorCode.GROUP_ID_NOT_FOUND
    broker.advance(3_000)
    broker.advance(400_000)
    assert broker.error() is OK
    assert broker.records[0].key is not None
    assert broker.records[0].value is None
