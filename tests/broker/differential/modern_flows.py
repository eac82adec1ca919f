"""Sequences of requests of members of share groups (KIP-932) and streams groups (KIP-1071); see ``flows``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from tests.broker.differential.flows import command, to_group, to_leader
from tests.broker.differential.known_differences import PLACED_BY_KAFKA
from tests.broker.differential.pools import GROUPS, records
from tests.broker.differential.tested_cluster import Command
from tests.coordinator.clients.topologies import DESCRIPTION, copartitioned, subtopology, topic_info

__all__ = ["MODERN_FLOWS"]

_MEMBERS: Final = ("ZGlmZmVyZW50aWFsLW0x", "ZGlmZmVyZW50aWFsLW0y")
_SHARE: Final = GROUPS[2]
_STREAMS: Final = GROUPS[3]
_PATIENCE_MS: Final = 3000
_CHANGELOG: Final = topic_info(f"{PLACED_BY_KAFKA}-changelog")
_REPARTITION: Final = topic_info(f"{PLACED_BY_KAFKA}-repartition")
_TOPOLOGIES: Final[tuple[list[dict[str, Any]], ...]] = (
    [subtopology("0", ("<p>-a",))],
    [subtopology("0", ("<p>-a",))],
    [subtopology("0", ("<p>-a", "<p>-b"))],
    [subtopology("0", ("<p>-a", "<p>-b"), copartitionGroups=copartitioned(0, 1))],
    [subtopology("0", ("<p>-a",)), subtopology("1", ("<p>-b", "<p>-c"))],
    [subtopology("0", ("<p>-a", "<p>-absent"))],
    [subtopology("0", ("<p>-b",), stateChangelogTopics=[_CHANGELOG])],
    [
        subtopology("0", ("<p>-a",), repartitionSinkTopics=[_REPARTITION["name"]]),
        subtopology("1", (), repartitionSourceTopics=[_REPARTITION], stateChangelogTopics=[_CHANGELOG]),
    ],
)


def _joined(random: Random, member: str) -> Command:
    body = {"groupId": _SHARE, "memberId": member, "memberEpoch": 0, "subscribedTopicNames": _subscribed(random)}
    return command("ShareGroupHeartbeat", 1, to_group(_SHARE), body)


def _subscribed(random: Random) -> list[str]:
    return random.choice((["<p>-a"], ["<p>-a"], ["<p>-a", "<p>-b"], ["<p>-absent"]))


def _left(member: str) -> Command:
    body = {"groupId": _SHARE, "memberId": member, "memberEpoch": -1}
    return command("ShareGroupHeartbeat", 1, to_group(_SHARE), body)


def share_group(random: Random) -> list[Command]:
    """Join a share group, send heartbeats and leave; describe the group."""
    member = random.choice(_MEMBERS)
    later = {"groupId": _SHARE, "memberId": member, "memberEpoch": random.choice((1, 2, 2, 3, 4))}
    found = [
        _joined(random, member),
        command("ShareGroupDescribe", 1, to_group(_SHARE), {"groupIds": [_SHARE]}),
        command("ShareGroupHeartbeat", 1, to_group(_SHARE), later),
    ]
    return [*found, _left(member)] if random.random() < 0.6 else found


def share_offsets(random: Random) -> list[Command]:
    """Describe, alter and delete the offsets of a share group, with or without members."""
    to = to_group(_SHARE)
    changed = [{"partitionIndex": 0, "startOffset": random.choice((0, 1, 2, 99))}]
    asked = [{"groupId": _SHARE, "topics": random.choice((None, [{"topicName": "<p>-a", "partitions": [0]}]))}]
    altered = {
        "groupId": _SHARE,
        "topics": [{"topicName": random.choice(("<p>-a", "<p>-absent")), "partitions": changed}],
    }
    deleted = {"groupId": _SHARE, "topics": [{"topicName": random.choice(("<p>-a", "<p>-b", "<p>-absent"))}]}
    choices = [
        _left(random.choice(_MEMBERS)),
        command("DescribeShareGroupOffsets", random.randint(0, 1), to, {"groups": asked}),
        command("AlterShareGroupOffsets", 0, to, altered),
        command("DescribeShareGroupOffsets", random.randint(0, 1), to, {"groups": asked}),
        command("DeleteShareGroupOffsets", 0, to, deleted),
    ]
    return choices if random.random() < 0.5 else random.sample(choices, 3)


def share_session(random: Random) -> list[Command]:
    """Fetch from a partition and acknowledge records, some of them wrongly, in a session that may stay open."""
    member, to, version = random.choice(_MEMBERS), to_leader("<p>-a", 0), random.randint(1, 2)
    earliest = {"name": "share.auto.offset.reset", "value": "earliest", "configOperation": 0}
    resource = {"resourceType": 32, "resourceName": _SHARE, "configs": [earliest]}
    spec = records(random) | {"damage": "none"}
    data = [{"name": "<p>-a", "partitionData": [{"index": 0, "records": spec}]}]
    found = [
        command("IncrementalAlterConfigs", 1, ["node", 0], {"resources": [resource]}),
        _joined(random, member),
        command("Produce", 11, to, {"acks": -1, "timeoutMs": 5000, "topicData": data}),
        _share_fetch(member, 0, version, [], wait=_PATIENCE_MS),
    ]
    for epoch in range(1, random.randint(2, 6)):
        sent = epoch if random.random() < 0.9 else random.choice((0, epoch + 1, 1))
        acknowledged = _acknowledged(random)
        if random.random() < 0.5:
            found.append(_share_fetch(member, sent, version, random.choice(([], acknowledged)), wait=300))
        else:
            found.append(_share_acknowledge(member, sent, version, acknowledged))
    if random.random() < 0.5:
        found.append(_share_acknowledge(member, -1, version, random.choice(([], _acknowledged(random)))))
    return found


def _acknowledged(random: Random) -> list[dict[str, Any]]:
    first = random.choice((0, 0, 0, 1, 2, 5))
    last = first + random.choice((0, 0, 1, 2, 4, -1))
    kinds = random.choice(([1], [1], [2], [3], [4], [0], [5], [1, 2], [1] * max(1, last - first + 1)))
    batch = {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": kinds}
    return random.choice(([batch], [batch], [batch], [batch, batch], []))


def _share_fetch(member: str, epoch: int, version: int, batches: list[dict[str, Any]], *, wait: int) -> Command:
    part = {"partitionIndex": 0, "acknowledgementBatches": batches}
    body = {
        "groupId": _SHARE, "memberId": member, "shareSessionEpoch": epoch, "maxWaitMs": wait, "minBytes": 1,
        "maxBytes": 1_000_000, "maxRecords": 100, "batchSize": 100,
        "topics": [{"topicId": "<topicId 0>", "partitions": [part]}],
    }  # fmt: skip
    return command("ShareFetch", version, to_leader("<p>-a", 0), body)


def _share_acknowledge(member: str, epoch: int, version: int, batches: list[dict[str, Any]]) -> Command:
    parts = [{"partitionIndex": 0, "acknowledgementBatches": batches}]
    topics = [{"topicId": "<topicId 0>", "partitions": parts}] if batches else []
    body = {"groupId": _SHARE, "memberId": member, "shareSessionEpoch": epoch, "topics": topics}
    return command("ShareAcknowledge", version, to_leader("<p>-a", 0), body)


def streams_group(random: Random) -> list[Command]:
    """Join a streams group with a topology, take tasks, describe the topology and leave."""
    member, to = random.choice(("<p>-m1", "<p>-m1", "<p>-m2")), to_group(_STREAMS)
    topology = {"epoch": random.choice((0, 0, 0, 1)), "subtopologies": random.choice(_TOPOLOGIES)}
    who = {"groupId": _STREAMS, "memberId": member}
    joining = who | {
        "memberEpoch": 0, "rebalanceTimeoutMs": 60_000, "topology": topology, "processId": "<p>-process",
        "activeTasks": [], "standbyTasks": [], "warmupTasks": [], "clientTags": [],
    }  # fmt: skip
    found = [command("StreamsGroupHeartbeat", random.randint(0, 1), to, joining)]
    described = command("StreamsGroupDescribe", random.randint(0, 1), to, {"groupIds": [_STREAMS]})
    for epoch in random.choice(((1,), (2,), (1, 2), (2, 2), (2, 3))):
        owned = random.choice((None, [], [{"subtopologyId": "0", "partitions": [0]}]))
        tasks = {} if owned is None else {"activeTasks": owned, "standbyTasks": [], "warmupTasks": []}
        found.append(command("StreamsGroupHeartbeat", random.randint(0, 1), to, who | tasks | {"memberEpoch": epoch}))
        found.append(described)
    if random.random() < 0.3:
        uploaded = who | {"memberEpoch": 2, "topologyEpoch": 0, "topologyDescription": DESCRIPTION}
        found.append(command("StreamsGroupTopologyDescriptionUpdate", 0, to, uploaded))
    if random.random() < 0.5:
        found.append(command("StreamsGroupHeartbeat", 0, to, who | {"memberEpoch": -1}))
    return found


MODERN_FLOWS: Final[Mapping[str, Callable[[Random], list[Command]]]] = {
    "share group": share_group,
    "share offsets": share_offsets,
    "share session": share_session,
    "streams group": streams_group,
}
"""The flows by name."""
