"""Initial data of a cluster: a TOML file, values, and the errors in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.admin import Admin
from kafka_msgs.broker import EmbeddedBroker, InitialAcl, InitialData, InitialRecord, InitialTopic, ListenerConfig
from kafka_msgs.broker.initial_data import parse_acl
from kafka_msgs.client import ClientConfig, Consumer, TopicPartition
from kafka_msgs.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_msgs.errors import BrokerError, OptionError
from kafka_msgs.testing import committed_offsets, topic_records

SHOP = """\
[users]
alice = "secret"

[[topics]]
name = "orders"
partitions = 2
configs = { "cleanup.policy" = "compact" }

[[records]]
topic = "orders"
partition = 1
key = "a"
value = "one tea"
headers = { trace = "1" }
timestamp = 1700000000000

[[records]]
topic = "orders"
key = { hex = "00ff" }
value = { base64 = "AP8=" }

[[acls]]
principal = "User:alice"
operation = "read"
resource = "topic"
name = "ord"
pattern = "prefixed"

[[acls]]
principal = "User:alice"
operation = "READ"
resource = "group"
name = "billing"

[[offsets]]
group = "billing"
topic = "orders"
partition = 1
offset = 1
metadata = "by hand"
"""

SASL = ListenerConfig(name="SASL", protocol="SASL_PLAINTEXT")


def login(servers: str) -> ClientConfig:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return ClientConfig.from_properties(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{module} required username="alice" password="secret";',
        }
    )


@pytest.fixture
def shop(tmp_path: Path) -> InitialData:
    (tmp_path / "shop.toml").write_text(SHOP)
    return InitialData.from_toml(tmp_path / "shop.toml")


def test_a_cluster_starts_with_the_data_of_a_file(shop: InitialData) -> None:
    with EmbeddedBroker(data=shop, listeners=(SASL,), brokers=2) as broker:
        first, second = topic_records(broker, "orders")
        assert (first.partition, first.key, first.value) == (0, b"\x00\xff", b"\x00\xff")
        assert (second.partition, second.key, second.value) == (1, b"a", b"one tea")
        assert (second.headers, second.timestamp) == ((("trace", b"1"),), 1_700_000_000_000)
        assert committed_offsets(broker, "billing") == {("orders", 1): 1}
        with Admin(login(broker.bootstrap_servers)) as admin:
            assert list(admin.list_topics()) == ["orders"]
            assert admin.list_group_offsets("billing")[TopicPartition("orders", 1)].metadata == "by hand"
            with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
                admin.describe_acls()
        assert broker.problems == []


def test_the_data_is_written_once(shop: InitialData, tmp_path: Path) -> None:
    """Topics and ACLs are added later. Records and offsets belong to a new cluster."""
    for more in (InitialData(), InitialData(topics=(InitialTopic("other"),))):
        with EmbeddedBroker(data=shop.merge(more), directory=tmp_path / "data") as broker:
            assert len(topic_records(broker, "orders")) == 2
            assert len(broker.run(lambda cluster: dict(cluster.image.acls))) == 2
            assert broker.run(lambda cluster: "other" in cluster.image.topics) == bool(more.topics)


def test_data_are_values() -> None:
    many = tuple(InitialRecord("t", b"%d" % number) for number in range(2500))
    data = InitialData(topics=(InitialTopic("t"),), records=many)
    with (
        EmbeddedBroker(data=data) as broker,
        Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as reader,
    ):
        reader.assign([("t", 0)])
        found: list[Any] = []
        while len(found) < len(many):
            found += [bytes(record.value or b"") for record in reader.poll(30)]
    assert found == [record.value for record in many]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"topic": []}, "InitialData: option topic: there is no such entry; did you mean topics?"),
        (
            {"topics": [{"name": "t", "partition": 3}]},
            r"InitialData.topics\[0\]: option partition: there is no such entry; did you mean part",
        ),
        ({"topics": [{}]}, r"InitialData.topics\[0\]: option name: it is missing"),
        ({"topics": {}}, "a list is needed"),
        ({"topics": ["t"]}, "a table is needed"),
        ({"topics": [{"name": "t", "partitions": True}]}, "a whole number is needed"),
        ({"topics": [{"name": "t", "partitions": "3"}]}, "a whole number is needed"),
        ({"records": [{"topic": "t", "value": 3}]}, "a text, or a table with hex or base64, is needed"),
        ({"records": [{"topic": "t", "value": {"hex": "x"}}]}, "non-hexadecimal"),
        ({"records": [{"topic": "t", "value": {}}]}, "one of hex and base64 is needed"),
        ({"records": [{"topic": "t", "partition": -1}]}, "a whole number from 0 is needed"),
        (
            {"acls": [{"principal": "User:a", "operation": "reed", "resource": "topic", "name": "t"}]},
            "did you mean READ",
        ),
    ],
)
def test_errors_in_data_name_their_place(data: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        InitialData.from_dict(data)


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("topics = [")
    for name in ("bad.toml", "none.toml"):
        with pytest.raises(OptionError, match=name):
            InitialData.from_toml(tmp_path / name)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"topics": [{"name": "a b"}]}, "topics 'a b': INVALID_TOPIC_EXCEPTION"),
        ({"topics": [{"name": "t", "configs": {"a": "b"}}]}, "Unknown topic config name: a"),
        ({"records": [{"topic": "t"}]}, "records 't-0': the partition does not exist"),
        ({"offsets": [{"group": "g", "topic": "t", "offset": 1}]}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"acls": [{"principal": "a", "operation": "read", "resource": "topic", "name": "t"}]}, "INVALID_REQUEST"),
    ],
)
def test_data_that_the_cluster_refuses_stop_the_start(data: dict[str, Any], reason: str) -> None:
    broker = EmbeddedBroker(data=InitialData.from_dict(data))
    with pytest.raises(OptionError, match=reason):
        broker.start()


@pytest.mark.parametrize(
    ("text", "acl"),
    [
        ("User:a read topic:t", InitialAcl("User:a", AclOperation.READ, ResourceType.TOPIC, "t")),
        (
            "deny User:a describe-configs transactional-id:team-*",
            InitialAcl(
                "User:a",
                AclOperation.DESCRIBE_CONFIGS,
                ResourceType.TRANSACTIONAL_ID,
                "team-",
                PatternType.PREFIXED,
                AclPermissionType.DENY,
            ),
        ),
        ("allow User:a all group:*", InitialAcl("User:a", AclOperation.ALL, ResourceType.GROUP, "*")),
    ],
)
def test_an_acl_is_a_text(text: str, acl: InitialAcl) -> None:
    assert parse_acl(text) == acl


@pytest.mark.parametrize("text", ["", "User:a read", "User:a read topics:t", "User:a reed topic:t"])
def test_other_texts_are_no_acls(text: str) -> None:
    with pytest.raises(OptionError):
        parse_acl(text)
