"""Blind scripts: requests with fields chosen from small pools, regardless of responses.

The pools are small so that requests interact: few groups, members, epochs and topics, and some invalid values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from attrs import frozen

from tests.coordinator.clients.topologies import copartitioned, subtopology, topic_info
from tests.coordinator.consumer_protocol import assignment, subscription
from tests.coordinator.request_bodies import Pool, random_body, versions_of
from tests.coordinator.script_state import PLUGIN, Script, World, topic_id

__all__ = ["BLIND", "blind"]

_CLIENTS: Final = ("ca", "cb")
_GROUPS: Final = ("g",) * 8 + ("h",) * 3 + ("nobody", "")
_MEMBERS: Final = ("A", "B", "C", "A", "B", "Z", "")
_EPOCHS: Final = (0, 0, 0, 0, 1, 2, 2, 3, 3, 4, 5, 6, -1, -2, -3, 99)
_TOPIC_NAMES: Final = ("in", "in", "u", "x3", "y4", "t", "absent")
_SUBSCRIPTIONS: Final = ((), ("in",), ("in",), ("in", "u"), ("x3", "y4"), ("absent",), ("t",), ("in", "in"))
_COMMANDS_AT_ONCE: Final = 50
_REGEXES: Final = (
    "i.*",
    "x|y",
    "^(in|u)$",
    r"\w{2,3}",
    "[^a-m]+[0-9]?",
    "(?i)IN",
    "[[:alpha:]]\\d",
    r"\pL+|\PN",
    r"\x69n|\Qy4\E",
    "(?P<name>x)3",
    r"(?:i|u)n?\b",
    ".{1,2}?",
    "(",
    "[z-a]",
    "a{2,1}",
    r"\8",
    "(?=in)",
    "*",
)
"""Regular expressions, some of them invalid for RE2."""


def _classic_member(random: Random) -> str:
    if random.random() < 0.35:
        return ""
    return f"{random.choice(_CLIENTS)}-00000000-0000-4000-8000-{random.randint(1, 9):012d}"


def _protocol_metadata(random: Random) -> str:
    if random.random() < 0.15:
        return random.choice(("", "AAE=", "AAM="))
    topics = [name for name in random.choice(_SUBSCRIPTIONS) if name != "absent"]
    return subscription(topics, {"in": [0]} if random.random() < 0.3 else None, version=random.randint(0, 3))


def _task_ids(random: Random) -> list[dict[str, Any]] | None:
    if random.random() < 0.3:
        return None
    return [
        {"subtopologyId": random.choice(("0", "1", "0", "1", "9")), "partitions": random.choice(([], [0], [0, 1], [7]))}
        for _ in range(random.choice((0, 0, 1, 2)))
    ]


def _topology(random: Random) -> dict[str, Any] | None:
    if random.random() < 0.3:
        return None
    return {"epoch": random.choice((0, 0, 0, 1, -1)), "subtopologies": random.choice(_TOPOLOGIES)}


_TOPOLOGIES: Final[tuple[list[dict[str, Any]], ...]] = (
    [],
    [subtopology("0", ("in",))],
    [subtopology("0", ("in",))],
    [subtopology("0", ("in",), stateChangelogTopics=[topic_info("g-cl")])],
    [
        subtopology("0", ("in",), repartitionSinkTopics=["g-rep"]),
        subtopology(
            "1",
            (),
            repartitionSourceTopics=[topic_info("g-rep")],
            stateChangelogTopics=[topic_info("g-store-changelog")],
        ),
    ],
    [subtopology("0", ("x3", "y4"), copartitionGroups=copartitioned(0, 1))],
    [subtopology("0", ("in", "u"), copartitionGroups=copartitioned(0, 5))],
    [subtopology("0", (), sourceTopicRegex=["in.*"])],
    [subtopology("0", ("in",), stateChangelogTopics=[topic_info("g-cl", 3)])],
    [subtopology("1", ("u",)), subtopology("0", ("absent",))],
    [subtopology("0", ("in",)), subtopology("0", ("u",))],
)

_NODES: Final = (
    {"name": "S", "nodeType": 1, "sourceTopics": ["in"], "sinkTopic": None, "stores": [], "successors": ["P"]},
    {"name": "P", "nodeType": 2, "sourceTopics": [], "sinkTopic": None, "stores": ["st"], "successors": []},
    {"name": "X", "nodeType": 9, "sourceTopics": [], "sinkTopic": None, "stores": [], "successors": ["nobody"]},
)

POOLS: Final[Mapping[str, Pool]] = {
    "groupId": _GROUPS,
    "groups": lambda random: random.sample(_GROUPS, random.randint(0, 3)),
    "groupsNames": lambda random: random.sample(_GROUPS, random.randint(0, 2)),
    "groupIds": lambda random: random.sample(_GROUPS, random.randint(0, 3)),
    "OffsetFetch.groups": lambda random: [
        {
            "groupId": random.choice(_GROUPS),
            "memberId": random.choice((None, None, "A", "B")),
            "memberEpoch": random.choice((-1, -1, 2, 3)),
            "topics": random.choice((None, [{"name": "in", "topicId": topic_id("in"), "partitionIndexes": [0, 1, 9]}])),
        }
        for _ in range(random.choice((1, 1, 2)))
    ],
    "memberId": _MEMBERS,
    "memberEpoch": _EPOCHS,
    "JoinGroup.memberId": _classic_member,
    "SyncGroup.memberId": _classic_member,
    "Heartbeat.memberId": _classic_member,
    "LeaveGroup.memberId": _classic_member,
    "OffsetCommit.memberId": lambda random: (
        _classic_member(random) if random.random() < 0.5 else random.choice(("A", ""))
    ),
    "TxnOffsetCommit.memberId": lambda random: "" if random.random() < 0.7 else _classic_member(random),
    "groupInstanceId": (None, None, None, None, "i", "j"),
    "instanceId": (None, None, None, None, "i", "j", ""),
    "rackId": (None, None, "r0", "r1"),
    "sessionTimeoutMs": (10_000, 10_000, 10_000, 45_000, 1, 10_000_000),
    # If static members leave no time for a rebalance, Kafka's coordinator retries to complete it forever.
    "JoinGroup.rebalanceTimeoutMs": (60_000, 60_000, 300_000, 1000, 100),
    "rebalanceTimeoutMs": (-1, -1, 60_000, 60_000, 300_000, 1000, 0),
    "protocolType": ("consumer", "consumer", "consumer", "consumer", "connect", "", None),
    "protocols": lambda random: [
        {"name": name, "metadata": _protocol_metadata(random)}
        for name in random.choice((["range"], ["range"], ["range", "sticky"], ["sticky", "range"], ["other"], []))
    ],
    "protocolName": ("range", "range", "sticky", "", None),
    "reason": (None, "because"),
    "generationId": (0, 1, 1, 2, 2, 3, -1),
    "generationIdOrMemberEpoch": (-1, -1, 1, 1, 2, 3, 0),
    "assignment": (assignment({"in": [0]}), assignment({"in": [1]}), "", "AAE="),
    "statesFilter": ([], ["Empty"], ["Stable", "empty"], ["nonsense"]),
    "typesFilter": ([], ["classic"], ["Streams", "consumer"], ["share"], ["nonsense"]),
    "name": _TOPIC_NAMES,
    "topicId": tuple(topic_id(name) for name in _TOPIC_NAMES),
    "partitionIndex": (0, 1, 2, 7),
    "partitionIndexes": ([], [0], [0, 1], [7]),
    "committedOffset": (0, 1, 42, 10**12),
    "committedLeaderEpoch": (-1, 0, 5),
    "committedMetadata": (None, "", "m", "m", "m", "m" * 4097),
    "retentionTimeMs": (-1, -1, 5000),
    "transactionalId": ("x",),
    "producerId": (7, 8),
    "producerEpoch": (0, 0, 1),
    "subscribedTopicNames": lambda random: random.choice((None, *(list(names) for names in _SUBSCRIPTIONS))),
    "subscribedTopicRegex": (None, *("",) * 5, *_REGEXES),
    "serverAssignor": (None, None, None, "uniform", "range", "nonsense"),
    "topicPartitions": lambda random: random.choice(
        (None, None, [], [{"topicId": topic_id("in"), "partitions": random.choice(([0], [0, 1], []))}])
    ),
    "endpointInformationEpoch": (-1, -1, 0, 1, 2),
    "topology": _topology,
    "activeTasks": _task_ids,
    "standbyTasks": _task_ids,
    "warmupTasks": _task_ids,
    "processId": (None, "p", "q"),
    "userEndpoint": (None, None, {"host": "h", "port": 1}, {"host": "k", "port": 65_535}),
    "clientTags": (None, [], [{"key": "zone", "value": "a"}], [{"key": "zone", "value": "b"}]),
    "taskOffsets": (None, None, [], [{"subtopologyId": "0", "partition": 0, "offset": 10}]),
    "taskEndOffsets": (None, None, [], [{"subtopologyId": "0", "partition": 0, "offset": 12}]),
    "shutdownApplication": (False,) * 9 + (True,),
    "topologyEpoch": (0, 0, 1),
    "nodes": lambda random: random.choice((list(_NODES[:2]), list(_NODES[:2]), list(_NODES[:1]), list(_NODES))),
    "subtopologyId": ("0", "1"),
    "globalStores": ([],),
}
"""Values of fields, by name, or by API and name."""

_NO_CHANGE: Final[Mapping[str, Any]] = {
    "memberId": ("A", "B", "C"),
    "memberEpoch": (1, 2, 3, 4, 5),
    "rebalanceTimeoutMs": -1,
    "instanceId": None,
}
_LEAVE: Final[Mapping[str, Any]] = {**_NO_CHANGE, "memberEpoch": (-1, -1, -2)}
_JOIN: Final[Mapping[str, Any]] = {
    "memberId": ("A", "B", "C"),
    "memberEpoch": 0,
    "rebalanceTimeoutMs": (1000, 60_000, 300_000),
    "instanceId": (None, None, None, "i"),
}
_CONSUMER_STAYS: Final = {"subscribedTopicNames": None, "subscribedTopicRegex": None, "serverAssignor": None}
_STREAMS_STAYS: Final = {"topology": None, "processId": None, "clientTags": None, "userEndpoint": None}

_SOUND: Final[Mapping[str, tuple[Mapping[str, Any], ...]]] = {
    "ConsumerGroupHeartbeat": (
        {
            **_JOIN,
            "subscribedTopicNames": (["in"], ["in", "u"], ["x3", "y4"]),
            "subscribedTopicRegex": (None, *("",) * 14, *_REGEXES),
            "serverAssignor": (None, "uniform", "range"),
            "topicPartitions": [],
        },
        {**_NO_CHANGE, **_CONSUMER_STAYS},
        {**_NO_CHANGE, **_CONSUMER_STAYS, "topicPartitions": [{"topicId": topic_id("in"), "partitions": [0, 1]}]},
        _LEAVE,
    ),
    "StreamsGroupHeartbeat": (
        {
            **_JOIN,
            "topology": tuple({"epoch": 0, "subtopologies": topology} for topology in _TOPOLOGIES[1:6]),
            "processId": ("p", "q"),
            "activeTasks": [],
            "standbyTasks": [],
            "warmupTasks": [],
            "clientTags": [],
        },
        {**_NO_CHANGE, **_STREAMS_STAYS, "activeTasks": None, "standbyTasks": None, "warmupTasks": None},
        {
            **_NO_CHANGE,
            **_STREAMS_STAYS,
            "activeTasks": (
                [],
                [{"subtopologyId": "0", "partitions": [0]}],
                [{"subtopologyId": "0", "partitions": [1]}],
            ),
            "standbyTasks": [],
            "warmupTasks": [],
        },
        _LEAVE,
    ),
    "ShareGroupHeartbeat": (
        {**_JOIN, "subscribedTopicNames": (["in"], ["in", "u"], ["x3"])},
        {**_NO_CHANGE, "subscribedTopicNames": None},
        {**_LEAVE, "memberEpoch": -1},
    ),
    "JoinGroup": (
        {"sessionTimeoutMs": (10_000, 45_000), "protocolType": "consumer", "groupInstanceId": (None, None, "i", "j")},
        {
            "sessionTimeoutMs": 10_000,
            "protocolType": "consumer",
            "groupInstanceId": None,
            "protocols": ([{"name": "range", "metadata": subscription(["in"])}],),
        },
    ),
    "SyncGroup": ({"protocolType": ("consumer", None), "protocolName": ("range", None), "generationId": (1, 2, 3)},),
}
"""Valid requests: field values, or choices of values. The other fields are random."""

_READS: Final = {"OffsetFetch": 4, "DescribeGroups": 3, "ListGroups": 3}
_OFFSETS: Final = {"OffsetCommit": 8, "OffsetDelete": 3, "TxnOffsetCommit": 3, "DeleteGroups": 3}
_CLASSIC: Final = {"JoinGroup": 30, "SyncGroup": 14, "Heartbeat": 8, "LeaveGroup": 6}
_CONSUMER: Final = {"ConsumerGroupHeartbeat": 45, "ConsumerGroupDescribe": 4}
_STREAMS: Final = {"StreamsGroupHeartbeat": 50, "StreamsGroupDescribe": 5, "StreamsGroupTopologyDescriptionUpdate": 4}
_SHARE: Final = {"ShareGroupHeartbeat": 45, "ShareGroupDescribe": 5}


@frozen
class Mix:
    """The parameters of a blind script: APIs with weights, and possible configs of the broker and of groups."""

    apis: Mapping[str, int]
    configs: tuple[Mapping[str, Any], ...] = ({},)
    group_configs: tuple[Mapping[str, str], ...] = ()


BLIND: Final[Mapping[str, Mix]] = {
    "offsets": Mix(
        {"OffsetCommit": 30, "OffsetFetch": 15, "OffsetDelete": 8, "TxnOffsetCommit": 20, "DeleteGroups": 5}
        | {"ListGroups": 3, "DescribeGroups": 3, "JoinGroup": 4},
        ({}, {"offset.metadata.max.bytes": 100}, {"offsets.retention.minutes": 1}),
    ),
    "classic": Mix(
        _CLASSIC | _READS | _OFFSETS,
        ({}, {"group.initial.rebalance.delay.ms": 0}, {"group.max.size": 2}),
    ),
    "consumer": Mix(
        _CONSUMER | _READS | _OFFSETS,
        ({}, {"group.consumer.assignment.interval.ms": 0}, {"group.consumer.max.size": 2}),
        ({"consumer.session.timeout.ms": "50000"}, {"consumer.heartbeat.interval.ms": "6000"}),
    ),
    "streams": Mix(
        _STREAMS | _READS | _OFFSETS,
        (
            {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.assignment.interval.ms": 0},
            {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.assignment.interval.ms": 0, **PLUGIN},
            {},
            {"group.streams.max.size": 2, "group.streams.num.standby.replicas": 1},
            {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.num.warmup.replicas": 0},
        ),
        (
            {"streams.num.standby.replicas": "1"},
            {"streams.session.timeout.ms": "50000", "streams.heartbeat.interval.ms": "6000"},
            {"streams.assignor.name": "mock"},
        ),
    ),
    "share": Mix(
        _SHARE | _READS | _OFFSETS,
        ({}, {"group.share.assignment.interval.ms": 0}, {"group.share.max.size": 2}),
        ({"share.session.timeout.ms": "50000"}, {"share.heartbeat.interval.ms": "6000"}),
    ),
    "migrations": Mix(
        _CLASSIC | _CONSUMER | {"StreamsGroupHeartbeat": 10, "ShareGroupHeartbeat": 3} | _READS | _OFFSETS,
        (
            {"group.initial.rebalance.delay.ms": 0, "group.consumer.assignment.interval.ms": 0},
            {"group.consumer.migration.policy": "disabled"},
            {"group.consumer.migration.policy": "upgrade", "group.initial.rebalance.delay.ms": 0},
            {"group.consumer.migration.policy": "downgrade", "group.initial.rebalance.delay.ms": 0},
        ),
    ),
}
"""Blind scripts by protocol."""


def blind(protocol: str, random: Random, rounds: int) -> Script:
    """Yield random commands, in this many rounds of about fifty."""
    mix = BLIND[protocol]
    world = World(random, random.choice(mix.configs), {"in": 2, "u": 2, "x3": 3, "y4": 4})
    world.groups, world.group_configs = ("g", "h"), mix.group_configs
    world.producers = [7, 8]
    steps: dict[Callable[[], None], int] = {
        partial(_request, world, api): weight * 4 for api, weight in mix.apis.items()
    }
    steps[world.end_transaction] = 6 * ("TxnOffsetCommit" in mix.apis)
    for _ in range(rounds):
        for _ in range(_COMMANDS_AT_ONCE):
            world.chosen(steps | world.surroundings())()
        yield from world.exchange()


def _request(world: World, api: str) -> None:
    random = world.random
    version = random.choice(versions_of(api))
    body = random_body(api, version, POOLS, random)
    if api in _SOUND and random.random() < 0.85:
        body |= _mostly_sound(_SOUND[api], random)
    if api == "JoinGroup" and (version == 0 or int(f"0{body['memberId'][-12:]}") > world.drawn):
        # Version 0 has no rebalance timeout, so a static member must not return with it. An id that the coordinator
        # generates later does not exist yet.
        body["memberId"] = ""
    world.ask(api, body, version=version, client=random.choice(_CLIENTS))


def _mostly_sound(kinds: tuple[Mapping[str, Any], ...], random: Random) -> dict[str, Any]:
    """Return the fields of a valid request, sometimes without one of them, which keeps its random value."""
    kind = dict(random.choice(kinds))
    if random.random() < 0.25:
        del kind[random.choice(list(kind))]
    return {name: random.choice(value) if isinstance(value, tuple) else value for name, value in kind.items()}
