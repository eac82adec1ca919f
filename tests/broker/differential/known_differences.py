"""The intended differences as data, each with its reason. Every other difference is a bug of the embedded broker."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from typing import Any, Final

from attrs import frozen

from kafka_msgs.enums import AlterConfigOp

__all__ = [
    "NEVER_EMPTY",
    "NOT_THERE",
    "OTHERS",
    "PLACED_BY_KAFKA",
    "RELAXATIONS",
    "TRANSIENT",
    "UNORDERED",
    "Place",
    "Relaxation",
    "is_forgetful",
]


@frozen
class Place:
    """A path in the result of a command, with both values. ``results`` are the whole results."""

    api: str
    path: str
    kafka: Any
    ours: Any
    command: dict[str, Any]
    results: tuple[Any, Any]

    def beside(self, path: str) -> tuple[Any, Any]:
        """Return the values of both results at another path."""
        kafka, ours = (_value_at(each, path) for each in self.results)
        return kafka, ours


def _value_at(result: Any, path: str) -> Any:
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        result = result[name] if name else result[int(index)]
    return result


@frozen
class Relaxation:
    """An intended difference in APIs (a name pattern) at paths (a regular expression), and its reason.

    ``when`` is an optional condition on the place.
    """

    apis: str
    path: str
    reason: str
    when: Callable[[Place], bool] | None = None

    def covers(self, place: Place) -> bool:
        """Return whether this relaxation explains a difference."""
        if not fnmatch(place.api, self.apis) or re.search(self.path, place.path) is None:
            return False
        return self.when is None or self.when(place)


NOT_THERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("AddRaftVoter", "RemoveRaftVoter", "UnregisterController"), "there is no quorum of controllers"),
}
"""APIs that the embedded broker does not offer, with reasons. It closes the connection, as Kafka does for unknown APIs.

Scripts use a separate connection for them.
"""


UNKNOWN_SERVER_ERROR: Final = -1
_LATEST_TIMESTAMP: Final = -3
"""The timestamp in ListOffsets requests for the first record with the latest timestamp."""
_BROKER: Final = 4
"""The resource type of brokers."""
_OF_LISTS: Final = {AlterConfigOp.APPEND, AlterConfigOp.SUBTRACT}
ZERO: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The zero topic id in JSON form."""


_WRONG_SETTING: Final = re.compile(r"(?:Invalid value .* for configuration |Configuration ')([\w.]+)", re.DOTALL)


def _not_there(place: Place) -> bool:
    return place.api in NOT_THERE and (place.ours is True or (place.path == "answer" and place.ours == "<nothing>"))


def _repeats(values: list[str]) -> bool:
    return len(set(values)) < len(values)


def _resources_of(altered: dict[str, Any]) -> list[str]:
    """Return the resources whose configs a request changes."""
    return [f"{each['resourceType']} {each['resourceName']}" for each in altered["resources"]]


def _has_two_wrong_operations(altered: dict[str, Any]) -> bool:
    """Return whether a resource has an unknown operation and one that only lists support."""
    found = [{each["configOperation"] for each in resource["configs"]} for resource in altered["resources"]]
    return any(not each <= set(AlterConfigOp) and each & _OF_LISTS for each in found)


def _is_silence(place: Place) -> bool:
    """Return whether Kafka did not respond."""
    return place.kafka is True if place.path == "silent" else place.kafka == "<nothing>"


def _both_found_the_present(place: Place) -> bool:
    """Return whether a partition was asked for its latest timestamp, and is the present on both sides."""
    topic, _ = place.beside(place.path.partition(".partitions")[0])
    parts = place.beside(place.path.rpartition(".")[0])
    asked = [
        each["timestamp"]
        for named in place.command["body"]["topics"]
        for each in named["partitions"]
        if (named["name"], each["partitionIndex"]) == (topic["name"], parts[0]["partitionIndex"])
    ]
    return asked == [_LATEST_TIMESTAMP] and all(each["timestamp"] == "<now>" and each["offset"] >= 0 for each in parts)


def _fails_whole(place: Place) -> bool:
    """Return whether Kafka fails the whole request unexpectedly, and our response has partition errors."""
    return place.kafka in ([], UNKNOWN_SERVER_ERROR) or "unexpected error" in str(place.kafka)


def _name_other_settings(place: Place) -> bool:
    """Return whether both texts reject the value of a config, but of different configs."""
    found = [_WRONG_SETTING.match(str(each)) for each in (place.kafka, place.ours)]
    return None not in found and len({each[1] for each in found if each}) > 1


