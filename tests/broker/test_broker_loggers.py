"""Broker loggers as config resources (KIP-412), and the features of the quorum."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kafka_msgs import ApiVersionsRequest, DescribeQuorumRequest
from kafka_msgs.admin import Admin, ConfigChange, ConfigResource
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.enums import AlterConfigOp, ConfigResourceType, ConfigSource
from kafka_msgs.errors import BrokerError
from kafka_msgs.messages.describe_quorum_request import PartitionData, TopicData
from tests.support.virtual_brokers import VirtualCluster

LOGGERS = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
NAME = "kafka_msgs.broker"


@pytest.fixture
def admin() -> Iterator[Admin]:
    levels = {name: logging.getLogger(name).level for name in (NAME, "kafka_msgs")}
    with EmbeddedBroker(brokers=2) as broker, Admin(broker.bootstrap_servers) as admin:
        yield admin
        assert broker.problems == []
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def level(admin: Admin, name: str) -> str | None:
    return admin.describe_configs([LOGGERS])[LOGGERS][name].value


def test_loggers_are_described(admin: Admin) -> None:
    described = admin.describe_configs([LOGGERS])[LOGGERS]
    assert {"root", NAME} <= described.keys()
    assert {(each.config_source, each.read_only) for each in described.values()} == {
        (ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, False)
    }
    assert list(admin.describe_configs({LOGGERS: [NAME]})[LOGGERS]) == [NAME]


def test_levels_change_the_loggers(admin: Admin) -> None:
    for change, expected in (
        (ConfigChange(NAME, "DEBUG"), logging.DEBUG),
        (ConfigChange(NAME, "FATAL"), logging.CRITICAL),
        (ConfigChange(NAME, None, AlterConfigOp.DELETE), logging.NOTSET),
    ):
        admin.alter_configs({LOGGERS: [change]}).all()
        assert logging.getLogger(NAME).level == expected
    admin.alter_configs({LOGGERS: [ConfigChange("root", "TRACE")]}).all()
    assert (level(admin, "root"), level(admin, NAME)) == ("TRACE", "TRACE")
    admin.alter_configs({LOGGERS: [ConfigChange(NAME, "ERROR")]}, validate_only=True).all()
    assert level(admin, NAME) == "TRACE"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (ConfigChange("no.such", "DEBUG"), "Logger no.such does not exist!"),
        (ConfigChange(NAME, "LOUD"), "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"),
        (ConfigChange("root", None, AlterConfigOp.DELETE), "Removing the log level of the root logger is not allowed"),
        (ConfigChange(NAME, "DEBUG", AlterConfigOp.APPEND), "APPEND operation is not allowed"),
    ],
)
def test_wrong_changes_are_refused(admin: Admin, change: ConfigChange, reason: str) -> None:
    before = logging.getLogger(NAME).level
    with pytest.raises(BrokerError, match=reason):
        admin.alter_configs(
            {LOGGERS: [ConfigChange(NAME, "ERROR"), change]} if change.name != NAME else {LOGGERS: [change]}
        ).all()
    assert logging.getLogger(NAME).level == before


def test_a_quorum_of_static_voters_has_the_feature_level_zero() -> None:
    """The voters have no directory ids, and the finalized features lack ``kraft.version``, as in Kafka."""
    cluster = VirtualCluster.start(brokers=2)
    asked = TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),))
    described = cluster.call(DescribeQuorumRequest(topics=(asked,)), 2).topics[0].partitions[0]
    assert [(each.replica_id, each.replica_directory_id.int) for each in described.current_voters] == [(0, 0)]
    assert [each.replica_id for each in described.observers] == [1]
    versions = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    answer = cluster.call(versions, 4)
    assert "kraft.version" not in {each.name for each in answer.finalized_features}
    assert "kraft.version" in {each.name for each in answer.supported_features}
