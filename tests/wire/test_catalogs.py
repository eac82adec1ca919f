"""Traffic of older releases is decoded with classes compiled from older definitions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from kafka_msgs import Message, OffsetFetchRequest, ProduceRequest, compile_schema
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.errors import UnknownMessageError, UnsupportedVersionError
from kafka_msgs.wire import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_header_version,
    response_header_version,
)


def field(name: str, kind: str, versions: str = "0+", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions, **more}


def old(name: str, api_key: int, versions: str, flexible: str, *fields: dict[str, Any]) -> Any:
    """Return a class from a definition before 4.0, with versions that 4.0 removed (KIP-896)."""
    kind = "request" if name.endswith("Request") else "response"
    definition = {"apiKey": api_key, "type": kind, "name": name, "validVersions": versions}
    return compile_schema(json.dumps({**definition, "flexibleVersions": flexible, "fields": list(fields)}))


PRODUCE = old(
    "ProduceRequest",
    0,
    "0-2",
    "none",
    field("Acks", "int16"),
    field("TimeoutMs", "int32"),
    field(
        "TopicData",
        "[]TopicProduceData",
        fields=[
            field("Name", "string"),
            field(
                "PartitionData",
                "[]PartitionProduceData",
                fields=[field("Index", "int32"), field("Records", "bytes", nullableVersions="0+")],
            ),
        ],
    ),
)
OFFSET_FETCH_ANSWER = old(
    "OffsetFetchResponse",
    9,
    "0",
    "none",
    field(
        "Topics",
        "[]OffsetFetchResponseTopic",
        fields=[
            field("Name", "string"),
            field(
                "Partitions",
                "[]OffsetFetchResponsePartition",
                fields=[
                    field("PartitionIndex", "int32"),
                    field("CommittedOffset", "int64"),
                    field("Metadata", "string", nullableVersions="0+"),
                    field("ErrorCode", "int16"),
                ],
            ),
        ],
    ),
)
SHUTDOWN = old(
    "ControlledShutdownRequest",
    7,
    "0-3",
    "3+",
    field("BrokerId", "int32"),
    field("BrokerEpoch", "int64", "2+", default="-1", ignorable=True),
)
CLASSES: list[type[Message]] = [PRODUCE, OFFSET_FETCH_ANSWER, SHUTDOWN]
OLD = MessageCatalog.of(CLASSES)
BOTH = MessageCatalog.of(CLASSES, fallback=release_catalog())

PRODUCE_V1 = bytes.fromhex("0000 0001 00000007 0001 63 0001 000003e8 00000001 0001 74 00000001 00000005 00000002 cafe")
OFFSETS_V0 = bytes.fromhex("00000007 00000001 0001 74 00000001 00000005 000000000000002a 0000 0000")
SHUTDOWN_V0 = bytes.fromhex("0007 0000 00000007 0000002a")


def test_versions_that_the_release_lacks_are_refused_without_a_catalog() -> None:
    for payload, error in ((PRODUCE_V1, UnsupportedVersionError), (SHUTDOWN_V0, UnknownMessageError)):
        with pytest.raises(error):
            decode_request(payload)
    with pytest.raises(UnsupportedVersionError):
        decode_response(OFFSETS_V0, 9, 0)


@pytest.mark.parametrize("catalog", [OLD, BOTH], ids=["old classes alone", "old classes before the release's"])
def test_old_traffic_is_read_and_written_with_old_classes(catalog: MessageCatalog) -> None:
    produce: Any = decode_request(PRODUCE_V1, catalog=catalog)
    assert type(produce.message) is PRODUCE
    assert (produce.header.client_id, produce.message.acks, produce.message.timeout_ms) == ("c", 1, 1000)
    assert produce.message.topic_data[0].partition_data[0].records == b"\xca\xfe"
    offsets: Any = decode_response(OFFSETS_V0, 9, 0, catalog=catalog)
    assert offsets.message.topics[0].partitions[0].committed_offset == 42
    for frame, payload in ((produce, PRODUCE_V1), (offsets, OFFSETS_V0)):
        assert frame.encode() == evolve(frame).encode() == payload
    assert encode_request(produce.message, 1, correlation_id=7, client_id="c") == PRODUCE_V1
    assert encode_response(offsets.message, 0, correlation_id=7) == OFFSETS_V0


def test_a_header_without_a_client_id() -> None:
    frame: Any = decode_request(SHUTDOWN_V0, catalog=OLD)
    assert (frame.header.correlation_id, frame.header.client_id, frame.message.broker_id) == (7, None, 42)
    assert frame.encode() == evolve(frame).encode() == SHUTDOWN_V0
    later = encode_request(frame.message, 1, correlation_id=7, client_id="c")
    assert later == bytes.fromhex("0007 0001 00000007 0001 63 0000002a")
    assert [request_header_version(7, version, OLD) for version in range(4)] == [0, 1, 1, 2]


def test_the_release_reads_what_old_classes_lack() -> None:
    message = OffsetFetchRequest(group_id="g", topics=None)
    assert decode_request(encode_request(message, 2, correlation_id=7), catalog=BOTH).message == message
    newer = encode_request(ProduceRequest(acks=1), 9, correlation_id=7)
    assert type(decode_request(newer, catalog=BOTH).message) is ProduceRequest
    assert request_header_version(0, 9, BOTH) == 2
    assert response_header_version(9, 0, BOTH) == 0
    with pytest.raises(UnsupportedVersionError):
        decode_request(newer, catalog=OLD)
