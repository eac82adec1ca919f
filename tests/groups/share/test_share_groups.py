"""Share groups (KIP-932): assignments, epochs, refusals, and the end of a group."""

from __future__ import annotations

import pytest

from kafka_msgs.error_codes import ErrorCode
from tests.groups.transcripts_by_request import SIDES, partitions, told

OK = ErrorCode.NONE


@SIDES
def test_a_group_is_made_by_its_first_member_and_starts_at_epoch_2(side: str) -> None:
    life = told("share-life", side)

    assert life.epoch("A joins") == 2
    written = [kind.removeprefix("ShareGroup") for kind, _ in life.records("A joins")]
    assert written[:5] == [
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]


@SIDES
def test_partitions_are_assigned_when_their_state_is_initialized(side: str) -> None:
    life = told("share-life", side)
    states = [value for kind, value in life.records("A joins") if kind == "ShareGroupStatePartitionMetadata"]

    assert [topic["partitions"] for topic in states[0]["initializingTopics"]] == [[0, 1, 2]]
    assert [topic["partitions"] for topic in states[1]["initializedTopics"]] == [[0, 1, 2]]
    assert partitions(life["A joins"]) == {}
    assert partitions(life["A gets all"]) == {"t": [0, 1, 2]}


@SIDES
def test_a_new_member_waits_for_the_assignment_interval_and_then_shares(side: str) -> None:
    life = told("share-life", side)

    assert (life.epoch("B joins"), partitions(life["B joins"])) == (3, {})
    assert (life.epoch("B shares"), life.epoch("A shares")) == (4, 4)
    assert partitions(life["A shares"])["t"] + partitions(life["B shares"])["t"] == [0, 1, 2]


@SIDES
def test_an_assignment_is_in_an_answer_if_it_changed(side: str) -> None:
    life = told("share-life", side)

    assert life["A asks again"]["assignment"] is None
    assert life["A gets all"]["assignment"] is not None


@SIDES
def test_a_description_has_epochs_members_and_what_they_read(side: str) -> None:
    group = told("share-life", side).group("two members")

    assert (group["groupState"], group["assignorName"]) == ("Stable", "simple")
    assert group["groupEpoch"] == group["assignmentEpoch"] == 4
    assert {member["memberId"]: member["memberEpoch"] for member in group["members"]} == {"A": 4, "B": 4}
    assert {member["clientId"] for member in group["members"]} == {"client"}


@SIDES
def test_a_group_with_members_is_stable_even_before_an_assignment(side: str) -> None:
    group = told("share-epochs", side)["another kind of question"]["groups"][1]

    assert group["groupEpoch"] > group["assignmentEpoch"]
    assert group["groupState"] == "Stable"


@SIDES
@pytest.mark.parametrize(("name", "state"), [("list", "Stable"), ("list empty", "Empty")])
def test_groups_are_listed_by_state_and_type_in_any_case(side: str, name: str, state: str) -> None:
    [listed] = told("share-life", side)[name]["groups"]
    assert listed == {"groupId": "g", "protocolType": "share", "groupState": state, "groupType": "share"}


@SIDES
def test_a_member_that_leaves_is_removed_with_all_its_records(side: str) -> None:
    life = told("share-life", side)

    assert life["A leaves"]["memberEpoch"] == -1
    removed = [kind for kind, value in life.records("A leaves") if value is None]
    assert removed == [
        "ShareGroupCurrentMemberAssignment",
        "ShareGroupTargetAssignmentMember",
        "ShareGroupMemberMetadata",
    ]
    assert [kind for kind, value in life.records("A leaves") if value is not None] == ["ShareGroupMetadata"]


@SIDES
def test_a_group_without_members_is_empty_until_it_is_deleted(side: str) -> None:
    life = told("share-life", side)

    assert (life.group("nobody")["groupState"], life.group("nobody")["members"]) == ("Empty", [])
    assert life["delete"]["results"] == [{"groupId": "g", "errorCode": OK}]
    assert life.group("deleted")["errorCode"] == ErrorCode.GROUP_ID_NOT_FOUND
    assert life.epoch("A comes back") == 2


@SIDES
def test_a_session_that_ends_removes_the_member(side: str) -> None:
    sessions = told("share-sessions", side)

    assert sorted(sessions.members("one left")) == ["A"]
    assert sessions.error("B is gone") == ErrorCode.UNKNOWN_MEMBER_ID
    assert sessions.expired == ["session-timeout-g-B", "session-timeout-g-A"]
    assert sessions.group("none left")["groupState"] == "Empty"


@SIDES
def test_a_group_has_its_own_session_timeout_and_heartbeat_interval(side: str) -> None:
    """50 seconds and 6 seconds: ``B`` sends its last heartbeat at second 1, and is removed at second 51."""
    assert told("share-sessions", side)["A joins"]["heartbeatIntervalMs"] == 6000


