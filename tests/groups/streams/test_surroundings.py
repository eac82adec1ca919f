"""Requirements G13, G14, G16 and G17: configs, counts, other groups, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import OptionError
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.metrics import STREAMS_REBALANCES
from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafka_msgs.messages.streams_group_heartbeat_request import TaskOffset
from tests.groups.streams.broker import Broker, changelog, join_classic, subtopology, topology

BOTH = pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE], ids=["shipped", "page"])
MAX_INT = 2**31 - 1

_DEFAULTS: dict[str, Any] = {
    "session.timeout.ms": 45_000,
    "min.session.timeout.ms": 45_000,
    "max.session.timeout.ms": 60_000,
    "heartbeat.interval.ms": 5000,
    "min.heartbeat.interval.ms": 5000,
    "max.heartbeat.interval.ms": 15_000,
    "max.size": MAX_INT,
    "acceptable.recovery.lag": 10_000,
    "num.warmup.replicas": 2,
    "max.warmup.replicas": 20,
    "num.standby.replicas": 0,
    "max.standby.replicas": 2,
    "task.offset.interval.ms": 60_000,
    "min.task.offset.interval.ms": 15_000,
}


@pytest.mark.parametrize(("name", "value"), list(_DEFAULTS.items()))
def test_g13_1_settings_have_the_defaults_of_the_document(name: str, value: int) -> None:
    assert CoordinatorConfig().text(f"group.streams.{name}") == str(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("session.timeout.ms", "50000"),
        ("heartbeat.interval.ms", "6000"),
        ("acceptable.recovery.lag", "1"),
        ("num.warmup.replicas", "3"),
        ("num.standby.replicas", "1"),
        ("task.offset.interval.ms", "20000"),
        ("assignor.name", "sticky"),
    ],
)
def test_g13_2_a_group_may_have_its_own_settings(name: str, value: str) -> None:
    config = CoordinatorConfig()
    assert config.validate_group({f"streams.{name}": value}).text(f"streams.{name}") == value


@pytest.mark.parametrize("name", ["max.size", "min.session.timeout.ms", "max.standby.replicas"])
def test_g13_2_bounds_are_not_settings_of_a_group(name: str) -> None:
    with pytest.raises(OptionError):
        CoordinatorConfig().validate_group({f"streams.{name}": "1"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.standby.replicas", "3"),
        ("task.offset.interval.ms", "1000"),
        ("session.timeout.ms", "61000"),
        ("num.warmup.replicas", "21"),
    ],
)
def test_g13_3_settings_of_a_group_stay_in_their_bounds(name: str, value: str) -> None:
    with pytest.raises(OptionError):
        CoordinatorConfig().validate_group({f"streams.{name}": value})


@BOTH
def test_g13_4_a_setting_of_a_group_replaces_that_of_the_coordinator(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    broker.coordinator.update_group_config("g", {"streams.heartbeat.interval.ms": "7000"})
    assert broker.heartbeat("A", epoch).heartbeat_interval_ms == 7000
    broker.coordinator.update_group_config("g", {})
    assert broker.heartbeat("A", epoch).heartbeat_interval_ms == 5000


@BOTH
def test_g13_5_a_setting_of_the_assignment_increases_the_group_epoch(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    before = broker.group().epoch
    broker.coordinator.update_group_config("g", {"streams.num.standby.replicas": "1"})
    broker.heartbeat("A", epoch)
    assert broker.group().epoch == before + 1


@BOTH
def test_g13_6_the_protocol_must_be_enabled(profile: Profile) -> None:
    config = {"group_coordinator_rebalance_protocols": ("classic", "consumer")}
    broker = Broker(profile, config=config)
    assert broker.error() is ErrorCode.UNSUPPORTED_VERSION
    assert broker.describe().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert CoordinatorConfig().text("group.coordinator.rebalance.protocols") == "classic,consumer,streams"
    with pytest.raises(OptionError):
        CoordinatorConfig.parse({"group.coordinator.rebalance.protocols": "streams"})


@pytest.mark.parametrize(
    ("profile", "feature", "lowest"), [(SHIPPED, "streams.version", 1), (KIP_1071_PAGE, "group.version", 2)]
)
def test_g13_7_a_feature_guards_the_protocol(profile: Profile, feature: str, lowest: int) -> None:
    broker = Broker(profile)
    broker.features(**{feature: lowest - 1})
    assert broker.error() is ErrorCode.UNSUPPORTED_VERSION
    broker.features(**{feature: lowest})
    assert broker.error() is ErrorCode.NONE


def test_g13_10_names_without_their_prefix_are_refused() -> None:
    for name in ("num.standby.replicas", "acceptable.recovery.lag"):
        with pytest.raises(OptionError):
            CoordinatorConfig.parse({name: "1"})


def test_g7_7_an_unknown_assignor_is_refused() -> None:
    with pytest.raises(OptionError):
        CoordinatorConfig().validate_group({"streams.assignor.name": "foo"})


@BOTH
def test_g14_1_groups_are_counted_by_protocol(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    join_classic(broker, "c")
    broker.advance(60_000)
    metrics = broker.coordinator.metrics
    assert (metrics.group_count("streams"), metrics.group_count("consumer")) == (1, 0)


@BOTH
def test_g14_2_groups_are_counted_by_state(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 1})
    broker.heartbeat(group="a")
    broker.heartbeat(group="b", topology=topology(subtopology("0", "absent")))
    broker.advance(30_000)
    for group_id in "ab":
        broker.heartbeat(epoch=broker.group(group_id).members["A"].epoch, group=group_id)
    broker.advance(30_000)
    metrics = broker.coordinator.metrics
    counts = {state: metrics.group_count("streams", state) for state in ("Stable", "NotReady", "Empty")}
    assert counts == {"Stable": 1, "NotReady": 1, "Empty": 0}


@BOTH
def test_g14_3_rebalances_are_counted(profile: Profile) -> None:
    broker = Broker(profile)
    for count, name in enumerate("ABC", 1):
        broker.heartbeat(name)
        assert broker.coordinator.metrics.counts[STREAMS_REBALANCES] == count


def test_g14_4_counters_have_the_names_of_the_release() -> None:
    assert STREAMS_REBALANCES == "StreamsGroupRebalances"


@BOTH
def test_g16_1_a_streams_group_takes_no_member_of_the_classic_protocol(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    join_classic(broker, "g")
    assert set(broker.group().members) == {"A"}


@BOTH
def test_g16_2_the_first_heartbeat_decides_the_kind(profile: Profile) -> None:
    broker = Broker(profile)
    join_classic(broker, "c")
    assert broker.error(group="c") is ErrorCode.GROUP_ID_NOT_FOUND
    broker.heartbeat()
    assert broker.group().kind == "streams"


@BOTH
def test_g16_3_each_group_has_its_own_error(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    join_classic(broker, "c")
    answer = broker.ask(StreamsGroupDescribeRequest(group_ids=("", "nobody", "c", "g")))
    assert {group.group_id: ErrorCode(group.error_code) for group in answer.groups} == {
        "": ErrorCode.INVALID_GROUP_ID,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
        "c": ErrorCode.GROUP_ID_NOT_FOUND,
        "g": ErrorCode.NONE,
    }


@BOTH
def test_g16_4_describe_has_the_numbers_of_partitions(profile: Profile) -> None:
    stateful = topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),)))
    broker = Broker(profile, topics={"in": 3, "c": 3})
    broker.heartbeat(topology=stateful)
    broker.heartbeat("A", broker.group().members["A"].epoch)
    described = broker.describe().topology
    assert described is not None
    assert described.subtopologies is not None
    assert [topic.partitions for topic in described.subtopologies[0].state_changelog_topics] == [3]
    missing = Broker(profile, topics={})
    missing.heartbeat(topology=stateful)
    found = missing.describe().topology
    assert found is not None
    assert [topic.partitions for each in found.subtopologies or () for topic in each.state_changelog_topics] == [0]
    absent = broker.ask(StreamsGroupDescribeRequest(group_ids=("nobody",))).groups[0]
    assert absent.topology is None


@BOTH
def test_g16_5_describe_shows_members(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat(rack_id="r", client_id="client").member_epoch
    offsets = (TaskOffset(subtopology_id="0", partition=1, offset=7),)
    broker.heartbeat("A", epoch, task_offsets=offsets, client_id="client")
    member = broker.describe().members[0]
    assert (member.client_id, member.rack_id, member.process_id) == ("client", "r", "process-A")
    assert [each.partitions for each in member.assignment.active_tasks] == [(0, 1)]
    assert member.assignment == member.target_assignment
    assert [(each.partition, each.offset) for each in member.task_offsets] == [(1, 7)]


@BOTH
def test_g16_8_operations_are_not_told_unless_asked(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()
    assert broker.describe().authorized_operations == -(2**31)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("STREAMS_INVALID_TOPOLOGY", 130),
        ("STREAMS_INVALID_TOPOLOGY_EPOCH", 131),
        ("STREAMS_TOPOLOGY_FENCED", 132),
    ],
)
def test_g17_1_the_errors_of_the_protocol_have_their_numbers(name: str, code: int) -> None:
    assert ErrorCode[name] == code
    assert not ErrorCode[name].retriable


_CODES = {
    "GROUP_AUTHORIZATION_FAILED": 30,
    "GROUP_ID_NOT_FOUND": 69,
    "NOT_COORDINATOR": 16,
    "COORDINATOR_NOT_AVAILABLE": 15,
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "INVALID_REQUEST": 42,
    "UNKNOWN_MEMBER_ID": 25,
    "FENCED_MEMBER_EPOCH": 110,
    "UNRELEASED_INSTANCE_ID": 111,
    "GROUP_MAX_SIZE_REACHED": 81,
    "TOPIC_AUTHORIZATION_FAILED": 29,
    "CLUSTER_AUTHORIZATION_FAILED": 31,
    "STREAMS_INVALID_TOPOLOGY": 130,
    "STREAMS_INVALID_TOPOLOGY_EPOCH": 131,
    "STREAMS_TOPOLOGY_FENCED": 132,
    "INVALID_GROUP_ID": 24,
    "REBALANCE_IN_PROGRESS": 27,
}


@pytest.mark.parametrize(("name", "code"), list(_CODES.items()))
def test_g17_2_all_errors_of_the_document_are_known(name: str, code: int) -> None:
    assert ErrorCode[name] == code
