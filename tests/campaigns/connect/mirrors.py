"""MirrorMaker between two clusters: records, configurations, ACLs, group offsets and checkpoints."""

from __future__ import annotations

import struct
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from kafka_msgs.admin import AclBinding, Admin, ConfigChange, ConfigResource, NewTopic
from kafka_msgs.client import Consumer, Producer, TopicPartition
from kafka_msgs.enums import AclOperation, ConfigResourceType, ResourceType
from tests.campaigns.connect.processes import JavaProcess, eventually

__all__ = ["mirror"]

_TOPIC: Final = "orders"
_MIRRORED: Final = "one.orders"
_GROUPS: Final = ("billing-half", "billing-end")
_BATCH: Final = 300
_EARLY_MS: Final = 1_700_000_000_000
_RIGHT: Final = (ResourceType.TOPIC, "User:alice", AclOperation.READ)


class Row(NamedTuple):
    """The contents of a record that a mirror must not change."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


def settings(source: str, target: str) -> dict[str, str]:
    """Return the configuration of MirrorMaker: one direction, exactly once, and short intervals."""
    intervals = ("refresh.topics", "refresh.groups", "sync.topic.configs", "sync.topic.acls", "sync.group.offsets")
    every_second = {f"{each}.interval.seconds": "1" for each in (*intervals, "emit.checkpoints", "emit.heartbeats")}
    topics = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "offset.storage", "status.storage")
    return {
        "clusters": "one,two",
        "one.bootstrap.servers": source,
        "two.bootstrap.servers": target,
        "one->two.enabled": "true",
        "one->two.topics": _TOPIC,
        "one->two.groups": "billing-.*",
        "two->one.enabled": "false",
        "two.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": "http://127.0.0.1:0",
        "one.consumer.isolation.level": "read_committed",
        "one.consumer.metadata.max.age.ms": "1000",
        "sync.group.offsets.enabled": "true",
        "offset.lag.max": "0",
        "tasks.max": "2",
        "replication.factor": "1",
        **every_second,
        **{f"{each}.replication.factor": "1" for each in (*topics, "config.storage")},
    }


def write(servers: str, first: int, partitions: int) -> None:
    """Write a batch of records in transactions; every third transaction is aborted."""
    with Producer(servers, transactional_id="shop") as producer:
        producer.init_transactions()
        for start in range(first, first + _BATCH, 10):
            producer.begin_transaction()
            for number in range(start, start + 10):
                place, text = number % partitions, b"%d" % number
                headers = (("number", text), ("empty", None))
                producer.send(
                    _TOPIC, b"v" + text, key=text, partition=place, timestamp=_EARLY_MS + number, headers=headers
                )
            end = producer.abort_transaction if start % 3 == 0 else producer.commit_transaction
            end()


def rows(servers: str, topic: str, starts: dict[TopicPartition, int] | None = None) -> dict[int, list[Row]]:
    """Return the committed records of each partition, from these offsets or the beginning, up to the end."""
    with Consumer(servers, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        places = [TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic)]
        found: dict[int, list[Row]] = {place.partition: [] for place in places}
        consumer.assign(places)
        consumer.seek(starts or {})
        ends = consumer.end_offsets(places)

        def is_read() -> bool:
            for each in consumer.poll(1):
                headers = tuple((name, None if value is None else bytes(value)) for name, value in each.headers)
                row = Row(bytes(each.key or b""), bytes(each.value or b""), headers, each.timestamp)
                found[each.partition].append(row)
            return all(consumer.position(place) >= ends[place] for place in places)

        eventually(is_read)
    return found


def commit(servers: str, group: str, share: float) -> dict[int, list[Row]]:
    """Commit a group's offsets behind a share of the records, and return the records after them."""
    with Consumer(servers, isolation_level="read_committed") as consumer:
        ends = consumer.end_offsets([(_TOPIC, each) for each in consumer.partitions_for_topic(_TOPIC)])
        starts = {place: int(end * share) for place, end in ends.items()}
    with Admin(servers) as admin:
        admin.alter_group_offsets(group, starts).all()
    return rows(servers, _TOPIC, starts)


