"""Consumer groups (KIP-848): invalid heartbeats, fenced epochs, and static members."""

from __future__ import annotations

import pytest

from kafka_msgs.error_codes import ErrorCode
from tests.groups.transcripts_by_request import SIDES, partitions, told

WRONG = {
    "no group id": ErrorCode.INVALID_REQUEST,
    "blank group id": ErrorCode.INVALID_REQUEST,
    "no member id": ErrorCode.INVALID_REQUEST,
    "no instance id": ErrorCode.INVALID_REQUEST,
    "no rack": ErrorCode.INVALID_REQUEST,
    "no rebalance timeout": ErrorCode.INVALID_REQUEST,
    "partitions when joining": ErrorCode.INVALID_REQUEST,
    "null partitions when joining": ErrorCode.INVALID_REQUEST,
    "no subscription": ErrorCode.INVALID_REQUEST,
    "static leave without instance": ErrorCode.INVALID_REQUEST,
    "epoch -3": ErrorCode.INVALID_REQUEST,
    "unknown assignor": ErrorCode.UNSUPPORTED_ASSIGNOR,
    "bad pattern": ErrorCode.INVALID_REGULAR_EXPRESSION,
}


@SIDES
@pytest.mark.parametrize("name", WRONG)
def test_heartbeats_that_are_wrong_by_themselves(side: str, name: str) -> None:
    requests = told("consumer-requests", side)

    assert requests.error(name) == WRONG[name]
    assert requests.records(name) == []


@SIDES
def test_version_0_lets_the_coordinator_make_the_member_id(side: str) -> None:
    made = told("consumer-requests", side)["an id is made"]
    assert (made["errorCode"], len(made["memberId"])) == (ErrorCode.NONE, 22)


@SIDES
def test_a_member_may_join_without_topics(side: str) -> None:
    assert partitions(told("consumer-requests", side)["empty names"]) == {}


FENCED = {
    "nobody there": ErrorCode.GROUP_ID_NOT_FOUND,
    "A at its previous epoch without partitions": ErrorCode.FENCED_MEMBER_EPOCH,
    "A at its previous epoch with more": ErrorCode.FENCED_MEMBER_EPOCH,
    "an older epoch": ErrorCode.FENCED_MEMBER_EPOCH,
    "a greater epoch": ErrorCode.FENCED_MEMBER_EPOCH,
    "a stranger": ErrorCode.UNKNOWN_MEMBER_ID,
    "a stranger leaves": ErrorCode.UNKNOWN_MEMBER_ID,
    "D finds no place": ErrorCode.GROUP_MAX_SIZE_REACHED,
    "a share consumer": ErrorCode.GROUP_ID_NOT_FOUND,
}


@SIDES
@pytest.mark.parametrize("name", FENCED)
def test_who_is_refused_by_a_group(side: str, name: str) -> None:
    epochs = told("consumer-epochs", side)

    assert epochs.error(name) == FENCED[name]
    assert epochs.records(name) == []


@SIDES
def test_a_member_may_come_with_its_previous_epoch_if_it_owns_no_more_than_it_should(side: str) -> None:
    """The previous response was lost, so the member does not have the current epoch."""
    epochs = told("consumer-epochs", side)
    assert epochs.epoch("A at its previous epoch") == epochs.epoch("A gives up") == 3


@SIDES
def test_a_known_member_that_joins_again_gets_what_it_had(side: str) -> None:
    epochs = told("consumer-epochs", side)

    assert partitions(epochs["A joins again"]) == {"t": [0]}
    assert epochs.records("A joins again") == []


@SIDES
def test_a_static_member_that_leaves_for_a_while_keeps_its_partitions(side: str) -> None:
    static = told("consumer-static-members", side)

    assert static["A leaves for a while"]["memberEpoch"] == -2
    away = static.members("A is away")["A"]
    assert (away["memberEpoch"], partitions(away)) == (-2, {"t": [0]})
    assert static.group("A is away")["groupEpoch"] == 3


@SIDES
def test_a_new_member_id_takes_over_the_place_of_a_static_member(side: str) -> None:
    static = told("consumer-static-members", side)

    assert (static.epoch("A2 takes over"), partitions(static["A2 takes over"])) == (3, {"t": [0]})
    assert sorted(static.members("A2 is there")) == ["A2", "B"]
    assert static.group("A2 is there")["groupState"] == "Stable"


@SIDES
def test_a_static_member_that_does_not_come_back_is_removed_after_its_session(side: str) -> None:
    static = told("consumer-static-members", side)

    assert sorted(static.members("B did not come back")) == ["A2"]
    assert partitions(static["A2 gets all"]) == {"t": [0, 1]}


@SIDES
def test_a_static_member_may_leave_for_good(side: str) -> None:
    static = told("consumer-static-members", side)

    assert static["A2 leaves for good"]["memberEpoch"] == -1
    assert static.group("nobody")["groupState"] == "Empty"


STATIC = {
    "A2 while A is there": ErrorCode.UNRELEASED_INSTANCE_ID,
    "unknown instance": ErrorCode.UNKNOWN_MEMBER_ID,
    "another member id": ErrorCode.FENCED_INSTANCE_ID,
    "A while away": ErrorCode.FENCED_MEMBER_EPOCH,
    "A is fenced": ErrorCode.FENCED_INSTANCE_ID,
}


@SIDES
@pytest.mark.parametrize("name", STATIC)
def test_which_static_members_are_refused(side: str, name: str) -> None:
    assert told("consumer-static-members", side).error(name) == STATIC[name]