@SIDES
def test_members_and_assignments_are_there_after_the_partition_moved(side: str) -> None:
    sessions = told("share-sessions", side)

    assert sessions.error("moved") == ErrorCode.NOT_COORDINATOR
    assert (sessions.epoch("A after the move"), partitions(sessions["A after the move"])) == (4, {"t": [0, 1]})


REFUSED = {
    "nobody there": ErrorCode.GROUP_ID_NOT_FOUND,
    "an older epoch": ErrorCode.FENCED_MEMBER_EPOCH,
    "a greater epoch": ErrorCode.FENCED_MEMBER_EPOCH,
    "a stranger": ErrorCode.UNKNOWN_MEMBER_ID,
    "a stranger leaves": ErrorCode.UNKNOWN_MEMBER_ID,
    "no member id": ErrorCode.INVALID_REQUEST,
    "no group id": ErrorCode.INVALID_REQUEST,
    "no topics": ErrorCode.INVALID_REQUEST,
    "epoch -2": ErrorCode.INVALID_REQUEST,
    "C finds no place": ErrorCode.GROUP_MAX_SIZE_REACHED,
    "a consumer": ErrorCode.GROUP_ID_NOT_FOUND,
}


@SIDES
@pytest.mark.parametrize("name", REFUSED)
def test_who_is_refused(side: str, name: str) -> None:
    epochs = told("share-epochs", side)

    assert epochs.error(name) == REFUSED[name]
    assert epochs.records(name) == []


@SIDES
def test_a_member_may_come_with_its_previous_epoch_once_more(side: str) -> None:
    """The previous response was lost, so the member does not have the current epoch."""
    epochs = told("share-epochs", side)
    assert epochs.epoch("a previous epoch") == epochs.epoch("A learns of its partitions")


@SIDES
def test_a_known_member_that_joins_again_gets_what_it_had(side: str) -> None:
    epochs = told("share-epochs", side)

    assert partitions(epochs["A joins again"]) == {"t": [0, 1]}
    assert epochs.records("A joins again") == []


@SIDES
def test_a_description_tells_the_error_of_each_group(side: str) -> None:
    groups = told("share-epochs", side)["another kind of question"]["groups"]

    assert {group["groupId"]: group["errorCode"] for group in groups} == {
        "": ErrorCode.INVALID_GROUP_ID,
        "g": OK,
        "h": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert told("share-epochs", side).group("describe as consumer")["errorCode"] == ErrorCode.GROUP_ID_NOT_FOUND


@SIDES
def test_members_get_only_topics_that_they_subscribe_to(side: str) -> None:
    """Both members read the only partition of ``t``. The two partitions of ``u`` are split between two members."""
    owned = told("share-topics", side).members("three members")

    assert {name: partitions(member) for name, member in owned.items()} == {
        "A": {"t": [0]},
        "B": {"t": [0], "u": [0]},
        "C": {"u": [1]},
    }


@SIDES
def test_partitions_that_a_topic_gets_are_assigned_after_their_state_is_there(side: str) -> None:
    topics = told("share-topics", side)

    assert partitions(topics["B after growth"]) == partitions(topics["C after growth"]) == {}
    owned = topics.members("after growth")
    assert sorted(partitions(owned["B"])["u"] + partitions(owned["C"])["u"]) == [0, 1, 2]


@SIDES
def test_a_member_that_changes_its_topics_stops_reading_at_once(side: str) -> None:
    topics = told("share-topics", side)

    assert partitions(topics["C changes"]) == {}
    assert partitions(topics["C after change"]) == {"t": [0]}
    assert partitions(topics["B after change"]) == {"t": [0], "u": [0, 1, 2]}


@SIDES
def test_a_deleted_topic_is_taken_from_its_members(side: str) -> None:
    topics = told("share-topics", side)

    assert partitions(topics["B after deletion"]) == {"t": [0]}
    assert {name: partitions(member) for name, member in topics.members("after deletion").items()} == {
        "A": {"t": [0]},
        "B": {"t": [0]},
        "C": {"t": [0]},
    }


@SIDES
def test_a_share_group_has_no_committed_offsets(side: str) -> None:
    offsets = told("share-offsets", side)

    [topic] = offsets["commit"]["topics"]
    assert topic["partitions"] == [{"partitionIndex": 0, "errorCode": ErrorCode.GROUP_ID_NOT_FOUND}]
    assert offsets["fetch"]["groups"][0]["topics"] == []
    assert offsets.error("delete offsets") == ErrorCode.GROUP_ID_NOT_FOUND


@SIDES
def test_a_share_group_with_members_is_not_deleted_and_takes_no_classic_members(side: str) -> None:
    offsets = told("share-offsets", side)

    assert offsets["delete"]["results"][0]["errorCode"] == ErrorCode.NON_EMPTY_GROUP
    assert offsets.error("classic join") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
