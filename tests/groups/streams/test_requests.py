"""Requirements G1 and G2: refused heartbeats and their errors."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.messages.streams_group_heartbeat_request import CopartitionGroup, KeyValue, Topology
from tests.groups.streams.broker import Broker, changelog, page, subtopology, tasks, topology

BOTH = pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE], ids=["shipped", "page"])
INVALID = ErrorCode.INVALID_REQUEST
BAD_TOPOLOGY = ErrorCode.STREAMS_INVALID_TOPOLOGY
OK = ErrorCode.NONE


@BOTH
def test_g1_1_an_empty_group_id_is_refused(profile: Profile) -> None:
    assert Broker(profile).error(group="") is INVALID


@BOTH
def test_y10_g1_2_an_empty_member_id_is_refused_after_joining(profile: Profile) -> None:
    broker = Broker(profile)
    assert broker.error("", 1) is INVALID
    assert broker.error("", 0) is (OK if profile is KIP_1071_PAGE else INVALID)


@BOTH
def test_g1_3_an_epoch_below_minus_two_is_refused(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat(instance_id="i")
    assert broker.error("A", -3) is INVALID
    assert broker.error("A", -2, instance_id="i") is OK


@BOTH
def test_g1_4_an_empty_instance_id_is_refused(profile: Profile) -> None:
    broker = Broker(profile)
    assert broker.error(instance_id="") is INVALID
    assert broker.error(instance_id=None) is OK


@BOTH
def test_g1_5_the_first_heartbeat_needs_a_rebalance_timeout(profile: Profile) -> None:
    broker = Broker(profile)
    assert broker.error(rebalance_timeout_ms=-1) is INVALID
    assert broker.error("B", rebalance_timeout_ms=0) is (INVALID if profile is KIP_1071_PAGE else OK)
    epoch = broker.heartbeat("C").member_epoch
    assert broker.error("C", epoch, rebalance_timeout_ms=-1) is OK


def test_g1_6_a_task_may_be_in_one_role_only() -> None:
    owned: dict[str, Any] = {"active_tasks": tasks(_0=[0]), "standby_tasks": tasks(_0=[0]), "warmup_tasks": ()}
    for broker, error in ((page(), INVALID), (Broker(), OK)):
        epoch = broker.heartbeat().member_epoch
        assert broker.error("A", epoch, **owned) is error


@BOTH
def test_g1_7_tasks_must_exist_in_the_topology(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    nothing: dict[str, Any] = {"standby_tasks": (), "warmup_tasks": ()}
    assert broker.error("A", epoch, active_tasks=tasks(_9=[0]), **nothing) is INVALID
    assert broker.error("A", epoch, active_tasks=tasks(_0=[99]), **nothing) is INVALID
    assert broker.error("A", epoch, active_tasks=tasks(_0=[1]), **nothing) is OK


@BOTH
@pytest.mark.parametrize("role", ["active_tasks", "standby_tasks", "warmup_tasks"])
def test_g1_8_a_member_that_joins_has_no_tasks(profile: Profile, role: str) -> None:
    broker = Broker(profile)
    for sent in (None, tasks(_0=[0])):
        fields: dict[str, Any] = {role: sent}
        assert broker.error(**fields) is INVALID


@BOTH
def test_g1_9_a_topology_comes_with_joining_only(profile: Profile) -> None:
    broker = Broker(profile)
    assert broker.error(topology=None) is INVALID
    epoch = broker.heartbeat().member_epoch
    assert broker.error("A", epoch, topology=topology()) is INVALID


def test_y5_g1_10_an_empty_topology_is_refused_by_the_document() -> None:
    assert page().error(topology=Topology(epoch=0)) is INVALID
    assert Broker().error(topology=Topology(epoch=0)) is OK


@BOTH
def test_y9_g1_11_leaving_for_a_while_needs_an_instance_id(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    assert broker.error("A", -2) is INVALID


def test_y6_g1_12_the_shutdown_flag_counts_when_the_profile_says_so() -> None:
    for broker, codes in ((page(), None), (Broker(), [4])):
        epoch = broker.heartbeat().member_epoch
        broker.heartbeat("A", epoch, shutdown_application=True)
        status = broker.heartbeat("A", epoch).status
        assert (None if status is None else [each.status_code for each in status]) == codes


@BOTH
def test_g2_1_a_changelog_has_no_number_of_partitions(profile: Profile) -> None:
    sent = topology(subtopology("0", "in", state_changelog_topics=(changelog("c", 3),)))
    assert Broker(profile).error(topology=sent) is BAD_TOPOLOGY


def _repartitioned(*more: Any, **first: Any) -> Topology:
    return topology(
        subtopology("0", "in", **{"repartition_sink_topics": ("r",), **first}),
        subtopology("1", repartition_source_topics=(changelog("r"),)),
        *more,
    )


@pytest.mark.parametrize(
    "sent",
    [
        _repartitioned(subtopology("2", "r")),
        _repartitioned(state_changelog_topics=(changelog("r"),)),
    ],
    ids=["source", "changelog"],
)
def test_g2_2_a_repartition_topic_is_nothing_else(sent: Topology) -> None:
    assert page().error(topology=_repartitioned()) is OK
    assert page().error(topology=sent) is BAD_TOPOLOGY


@pytest.mark.parametrize(
    "sent",
    [
        topology(subtopology("0", "in", "c", state_changelog_topics=(changelog("c"),))),
        _repartitioned(state_changelog_topics=(changelog("r"),)),
        topology(
            subtopology("0", "in", repartition_sink_topics=("c", "r")),
            subtopology("1", repartition_source_topics=(changelog("r"),), state_changelog_topics=(changelog("c"),)),
        ),
    ],
    ids=["source", "repartition source", "sink"],
)
def test_g2_3_a_changelog_is_nothing_else(sent: Topology) -> None:
    assert page().error(topology=sent) is BAD_TOPOLOGY


def test_g2_4_a_repartition_topic_is_a_sink_of_another_subtopology() -> None:
    own = subtopology("0", "in", repartition_sink_topics=("r",), repartition_source_topics=(changelog("r"),))
    assert page().error(topology=topology(own)) is BAD_TOPOLOGY
    nobody = topology(subtopology("0", "in"), subtopology("1", repartition_source_topics=(changelog("r"),)))
    assert page().error(topology=nobody) is BAD_TOPOLOGY
    assert Broker().error(topology=nobody) is BAD_TOPOLOGY


@BOTH
@pytest.mark.parametrize("where", ["source_topics", "source_topic_regex", "repartition_source_topics"])
@pytest.mark.parametrize("index", [1, -1])
def test_g2_5_copartition_indices_are_in_range(profile: Profile, where: str, index: int) -> None:
    indices: dict[str, Any] = {where: (index,)}
    sent = topology(subtopology("0", "in", copartition_groups=(CopartitionGroup(**indices),)))
    assert Broker(profile).error(topology=sent) is BAD_TOPOLOGY


@BOTH
def test_g2_6_the_same_topology_joins_again(profile: Profile) -> None:
    broker = Broker(profile)
    assert broker.error() is OK
    assert broker.error() is OK
    assert "Topology" not in broker.kinds


@pytest.mark.parametrize(
    ("pattern", "error"),
    [("i.*", OK), (r"\pL+", OK), ("(", BAD_TOPOLOGY), ("i(?=n)n", BAD_TOPOLOGY), (r"(i)\1?", BAD_TOPOLOGY)],
)
def test_y7_g2_7_patterns_are_read_as_re2_reads_them(pattern: str, error: ErrorCode) -> None:
    """Python's ``re`` refuses the second pattern, and accepts the last two."""
    sent = topology(subtopology("0", source_topic_regex=(pattern,)))
    assert page().error(topology=sent) is error
    assert Broker().error(topology=sent) is INVALID


@BOTH
def test_g2_8_topologies_have_no_names(profile: Profile) -> None:
    """The message has no field for the name of a topology."""
    assert not hasattr(Topology(), "name")
    assert Broker(profile).error() is OK


@BOTH
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"client_tags": (KeyValue(key="z"), KeyValue(key="z"))}, INVALID),
        ({"topology": topology(epoch=-1)}, INVALID),
        ({"topology": topology(subtopology("0", "in"), subtopology("0", "in"))}, BAD_TOPOLOGY),
        ({"topology": topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),) * 2))}, BAD_TOPOLOGY),
        (
            {"topology": _repartitioned(repartition_source_topics=(changelog("x", -1),))},
            BAD_TOPOLOGY,
        ),
    ],
)
def test_what_the_release_fails_on_is_refused(profile: Profile, fields: dict[str, Any], error: ErrorCode) -> None:
    assert Broker(profile).error(**fields) is error
