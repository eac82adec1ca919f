"""Cases that the comparison with Kafka's coordinator does not cover, or covers only at random.

``tests.coordinator.campaign`` compares all other behaviour with Kafka command by command.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.describe_groups_response import DescribeGroupsResponse
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.join_group_request import JoinGroupRequestProtocol
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tests.groups.classic.coordinator_fixture import GROUP, Desk


def _group(desk: Desk) -> ClassicGroup:
    group = desk.coordinator.shards[0].state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    return group


def _stable(desk: Desk, **fields: Any) -> str:
    """Join a member that leads the group and assigns everything to itself. Return its id."""
    joined = desk.join(**fields)
    desk.sync(joined.member_id, joined.generation_id, {joined.member_id: b"all"})
    return str(joined.member_id)


def test_two_members_get_their_shares_when_the_leader_has_sent_them() -> None:
    desk = Desk()
    first = desk.join()
    desk.join(token="second")
    assert "second" not in desk.answers
    again = desk.join(first.member_id)
    second = desk.answers["second"]
    assert again.generation_id == second.generation_id == 2
    assert {member.member_id for member in again.members} == {first.member_id, second.member_id}
    assert second.members == ()
    assert second.leader == first.member_id

    desk.sync(second.member_id, 2, token="share")
    assert "share" not in desk.answers
    shares = {first.member_id: b"one", second.member_id: b"two"}
    assert desk.sync(first.member_id, 2, shares).assignment == b"one"
    assert desk.answers["share"].assignment == b"two"
    record = _group(desk).record
    assert record is not None
    assert {member.member_id: member.assignment for member in record.members} == {
        first.member_id: b"one",
        second.member_id: b"two",
    }


def test_a_member_joins_twice_from_version_4_and_an_unused_id_is_forgotten() -> None:
    desk = Desk()
    given = desk.join(version=4)
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert _group(desk).live.pending_join_members == {given.member_id}

    desk.advance(10_000)

    assert _group(desk).live.pending_join_members == set()
    assert desk.join(given.member_id, version=4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_and_its_group_becomes_empty() -> None:
    desk = Desk()
    member_id = _stable(desk)
    desk.advance(9_999)
    assert len(_group(desk).live.members) == 1

    desk.advance(1)

    assert desk.expired[-1] == f"heartbeat-{GROUP}-{member_id}"
    assert _group(desk).state_name() == "Empty"
    record = _group(desk).record
    assert record is not None
    assert (record.generation, record.members) == (2, ())


def test_a_static_member_comes_back_with_its_assignment_and_without_a_rebalance() -> None:
    desk = Desk()
    old = _stable(desk, group_instance_id="i")
    back = desk.join(version=9, group_instance_id="i")
    assert (back.error_code, back.generation_id, back.skip_assignment) == (ErrorCode.NONE, 1, True)
    assert back.member_id == back.leader != old
    assert desk.sync(back.member_id, 1).assignment == b"all"
    heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=old, group_instance_id="i")
    refused = desk.ask(heartbeat, 4)
    assert refused is not None
    assert refused.to_json(4)["errorCode"] == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_keeps_its_old_id_if_its_return_cannot_be_recorded() -> None:
    desk = Desk()
    old = _stable(desk, group_instance_id="i")
    desk.log.fail_next = GroupError(error=ErrorCode.NOT_ENOUGH_REPLICAS)
    assert desk.join(version=9, group_instance_id="i").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert _group(desk).live.static_members == {"i": old}
    assert desk.sync(old, 1).assignment == b"all"


def test_an_assignment_that_cannot_be_recorded_makes_members_join_again() -> None:
    desk = Desk()
    joined = desk.join()
    desk.log.fail_next = GroupError(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    refused = desk.sync(joined.member_id, 1, {joined.member_id: b"all"})
    assert (refused.error_code, refused.assignment) == (ErrorCode.NOT_COORDINATOR, b"")
    assert _group(desk).state_name() == "PreparingRebalance"


def test_a_group_is_as_it_was_after_another_load() -> None:
    desk = Desk()
    member_id = _stable(desk)
    before = desk.ask(DescribeGroupsRequest(groups=(GROUP,)), 6)
    desk.resign()
    desk.elect()
    assert desk.ask(DescribeGroupsRequest(groups=(GROUP,)), 6) == before
    assert desk.sync(member_id, 1).assignment == b"all"


def test_those_who_wait_learn_that_the_partition_has_moved_and_no_timer_stays() -> None:
    desk = Desk()
    joined = desk.join()
    desk.log.hold = True
    desk.sync(joined.member_id, 1, token="sync")
    desk.join(token="join")
    desk.resign()
    assert desk.answers["sync"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.answers["join"].error_code == ErrorCode.NOT_COORDINATOR
    assert desk.coordinator.next_timer is None


def test_static_members_that_leave_no_time_to_wait_do_not_keep_the_coordinator_busy() -> None:
    desk = Desk()
    protocols = (JoinGroupRequestProtocol(name="range"), JoinGroupRequestProtocol(name="sticky"))
    patient = desk.join(group_instance_id="i", rebalance_timeout_ms=0, version=5, session_timeout_ms=1_800_000)
    desk.sync(patient.member_id, 1)
    desk.join(group_instance_id="j", rebalance_timeout_ms=0, version=5, token="j", protocols=protocols)
    assert desk.answers["j"].error_code == ErrorCode.NONE
    leave = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(group_instance_id="j"),))
    desk.ask(leave, 5)
    desk.expired.clear()
    desk.advance(60_000)
    assert 0 < len(desk.expired) <= 60_000 // 500 + 1


def test_a_group_that_does_not_exist_is_dead_and_from_version_6_an_error() -> None:
    desk = Desk()
    for version in range(7):
        answer = desk.ask(DescribeGroupsRequest(groups=("nobody",)), version)
        assert isinstance(answer, DescribeGroupsResponse)
        (group,) = answer.groups
        assert group.group_state == "Dead"
        assert group.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)
        assert (group.error_message is None) == (version < 6)
        assert answer.encode(version) == evolve(answer).encode(version)


def test_one_member_leaves_at_the_versions_that_have_no_list() -> None:
    for version in range(3):
        desk = Desk()
        member_id = _stable(desk)
        for error in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
            answer = desk.ask(LeaveGroupRequest(group_id=GROUP, member_id=member_id), version)
            assert answer is not None
            assert answer.to_json(version)["errorCode"] == error
        assert _group(desk).state_name() == "Empty"


def test_a_member_of_version_0_waits_for_a_rebalance_as_long_as_its_session() -> None:
    desk = Desk()
    joined = desk.join(version=0, rebalance_timeout_ms=-1)
    member = _group(desk).live.members.get(joined.member_id)
    assert member is not None
    assert member.rebalance_timeout_ms == member.session_timeout_ms == 10_000


def test_a_protocol_without_a_name_is_null_only_at_versions_that_have_null() -> None:
    desk = Desk()
    _stable(desk)
    for version in range(10):
        refused = desk.join("nobody", version=version)
        assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert refused.protocol_name == (None if version >= 7 else "")
        refused.encode(version)


def test_a_sync_of_version_5_must_name_the_protocol() -> None:
    desk = Desk()
    joined = desk.join()
    assert desk.sync(joined.member_id, 1, named=False).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert desk.sync(joined.member_id, 1).error_code == ErrorCode.NONE
