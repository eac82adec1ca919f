"""Configs have Kafka's names, defaults and bounds; group configs override the coordinator's."""

from __future__ import annotations

import pytest

from kafka_msgs.errors import OptionError
from kafka_msgs.groups.config import CoordinatorConfig, GroupConfig


def test_settings_are_read_by_kafkas_names() -> None:
    config = CoordinatorConfig.parse(
        {
            "offsets.retention.minutes": " 5 ",
            "group.consumer.assignors": "range, uniform",
            "group.streams.assignor.offload.enable": "False",
        }
    )

    assert config.offsets_retention_ms == 300_000
    assert config.group_consumer_assignors == ("range", "uniform")
    assert not config.group_streams_assignor_offload_enable
    assert config.text("group.consumer.assignors") == "range,uniform"
    assert config.text("group.streams.assignor.offload.enable") == "false"
    assert config.text("group.max.size") == "2147483647"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("group.max.sizes", "1", "there is no such setting"),
        ("group_max_size", "1", "there is no such setting"),
        ("group.max.size", "0", "expected 1 to 2147483647"),
        ("group.max.size", "one", "expected a whole number"),
        ("group.max.size", "9" * 40, "expected a whole number"),
        ("group.share.max.size", "1001", "expected 1 to 1000"),
        ("group.consumer.migration.policy", "sideways", "not a value of this setting"),
        ("group.streams.assignor.offload.enable", "yes", "expected true or false"),
        ("group.streams.assignors", "sticky,sticky", "not a value of this setting"),
        ("group.share.assignors", "simple,other", "not a value of this setting"),
        ("group.consumer.session.timeout.ms", "1000", "must be greater than or equal to"),
        ("group.streams.heartbeat.interval.ms", "20000", "must be greater than or equal to"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_reason(name: str, text: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        CoordinatorConfig.parse({name: text})


def test_a_session_must_be_longer_than_a_heartbeat() -> None:
    with pytest.raises(OptionError, match=r"must be greater than group\.streams\.heartbeat"):
        CoordinatorConfig(group_streams_min_session_timeout_ms=1000, group_streams_session_timeout_ms=5000)


def test_a_group_has_the_settings_of_the_coordinator_except_its_own() -> None:
    config = CoordinatorConfig(group_streams_num_standby_replicas=1, group_streams_session_timeout_ms=50_000)
    group = config.for_group({"streams.num.standby.replicas": "2", "share.auto.offset.reset": "by_duration:PT1H"})

    assert group.streams_num_standby_replicas == 2
    assert group.streams_session_timeout_ms == 50_000
    assert group.share_auto_offset_reset == "by_duration:PT1H"
    assert config.for_group({}) == GroupConfig(streams_num_standby_replicas=1, streams_session_timeout_ms=50_000)


def test_own_settings_out_of_bounds_count_as_the_bound_but_are_refused_as_a_change() -> None:
    config = CoordinatorConfig()
    own = {"streams.num.standby.replicas": "7", "consumer.session.timeout.ms": "1"}

    group = config.for_group(own)

    assert (group.streams_num_standby_replicas, group.consumer_session_timeout_ms) == (2, 45_000)
    for name, text in own.items():
        with pytest.raises(OptionError, match=r"must be (in the range|less than or equal to)"):
            config.validate_group({name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("streams.assignor.name", "unknown"),
        ("share.auto.offset.reset", "by_duration:P"),
        ("share.auto.offset.reset", "by_duration:-PT1S"),
        ("share.isolation.level", "dirty"),
        ("errors.deadletterqueue.topic.name", "__dead"),
        ("streams.rack.aware.assignment.tags", "a,a"),
        ("consumer.size", "1"),
    ],
)
def test_a_wrong_change_of_a_group_is_refused(name: str, text: str) -> None:
    with pytest.raises(OptionError):
        CoordinatorConfig().validate_group({name: text})


def test_a_change_must_leave_the_session_longer_than_the_heartbeat() -> None:
    config = CoordinatorConfig(
        group_consumer_min_session_timeout_ms=1000, group_consumer_min_heartbeat_interval_ms=1000
    )
    with pytest.raises(OptionError, match=r"must be greater than consumer\.heartbeat\.interval\.ms"):
        config.validate_group({"consumer.session.timeout.ms": "5000"})

    assert config.validate_group({"consumer.session.timeout.ms": "5001"}).consumer_session_timeout_ms == 5001
