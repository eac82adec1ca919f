"""Every config has an effect, or is logged or refused: nothing is ignored silently."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from attrs import fields_dict

import kafka_msgs.broker
from kafka_msgs.admin import Admin, ConfigChange, ConfigResource, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.controller.config_defs import BROKER, GROUP, TOPIC, BrokerConfigs, config_keys
from kafka_msgs.broker.controller.internal_topic_configs import INTERNAL_TOPICS
from kafka_msgs.broker.storage import TopicConfig
from kafka_msgs.broker.transactions import TransactionConfig
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.errors import InternalError, OptionError
from kafka_msgs.groups.config import CoordinatorConfig, GroupConfig

HOME: Final = Path(kafka_msgs.broker.__file__).parent
NAMED_IN_PARTS: Final = {
    f"{kind}quota.window.{part}" for kind in ("", "controller.") for part in ("num", "size.seconds")
} | {f"{each.prefix}.{part}" for each in INTERNAL_TOPICS.values() for part in ("num.partitions", "replication.factor")}
"""Configs whose names the code puts together."""
TABLE: Final = "config_entries.py"
"""The module that lists synonyms of all configs."""


def literals() -> Iterator[str]:
    """Yield the texts in the source code of the broker and of the group coordinator."""
    for folder in (HOME, HOME.parent / "groups"):
        for path in folder.rglob("*.py"):
            if path.name != TABLE:
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield node.value


@pytest.fixture(scope="module")
def read() -> set[str]:
    """Return the names of configs that the code reads."""
    return {*literals(), *NAMED_IN_PARTS}


def dotted(cls: type) -> set[str]:
    return {name.replace("_", ".") for name in fields_dict(cls)}


def test_each_topic_config_with_an_effect_is_read(read: set[str]) -> None:
    names = {each.name for each in config_keys(TOPIC).values() if each.effect == "yes"}
    assert names <= dotted(TopicConfig) | read
    assert dotted(TopicConfig) <= names


def test_each_broker_config_with_an_effect_is_read(read: set[str]) -> None:
    synonyms = {name for topic in config_keys(TOPIC).values() if topic.effect == "yes" for name, _ in topic.synonyms}
    effective = {each.name for each in config_keys(BROKER).values() if each.effect in ("yes", "start")}
    assert effective <= synonyms | dotted(CoordinatorConfig) | dotted(TransactionConfig) | read
    assert synonyms <= effective


def test_each_group_config_with_an_effect_is_read() -> None:
    assert {each.name for each in config_keys(GROUP).values() if each.effect == "yes"} <= dotted(GroupConfig)


def test_a_config_without_effect_is_never_read() -> None:
    """A new reader of such a config fails until the table names its effect."""
    configs = BrokerConfigs({})
    for each in config_keys(BROKER).values():
        if each.effect == "none":
            with pytest.raises(InternalError):
                configs.text(each.name)


def test_a_broker_with_a_config_without_effect_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedBroker(configs={"num.io.threads": "4", "num.partitions": "2"}):
        assert [each.getMessage() for each in caplog.records] == [
            "num.io.threads of the brokers has no effect in an embedded broker"
        ]


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        ({"listeners": "PLAINTEXT://:9092"}, "set BrokerConfig.listeners instead"),
        ({"ssl.keystore.location": "/a"}, "set ListenerConfig.tls instead"),
        ({"num.partition": "1"}, "there is no such broker config; did you mean num.partitions"),
    ],
)
def test_a_config_that_an_attribute_replaces_is_refused(configs: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        EmbeddedBroker(configs=configs).start()


def test_clients_that_set_a_config_without_effect_leave_a_log_record(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "kafka_msgs.broker")
    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", configs={"preallocate": "true", "retention.ms": "1000"})]).all()
        brokers = ConfigResource(ConfigResourceType.BROKER, "")
        changes = [ConfigChange("producer.id.expiration.ms", "1000"), ConfigChange("num.io.threads", "2")]
        admin.alter_configs({brokers: changes}).all()
    assert {each.getMessage() for each in caplog.records} == {
        "preallocate of topic t has no effect in an embedded broker",
        "producer.id.expiration.ms of broker takes effect when a broker starts",
        "num.io.threads of broker has no effect in an embedded broker",
    }


def test_a_dynamic_config_of_all_brokers_takes_effect() -> None:
    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        brokers = ConfigResource(ConfigResourceType.BROKER, "")
        admin.alter_configs({brokers: [ConfigChange("max.connections", "77")]}).all()
        assert broker.run(lambda cluster: cluster.configs.number("max.connections")) == 77