def mirror(source: str, target: str, home: Path) -> str:
    """Mirror a topic, kill MirrorMaker, change the topic, write more records, and mirror them."""
    resource = ConfigResource(ConfigResourceType.TOPIC, _TOPIC)
    with Admin(source) as admin:
        admin.create_topics(
            [NewTopic(_TOPIC, 3, 1, configs={"retention.ms": "-1", "max.message.bytes": "700000"})]
        ).all()
        kind, principal, operation = _RIGHT
        admin.create_acls([AclBinding(kind, _TOPIC, principal, operation)]).all()
        write(source, 0, 3)
        with mirror_maker(source, target, home / "first") as first:
            eventually(lambda: is_mirrored(source, target, first))
            first.kill()
        admin.create_partitions({_TOPIC: 4}).all()
        admin.alter_configs({resource: [ConfigChange("max.message.bytes", "600000")]}).all()
        write(source, _BATCH, 4)
    unread = {group: commit(source, group, share) for group, share in zip(_GROUPS, (0.5, 1.0), strict=True)}
    with mirror_maker(source, target, home / "second") as second:
        eventually(lambda: is_mirrored(source, target, second))
        eventually(lambda: has_configs(target))
        eventually(lambda: has_right(target))
        for group in _GROUPS:
            eventually(partial(follows, target, group, unread[group]))
        second.stop()
    found = rows(target, _MIRRORED)
    assert found == rows(source, _TOPIC), "the records differ"
    checked = checkpoints(target)
    assert {group for group, topic in checked if topic == _MIRRORED} == set(_GROUPS), checked
    return f"{sum(map(len, found.values()))} records, {len(checked)} checkpointed topics of groups"


def mirror_maker(source: str, target: str, home: Path) -> JavaProcess:
    """Start MirrorMaker."""
    return JavaProcess("org.apache.kafka.connect.mirror.MirrorMaker", home, settings(source, target))


def is_mirrored(source: str, target: str, process: JavaProcess) -> bool:
    """Return whether the mirrored topic has at least as many committed records as the topic."""
    assert process.is_running(), process.output
    with Admin(target) as admin:
        if _MIRRORED not in admin.list_topics():
            return False
    copied, original = rows(target, _MIRRORED), rows(source, _TOPIC)
    return copied.keys() == original.keys() and sum(map(len, copied.values())) >= sum(map(len, original.values()))


def has_configs(target: str) -> bool:
    """Return whether the mirrored topic has the topic's configurations."""
    resource = ConfigResource(ConfigResourceType.TOPIC, _MIRRORED)
    with Admin(target) as admin:
        found = admin.describe_configs([resource])[resource]
    return (found["retention.ms"].value, found["max.message.bytes"].value) == ("-1", "600000")


def has_right(target: str) -> bool:
    """Return whether the mirrored topic has the topic's ACL."""
    with Admin(target) as admin:
        found = {(each.resource_type, each.principal, each.operation) for each in admin.describe_acls()}
    return _RIGHT in found


def follows(target: str, group: str, unread: dict[int, list[Row]]) -> bool:
    """Return whether a group on the target would read all its unread records, and no others behind the end.

    MirrorMaker keeps fewer and fewer offset pairs before the end, so a group may read some records again.
    """
    with Admin(target) as admin:
        offsets = {place: each.offset for place, each in admin.list_group_offsets(group).items()}
    if not offsets:
        return False
    found = rows(target, _MIRRORED, offsets)
    ended = all(found[partition] == [] for partition, expected in unread.items() if not expected)
    return ended and all(_is_suffix(expected, found[partition]) for partition, expected in unread.items())


def _is_suffix(expected: list[Row], found: list[Row]) -> bool:
    return found[len(found) - len(expected) :] == expected


def checkpoints(target: str) -> set[tuple[str, str]]:
    """Return the groups and topics of all checkpoints: MirrorMaker's keys are two strings and a partition."""
    keys = [row.key for found in rows(target, "one.checkpoints.internal").values() for row in found]
    return {_group_and_topic(key) for key in keys}


def _group_and_topic(key: bytes) -> tuple[str, str]:
    group, after = _string(key, 0)
    return group, _string(key, after)[0]


def _string(key: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", key, at)
    end = at + 2 + length
    return key[at + 2 : end].decode(), end
