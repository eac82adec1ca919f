"""Kafka's command line tools, run one after the other in one Java process."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final

from tests.recorders.broker import Jars
from tests.support.foreign_programs import java
from tests.support.line_process import LineProcess

__all__ = ["TOOLS", "ToolRunner"]

_PACKAGE: Final = "org.apache.kafka.tools"
_SECONDS: Final = 60

TOOLS: Final[Mapping[str, str]] = {
    "kafka-acls": "AclCommand",
    "kafka-broker-api-versions": "BrokerApiVersionsCommand",
    "kafka-client-metrics": "ClientMetricsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-configs": "ConfigCommand",
    "kafka-console-consumer": "consumer.ConsoleConsumer",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-console-share-consumer": "consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "ConsumerPerformance",
    "kafka-delegation-tokens": "DelegationTokenCommand",
    "kafka-delete-records": "DeleteRecordsCommand",
    "kafka-e2e-latency": "EndToEndLatency",
    "kafka-features": "FeatureCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-groups": "GroupsCommand",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-metadata-quorum": "MetadataQuorumCommand",
    "kafka-producer-perf-test": "ProducerPerformance",
    "kafka-reassign-partitions": "reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "ReplicaVerificationTool",
    "kafka-share-consumer-perf-test": "ShareConsumerPerformance",
    "kafka-share-groups": "consumer.group.ShareGroupCommand",
    "kafka-streams-application-reset": "StreamsResetter",
    "kafka-streams-groups": "streams.StreamsGroupCommand",
    "kafka-topics": "TopicCommand",
    "kafka-transactions": "TransactionsCommand",
    "kafka-verifiable-consumer": "VerifiableConsumer",
    "kafka-verifiable-producer": "VerifiableProducer",
    "kafka-verifiable-share-consumer": "VerifiableShareConsumer",
}
"""The classes of the tools that use brokers, by script name."""


class ToolRunner:
    """A Java process that runs tools. Raises ``ProgramUnavailableError`` if it cannot be built here."""

    def __init__(self) -> None:
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        self._process = LineProcess(java("Tools", "tools", Jars.TOOLS, options=[quiet]))

    def run(
        self, line: str, servers: str, names: Mapping[str, str], *, stdin: str = "", seconds: int = _SECONDS
    ) -> dict[str, Any]:
        """Run a command line, and return its ``status`` and what it ``printed``.

        ``names`` are the values of placeholders. The addresses of the brokers are the placeholder ``SERVERS``; a line
        without it receives them as ``--bootstrap-server``.
        """
        tool, *words = shlex.split(line)
        if "SERVERS" not in line:
            words = ["--bootstrap-server", "SERVERS", *words]
        for name, value in {**names, "SERVERS": servers}.items():
            words = [word.replace(name, value) for word in words]
        asked = {"class": f"{_PACKAGE}.{TOOLS[tool]}", "arguments": words, "stdin": stdin, "seconds": seconds}
        (answer,) = self._process.ask([asked])
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.close()
