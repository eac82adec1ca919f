"""Requirements G3 and G4: the steps of heartbeat handling, and topology epochs."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.messages import streams_group_heartbeat_request as wire
from kafka_msgs.messages.streams_group_heartbeat_request import KeyValue, StreamsGroupHeartbeatRequest
from tests.groups.streams.broker import Broker, changelog, join_classic, page, subtopology, tasks, topology

BOTH = pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE], ids=["shipped", "page"])
OK = ErrorCode.NONE


@BOTH
def test_g3_1_a_request_is_checked_before_anything_is_made(profile: Profile) -> None:
    broker = Broker(profile)
    assert broker.error(topology=None) is ErrorCode.INVALID_REQUEST
    assert broker.records == []
    assert "g" not in broker.coordinator.shards[0].state.groups


@BOTH
def test_g3_2_the_first_heartbeat_makes_the_group(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    assert broker.group().state_name() != "Empty"


@BOTH
def test_g3_3_a_new_group_takes_any_topology_epoch(profile: Profile) -> None:
    broker = Broker(profile)
    assert broker.error(topology=topology(epoch=7)) is OK
    assert broker.group().topology_epoch == 7


@BOTH
def test_g3_4_a_group_of_another_kind_is_not_found(profile: Profile) -> None:
    broker = Broker(profile)
    join_classic(broker, "c")
    assert broker.error(group="c") is ErrorCode.GROUP_ID_NOT_FOUND
    assert broker.error("A", 3, group="c") is ErrorCode.GROUP_ID_NOT_FOUND


def test_g3_5_a_wrong_topology_makes_no_member() -> None:
    broker = page()
    broker.heartbeat(topology=topology(epoch=5))
    assert broker.error("B", topology=topology(epoch=4)) is ErrorCode.STREAMS_TOPOLOGY_FENCED
    assert set(broker.group().members) == {"A"}


@BOTH
def test_g3_6_a_missing_group_is_not_found(profile: Profile) -> None:
    broker = Broker(profile)
    assert broker.error("A", 3) is ErrorCode.GROUP_ID_NOT_FOUND
    assert not broker.coordinator.shards[0].state.groups


@BOTH
def test_g3_7_a_missing_member_is_unknown(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    assert broker.error("B", 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_g3_8_a_member_at_a_wrong_epoch_is_fenced() -> None:
    for broker, stays in ((Broker(), True), (page(), False)):
        epoch = broker.heartbeat().member_epoch
        before = broker.group().epoch
        assert broker.error("A", epoch + 5) is ErrorCode.FENCED_MEMBER_EPOCH
        assert ("A" in broker.group().members) is stays
        assert broker.group().epoch == (before if stays else before + 1)
        assert ("-MemberMetadata" in broker.kinds) is not stays


@BOTH
def test_g3_9_the_previous_epoch_is_right_after_a_lost_answer(profile: Profile) -> None:
    broker = Broker(profile)
    first = broker.heartbeat().member_epoch
    broker.heartbeat("B")
    owned: dict[str, Any] = {"active_tasks": tasks(_0=[0, 1]), "standby_tasks": (), "warmup_tasks": ()}
    broker.heartbeat("A", first, **owned)
    kept = broker.active("A")
    owned["active_tasks"] = tasks(_0=sorted(partition for _, partition in kept))
    moved = broker.heartbeat("A", first, **owned).member_epoch
    assert moved > first
    again = broker.heartbeat("A", first, **owned)
    assert (again.error_code, again.member_epoch) == (OK, moved)


def test_y8_g3_10_an_old_topology_epoch_is_told() -> None:
    broker = page()
    epoch = broker.heartbeat().member_epoch
    broker.heartbeat("B", topology=topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),)), epoch=1))
    assert 0 in [each.status_code for each in broker.heartbeat("A", epoch).status]


@BOTH
def test_g3_11_changes_are_recorded_once(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat(rack_id="r1").member_epoch
    broker.heartbeat("A", epoch, rack_id="r2")
    assert broker.kinds[0] == "MemberMetadata"
    bumped = broker.group().epoch
    broker.heartbeat("A", broker.group().members["A"].epoch, rack_id="r2")
    assert "MemberMetadata" not in broker.kinds
    assert broker.group().epoch == bumped


@BOTH
def test_g3_12_topics_come_before_reconciliation(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    broker.topics(**{"in": 3})
    broker.heartbeat("A", epoch)
    kinds = broker.kinds
    assert kinds.index("Metadata") < kinds.index("TargetAssignmentMetadata") < kinds.index("CurrentMemberAssignment")


@BOTH
def test_g3_13_what_is_left_out_stays(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat(rack_id="r1", client_tags=(KeyValue(key="z", value="1"),)).member_epoch
    broker.heartbeat("A", epoch)
    metadata = broker.group().members["A"].metadata
    assert (metadata.rack_id, metadata.rebalance_timeout_ms) == ("r1", 60_000)
    assert [tag.key for tag in metadata.client_tags] == ["z"]


@BOTH
def test_g3_14_leaving_removes_the_member(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    broker.heartbeat("B")
    epoch = broker.group().epoch
    assert broker.heartbeat("B", -1).member_epoch == -1
    assert broker.kinds[:4] == ["-CurrentMemberAssignment", "-TargetAssignmentMember", "-MemberMetadata", "Metadata"]
    assert broker.group().epoch == epoch + 1


@BOTH
def test_g3_15_silent_members_end(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    broker.advance(45_000)
    assert broker.group().is_empty


@BOTH
def test_g3_15_members_that_keep_their_tasks_end(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat(rebalance_timeout_ms=1000).member_epoch
    broker.heartbeat("B")
    broker.heartbeat("A", epoch, active_tasks=tasks(_0=[0, 1]), standby_tasks=(), warmup_tasks=())
    broker.advance(1000)
    assert set(broker.group().members) == {"B"}


@BOTH
def test_y29_g3_16_a_full_group_takes_no_member(profile: Profile) -> None:
    broker = Broker(profile, config={"group_streams_max_size": 2})
    broker.heartbeat("A")
    epoch = broker.heartbeat("B").member_epoch
    assert broker.error("C") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert broker.error("B", epoch) is OK


@BOTH
def test_g3_17_settings_of_the_group_show_in_the_next_answer(profile: Profile) -> None:
    broker = Broker(profile)
    first = broker.heartbeat()
    assert (first.heartbeat_interval_ms, first.task_offset_interval_ms) == (5000, 60_000)
    assert first.acceptable_recovery_lag == 10_000
    broker.coordinator.update_group_config(
        "g", {"streams.heartbeat.interval.ms": "6000", "streams.acceptable.recovery.lag": "7"}
    )
    second = broker.heartbeat("A", first.member_epoch)
    assert (second.heartbeat_interval_ms, second.acceptable_recovery_lag) == (6000, 7)


@BOTH
def test_g3_18_the_answer_has_the_id_of_the_member(profile: Profile) -> None:
    assert Broker(profile).heartbeat("mine").member_id == "mine"
    if profile is KIP_1071_PAGE:
        assert Broker(profile).heartbeat("").member_id


@BOTH
def test_g3_19_a_heartbeat_shows_that_the_member_lives(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    for _ in range(3):
        broker.advance(40_000)
        assert broker.error("A", epoch) is OK
    broker.advance(45_000)
    assert broker.group().is_empty


@BOTH
def test_g3_20_a_shutdown_is_told_to_all(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 3})
    for name in "ABC":
        broker.heartbeat(name)
    assert broker.error("A", -1, shutdown_application=True) is OK
    for name in "BC":
        answer = broker.heartbeat(name, broker.group().members[name].epoch)
        assert [each.status_code for each in answer.status] == [4]


@BOTH
def test_g3_21_a_shard_that_does_not_serve_says_so(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    broker.coordinator.resign(0, 9, now=broker.now)
    assert broker.error("A", 1) is ErrorCode.NOT_COORDINATOR
    broker.coordinator.elect(0, 10, now=broker.now)
    assert broker.error("A", 1) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


# Topology epochs

_OTHER = subtopology("0", "in", state_changelog_topics=(changelog("c"),))


@BOTH
def test_g4_1_the_same_topology_is_accepted(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat(topology=topology(epoch=5))
    assert broker.error("B", topology=topology(epoch=5)) is OK
    assert "Topology" not in broker.kinds


def _joins_after_epoch_five(sent: wire.Topology, page_error: ErrorCode, shipped_error: ErrorCode) -> None:
    for broker, error in ((page(), page_error), (Broker(), shipped_error)):
        broker.heartbeat(topology=topology(epoch=5))
        assert broker.error("B", topology=sent) is error


def test_g4_2_another_topology_needs_another_epoch() -> None:
    other = topology(_OTHER, epoch=5)
    _joins_after_epoch_five(other, ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, ErrorCode.INVALID_REQUEST)


def test_g4_3_an_older_epoch_is_fenced() -> None:
    _joins_after_epoch_five(topology(epoch=4), ErrorCode.STREAMS_TOPOLOGY_FENCED, OK)


def test_g4_4_an_epoch_that_is_more_than_one_ahead_is_refused() -> None:
    ahead = topology(epoch=7)
    _joins_after_epoch_five(ahead, ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, ErrorCode.INVALID_REQUEST)


def test_g4_5_the_next_epoch_is_accepted() -> None:
    _joins_after_epoch_five(topology(_OTHER, epoch=6), OK, ErrorCode.INVALID_REQUEST)


def test_g4_5_the_next_epoch_replaces_the_topology() -> None:
    broker = page()
    broker.heartbeat(topology=topology(epoch=5))
    broker.heartbeat("B", topology=topology(_OTHER, epoch=6))
    assert "Topology" in broker.kinds
    assert broker.group().topology_epoch == 6


def test_y11_g4_6_the_order_of_topics_and_settings_does_not_matter_to_the_document() -> None:
    def sent(*configs: str, names: tuple[str, ...]) -> wire.Topology:
        stored = changelog("c", topic_configs=tuple(KeyValue(key=key) for key in configs))
        return topology(subtopology("0", *names, state_changelog_topics=(stored,)))

    for broker, error in ((page(), OK), (Broker(), ErrorCode.INVALID_REQUEST)):
        broker.topics(u=2)
        broker.heartbeat(topology=sent("x", "y", names=("in", "u")))
        assert broker.error("B", topology=sent("y", "x", names=("u", "in"))) is error


def test_g4_7_members_with_an_older_topology_keep_tasks_and_get_none() -> None:
    broker = page(topics={"in": 4})
    broker.heartbeat("A")
    broker.settle("A")
    before = broker.target("A")
    broker.heartbeat("B", topology=topology(epoch=1))
    assert broker.target("A") < before
    assert broker.target("A") | broker.target("B") == before
    broker.heartbeat("B", -1)
    broker.heartbeat("A", broker.group().members["A"].epoch)
    assert broker.target("A") < before


def test_g4_8_a_rolling_upgrade_moves_tasks_to_upgraded_members_only() -> None:
    broker = page(topics={"in": 9})
    for name in "ABC":
        broker.heartbeat(name)
    broker.settle("A", "B", "C")
    assert [len(broker.active(name)) for name in "ABC"] == [3, 3, 3]
    broker.heartbeat("C", -1)
    broker.settle("A", "B")
    assert sorted(len(broker.active(name)) for name in "AB") == [4, 5]

    old = {name: broker.active(name) for name in "AB"}
    broker.heartbeat("C", topology=topology(epoch=1))
    broker.settle("A", "B", "C")
    assert [len(broker.active(name)) for name in "ABC"] == [3, 3, 3]
    assert all(broker.active(name) < old[name] for name in "AB")

    kept = broker.active("A")
    broker.heartbeat("B", -1)
    broker.settle("A", "C")
    assert (broker.active("A"), len(broker.active("C"))) == (kept, 6)
    broker.heartbeat("B", topology=topology(epoch=1))
    broker.settle("A", "B", "C")
    assert broker.active("A") == kept
    assert [len(broker.active(name)) for name in "BC"] == [3, 3]


def test_y26_g4_9_a_topology_has_epoch_zero_if_nothing_else_is_said() -> None:
    assert wire.Topology().epoch == 0


def test_y12_g4_10_heartbeats_have_no_id_of_the_topology() -> None:
    names = {field.name for field in StreamsGroupHeartbeatRequest.__attrs_attrs__}
    assert not {name for name in names if "topology_id" in name or "hash" in name}
