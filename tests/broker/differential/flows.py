"""Sequences of client requests: short runs of commands that belong together, each with random variations.

Random requests alone rarely form a transaction or a group. Flows do, and random requests are mixed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from tests.broker.differential.pools import GROUPS, TRANSACTIONS, records
from tests.broker.differential.tested_cluster import Command
from tests.coordinator.request_bodies import NO_TOPIC_ID, complete, versions_of

__all__ = ["FLOWS", "command", "to_group", "to_leader", "to_transaction"]

_SUBSCRIPTION: Final = "AAEAAAABAAFhAAAAAA=="
_TOPIC_IDS: Final = {"<p>-a": "<topicId 0>", "<p>-b": "<topicId 1>", "<p>-c": "<topicId 2>", "<p>-d": "<topicId 3>"}


def to_leader(topic: str, partition: int) -> list[Any]:
    """Return the target for the leader of a partition."""
    return ["leader", topic, partition]


def to_group(group: str) -> list[Any]:
    """Return the target for the coordinator of a group."""
    return ["group", group]


def to_transaction(name: str) -> list[Any]:
    """Return the target for the coordinator of a transactional id."""
    return ["transaction", name]


def command(api: str, version: int, to: list[Any], values: Mapping[str, Any]) -> Command:
    """Return a request whose other fields have their defaults."""
    return {"api": api, "version": version, "to": to, "body": complete(api, version, values)}


def _version(api: str, random: Random, lowest: int = 0) -> int:
    versions = versions_of(api)
    return random.randint(max(lowest, versions.start), versions.stop - 1)


def _place(random: Random) -> tuple[str, int]:
    return random.choice((("<p>-a", 0), ("<p>-b", 0), ("<p>-b", 1), ("<p>-c", 0), ("<p>-d", 0)))


def _named(topic: str) -> dict[str, str]:
    return {"name": topic, "topic": topic, "topicId": _TOPIC_IDS[topic]}


def _produced(
    random: Random, place: tuple[str, int], spec: dict[str, Any], transaction: str | None = None, lowest: int = 3
) -> Command:
    topic, partition = place
    data = [{**_named(topic), "partitionData": [{"index": partition, "records": spec}]}]
    body = {"transactionalId": transaction, "acks": -1, "timeoutMs": 5000, "topicData": data}
    return command("Produce", _version("Produce", random, lowest), to_leader(topic, partition), body)


def produce(random: Random) -> list[Command]:
    """Produce batches to existing partitions."""
    return [_produced(random, _place(random), records(random)) for _ in range(random.randint(1, 4))]


def _sequence(random: Random, number: int) -> int:
    return number if random.random() < 0.85 else random.choice((0, number + 1, max(0, number - 2), 2**31 - 1))


def idempotent(random: Random) -> list[Command]:
    """Produce with sequence numbers, some of them wrong."""
    place, number = _place(random), 0
    found = [
        command("InitProducerId", _version("InitProducerId", random), ["node", 0], {"transactionTimeoutMs": 60_000})
    ]
    producer = random.choice(("<lastId 0>", "<lastId 0>", "<producerId 0>"))
    for _ in range(random.randint(1, 7)):
        spec = records(random, [producer, random.choice(("<lastEpoch 0>",) * 8 + (1, 2)), _sequence(random, number)])
        spec["transactional"] = False
        found.append(_produced(random, place, spec))
        number += spec["values"]
    return found


def transaction(random: Random) -> list[Command]:
    """Run a transaction of either protocol: partitions, records, group offsets, and its end."""
    name, place, modern = random.choice(TRANSACTIONS), _place(random), random.random() < 0.5
    to = to_transaction(name)
    producer = random.choice(("<lastId 0>",) * 5 + ("<producerId 0>",))
    epoch = random.choice(("<lastEpoch 0>",) * 8 + (0, 1))
    who = {"transactionalId": name, "producerId": producer, "producerEpoch": epoch}
    start = {"transactionalId": name, "transactionTimeoutMs": 60_000}
    found = [command("InitProducerId", _version("InitProducerId", random), to, start)]
    if not modern:
        topics = [{"name": place[0], "partitions": [place[1]]}]
        body: dict[str, Any] = {
            "v3AndBelowTransactionalId": name,
            "v3AndBelowProducerId": producer,
            "v3AndBelowProducerEpoch": epoch,
            "v3AndBelowTopics": topics,
            "transactions": [{**who, "verifyOnly": False, "topics": topics}],
        }
        found.append(command("AddPartitionsToTxn", random.randint(0, 3), to, body))
    number = 0
    for _ in range(random.randint(0, 3)):
        spec = records(random, [producer, epoch, _sequence(random, number)]) | {"transactional": True}
        found.append(_produced(random, place, spec, name, 12 if modern else 3))
        if not modern:
            found[-1] = found[-1] | command("Produce", random.randint(3, 11), found[-1]["to"], found[-1]["body"])
        number += spec["values"]
    if random.random() < 0.4:
        found += _sent_offsets(random, who, modern=modern)
    if random.random() < 0.85:
        version = 5 if modern else random.randint(0, 4)
        found.append(command("EndTxn", version, to, {**who, "committed": random.random() < 0.6}))
    found += random.sample(_looks(place, name), 2)
    return found


def _sent_offsets(random: Random, who: dict[str, Any], *, modern: bool) -> list[Command]:
    group = random.choice(GROUPS[:2])
    found = []
    if not modern:
        added = {**who, "groupId": group}
        version = _version("AddOffsetsToTxn", random)
        found.append(command("AddOffsetsToTxn", version, to_transaction(who["transactionalId"]), added))
    partitions = [{"partitionIndex": 0, "committedOffset": random.choice((0, 3, 7)), "committedMetadata": "m"}]
    topics = [{**_named("<p>-a"), "partitions": partitions}]
    version = random.randint(5, 6) if modern else random.randint(0, 4)
    body = {**who, "groupId": group, "generationIdOrMemberEpoch": -1, "topics": topics}
    return [*found, command("TxnOffsetCommit", version, to_group(group), body)]


def _looks(place: tuple[str, int], name: str) -> list[Command]:
    topic, partition = place
    offsets = [{"partitionIndex": partition, "timestamp": -1, "currentLeaderEpoch": -1}]
    asked = {"replicaId": -1, "isolationLevel": 1, "topics": [{"name": topic, "partitions": offsets}]}
    producers = {"topics": [{"name": topic, "partitionIndexes": [partition]}]}
    return [
        command("DescribeTransactions", 0, to_transaction(name), {"transactionalIds": [name]}),
        command("DescribeProducers", 0, to_leader(topic, partition), producers),
        command("ListOffsets", 8, to_leader(topic, partition), asked),
        fetch(topic, partition, 0, isolation=1),
    ]


def fetch(topic: str, partition: int, offset: int, *, isolation: int = 0, version: int = 12) -> Command:
    """Return the command that fetches a partition from an offset."""
    part: dict[str, Any] = {
        "partition": partition,
        "fetchOffset": offset,
        "partitionMaxBytes": 1_000_000,
        "currentLeaderEpoch": -1,
    }
    part |= {"lastFetchedEpoch": -1, "logStartOffset": -1}
    body: dict[str, Any] = {"replicaId": -1, "maxBytes": 1_000_000, "isolationLevel": isolation, "sessionEpoch": -1}
    body |= {"topics": [{**_named(topic), "partitions": [part]}]} if topic in _TOPIC_IDS else {}
    return command("Fetch", version, to_leader(topic, partition), body)


def session(random: Random) -> list[Command]:
    """Create, use, change, misuse and close an incremental fetch session."""
    place, version = _place(random), _version("Fetch", random, 7)
    part = {"partition": place[1], "fetchOffset": 0, "partitionMaxBytes": 10_000, "currentLeaderEpoch": -1}
    part |= {"lastFetchedEpoch": -1, "logStartOffset": -1}
    topics = [{**_named(place[0]), "partitions": [part]}]
    to = to_leader(*place)
    base = {"replicaId": -1, "maxBytes": 1_000_000, "minBytes": random.choice((0, 1)), "maxWaitMs": 20}
    number = random.choice((0, 0, 1))
    found = [command("Fetch", version, to, base | {"sessionId": 0, "sessionEpoch": 0, "topics": topics})]
    for epoch in range(1, random.randint(2, 6)):
        later = [{**topics[0], "partitions": [part | {"fetchOffset": random.choice((0, 1, 2, 99))}]}]
        forgotten = [{**_named(place[0]), "partitions": [random.choice((place[1], 0, 7))]}]
        found.append(
            command(
                "Fetch", version if random.random() < 0.9 else _version("Fetch", random, 7), to,
                base | {
                    "sessionId": f"<sessionId {number}>",
                    "sessionEpoch": epoch if random.random() < 0.8 else random.choice((0, -1, epoch + 1, epoch - 1)),
                    "topics": random.choice(([], [], later)),
                    "forgottenTopicsData": random.choice(([], [], [], forgotten)),
                },
            )
        )  # fmt: skip
        if random.random() < 0.3:
            found.append(_produced(random, place, records(random)))
    return found


def classic_group(random: Random) -> list[Command]:
    """Join a classic group, commit and leave."""
    group, static = GROUPS[0], random.choice((None, None, "<p>-i1"))
    to, number = to_group(group), random.choice((0, 0, 1))
    member = f"<memberId {number}>"
    joining = {
        "groupId": group, "sessionTimeoutMs": 60_000, "rebalanceTimeoutMs": 500, "groupInstanceId": static,
        "protocolType": "consumer", "protocols": [{"name": "range", "metadata": _SUBSCRIPTION}], "memberId": "",
    }  # fmt: skip
    version = _version("JoinGroup", random, 5 if static else 0)
    found = [command("JoinGroup", version, to, joining)]
    if version >= 4 and static is None:
        found.append(command("JoinGroup", version, to, joining | {"memberId": member}))
    generation = random.choice((1, 1, 1, 2))
    who = {"groupId": group, "memberId": member, "generationId": generation, "groupInstanceId": static}
    lowest = 3 if static else 0
    given = [{"memberId": member, "assignment": "AAEC"}]
    more = {"protocolType": "consumer", "protocolName": "range", "assignments": given}
    found.append(command("SyncGroup", _version("SyncGroup", random, lowest), to, who | more))
    choices = [
        command("Heartbeat", _version("Heartbeat", random, lowest), to, who),
        _committed(random, group, generation, member, static),
        command("DescribeGroups", _version("DescribeGroups", random), to, {"groups": [group]}),
        _committed(random, group, -1, "", None),
        command("OffsetFetch", random.randint(2, 7), to, {"groupId": group, "topics": None}),
    ]
    found += random.sample(choices, random.randint(1, 5))
    if random.random() < 0.5:
        leaving = {"groupId": group, "memberId": member, "members": [{"memberId": member, "groupInstanceId": static}]}
        found.append(command("LeaveGroup", _version("LeaveGroup", random, lowest), to, leaving))
    return found


def _committed(random: Random, group: str, epoch: int, member: str, static: str | None) -> Command:
    topic, partition = _place(random)
    part = {"partitionIndex": partition, "committedOffset": random.choice((0, 5, 9)), "committedMetadata": "m"}
    body = {
        "groupId": group, "generationIdOrMemberEpoch": epoch, "memberId": member, "groupInstanceId": static,
        "topics": [{**_named(topic), "partitions": [part]}],
    }  # fmt: skip
    return command("OffsetCommit", _version("OffsetCommit", random, 7 if static else 2), to_group(group), body)


def consumer_group(random: Random) -> list[Command]:
    """Join a consumer group (KIP-848), commit and leave."""
    group, member = GROUPS[1], random.choice(("<p>-m1", "<p>-m1", "<p>-m2"))
    to, version = to_group(group), _version("ConsumerGroupHeartbeat", random)
    joining = {
        "groupId": group, "memberId": member, "memberEpoch": 0, "rebalanceTimeoutMs": 60_000, "topicPartitions": [],
        "subscribedTopicNames": random.choice((["<p>-a"], ["<p>-a", "<p>-b"], ["<p>-absent"])),
    }  # fmt: skip
    found = [command("ConsumerGroupHeartbeat", version, to, joining)]
    epoch = random.choice((1, 1, 2, 3))
    owned = random.choice((None, [], [{"topicId": "<topicId 0>", "partitions": [0]}]))
    again = {"groupId": group, "memberId": member, "memberEpoch": epoch, "topicPartitions": owned}
    found.append(command("ConsumerGroupHeartbeat", version, to, again))
    found.append(_committed(random, group, epoch, member, None))
    asked = {"groupIds": [group], "includeAuthorizedOperations": random.random() < 0.5}
    found.append(command("ConsumerGroupDescribe", _version("ConsumerGroupDescribe", random), to, asked))
    if random.random() < 0.4:
        found.append(command("ConsumerGroupHeartbeat", version, to, again | {"memberEpoch": random.choice((-1, -2))}))
    return found


def leaders(random: Random) -> list[Command]:
    """Request epochs and offsets from a leader and from a follower."""
    topic, partition = _place(random)
    to = random.choice((to_leader(topic, partition), ["follower", topic, partition]))
    epoch = {"partition": partition, "partitionIndex": partition, "currentLeaderEpoch": random.choice((-1, 0, 1))}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("OffsetForLeaderEpoch", epoch | {"leaderEpoch": random.choice((0, 1, -1))}),
        ("ListOffsets", epoch | {"timestamp": random.choice((-1, -2, -3, 5))}),
        ("DeleteRecords", {"partitionIndex": partition, "offset": random.choice((0, 1, 2, -1, 99))}),
    ]
    found = [
        command(
            api, _version(api, random), to,
            {"replicaId": -1, "timeoutMs": 5000, "topics": [{"name": topic, "topic": topic, "partitions": [part]}]},
        )
        for api, part in asked
    ]  # fmt: skip
    return [*found, fetch(topic, partition, random.choice((0, 1, 3)), version=_version("Fetch", random)) | {"to": to}]


def lives_of_topics(random: Random) -> list[Command]:
    """Create, extend and delete a topic."""
    name = random.choice(("<p>-e", "<p>-f"))
    placed = [{"partitionIndex": 0, "brokerIds": random.choice((["<node 0>"], ["<node 1>", "<node 2>"]))}]
    made = {"name": name, "numPartitions": -1, "replicationFactor": -1, "assignments": placed}
    gone = random.choice(({"name": name}, {"name": None, "topicId": "<topicId 4>"}))
    added = {"name": name, "count": 2, "assignments": [{"brokerIds": ["<node 1>"]}]}
    asked = {"name": name, "topicId": NO_TOPIC_ID}
    found = [
        command("CreateTopics", _version("CreateTopics", random), ["node", 0], {"topics": [made], "timeoutMs": 10_000}),
        command("Metadata", _version("Metadata", random, 1), ["node", 1], {"topics": [asked]}),
        command(
            "CreatePartitions",
            _version("CreatePartitions", random),
            ["node", 2],
            {"topics": [added], "timeoutMs": 10_000},
        ),
    ]
    if random.random() < 0.5:
        body = {"topics": [gone], "topicNames": [name], "timeoutMs": 10_000}
        found.append(command("DeleteTopics", _version("DeleteTopics", random), ["node", 0], body))
    return found


FLOWS: Final[Mapping[str, Callable[[Random], list[Command]]]] = {
    "produce": produce,
    "idempotent": idempotent,
    "transaction": transaction,
    "session": session,
    "classic group": classic_group,
    "consumer group": consumer_group,
    "leaders": leaders,
    "topics": lives_of_topics,
}
"""The flows by name."""
