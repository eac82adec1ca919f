"""Consumer groups (KIP-848): states, epochs, reconciliation, topics, patterns, assignors, timeouts."""

from __future__ import annotations

import pytest

from kafka_msgs.error_codes import ErrorCode
from tests.groups.transcripts_by_request import SIDES, Told, partitions, told

OK = ErrorCode.NONE


def _state(found: Told, name: str) -> tuple[str, int, int]:
    group = found.group(name)
    return group["groupState"], group["groupEpoch"], group["assignmentEpoch"]


def _owned(found: Told, name: str) -> dict[str, dict[str, list[int]]]:
    return {member: partitions(each) for member, each in found.members(name).items()}


def _target(found: Told, name: str) -> dict[str, dict[str, list[int]]]:
    members = found.members(name)
    return {member: partitions({"assignment": each["targetAssignment"]}) for member, each in members.items()}


@SIDES
def test_a_group_is_made_by_its_first_member_and_starts_at_epoch_2(side: str) -> None:
    states = told("consumer-states", side)

    assert states.epoch("A joins") == 2
    assert [kind.removeprefix("ConsumerGroup") for kind, _ in states.records("A joins")] == [
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]


@SIDES
def test_the_state_follows_from_the_epochs_of_group_assignment_and_members(side: str) -> None:
    states = told("consumer-states", side)

    assert _state(states, "alone") == ("Stable", 2, 2)
    assert _state(states, "B is new") == ("Assigning", 3, 2)
    assert _state(states, "A gives up") == ("Reconciling", 3, 3)
    assert _state(states, "B waits for A") == ("Reconciling", 3, 3)
    assert _state(states, "both") == ("Stable", 3, 3)
    assert _state(states, "A left") == ("Assigning", 4, 3)
    assert _state(states, "nobody") == ("Empty", 5, 5)


@SIDES
def test_a_new_assignment_waits_for_the_assignment_interval(side: str) -> None:
    """It comes one second after the previous one. Until then, B has the previous epoch and no partitions."""
    states = told("consumer-states", side)

    assert (states.epoch("B joins"), partitions(states["B joins"])) == (2, {})
    assert _target(states, "A gives up") == {"A": {"t": [0]}, "B": {"t": [1]}}


@SIDES
def test_a_member_gives_up_first_and_moves_to_the_new_epoch_then(side: str) -> None:
    states = told("consumer-states", side)

    assert (states.epoch("A is to give one up"), partitions(states["A is to give one up"])) == (2, {"t": [0]})
    assert states.epoch("A gave up") == 3


@SIDES
def test_a_partition_is_given_to_a_member_when_its_owner_gave_it_up(side: str) -> None:
    states = told("consumer-states", side)

    assert (states.epoch("B waits"), states["B waits"]["assignment"]) == (3, None)
    assert _owned(states, "B waits for A") == {"A": {"t": [0, 1]}, "B": {}}
    assert partitions(states["B gets one"]) == {"t": [1]}
    assert _owned(states, "both") == _target(states, "both")


@SIDES
@pytest.mark.parametrize(("name", "state"), [("assigning", "Assigning"), ("reconciling", "Reconciling")])
def test_groups_are_listed_by_state_in_any_case(side: str, name: str, state: str) -> None:
    [listed] = told("consumer-states", side)[name]["groups"]
    assert listed == {"groupId": "g", "protocolType": "consumer", "groupState": state, "groupType": "consumer"}


@SIDES
def test_a_member_that_leaves_is_removed_with_all_its_records(side: str) -> None:
    states = told("consumer-states", side)

    assert states["A leaves"]["memberEpoch"] == -1
    assert [kind for kind, value in states.records("A leaves") if value is None] == [
        "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupMemberMetadata",
    ]


@SIDES
def test_an_empty_group_may_be_deleted(side: str) -> None:
    states = told("consumer-states", side)

    assert states["delete"]["results"] == [{"groupId": "g", "errorCode": OK}]
    assert states.group("deleted")["errorCode"] == ErrorCode.GROUP_ID_NOT_FOUND


@SIDES
def test_a_rebalance_timeout_that_ends_removes_the_member(side: str) -> None:
    """``A`` has 10 seconds to revoke a partition. It sends heartbeats, but does not revoke it."""
    timeouts = told("consumer-timeouts", side)

    assert sorted(timeouts.members("before")) == ["A", "B"]
    assert sorted(timeouts.members("after the rebalance timeout")) == ["B"]
    assert timeouts.error("A is gone") == ErrorCode.UNKNOWN_MEMBER_ID
    assert partitions(timeouts["B gets all"]) == {"t": [0, 1]}


@SIDES
def test_a_session_that_ends_removes_the_member(side: str) -> None:
    timeouts = told("consumer-timeouts", side)

    assert _state(timeouts, "after the session timeout") == ("Empty", 5, 5)
    assert [key for key in timeouts.expired if "timeout" in key] == ["rebalance-timeout-g-A", "session-timeout-g-B"]


@SIDES
def test_a_group_has_its_own_heartbeat_interval(side: str) -> None:
    assert told("consumer-timeouts", side)["A joins"]["heartbeatIntervalMs"] == 6000


