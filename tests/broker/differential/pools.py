"""Values for the fields of random requests, by field name.

The pools are small, so that requests interact: few topics, groups and producers, and some invalid values. A name with
an API takes precedence over the name alone. Repeated values are more frequent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from tests.broker.differential.config_pools import (
    GROUP_CONFIGS,
    METRIC_CONFIGS,
    TOPIC_CONFIGS,
    WRONG_BROKER_CONFIGS,
)
from tests.broker.differential.known_differences import PLACED_BY_KAFKA
from tests.coordinator.request_bodies import NO_TOPIC_ID, Pool

__all__ = ["BASE_TOPICS", "GROUPS", "OTHER_TOPICS", "POOLS", "TRANSACTIONS", "records"]

BASE_TOPICS: Final = ("<p>-a", "<p>-b", "<p>-c", "<p>-d")
"""The initial topics of a script: one partition, three partitions, compacted, and with log append time."""
OTHER_TOPICS: Final = ("<p>-e", "<p>-f")
TOPICS: Final = (*BASE_TOPICS * 3, "<p>-b", *OTHER_TOPICS, "<p>-absent")
NEVER_NAMES: Final = ("", ".", "..", "a b", "x" * 250, "\u00e9")
BAD_NAMES: Final = (*NEVER_NAMES, "<p>_a", "<p>.a")
"""Names that no topic can have, and two colliding names, of which a cluster accepts only one."""
NAMES: Final = (*TOPICS * 4, *BAD_NAMES)
NEW_NAMES: Final = (*OTHER_TOPICS * 6, "<p>-a", *BAD_NAMES, "<p>-e", "<p>_e", "__cluster_metadata")
TOPIC_IDS: Final = (*(f"<topicId {each}>" for each in (0, 1, 2, 3) * 4), "<topicId 4>", "<topicId 77>", NO_TOPIC_ID)
PARTITIONS: Final = (0, 0, 0, 0, 0, 1, 2, 3, 99, -1)
GROUPS: Final = ("<p>-g1", "<p>-g2", "<p>-g3", "<p>-g4")
"""A classic group, a consumer group, a share group and a streams group, unless a member of another type joins."""
GROUP_NAMES: Final = (*GROUPS * 3, "<p>-nobody", "")
MEMBERS: Final = ("<memberId 0>", "<memberId 0>", "<memberId 1>", "<p>-m1", "<p>-m1", "<p>-m2", "")
TRANSACTIONS: Final = ("<p>-x1", "<p>-x2")
TRANSACTION_NAMES: Final = (*TRANSACTIONS * 4, "<p>-nothing", "")
PRODUCERS: Final = (*("<producerId 0>",) * 4, *("<producerId 1>",) * 2, "<producerId 2>", "<producerId 9>", -1)
PRODUCER_EPOCHS: Final = (0, 0, 0, 0, 1, 1, 2, 3, -1, 32767)
EPOCHS: Final = (-1, -1, -1, 0, 0, 0, 1, 5, -2)
OFFSETS: Final = (0, 0, 0, 1, 2, 3, 5, 10, -1, -2, 99, 2**62, -(2**62))
BYTES: Final = (0, 1, 60, 100, 1000, 10_000, 10_000, 10_000, -1, 2**31 - 1)
NODES: Final = ("<node 0>", "<node 0>", "<node 1>", "<node 2>", 99, -1)
OPERATIONS: Final = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 0, 99)
USERS: Final = ("User:<p>-u1", "User:<p>-u2", "User:*", "Group:<p>-x", "<p>", "")


def some(random: Random, pool: Sequence[Any], most: int = 3) -> list[Any]:
    """Return some values: possibly none, and possibly duplicates."""
    return [random.choice(pool) for _ in range(random.choice((0, 1, 1, 1, 2, most)))]


def records(random: Random, producer: list[Any] | None = None) -> dict[str, Any]:
    """Return a description of the records of one partition."""
    spec: dict[str, Any] = {
        "values": random.choice((1, 1, 2, 3, 5)),
        "timestamp": random.choice((-1, -1, -1000, -10_000, 1_700_000_000_000, 1, 10**14)),
        "codec": random.choice(("NONE",) * 5 + ("GZIP", "SNAPPY", "LZ4", "ZSTD")),
        "keyed": random.random() < 0.8,
        "size": random.choice((0, 5, 5, 5, 50, 300)),
    }
    if producer is not None or random.random() < 0.3:
        sequence = random.choice((0, 0, 1, 2, 3, 5, 2**31 - 1))
        spec["producer"] = producer or [random.choice(PRODUCERS[:-1]), random.choice(PRODUCER_EPOCHS[:-2]), sequence]
        spec["transactional"] = random.random() < 0.4
    if "producer" in spec:
        # A broker forgets producers without records of the last day at an unpredictable time.
        spec["timestamp"] = random.choice((-1, -1000, -10_000, 10**14))
    if random.random() < 0.12:
        spec["damage"] = random.choice(_DAMAGE)
    if random.random() < 0.08:
        spec["edit"] = random.choice(_EDITS)
    if random.random() < 0.05:
        spec |= {"magic": random.choice((0, 1)), "codec": random.choice(("NONE", "GZIP"))}
    return spec


_DAMAGE: Final = (
    "empty", "cut", "header only", "twice", "tail", "crc", "magic 3", "magic -1", "length 0", "length -1", "long"
)  # fmt: skip
_EDITS: Final[Sequence[Mapping[str, int]]] = (
    {"baseOffset": 5},
    {"baseOffset": -1},
    {"leaderEpoch": 7},
    {"count": 9},
    {"count": 0},
    {"count": -1},
    {"lastOffsetDelta": 9},
    {"lastOffsetDelta": -1},
    {"attributes": 32},
    {"attributes": 8},
    {"attributes": 64},
    {"attributes": 7},
    {"attributes": 16},
    {"producerId": -5},
    {"producerEpoch": 3},
    {"baseSequence": 3},
    {"length": 100},
)


def _configs(random: Random, pool: Sequence[tuple[str, Any]], *, operations: bool) -> list[dict[str, Any]]:
    chosen = [random.choice(pool) for _ in range(random.choice((0, 1, 1, 1, 2)))]
    found: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in chosen]
    if operations:
        for each in found:
            each["configOperation"] = random.choice((0, 0, 0, 0, 1, 2, 3, 9))
    return found


def _changed_resource(random: Random, *, operations: bool) -> dict[str, Any]:
    kind, names, pool = random.choice(
        (
            (2, NAMES, TOPIC_CONFIGS),
            (2, TOPICS, TOPIC_CONFIGS),
            (2, TOPICS, TOPIC_CONFIGS),
            (32, GROUP_NAMES, GROUP_CONFIGS),
            (16, ("<p>-metrics", "<p>-metrics", ""), METRIC_CONFIGS),
            (4, ("<broker 0>", "", "x", "99"), WRONG_BROKER_CONFIGS),
            (random.choice((0, 1, 3, 99)), ("x", ""), TOPIC_CONFIGS),
            (8, ("<broker 0>", "x"), (("org.apache", "INFO"), ("kafka.no", "LOUD"))),
        )
    )
    name = random.choice(names)
    configs = _configs(random, pool, operations=operations)
    return {"resourceType": kind, "resourceName": name, "configs": configs}


def _asked_resource(random: Random) -> dict[str, Any]:
    kind, name, keys = random.choice(
        (
            (2, random.choice(NAMES), ("retention.ms", "cleanup.policy", "no.such")),
            (2, random.choice(TOPICS), ("retention.ms", "segment.bytes")),
            (32, random.choice(GROUP_NAMES), ("consumer.session.timeout.ms", "no.such")),
            (16, random.choice(("<p>-metrics", "<p>-none", "")), ("metrics",)),
            (
                4,
                random.choice(("<broker 0>", "<broker 1>", "", "x", "99")),
                ("log.retention.ms", "message.max.bytes", "x"),
            ),
            (random.choice((0, 1, 3, 99)), "x", ("x",)),
        )
    )
    keys_asked = None if random.random() < 0.5 and kind != 4 else some(random, keys, 2)
    return {"resourceType": kind, "resourceName": name, "configurationKeys": keys_asked}


def _assignments(random: Random) -> list[dict[str, Any]]:
    if random.random() < 0.2:
        return [{"partitionIndex": index, "brokerIds": some(random, NODES)} for index in some(random, (0, 1, 2, 3, -1))]
    placed = random.choice(([["<node 0>"]], [["<node 1>"], ["<node 2>"]], [["<node 0>", "<node 1>"]]))
    return [{"partitionIndex": number, "brokerIds": brokers} for number, brokers in enumerate(placed)]


def _created_topic(random: Random) -> dict[str, Any]:
    assignments = _assignments(random) if random.random() < 0.6 else []
    placed = bool(assignments)
    counts, factors = ((-1,) * 6 + (1, 2)), ((-1,) * 6 + (1, 2))
    return {
        "name": random.choice(NEW_NAMES if placed else (*NEVER_NAMES, PLACED_BY_KAFKA, PLACED_BY_KAFKA, "<p>-a")),
        "numPartitions": random.choice(counts if placed else (1, 1, 2, 3, -1, 0, -2, 20_000)),
        "replicationFactor": random.choice(factors if placed else (1, 1, 1, 2, 3, -1, 0, 4, -2)),
        "assignments": assignments,
        "configs": _configs(random, TOPIC_CONFIGS, operations=False),
    }


def _protocols(random: Random) -> list[dict[str, Any]]:
    return [
        {"name": name, "metadata": "AAEAAAABAAFhAAAAAA=="} for name in random.choice((["range"], ["range", "rr"], []))
    ]


def _acl(random: Random) -> dict[str, Any]:
    return {
        "resourceType": random.choice((2, 2, 2, 3, 3, 5, 6, 4, 7, 1, 0, 99)),
        "resourceName": random.choice(("<p>-a", "<p>-b", "<p>-", "<p>-g1", "<p>-x1", "")),
        "resourcePatternType": random.choice((3, 3, 3, 4, 4, 1, 2, 0, 9)),
        "principal": random.choice(USERS),
        "host": random.choice(("*", "*", "127.0.0.1", "10.0.0.0/8", "", "x")),
        "operation": random.choice(OPERATIONS),
        "permissionType": random.choice((3, 3, 3, 2, 2, 1, 0, 9)),
    }


def _acl_filter(random: Random) -> dict[str, Any]:
    wide = random.random() < 0.6
    return {
        "resourceTypeFilter": random.choice((1, 1, 2, 2, 3, 5, 0, 99)),
        "resourceNameFilter": random.choice(("<p>-a", "<p>-b", "<p>-", "<p>-g1", "<p>-x1", "<p>-aa")),
        "patternTypeFilter": random.choice((1, 2, 3, 4, 1, 1, 3) if wide else (0, 9)),
        "principalFilter": random.choice((None, None, None, "User:<p>-u1", "User:x")),
        "hostFilter": random.choice((None, None, None, "*", "127.0.0.1")),
        "operation": random.choice((1, 1, 1, 1, *OPERATIONS)),
        "permissionType": random.choice((1, 1, 1, 2, 3, 0, 9)),
    }


def _quota_entry(random: Random) -> dict[str, Any]:
    kinds = ("user", "client-id", "ip", "client", "")
    chosen = random.choice((["user"], ["user", "client-id"], ["client-id"], ["ip"], some(random, kinds)))
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
            "connection_creation_rate", "no.such")  # fmt: skip
    return {
        "entity": [{"entityType": kind, "entityName": _quota_name(random, kind)} for kind in chosen],
        "ops": [
            {"key": key, "value": random.choice((1e9, 2e9, 0.5, 0.0, -1.0)), "remove": random.random() < 0.3}
            for key in some(random, keys)
        ],
    }


def _quota_name(random: Random, kind: str) -> str:
    return (
        random.choice(("10.1.2.3", "10.1.2.4", "nowhere.invalid"))
        if kind == "ip"
        else random.choice(("<p>-u", "<p>-v"))
    )


def _scram(random: Random, *, whole: bool) -> dict[str, Any]:
    found = {"name": random.choice(("<p>-u1", "<p>-u2", "<p>-u1", "")), "mechanism": random.choice((1, 1, 2, 2, 0, 3))}
    if not whole:
        return found
    return found | {
        "iterations": random.choice((4096, 8192, 4095, 0, 16384, 16385)),
        "salt": random.choice(("c2FsdA==", "c2FsdHNhbHQ=", "")),
        "saltedPassword": random.choice(("cGFzcw==", "cGFzc3Bhc3M=", "")),
    }


POOLS: Final[Mapping[str, Pool]] = {
    # Names with the same meaning in most APIs.
    "name": NAMES, "topic": NAMES, "topicName": NAMES, "topicId": TOPIC_IDS,
    "partitionIndex": PARTITIONS, "partition": PARTITIONS, "index": PARTITIONS,
    "partitionIndexes": lambda random: some(random, PARTITIONS),
    "groupId": GROUP_NAMES, "memberId": MEMBERS, "groupInstanceId": (None, None, None, "<p>-i1", ""),
    "instanceId": (None, None, None, "<p>-i1", ""),
    "generationId": (1, 1, 1, 0, 2, -1, 99), "generationIdOrMemberEpoch": (-1, -1, 1, 1, 2, 0, 99),
    "memberEpoch": (0, 0, 0, 1, 1, 2, -1, -1, -2, 99, -3),
    "transactionalId": TRANSACTION_NAMES, "producerId": PRODUCERS, "producerEpoch": PRODUCER_EPOCHS,
    "currentLeaderEpoch": EPOCHS, "leaderEpoch": EPOCHS, "offset": OFFSETS, "committedOffset": OFFSETS,
    "committedLeaderEpoch": (-1, -1, 0, 5), "committedMetadata": ("", "m", None),
    "timeoutMs": (10_000,), "maxWaitMs": (0, 0, 10, 50, -1), "minBytes": (0, 0, 1, 1, 100_000, -1),
    "maxBytes": BYTES, "partitionMaxBytes": BYTES, "isolationLevel": (0, 0, 1, 1, 2, -1),
    "rackId": ("", "rack-2"), "clusterId": (None,), "replicaId": (-1, -1, -1, -1, -2),
    "replicaState": ({"replicaId": -1, "replicaEpoch": -1},),
    "replicaDirectoryId": (NO_TOPIC_ID,), "highWatermark": (2**63 - 1,),
    "DescribeGroups.groups": lambda random: some(random, GROUP_NAMES),
    "groupIds": lambda random: some(random, GROUP_NAMES),
    # Records
    "Produce.acks": (-1, -1, -1, -1, 1, 1, 0, 2, -2),
    "Produce.transactionalId": (None, None, None, None, *TRANSACTIONS, "<p>-nothing", ""),
    "Produce.name": (*NAMES, "__consumer_offsets"), "Produce.records": records, "Produce.timeoutMs": (5000, 0, -1),
    "Fetch.sessionId": (0, 0, 0, "<sessionId 0>", "<sessionId 0>", "<sessionId 1>", "<sessionId 5>"),
    "Fetch.sessionEpoch": (-1, -1, 0, 0, 0, 1, 1, 2, 3, 4, -2, 2**31 - 1),
    "fetchOffset": OFFSETS, "lastFetchedEpoch": (-1, -1, -1, 0, 5), "logStartOffset": (-1, -1, 0),
    "ListOffsets.timestamp": (-1, -1, -2, -2, -3, -4, -5, -6, -7, 0, 1, 1_700_000_000_001, 2**62, -99),
    "DeleteRecords.timeoutMs": (5000,),
    # Topics
    "CreateTopics.topics": lambda random: [_created_topic(random) for _ in range(random.choice((0, 1, 1, 1, 2)))],
    "CreateTopics.validateOnly": (False, False, True),
    "DeleteTopics.topicNames": lambda random: some(random, (*OTHER_TOPICS, *OTHER_TOPICS, "<p>-absent", "", "a b")),
    "DeleteTopics.name": (None, None, *OTHER_TOPICS, "<p>-absent", "<p>-d", ""),
    "DeleteTopics.topicId": (NO_TOPIC_ID, NO_TOPIC_ID, "<topicId 4>", "<topicId 5>", "<topicId 99>"),
    "CreatePartitions.name": (*TOPICS, *OTHER_TOPICS * 3, ""),
    "CreatePartitions.count": (2, 3, 4, 4, 1, 0, -1, 20_000),
    "CreatePartitions.assignments": lambda random: random.choice(
        ([{"brokerIds": ["<node 0>"]}], [{"brokerIds": ["<node 1>"]}, {"brokerIds": ["<node 0>"]}],
         [{"brokerIds": some(random, NODES)}], [])
    ),
    "Metadata.allowAutoTopicCreation": (False, False, True),
    "Metadata.topicId": (NO_TOPIC_ID, NO_TOPIC_ID, *TOPIC_IDS),
    "Metadata.name": (None, *NAMES),
    "DescribeTopicPartitions.topics": lambda random: [{"name": name} for name in some(random, NAMES)],
    "DescribeTopicPartitions.cursor": lambda random: random.choice(
        (None, None, {"topicName": random.choice(NAMES), "partitionIndex": random.choice(PARTITIONS)})
    ),
    "responsePartitionLimit": (2000, 2000, 1, 2, 0, -1),
    # Configs
    "DescribeConfigs.resources": lambda random: [_asked_resource(random) for _ in range(random.choice((0, 1, 1, 2)))],
    "AlterConfigs.resources": lambda random: [
        _changed_resource(random, operations=False) for _ in range(random.choice((0, 1, 1, 2)))
    ],
    "IncrementalAlterConfigs.resources": lambda random: [
        _changed_resource(random, operations=True) for _ in range(random.choice((0, 1, 1, 2)))
    ],
    "resourceTypes": lambda random: some(random, (2, 4, 8, 16, 32, 0, 1, 3, 99)),
    # Replicas
    "electionType": (0, 0, 1, 1, 2, -1),
    "ElectLeaders.topicPartitions": lambda random: [
        {"topic": name, "partitions": some(random, PARTITIONS)} for name in some(random, NAMES)
    ],
    "replicas": lambda random: random.choice((None, None, [], ["<node 0>"], some(random, NODES), [99])),
    "AlterPartitionReassignments.name": (*OTHER_TOPICS, "<p>-absent", "", "<p>-e"),
    "ListPartitionReassignments.topics": lambda random: [
        {"name": name, "partitionIndexes": some(random, PARTITIONS)} for name in some(random, NAMES)
    ],
    "DescribeLogDirs.topics": lambda random: [
        {"topic": name, "partitions": some(random, PARTITIONS)} for name in some(random, NAMES)
    ],
    "DescribeQuorum.topicName": ("__cluster_metadata", "__cluster_metadata", "<p>-a", ""),
    "UnregisterBroker.brokerId": (99, -1), "UnregisterController.controllerId": (99, -1),
    "UpdateFeatures.validateOnly": (True,), "UpdateFeatures.allowDowngrade": (False, True),
    "feature": ("transaction.version", "group.version", "metadata.version", "no.such", "", "kraft.version"),
    "maxVersionLevel": (1, 2, 0, 33, 30, 34, 7, -1, 99), "upgradeType": (1, 1, 2, 3, 0, 9),
    "endpointType": (1, 1, 1, 2, 0, 9),
    "AlterReplicaLogDirs.path": ("/nowhere", "relative", ""),
    "path": ("/nowhere", "relative", ""),
    # Transactions
    "InitProducerId.transactionalId": (None, *TRANSACTION_NAMES),
    "transactionTimeoutMs": (60_000, 60_000, 60_000, 900_000, 900_001, 0, -1),
    "enable2Pc": (False, False, False, True), "keepPreparedTxn": (False, False, False, True),
    "Fetch.topicId": tuple(each for each in TOPIC_IDS if each != NO_TOPIC_ID),
    "InitProducerId.producerId": (-1, -1, -1, *PRODUCERS), "InitProducerId.producerEpoch": (-1, -1, *PRODUCER_EPOCHS),
    "AddPartitionsToTxn.partitions": lambda random: some(random, PARTITIONS[:-1]),
    "AddPartitionsToTxn.verifyOnly": (False, False, True),
    "coordinatorEpoch": (0, 0, 1, -1), "transactionVersion": (0, 1, 2, 9),
    "transactionalIds": lambda random: some(random, TRANSACTION_NAMES),
    "ListTransactions.stateFilters": lambda random: some(random, ("Empty", "Ongoing", "CompleteCommit", "Nothing", "")),
    "producerIdFilters": lambda random: random.choice(([], [], ["<producerId 0>"], ["<producerId 0>", 99])),
    "durationFilter": (-1, -1, 0, 1_000_000), "transactionalIdPattern": (None, None, "", "<p>.*", "(", "<p>-x1"),
    # Groups
    "keyType": (0, 0, 1, 1, 2, 3, -1), "key": GROUP_NAMES,
    "coordinatorKeys": lambda random: some(random, (*GROUP_NAMES, "<p>-x1", "<p>-g1:<topicId 0>:0", "<p>:x", "a:b:c")),
    "sessionTimeoutMs": (30_000, 30_000, 30_000, 1, 0, -1, 10**9), "rebalanceTimeoutMs": (500, 500, 1, 0, -1),
    "ConsumerGroupHeartbeat.rebalanceTimeoutMs": (30_000, 30_000, -1, 0),
    "StreamsGroupHeartbeat.rebalanceTimeoutMs": (30_000, 30_000, -1, 0),
    "protocolType": ("consumer", "consumer", "consumer", "connect", ""), "protocols": _protocols,
    "protocolName": (None, "range", "range", "rr"), "reason": (None, "r" * 300),
    "SyncGroup.assignments": lambda random: random.choice(([], [{"memberId": "<memberId 0>", "assignment": "AAEC"}])),
    "LeaveGroup.members": lambda random: [
        {"memberId": random.choice(MEMBERS), "groupInstanceId": random.choice((None, "<p>-i1")), "reason": "r"}
        for _ in range(random.choice((0, 1, 1, 2)))
    ],
    "retentionTimeMs": (-1, -1, 1000), "commitTimestamp": (-1,),
    "statesFilter": lambda random: some(random, ("Stable", "Empty", "dead", "Nothing", "")),
    "typesFilter": lambda random: some(random, ("classic", "Consumer", "share", "streams", "x", "")),
    "groupsNames": lambda random: some(random, GROUP_NAMES),
    "subscribedTopicNames": lambda random: random.choice((None, [], ["<p>-a"], ["<p>-a", "<p>-b"], ["<p>-absent"])),
    "subscribedTopicRegex": (None, None, None, "<p>-[ab]", "(", ""), "serverAssignor": (None, "uniform", "range", "x"),
    "ConsumerGroupHeartbeat.topicPartitions": lambda random: random.choice(
        (None, [], [{"topicId": "<topicId 0>", "partitions": [0]}])
    ),
    "topology": (None,), "activeTasks": (None, []), "standbyTasks": (None, []), "warmupTasks": (None, []),
    "processId": (None, "<p>-process"), "userEndpoint": (None,),
    # ACLs, users and quotas
    "creations": lambda random: [_acl(random) for _ in range(random.choice((0, 1, 1, 2)))],
    "filters": lambda random: [_acl_filter(random) for _ in range(random.choice((0, 1, 1, 2)))],
    "users": lambda random: [{"name": name} for name in some(random, ("<p>-u1", "<p>-u2", "<p>-absent"))] or None,
    "deletions": lambda random: [_scram(random, whole=False) for _ in range(random.choice((0, 0, 1, 2)))],
    "upsertions": lambda random: [_scram(random, whole=True) for _ in range(random.choice((0, 1, 1, 2)))],
    "AlterClientQuotas.entries": lambda random: [_quota_entry(random) for _ in range(random.choice((0, 1, 1, 2)))],
    "DescribeClientQuotas.components": lambda random: [
        {"entityType": kind, "matchType": random.choice((0, 0, 1, 2, 9)), "match": "<p>-u"}
        for kind in some(random, ("user", "user", "client-id", "ip", "x"))
    ],
    "mechanism": ("PLAIN", "SCRAM-SHA-256", "GSSAPI", ""), "authBytes": ("", "AA=="),
    "clientSoftwareName": ("a", "a", "a b", "", "-"), "clientSoftwareVersion": ("1", "1", "1.0-x", ""),
    "ApiVersions.clusterId": (None, None, "x"), "ApiVersions.nodeId": (-1, -1, 99),
    "AlterShareGroupOffsets.groupId": ("",), "DeleteShareGroupOffsets.groupId": ("",),
    "ShareFetch.maxWaitMs": (500,), "DescribeShareGroupOffsets.partitions": lambda random: some(random, (0,)),
    "DescribeShareGroupOffsets.topicName": (*BASE_TOPICS, "<p>-absent", ""),
    "hmac": ("AAEC", ""), "ownerPrincipalName": (None, "x"), "ownerPrincipalType": (None, "User"),
    "maxLifetimeMs": (-1, 1000), "renewers": ([],), "owners": (None, []),
    "voterId": (99,), "listeners": ([],), "shareSessionEpoch": (0, 1, -1), "stateEpoch": (0, 1, -1),
    "startOffset": (-1, 0, 5),
}  # fmt: skip
