"""The command line tools of the release: each works against the cluster and prints the expected output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs.admin import Admin
from tests.broker.clients.places import Place
from tests.support.cluster_topics import new_name
from tests.support.foreign_programs import ProgramUnavailableError
from tests.support.kafka_tools import ToolRunner
from tests.support.skip_reasons import not_run

REPLICAS: Final = r"Leader: \d\s+Replicas: \d,\d,\d\s+Isr: \d,\d,\d"
SCRIPT: Final[Mapping[str, str]] = {
    "kafka-topics --create --topic TOPIC --partitions 1 --replication-factor 3": r"Created topic TOPIC\.",
    "kafka-topics --describe --topic TOPIC": rf"PartitionCount: 1\s+ReplicationFactor: 3[^$]+Partition: 0\s+{REPLICAS}",
    "kafka-topics --list": r"^TOPIC$",
    "kafka-console-producer --topic TOPIC --sync": r"\A>*\Z",
    "kafka-get-offsets --topic TOPIC": r"^TOPIC:0:3$",
    "kafka-console-consumer --topic TOPIC --group TOPIC --from-beginning --max-messages 3": r"total of 3 messages",
    "kafka-consumer-groups --list": r"^TOPIC$",
    "kafka-consumer-groups --describe --group TOPIC --state": r"TOPIC\s.*Empty\s+0",
    "kafka-consumer-groups --group TOPIC --reset-offsets --to-earliest --all-topics --execute": r"TOPIC\s+\d\s+0",
    "kafka-consumer-groups --describe --group TOPIC --offsets": r"TOPIC\s+TOPIC\s+\d\s+0\s+\d",
    "kafka-consumer-groups --delete --group TOPIC": r"\('TOPIC'\) was successful",
    "kafka-groups --list": r"GROUP\s+TYPE\s+PROTOCOL|No groups",
    "kafka-producer-perf-test --topic TOPIC --num-records 200 --record-size 10 --throughput -1"
    " --producer-props bootstrap.servers=SERVERS": r"200 records sent",
    "kafka-consumer-perf-test --topic TOPIC --num-records 200": r"data\.consumed\.in\.nMsg",
    "kafka-log-dirs --describe --topic-list TOPIC": r'"partition":"TOPIC-0","size":[1-9]\d*',
    "kafka-acls --add --allow-principal User:TOPIC --operation Read --topic TOPIC": r"User:TOPIC, .*READ",
    "kafka-acls --list --topic TOPIC --principal User:TOPIC": r"User:TOPIC, host=\*, operation=READ",
    "kafka-acls --remove --force --allow-principal User:TOPIC --operation Read --topic TOPIC": r"Current ACLs|\A\s*\Z",
    "kafka-transactions list": r"TransactionalId\s+Coordinator",
    "kafka-transactions describe-producers --topic TOPIC --partition 0": r"ProducerId\s+ProducerEpoch",
    "kafka-leader-election --election-type preferred --topic TOPIC --partition 0": r"elected for partitions TOPIC-0",
    "kafka-reassign-partitions --reassignment-json-file MOVES --execute": r"started partition reassignment for TOPIC-0",
    "kafka-reassign-partitions --list": r"partition reassignments",
    "kafka-delete-records --offset-json-file OFFSETS": r"partition: TOPIC-0\s+low_watermark: 1",
    "kafka-metadata-quorum describe --status": r"LeaderId:\s+\d",
    "kafka-features describe": r"Feature: metadata\.version",
    "kafka-cluster cluster-id --bootstrap-server SERVERS": r"Cluster ID: \S{22}",
    "kafka-broker-api-versions": r"Produce\(0\): \d to 1\d \[usable: 1\d\]",
    "kafka-topics --alter --topic TOPIC --partitions 3": "",
    "kafka-topics --delete --topic TOPIC": "",
}
"""The commands in order, each with its expected output. TOPIC, SERVERS, MOVES and OFFSETS are placeholders."""

INPUT: Final = "one\ntwo\nthree\n"


@cache
def outputs(place: Place, directory: Path) -> Mapping[str, Any]:
    """Run the script once. Return the output and the exit status of each tool."""
    try:
        runner = ToolRunner()
    except ProgramUnavailableError as error:
        not_run(str(error))
    topic = new_name("tools")
    names = {"TOPIC": topic, **files(place, directory, topic)}
    try:
        return {line: {**runner.run(line, place.servers, names, stdin=INPUT), "topic": topic} for line in SCRIPT}
    finally:
        runner.close()


def files(place: Place, directory: Path, topic: str) -> dict[str, str]:
    """Write the input files of the tools, and return their paths."""
    with Admin(place.servers) as admin:
        brokers = sorted(admin.describe_cluster().nodes)
    moved = {"topic": topic, "partition": 0, "replicas": brokers[:2]}
    contents = {
        "MOVES": {"version": 1, "partitions": [moved]},
        "OFFSETS": {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 1}]},
    }
    for name, content in contents.items():
        (directory / f"{topic}-{name}").write_text(json.dumps(content))
    return {name: str(directory / f"{topic}-{name}") for name in contents}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools")


@pytest.mark.parametrize("line", SCRIPT)
def test_a_tool(place: Place, directory: Path, line: str) -> None:
    found = outputs(place, directory)[line]
    pattern = SCRIPT[line].replace("TOPIC", found["topic"])
    assert found["status"] == 0, found["printed"]
    assert re.search(pattern, found["printed"], re.MULTILINE), found["printed"]
