"""Runs scripts on both sides in step, and keeps the first difference of each kind with its script."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from attrs import Factory, define

from kafka_msgs import ApiVersionsRequest
from kafka_msgs.api_keys import ApiKey
from tests.broker.differential.clusters import KafkaSide
from tests.broker.differential.comparison import Difference, compared, tidied
from tests.broker.differential.known_differences import TRANSIENT
from tests.broker.differential.scripts import MUTATING, random_script
from tests.broker.differential.tally import Tally, errors_of
from tests.broker.differential.tested_cluster import Command, Result, Side
from tests.coordinator.shrinking import shrink

__all__ = ["Campaign"]

_TRIES: Final = 60
_PAUSE_SECONDS: Final = 0.05
_LOOKS: Final = frozenset(
    {"ApiVersions", "ConsumerGroupDescribe", "DescribeAcls", "DescribeClientQuotas", "DescribeCluster"}
    | {"DescribeConfigs", "DescribeGroups", "DescribeLogDirs", "DescribeProducers", "DescribeTopicPartitions"}
    | {"DescribeTransactions", "DescribeUserScramCredentials", "FindCoordinator", "ListConfigResources", "ListGroups"}
    | {"ListOffsets", "ListPartitionReassignments", "ListTransactions", "Metadata", "OffsetFetch"}
    | {"ShareGroupDescribe", "StreamsGroupDescribe", "OffsetForLeaderEpoch", "DescribeQuorum"}
)
"""The read-only APIs. If their responses differ, both sides get the request again, because Kafka does much work in the
background."""


@define
class Campaign:
    """Two sides, and the differences between them."""

    kafka: KafkaSide
    ours: Side
    name: str = "d"
    tally: Tally = Factory(Tally)
    found: dict[str, tuple[Difference, list[Command]]] = Factory(dict)
    """The first difference of each kind, with the commands up to it."""
    differing: int = 0
    _runs: int = 0
    _beside: ThreadPoolExecutor = Factory(lambda: ThreadPoolExecutor(1))

    def versions(self) -> dict[str, tuple[int, int]]:
        """Return the version ranges that the real brokers offer, by API name."""
        from tests.broker.differential.tally import api_name

        request = ApiVersionsRequest(client_software_name="differential", client_software_version="1")
        offered = self.kafka.ask(request, 4).api_keys
        return {api_name(ApiKey(each.api_key)): (each.min_version, each.max_version) for each in offered}

    def run(self, seed: str, length: int) -> list[Difference]:
        """Run the script of a seed; return all its differences. The later ones may follow from the first one."""
        commands = random_script(seed, self.versions(), length)
        differences = list(self.differences(commands))
        self.tally.scripts += 1
        self.differing += bool(differences)
        for each in differences:
            self.found.setdefault(each.kind, (each, commands[: each.at + 1]))
        return differences

    def differences(self, commands: list[Command]) -> Iterator[Difference]:
        """Run commands on both sides and yield the differences."""
        self._runs += 1
        prefix, now = f"{self.name}{self._runs:05d}", int(time.time() * 1000)
        for side in (self.kafka, self.ours):
            side.begin(prefix, now)
        for at, command in enumerate(commands):
            kafka, ours = self._step(command)
            self.tally.add(command, kafka)
            difference = compared(at, command, kafka, ours, self.tally.relaxed)
            if difference is not None:
                yield difference

    def shrunk(self, difference: Difference, commands: list[Command]) -> list[Command]:
        """Return a short script that shows a difference of the same kind."""

        def still_differs(candidate: list[Command]) -> bool:
            return any(each.kind == difference.kind for each in self.differences(candidate))

        return shrink(commands, still_differs, tries=60)

    def _both(self, command: Command) -> tuple[Result, Result]:
        """Run a command on both sides at the same time, so that waits and expirations coincide."""
        kafka = self._beside.submit(self.kafka.run, command)
        ours = self.ours.run(command)
        return kafka.result(), ours

    def _step(self, command: Command) -> tuple[Result, Result]:
        kafka, ours = self._both(command)
        if "answer" in kafka:
            self._catch_up(command)
        for _ in range(_TRIES):
            one, other = tidied(command, kafka), tidied(command, ours)
            if compared(0, command, one, other) is None:
                break
            if _is_look(command) and "answer" in kafka:
                time.sleep(_PAUSE_SECONDS)
                kafka, ours = self._both(command)
            elif errors_of(kafka) & TRANSIENT - errors_of(ours):
                time.sleep(_PAUSE_SECONDS)
                kafka = self.kafka.run(command)
            else:
                break
        return one, other

    def _catch_up(self, command: Command) -> None:
        """Wait until the real cluster has finished the work that follows its response."""
        api, body = command.get("api"), command.get("body", {})
        if api in MUTATING:
            self.kafka.settle()
        elif api == "ShareGroupHeartbeat":
            group = body["groupId"]
            self.kafka.await_share_partitions(group, self.ours.share_partitions(group))
        elif api == "StreamsGroupHeartbeat" and body["topology"] is not None:
            names = [str(self.ours.plain.resolved(each)) for each in _internal_topics(body["topology"])]
            self.kafka.await_topics([each for each in names if self.ours.leader(each, 0) is not None])


def _internal_topics(topology: dict[str, Any]) -> list[str]:
    return [
        each["name"]
        for part in topology["subtopologies"]
        for each in (*part["repartitionSourceTopics"], *part["stateChangelogTopics"])
    ]


def _is_look(command: Command) -> bool:
    """Return whether a command is repeatable: it changes nothing, not even a fetch session."""
    if command.get("api") == "Fetch":
        return bool(command["body"].get("sessionEpoch", -1) == -1)
    return command.get("api") in _LOOKS
