"""Scripts built from a seed: initial topics, flows, random requests of all APIs, and queries of the final state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, Final

from tests.broker.differential.flows import FLOWS, command, fetch, to_group, to_leader, to_transaction
from tests.broker.differential.known_differences import NEVER_EMPTY, NOT_THERE, PLACED_BY_KAFKA, is_forgetful
from tests.broker.differential.modern_flows import MODERN_FLOWS
from tests.broker.differential.pools import BASE_TOPICS, GROUPS, OTHER_TOPICS, POOLS, TRANSACTIONS
from tests.broker.differential.tested_cluster import Command
from tests.coordinator.request_bodies import random_body, request_class

__all__ = ["MUTATING", "NEVER", "opening", "random_script"]

MUTATING: Final = frozenset(
    {"AlterClientQuotas", "AlterConfigs", "AlterPartitionReassignments", "AlterUserScramCredentials", "CreateAcls"}
    | {"CreatePartitions", "CreateTopics", "DeleteAcls", "DeleteTopics", "ElectLeaders", "IncrementalAlterConfigs"}
    | {"UpdateFeatures"}
)
"""The APIs that change metadata. Brokers of a real cluster apply such changes later."""
NEVER: Final = frozenset({"SaslAuthenticate", "SaslHandshake"})
"""Logins have separate tests. Without a login, a connection gets no response to them."""

_GROUP_APIS: Final = frozenset(
    {"ConsumerGroupHeartbeat", "Heartbeat", "JoinGroup", "LeaveGroup", "OffsetCommit", "OffsetDelete", "SyncGroup"}
    | {"ShareGroupHeartbeat", "StreamsGroupHeartbeat", "TxnOffsetCommit", "StreamsGroupTopologyDescriptionUpdate"}
    | {"OffsetFetch", "DescribeGroups", "ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe"}
    | {"DeleteGroups", "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"}
)
_TRANSACTION_APIS: Final = frozenset(
    {"AddOffsetsToTxn", "AddPartitionsToTxn", "DescribeTransactions", "EndTxn", "InitProducerId"}
)
_LEADER_APIS: Final = frozenset(
    {"DeleteRecords", "DescribeProducers", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "Produce", "WriteTxnMarkers"}
)
_PLACED_BY_KAFKA: Final = tuple(PLACED_BY_KAFKA + end for end in ("", "-changelog", "-repartition"))
_ALL_FLOWS: Final = (*FLOWS.values(), *MODERN_FLOWS.values())
_OFTEN: Final[Mapping[str, int]] = {
    "Fetch": 6, "Produce": 6, "ListOffsets": 3, "CreateTopics": 3, "IncrementalAlterConfigs": 3, "InitProducerId": 2,
    "OffsetCommit": 2, "OffsetFetch": 2, "Metadata": 2, "DescribeConfigs": 2, "CreateAcls": 2, "DescribeAcls": 2,
}  # fmt: skip


def opening() -> list[Command]:
    """Return the commands that every script starts with: creating the topics, and reading their ids."""
    places = {"<p>-a": [0], "<p>-b": [0, 1, 2], "<p>-c": [1], "<p>-d": [2]}
    configs = {"<p>-c": ("cleanup.policy", "compact"), "<p>-d": ("message.timestamp.type", "LogAppendTime")}
    topics = [
        {
            "name": name,
            "numPartitions": -1,
            "replicationFactor": -1,
            "assignments": [
                {"partitionIndex": number, "brokerIds": [f"<node {node}>"]} for number, node in enumerate(nodes)
            ],
            "configs": [{"name": configs[name][0], "value": configs[name][1]}] if name in configs else [],
        }
        for name, nodes in places.items()
    ]
    return [
        command("CreateTopics", 7, ["node", 0], {"topics": topics, "timeoutMs": 20_000}),
        *(_known(name) for name in BASE_TOPICS),
        *(command("ListOffsets", 7, to_leader(name, index), _ends(name, index)) for name in places
          for index in range(len(places[name]))),
    ]  # fmt: skip


def _known(name: str) -> Command:
    return command("Metadata", 12, ["node", 0], {"topics": [{"name": name}]})


def _ends(topic: str, partition: int) -> dict[str, Any]:
    asked = {"partitionIndex": partition, "timestamp": -1, "currentLeaderEpoch": -1}
    return {"replicaId": -1, "topics": [{"name": topic, "partitions": [asked]}]}


def closing() -> list[Command]:
    """Return the commands that show the final state of a script."""
    places = [("<p>-a", 0), *(("<p>-b", each) for each in range(3)), ("<p>-c", 0), ("<p>-d", 0)]
    found = [
        command("DescribeTopicPartitions", 0, ["node", 0], {"topics": [{"name": name}]})
        for name in (*BASE_TOPICS, *OTHER_TOPICS)
    ]
    for topic, partition in places:
        to = to_leader(topic, partition)
        for special in (-1, -2, -3):
            asked = _ends(topic, partition)
            asked["topics"][0]["partitions"][0]["timestamp"] = special
            found.append(command("ListOffsets", 7, to, asked))
        found.append(fetch(topic, partition, 0))
        found.append(fetch(topic, partition, 2, isolation=1))
        found.append(
            command("DescribeProducers", 0, to, {"topics": [{"name": topic, "partitionIndexes": [partition]}]})
        )
    for name in (*BASE_TOPICS, *OTHER_TOPICS):
        asked = {"resources": [{"resourceType": 2, "resourceName": name, "configurationKeys": None}]}
        found.append(command("DescribeConfigs", 4, ["node", 0], asked | {"includeSynonyms": True}))
    for group in GROUPS:
        wanted = [{"groupId": group, "memberId": None, "memberEpoch": -1, "topics": None}]
        found.append(command("OffsetFetch", 9, to_group(group), {"groups": wanted}))
        found.append(command("DescribeGroups", 6, to_group(group), {"groups": [group]}))
        found.append(command("ConsumerGroupDescribe", 1, to_group(group), {"groupIds": [group]}))
    for name in TRANSACTIONS:
        found.append(command("DescribeTransactions", 0, to_transaction(name), {"transactionalIds": [name]}))
    for group in GROUPS[2:]:
        found.append(command("ShareGroupDescribe", 1, to_group(group), {"groupIds": [group]}))
        found.append(command("StreamsGroupDescribe", 1, to_group(group), {"groupIds": [group]}))
    gone = [{"name": name} for name in (*BASE_TOPICS, *OTHER_TOPICS, *_PLACED_BY_KAFKA)]
    return [*found, command("DeleteTopics", 6, ["node", 0], {"topics": gone, "timeoutMs": 20_000})]


def random_script(seed: str, versions: Mapping[str, tuple[int, int]], length: int) -> list[Command]:
    """Return the script of a seed. ``versions`` contains the version ranges of the real broker, by API name."""
    random = Random(seed)
    apis = sorted(set(versions) - NEVER)
    weights = [_OFTEN.get(api, 1) for api in apis]
    found: list[Command] = []
    while len(found) < length:
        draw = random.random()
        if draw < 0.45:
            found += _interrupted(random, random.choice(_ALL_FLOWS)(random), apis, weights, versions)
        elif draw < 0.97:
            found.append(_request(random, random.choices(apis, weights)[0], versions))
        else:
            found.append(_nonsense(random, apis, versions))
    return [*opening(), *found, *closing()]


def _interrupted(
    random: Random, flow: list[Command], apis: list[str], weights: list[int], versions: Mapping[str, tuple[int, int]]
) -> Iterable[Command]:
    for each in flow:
        yield each
        if random.random() < 0.1:
            yield _request(random, random.choices(apis, weights)[0], versions)


def _request(random: Random, api: str, versions: Mapping[str, tuple[int, int]]) -> Command:
    """Return a random request. Half of the requests use the latest version, which has the most features."""
    lowest, highest = versions[api]
    known = request_class(api).INFO.versions
    lowest, highest = max(lowest, known.lowest), min(highest, known.highest)
    version = random.choice((highest, random.randint(lowest, highest)))
    found: Command = {"api": api, "version": version, "to": _target(random, api)}
    if api in NOT_THERE:
        found["on"] = "apart"
    elif random.random() < 0.04:
        found["on"] = random.choice(("alice", "bob"))
    body = random_body(api, version, POOLS, random)
    while is_forgetful(api, body) or any(body.get(name) == [] for each, name in NEVER_EMPTY if each == api):
        body = random_body(api, version, POOLS, random)
    return found | {"body": body}


def _target(random: Random, api: str) -> list[Any]:
    if api in _GROUP_APIS:
        return [random.choice(("group",) * 9 + ("not group",)), random.choice(GROUPS)]
    if api in _TRANSACTION_APIS:
        return [random.choice(("transaction",) * 9 + ("not transaction",)), random.choice(TRANSACTIONS)]
    if api in _LEADER_APIS:
        place = random.choice((("<p>-a", 0), ("<p>-b", 0), ("<p>-b", 1), ("<p>-c", 0), ("<p>-d", 0)))
        return [random.choice(("leader",) * 5 + ("follower",)), *place]
    return ["node", random.choice((0, 1, 2))]


def _nonsense(random: Random, apis: list[str], versions: Mapping[str, tuple[int, int]]) -> Command:
    """Return bytes that are not a request, or a damaged request."""
    api = random.choice(apis)
    lowest, highest = versions[api]
    version = random.choice((highest, random.randint(lowest, highest)))
    kind = random.choice(("unknown key", "version", "cut", "more", "size", "short", "header", "nothing"))
    if kind in ("cut", "more"):
        damage = [kind, random.randint(1, 40) if kind == "cut" else "000102"]
        return _request(random, api, versions) | {"damage": damage}
    key = (request_class(api).INFO.api_key or 0).to_bytes(2, "big").hex()
    number, empty = version.to_bytes(2, "big").hex(), "00000007ffff"
    wrong = random.choice((highest + 1, lowest - 1, 99, -1)).to_bytes(2, "big", signed=True).hex()
    unknown = random.choice((1000, 4, 7, 32767, -1)).to_bytes(2, "big", signed=True).hex()
    raw, size = {
        "unknown key": (unknown + "0000" + empty, None),
        "version": (key + wrong + empty, None),
        "size": ("", random.choice((-1, -(2**31), 2**31 - 1, 104_857_601))),
        "short": ((key + number + empty)[: 2 * random.randint(1, 9)], None),
        "header": (key + number + "00000007" + "7fff6161", None),
        "nothing": ("", None),
    }[kind]
    found: Command = {"raw": raw, "kind": kind, "key": request_class(api).INFO.api_key, "version": version}
    return found | {"to": ["node", random.choice((0, 1, 2))]} | ({} if size is None else {"size": size})
