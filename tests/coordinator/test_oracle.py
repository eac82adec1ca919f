"""Kafka's coordinator returns the recorded results, and reports the bytes of records."""

from __future__ import annotations

from base64 import b64decode

import pytest

from kafka_msgs.messages import OffsetCommitKey, OffsetCommitValue
from tests.coordinator.comparison import differences
from tests.coordinator.oracle import AssignorOracle, CoordinatorOracle
from tests.coordinator.transcripts import NAMES, read


@pytest.mark.parametrize("name", NAMES)
def test_kafka_answers_as_recorded(kafka_coordinator: CoordinatorOracle, name: str) -> None:
    commands, recorded = read(name)

    found = kafka_coordinator.run(commands)

    assert [differences(*pair) for pair in zip(recorded, found, strict=True)] == [[]] * len(commands)


def test_records_carry_the_bytes_that_were_written(kafka_coordinator: CoordinatorOracle) -> None:
    partition = {"partitionIndex": 3, "committedOffset": 42, "committedMetadata": "m"}
    body = {
        "groupId": "g",
        "generationIdOrMemberEpoch": -1,
        "memberId": "",
        "retentionTimeMs": -1,
        "topics": [{"name": "t", "partitions": [partition]}],
    }
    _, result = kafka_coordinator.run(
        [
            {"op": "start", "now": 1000, "bytes": True, "config": {"offsets.topic.num.partitions": "1"}},
            {"op": "request", "api": "OffsetCommit", "version": 2, "body": body},
        ]
    )
    (record,) = result["records"]
    key, value = b64decode(record["keyBytes"]), b64decode(record["valueBytes"])

    assert OffsetCommitKey.decode(key[2:], version=0) == OffsetCommitKey(group="g", topic="t", partition=3)
    decoded = OffsetCommitValue.decode(value[2:], version=record["version"])
    assert (decoded.offset, decoded.metadata, decoded.commit_timestamp) == (42, "m", 1000)


def test_a_wrong_command_is_an_error_of_its_own(kafka_coordinator: CoordinatorOracle) -> None:
    start, wrong, right = kafka_coordinator.run([{"op": "start"}, {"op": "dance"}, {"op": "timers"}])

    assert "error" not in start
    assert "dance" in wrong["error"]
    assert "error" not in right


def test_assignors_answer_alone(kafka_coordinator: CoordinatorOracle) -> None:
    oracle = AssignorOracle()
    try:
        members = [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}]
        question = {"assignor": "range", "topics": [{"name": "t", "partitions": 3}], "members": members}
        (answer,) = oracle.assign([question])
    finally:
        oracle.close()

    assert answer == {"a": {"t": [0, 1]}, "b": {"t": [2]}}
