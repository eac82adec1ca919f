"""The session of every client: its facts must equal the expected ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs.admin import NewTopic
from kafka_msgs.client import Client, Producer
from kafka_msgs.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_msgs.records import CompressionType, RecordBatch, read_batches
from tests.broker.clients.features import EXPECTED, FEATURES, TOPICS, table
from tests.broker.clients.places import Place
from tests.support.cluster_topics import new_name
from tests.support.foreign_programs import GO, NODE, ProgramUnavailableError, java, lines_of
from tests.support.skip_reasons import not_run

COMMANDS: Final[Mapping[str, Callable[[], list[str]]]] = {
    "kafka-clients": lambda: java("Session"),
    "kafka-python": lambda: [sys.executable, "-W", "ignore", str(Path(__file__).parent / "python" / "kafka_python.py")],
    **dict.fromkeys(("franz-go", "sarama", "kafka-go"), GO.command),
    "kafkajs": NODE.command,
}
CASES: Final = [
    (client, feature) for client, features in FEATURES.items() for feature in EXPECTED if feature in features
]
CODEC_BITS: Final = 7
CODECS: Final = ("gzip", "snappy", "lz4", "zstd")
WITH_PRODUCER_IDS: Final = ("idempotence", "transactions")


@cache
def session(place: Place, client: str) -> tuple[str, Mapping[str, Any]]:
    """Run a client's program once. Return the prefix of its topics, and its output by feature."""
    try:
        command = COMMANDS[client]()
    except ProgramUnavailableError as error:
        not_run(str(error))
    prefix = new_name(client)
    place.make([NewTopic(f"{prefix}-{name}", count, 1) for name, count in TOPICS.items()])
    with Producer(place.servers) as producer:
        for number in range(10):
            producer.send(f"{prefix}-source", b"%d" % number)
        producer.flush()
    lines = lines_of([*command, client, place.first, place.first_login, prefix])
    return prefix, {line["feature"]: line for line in lines}


def stored(servers: str, topic: str) -> list[RecordBatch]:
    """Return the batches of a topic as stored in the log."""
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)
    request = FetchRequest(max_bytes=2**20, topics=(FetchTopic(topic=topic, partitions=(asked,)),))
    with Client(servers) as client:
        described = client.call(MetadataRequest(topics=(MetadataRequestTopic(name=topic),))).topics[0]
        answer = client.call(request, version=12, broker_id=described.partitions[0].leader_id)
    batches = list(read_batches(answer.responses[0].partitions[0].records or b""))
    assert batches
    return [each for each in batches if isinstance(each, RecordBatch)]


@pytest.mark.parametrize(("client", "feature"), CASES)
def test_a_feature(place: Place, client: str, feature: str) -> None:
    """The facts equal the expected ones, and the log contains the expected batches."""
    prefix, lines = session(place, client)
    assert lines.get(feature) == {"feature": feature, "facts": EXPECTED[feature]}
    if feature in CODECS:
        found = stored(place.servers, f"{prefix}-{feature}")
        assert {CompressionType(batch.attributes & CODEC_BITS).name.lower() for batch in found} == {feature}
    if feature in WITH_PRODUCER_IDS:
        assert all(batch.producer_id >= 0 for batch in stored(place.servers, f"{prefix}-{feature}"))


@pytest.mark.parametrize("client", FEATURES)
def test_a_program_reports_the_features_of_its_client_and_no_others(embedded: Place, client: str) -> None:
    assert set(session(embedded, client)[1]) == FEATURES[client]


def test_the_table_in_the_documentation() -> None:
    """The page contains the output of ``python -m tests.broker.clients.features``."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "broker.md").read_text(encoding="utf-8")
    assert table() in page