def _texts(pattern: str) -> Callable[[Place], bool]:
    """Return a condition for two texts that differ only in matches of a pattern."""
    return lambda place: re.sub(pattern, "", str(place.kafka)) == re.sub(pattern, "", str(place.ours))


RELAXATIONS: Final[tuple[Relaxation, ...]] = (
    Relaxation("*", r"throttleTimeMs$", "how long Kafka throttles depends on how busy the machine is"),
    Relaxation("*", r"^(answer|closed)$", "the embedded broker does not offer the api: see NOT_THERE", _not_there),
    Relaxation("*", r"controllerId$", "Kafka names any broker that lives as the controller"),
    Relaxation("DescribeLogDirs", r"(total|usable)Bytes$", "how large the disk is"),
    Relaxation("DescribeLogDirs", r"\.partitions\[\d+\]\.partitionSize$", "Kafka writes to its files later"),
    Relaxation(
        "*",
        r"[eE]rrorMessage$",
        "the text has ids of brokers",
        _texts(r"(?<=expected )\d+|(?<=received )\d+|(?<=er )\d+"),
    ),
    Relaxation(
        "AddPartitionsToTxn",
        r"resultsByTransaction",
        "Kafka mixes up transactions with the same id",
        lambda place: _repeats([each["transactionalId"] for each in place.command["body"]["transactions"]]),
    ),
    Relaxation(
        "WriteTxnMarkers",
        r"^(answer|silent)$",
        "Kafka never answers if a partition is named twice, or markers that are not written come after some that are",
        _is_silence,
    ),
    Relaxation(
        "DescribeShareGroupOffsets",
        r"^(answer|silent)$",
        "Kafka asks again for minutes about partitions that a topic does not have",
        _is_silence,
    ),
    Relaxation(
        "*AlterConfigs",
        r"^(answer|silent)$",
        "Kafka does not answer if it loses track of a repeated resource",
        lambda place: _is_silence(place) and "'resourceType': 8" in str(place.command["body"]),
    ),
    Relaxation(
        "AlterConfigs",
        r"^(answer|silent)$",
        "Kafka never answers if a resource is named twice",
        lambda place: _is_silence(place) and _repeats(_resources_of(place.command["body"])),
    ),
    Relaxation(
        "UpdateFeatures",
        r"^answer\.error(Code|Message)$",
        "of several features that are wrong, the first in a hash table is named",
        lambda place: len(place.command["body"]["featureUpdates"]) > 1 and 0 not in (place.kafka, place.ours),
    ),
    Relaxation(
        "*AlterConfigs",
        r"^answer\.responses",
        "each process has loggers of its own",
        lambda place: "'resourceType': 8" in str(place.command["body"]),
    ),
    Relaxation(
        "*ShareGroupState*",
        r"^answer",
        "the coordinator of a share partition follows from the id of its topic, which each cluster makes up",
    ),
    Relaxation("DescribeConfigs", r"documentation$", "the embedded broker has no texts about its settings"),
    Relaxation(
        "DescribeConfigs",
        r"\.configs$",
        "a real node has configs of more listeners; tests.campaigns.tools compares all other configs by name",
        lambda place: any(
            each["resourceType"] == _BROKER and not each["configurationKeys"]
            for each in place.command["body"]["resources"]
        ),
    ),
    Relaxation(
        "ListOffsets",
        r"\.offset$",
        "brokers choose the times of markers: those that are written within a millisecond have equal times",
        _both_found_the_present,
    ),
    Relaxation(
        "Produce",
        r"errorCode$|currentLeader$|nodeEndpoints$",
        "acks that are wrong are refused before the coordinator of a transaction is asked",
        lambda place: place.command["body"]["acks"] not in (-1, 0, 1),
    ),
    Relaxation(
        "DescribeTopicPartitions",
        r"nextCursor",
        "of all topics, the next one may belong to another test",
        lambda place: not place.command["body"]["topics"],
    ),
    Relaxation("*", r"ErrorMessage$", "the text has the present", _texts(r"(?<=within )\[-?\d+, \d+\]")),
    Relaxation(
        "StreamsGroupTopologyDescriptionUpdate",
        r"error(Code|Message)$",
        "the embedded broker keeps descriptions of topologies; Kafka needs a plugin for them",
        lambda place: place.kafka == 35 or "no streams group topology description plugin" in str(place.kafka),
    ),
    Relaxation(
        "ShareGroup*",
        r"assignment\.topicPartitions",
        "assignors go through hash tables of ids that each cluster makes up; tests.coordinator gives both the same ids",
    ),
    Relaxation(
        "ConsumerGroup*",
        r"[aA]ssignment",
        "assignors go through hash tables of ids that each cluster makes up; tests.coordinator gives both the same ids",
    ),
    Relaxation(
        "DescribeShareGroupOffsets",
        r"^answer\.groups",
        "Kafka fails if a topic is named without partitions",
        _fails_whole,
    ),
    Relaxation(
        "Share*",
        r"^answer\.(error(Code|Message)|responses|acquisitionLockTimeoutMs)$",
        "Kafka fails if records are acknowledged that lie before the start, and no batch has the first one",
        lambda place: (_fails_whole(place) or not place.kafka) and "'acknowledgeTypes'" in str(place.command["body"]),
    ),
    Relaxation(
        "Share*",
        r"^answer\.(error(Code|Message)|responses|acquisitionLockTimeoutMs)$",
        "Kafka fails if it does not know the id of a topic",
        lambda place: (
            (_fails_whole(place) or not place.kafka)
            and re.search(f"{ZERO}|<topicId (4|77)>", str(place.command["body"])) is not None
        ),
    ),
    Relaxation(
        "Fetch",
        r"^answer\.(errorCode|responses|sessionId)$",
        "Kafka fails if the topic id zero is answered before other partitions",
        lambda place: (_fails_whole(place) or place.path.endswith("Id")) and ZERO in str(place.command["body"]),
    ),
    Relaxation(
        "Produce",
        r"errorCode$",
        "Kafka places internal topics at random, and who does not lead a partition says so first",
        lambda place: "'__" in str(place.command["body"]) and {place.kafka, place.ours} == {6, 17},
    ),
    Relaxation(
        "*AlterConfigs",
        r"errorMessage$",
        "what is wrong with a value that a group coordinator checks is said in other words",
        lambda place: str(place.ours).endswith("not a value of this setting"),
    ),
    Relaxation(
        "Fetch",
        r"content$",
        "gzip names the operating system that compressed: for Java it is unknown",
        _texts(r"(?<=^1f8b080000000000..)(ff|03)"),
    ),
    Relaxation(
        "IncrementalAlterConfigs",
        r"errorMessage$",
        "of several settings that are no lists, the first in a hash table is named",
        _texts(r"(?<=Can't )(APPEND|SUBTRACT) to key [\w.]*"),
    ),
    Relaxation(
        "IncrementalAlterConfigs",
        r"error(Code|Message)$",
        "of several operations that are wrong, the first in a hash table decides, and an unknown one fails all",
        lambda place: _has_two_wrong_operations(place.command["body"]),
    ),
    Relaxation(
        "*",
        r"errorMessage$",
        "of several settings that are wrong, Kafka names the first one that it defines",
        _name_other_settings,
    ),
    Relaxation(
        "FindCoordinator",
        r"nodeId$",
        "the coordinator follows from a key with an id that each cluster makes up",
        lambda place: "<topicId" in str(place.command["body"]),
    ),
    Relaxation(
        "AlterClientQuotas",
        r"errorMessage$",
        "of several quotas that are wrong, the first in a hash table is named",
        lambda place: (
            bool(place.kafka and place.ours) and any(len(each["ops"]) > 1 for each in place.command["body"]["entries"])
        ),
    ),
    Relaxation(
        "AlterClientQuotas",
        r"errorMessage$",
        "of several keys or types that are wrong, the first in a hash table is named; entities are hash tables",
        _texts(r"(?<=configuration key )[\w.]*|(?<=entity type: )[\w-]*|(?<=entries={).*(?=})"),
    ),
    Relaxation(
        "StreamsGroup*",
        r"topologyDescription(Required|Status)?$",
        "the embedded broker keeps descriptions of topologies; Kafka needs a plugin for them",
    ),
    Relaxation(
        "DescribeQuorum",
        r"nodes$|partitions\[\d+\]\.(leader(Id|Epoch)|highWatermark|currentVoters|observers)",
        "each cluster has a metadata log of its own, and a real one has several voters",
    ),
    Relaxation("Share*", r"leaderId$", "0 stands for no leader here", lambda place: place.kafka == -1),
    Relaxation("ApiVersions", r"apiKeys$|finalizedFeaturesEpoch$", "see NOT_THERE; the offset of the newest metadata"),
)
"""All intended differences."""

