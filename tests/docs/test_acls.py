"""The page on required ACLs: with the ACLs of its row an operation works, and without any one of them it does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from kafka_msgs.admin import Admin, ConfigChange, ConfigResource, NewTopic, OffsetSpec, Results
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer, TopicPartition
from kafka_msgs.enums import AclOperation, ConfigResourceType, ResourceType
from kafka_msgs.errors import ClientError
from kafka_msgs.testing import new_topic
from tests.support.markdown_pages import ROOT

_ROW: Final = re.compile(r"^\| (.+?) \| (.+ on .+) \|$", re.MULTILINE)
_IMPLIED: Final = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}
_PARTITION: Final = TopicPartition("orders", 0)
_TOPIC: Final = ConfigResource(ConfigResourceType.TOPIC, "orders")
_SECONDS: Final = 3

Right = tuple[AclOperation, ResourceType]


def _rights(text: str) -> set[Right]:
    pairs = (part.replace("the ", "").split(" on ") for part in text.split(", "))
    return {
        (AclOperation[do.upper().replace(" ", "_")], ResourceType[of.upper().replace(" ", "_")]) for do, of in pairs
    }


ROWS: Final = dict(_ROW.findall((ROOT / "docs" / "reference" / "acls.md").read_text(encoding="utf-8")))


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """A broker with a record in the topic ``orders``, and an offset of the group ``billing``."""
    with EmbeddedBroker() as started:
        new_topic(started, "orders")
        with Producer(started.bootstrap_servers) as producer:
            producer.send("orders", value=b"one tea").result()
        with Admin(started.bootstrap_servers) as admin:
            admin.alter_group_offsets("billing", {_PARTITION: 0}).all()
        yield started


def _produce(servers: str) -> None:
    with Producer(servers, delivery_timeout=_SECONDS) as producer:
        producer.send("orders", value=b"x").result()


def _transact(servers: str) -> None:
    with Producer(servers, transactional_id="payments", delivery_timeout=_SECONDS) as producer:
        producer.init_transactions(timeout=_SECONDS)
        with producer.transaction():
            producer.send("orders", value=b"x")


def _consume(servers: str) -> None:
    with Consumer(servers, group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe("orders")
        while not consumer.poll(_SECONDS):
            pass
        consumer.commit()


def _consume_assigned(servers: str) -> None:
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([_PARTITION])
        while not consumer.poll(_SECONDS):
            pass


def _admin(method: str, *arguments: Any) -> Callable[[str], None]:
    def run(servers: str) -> None:
        with Admin(servers) as admin:
            results = getattr(admin, method)(*arguments, timeout=_SECONDS)
            if isinstance(results, Results):
                results.all()

    return run


OPERATIONS: Final[dict[str, Callable[[str], None]]] = {
    "produce": _produce,
    "produce in transactions": _transact,
    "consume in a group": _consume,
    "consume assigned partitions, without commits": _consume_assigned,
    "`list_offsets`": _admin("list_offsets", {_PARTITION: OffsetSpec.LATEST}),
    "`list_group_offsets`": _admin("list_group_offsets", "billing", [_PARTITION]),
    "`alter_group_offsets`": _admin("alter_group_offsets", "billing", {_PARTITION: 0}),
    "`delete_groups`": _admin("delete_groups", ["billing"]),
    "`create_topics`": _admin("create_topics", [NewTopic("new", partitions=1)]),
    "`delete_topics`": _admin("delete_topics", ["orders"]),
    "`create_partitions`": _admin("create_partitions", {"orders": 2}),
    "`delete_records`": _admin("delete_records", {_PARTITION: 0}),
    "`describe_configs` of a topic": _admin("describe_configs", [_TOPIC]),
    "`alter_configs` of a topic": _admin("alter_configs", {_TOPIC: [ConfigChange("retention.ms", "1000")]}),
    "`describe_acls`": _admin("describe_acls"),
    "`describe_log_dirs`": _admin("describe_log_dirs"),
}


def test_the_page_lists_the_operations() -> None:
    assert list(ROWS) == list(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_listed_acls_suffice_and_each_is_needed(broker: EmbeddedBroker, operation: str) -> None:
    rights = _rights(ROWS[operation])
    for removed in rights:
        _grant(broker, rights - {removed})
        with pytest.raises(ClientError) as caught:
            OPERATIONS[operation](broker.bootstrap_servers)
        assert "AUTHORIZATION_FAILED" in _chain(caught.value), operation
    _grant(broker, rights)
    OPERATIONS[operation](broker.bootstrap_servers)


def _grant(broker: EmbeddedBroker, rights: set[Right]) -> None:
    def allows(_: object, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        return any((other, kind) in rights for other in (operation, *_IMPLIED.get(operation, ())))

    broker.run(lambda cluster: setattr(cluster, "authorizer", allows))


def _chain(error: BaseException) -> str:
    causes = (error, getattr(error, "cause", None), error.__cause__)
    return " ".join(str(each) for each in causes if each is not None)