@SIDES
def test_new_partitions_and_deleted_topics_increase_the_group_epoch(side: str) -> None:
    topics = told("consumer-topics", side)

    assert partitions(topics["A joins"]) == {"t": [0], "u": [0, 1]}
    assert (topics.epoch("A after growth"), partitions(topics["A after growth"])) == (3, {"t": [0], "u": [0, 1, 2]})
    assert topics.epoch("A and a topic of others") == 3
    assert partitions(topics["A after deletion"]) == {"t": [0]}
    assert topics.epoch("A gave it up") == 4


@SIDES
def test_a_member_that_unsubscribes_keeps_its_place_without_partitions(side: str) -> None:
    topics = told("consumer-topics", side)

    assert (topics.epoch("A unsubscribes"), partitions(topics["A unsubscribes"])) == (4, {})
    assert topics.epoch("A gave all up") == 5
    assert _owned(topics, "nothing") == {"A": {}}
    assert _state(topics, "nothing") == ("Stable", 5, 5)


@SIDES
def test_the_topics_of_a_pattern_are_found_after_the_heartbeat(side: str) -> None:
    patterns = told("consumer-patterns", side)

    assert partitions(patterns["A joins"]) == {"t": [0]}
    [found] = [value for kind, value in patterns.records("A joins") if kind == "ConsumerGroupRegularExpression"]
    assert found["topics"] == ["in"]
    assert _state(patterns, "before") == ("Assigning", 3, 2)
    assert partitions(patterns["A gets both"]) == {"in": [0], "t": [0]}


@SIDES
def test_a_pattern_finds_topics_that_are_created_later(side: str) -> None:
    patterns = told("consumer-patterns", side)

    assert patterns["A asks for new topics"]["assignment"] is None
    assert partitions(patterns["A gets the new one"]) == {"in": [0], "inner": [0], "t": [0]}


@SIDES
def test_a_pattern_matches_a_whole_name(side: str) -> None:
    assert partitions(told("consumer-patterns", side)["B gets out"]) == {"out": [0]}


@SIDES
def test_a_pattern_that_nobody_has_any_more_is_removed(side: str) -> None:
    patterns = told("consumer-patterns", side)

    assert ("ConsumerGroupRegularExpression", None) in patterns.records("A drops its pattern")
    assert _target(patterns, "after")["A"] == {"t": [0]}


@SIDES
def test_a_bad_pattern_is_refused_and_changes_nothing(side: str) -> None:
    patterns = told("consumer-patterns", side)

    assert patterns.error("B changes to a bad one") == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert patterns.records("B changes to a bad one") == []


@SIDES
def test_the_first_assignor_of_the_coordinator_is_taken_if_nobody_asks_for_one(side: str) -> None:
    """``uniform`` balances partitions regardless of their topics."""
    assignors = told("consumer-assignors", side)

    assert assignors.group("uniform")["assignorName"] == "uniform"
    counts = [sum(map(len, owned.values())) for owned in _owned(assignors, "uniform").values()]
    assert counts == [3, 3]


@SIDES
def test_the_assignor_that_most_members_ask_for_is_taken(side: str) -> None:
    """``range`` assigns a member the same partitions of each topic."""
    assignors = told("consumer-assignors", side)

    assert assignors.group("range")["assignorName"] == "range"
    assert _owned(assignors, "range") == {"A": {"t": [0, 1], "u": [0, 1]}, "B": {"t": [2], "u": [2]}}


def _commit_error(found: Told, name: str) -> int:
    code: int = found[name]["topics"][0]["partitions"][0]["errorCode"]
    return code


COMMITS = {
    "A at its epoch": OK,
    "A at the epoch of its partition": OK,
    "B for its partition": OK,
    "A for a partition of B": ErrorCode.STALE_MEMBER_EPOCH,
    "B before its partition": ErrorCode.STALE_MEMBER_EPOCH,
    "A at a newer epoch": ErrorCode.STALE_MEMBER_EPOCH,
    "a stranger": ErrorCode.UNKNOWN_MEMBER_ID,
    "at an old version": ErrorCode.UNSUPPORTED_VERSION,
    "from outside": ErrorCode.UNKNOWN_MEMBER_ID,
}


@SIDES
@pytest.mark.parametrize("name", COMMITS)
def test_who_may_commit(side: str, name: str) -> None:
    """A member may commit for a partition with any epoch since it received the partition (KIP-1251)."""
    assert _commit_error(told("consumer-commits", side), name) == COMMITS[name]


@SIDES
def test_who_may_fetch_offsets(side: str) -> None:
    commits = told("consumer-commits", side)
    names = ("A fetches", "A fetches at an old epoch", "a stranger fetches", "anybody fetches")

    errors = [commits[name]["groups"][0]["errorCode"] for name in names]

    assert errors == [OK, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, OK]


@SIDES
def test_offsets_of_subscribed_topics_stay_and_so_does_a_group_with_members(side: str) -> None:
    commits = told("consumer-commits", side)

    errors = {topic["name"]: topic["partitions"][0]["errorCode"] for topic in commits["delete subscribed"]["topics"]}
    assert errors == {"t": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "u": OK}
    assert commits["delete"]["results"][0]["errorCode"] == ErrorCode.NON_EMPTY_GROUP