UNORDERED: Final[Mapping[str, str]] = {
    "ApiVersions.*": "the order of a hash table",
    "AddPartitionsToTxn.*": "the order of a hash table",
    "*Quotas.entries": "the order of a hash table",
    "*Quotas.entries.*": "the order of a hash table",
    "ConsumerGroupDescribe.groups": "the groups of a coordinator follow those with other errors",
    "ShareGroupDescribe.groups": "as in ConsumerGroupDescribe",
    "StreamsGroupDescribe.groups": "as in ConsumerGroupDescribe",
    "*.topicPartitions": "the order of a hash table of topic ids",
    "*.subscribedTopicNames": "the order of a hash table of names",
    "*.clientTags": "the order of a hash table of keys",
    "StreamsGroupHeartbeat.*Tasks": "the order of a hash table of subtopologies",
    "StreamsGroupHeartbeat.partitionsByUserEndpoint*": "the order of hash tables of members, subtopologies and topics",
    "AlterReplicaLogDirs.results": "the order of a hash table",
    "DescribeLogDirs.results.topics": "the order of a hash table of partitions",
    "DescribeLogDirs.results.topics.partitions": "the order of a hash table of partitions",
    "AlterReplicaLogDirs.results.partitions": "the order of a hash table",
    "DescribeGroups.groups.members": "the order of a hash table of member ids",
    "DescribeProducers.topics.partitions.activeProducers": "the order of a hash table of producer ids",
    "JoinGroup.members": "the order of a hash table of member ids",
    "DescribeAcls.resources": "the order of a hash table",
    "DescribeAcls.resources.acls": "the order of a hash table",
    "DescribeGroups.groups": "as in ConsumerGroupDescribe",
    "ListGroups.groups": "the order of a hash table",
    "DeleteGroups.results": "as in ConsumerGroupDescribe",
    "WriteTxnMarkers.*": "the order of a hash table",
    "TxnOffsetCommit.topics": "those that are refused come first or last",
    "TxnOffsetCommit.topics.partitions": "those that are refused come first or last",
    "CreatePartitions.results": "the order of a hash table",
    "CreateTopics.topics": "the order of a hash table, behind which are the names that are refused first",
    "DescribeShareGroupOffsets.groups.topics": "the order of a hash table of topic ids",
    "DescribeShareGroupOffsets.groups.topics.partitions": "the order of a hash table",
    "DeleteAcls.filterResults.matchingAcls": "the order of a hash table",
    "ListOffsets.topics": "the order of a hash table",
    "ListOffsets.topics.partitions": "the order of a hash table",
    "OffsetCommit.topics": "those that are refused come first or last",
    "OffsetCommit.topics.partitions": "those that are refused come first or last",
    "AlterUserScramCredentials.results": "the order of a hash table",
    "Metadata.topics": "the order of a hash table",
    "Produce.responses": "the order of a hash table",
    "Produce.responses.partitionResponses": "the order of a hash table",
    "DeleteRecords.topics": "the order of a hash table of partitions",
    "DeleteRecords.topics.partitions": "the order of a hash table of partitions",
    "DeleteTopics.responses": "the order of a hash table, with names of topics that were asked for by id",
    "DescribeConfigs.results.configs": "the order of a hash table",
    "DescribeTransactions.transactionStates.topics": "the order of a hash table",
    "DescribeUserScramCredentials.results": "the order of a hash table",
}
"""Lists without a meaningful order, as patterns of API and path, with the reason for not reproducing Kafka's order."""

OTHERS: Final[Mapping[str, str]] = {
    "Metadata.topics": "name",
    "DescribeAcls.resources": "resourceName",
    "DescribeLogDirs.results.topics": "name",
    "DescribeTopicPartitions.topics": "name",
    "DescribeUserScramCredentials.results": "user",
    "ListConfigResources.configResources": "resourceName",
    "ListGroups.groups": "groupId",
    "ListPartitionReassignments.topics": "name",
    "ListTransactions.transactionStates": "transactionalId",
    "DescribeClientQuotas.entries": "entity",
}
"""Lists that may contain items of other tests on the same cluster, and the field with the name."""

PLACED_BY_KAFKA: Final = "<p>-r"
"""The name prefix of topics created without broker assignments: Kafka chooses their brokers at random.

Such topics appear only in the response to CreateTopics.
"""

NEVER_EMPTY: Final = frozenset({("AddPartitionsToTxn", "transactions")})
"""Lists that are never empty in scripts, because the real cluster would not respond in time."""


def is_forgetful(api: str, body: Mapping[str, Any]) -> bool:
    """Return whether a request may make Kafka lose a group in memory, but not in its log. Scripts omit such requests.

    Kafka loses an empty consumer or streams group when a classic member joins it with an unknown member id.
    """
    return api == "JoinGroup" and bool(body["memberId"]) and body["groupId"] != "<p>-g1"


TRANSIENT: Final = frozenset({14, 51})
"""COORDINATOR_LOAD_IN_PROGRESS and CONCURRENT_TRANSACTIONS: the real cluster gets the request again.

Kafka writes markers after its response to EndTxn, and loads coordinators in the background.
"""
