"""Exchanges for pages: a small varied recording, and large ones made of it."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_msgs import (
    ErrorCode,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
)
from kafka_msgs.capture import CapturedConnection, CapturedPayload, CaptureFault, Endpoint, Exchange, FaultKind
from kafka_msgs.messages.fetch_response import FetchableTopicResponse, PartitionData
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.messages.metadata_response import MetadataResponseBroker, MetadataResponseTopic
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequestGroup
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponseGroup
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.messages.produce_response import PartitionProduceResponse, TopicProduceResponse
from kafka_msgs.records import BatchBuilder, CompressionType
from kafka_msgs.wire import encode_request, encode_response

__all__ = ["HOSTILE", "few", "many"]

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
START = 1_700_000_000_000_000


def _batch(codec: CompressionType) -> bytes:
    builder = BatchBuilder(codec=codec)
    for number in range(5):
        value = b'{"order": %d, "card": "4000"}' % number
        assert builder.append(b"key-%d" % number, value, timestamp=1_700_000_000_000 + number, headers=[("who", b"me")])
    return builder.build()


def _pair(kind: int, topic: str, group: str) -> tuple[Request[Response], Response, int]:
    if kind == 0:
        broker = MetadataResponseBroker(node_id=1, host="kafka-1", port=9092)
        found = MetadataResponse(brokers=(broker,), topics=(MetadataResponseTopic(name=topic, partitions=()),))
        return MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), found, 12
    if kind == 1:
        data = PartitionProduceData(index=0, records=_batch(CompressionType.NONE))
        produce = ProduceRequest(acks=-1, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),))
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        answer = TopicProduceResponse(name=topic, partition_responses=(PartitionProduceResponse(error_code=code),))
        return produce, ProduceResponse(responses=(answer,)), 9
    if kind == 2:
        fetched = PartitionData(partition_index=0, high_watermark=5, records=_batch(CompressionType.GZIP))
        return (
            FetchRequest(),
            FetchResponse(responses=(FetchableTopicResponse(topic=topic, partitions=(fetched,)),)),
            12,
        )
    groups = (OffsetFetchRequestGroup(group_id=group, topics=None),)
    return OffsetFetchRequest(groups=groups), OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id=group),)), 9


def _payloads(kind: int, topic: str, group: str, client: str) -> tuple[int, int, bytes, bytes]:
    request, response, version = _pair(kind, topic, group)
    api_key = request.INFO.api_key
    assert api_key is not None
    sent = encode_request(request, version, correlation_id=7, client_id=client)
    return api_key, version, sent, encode_response(response, version, correlation_id=7)


def _exchange(number: int, made: tuple[int, int, bytes, bytes], latency: int) -> Exchange:
    api_key, version, request, response = made
    at = START + number * 10_000
    connection = CapturedConnection(
        1 + number % 5, Endpoint("10.0.0.7", 50_000 + number % 5), Endpoint("10.0.0.1", 9092)
    )
    return Exchange(
        connection=connection,
        api_key=api_key,
        version=version,
        correlation_id=7,
        request=CapturedPayload(request, len(request), 0, at, number + 1),
        response=CapturedPayload(response, len(response), 0, at + latency, number + 1),
    )


def few() -> Iterator[Exchange | CaptureFault]:
    """Yield 40 exchanges of four APIs, one in four with an error, one with a hostile topic, and a fault."""
    for number in range(40):
        topic = HOSTILE if number == 20 else ("orders", "payments")[number // 4 % 2]
        made = _payloads(number % 4, topic, "billing", ("till", "shop", HOSTILE)[number % 3])
        yield _exchange(number, made, 1_000 * (number + 1))
    ends = CapturedConnection(1, Endpoint("10.0.0.7", 50_000), Endpoint("10.0.0.1", 9092))
    reason = f"{HOSTILE}: 5 bytes were not captured"
    yield CaptureFault(kind=FaultKind.GAP, reason=reason, size=5, at=START + 900_000, connection=ends)


def many(count: int) -> Iterator[Exchange]:
    """Yield this many exchanges of real sizes, with some hundred topics and clients."""
    cached = [
        _payloads(kind, f"topic-{each:03}", f"group-{each % 40}", f"client-{each % 60}")
        for each in range(200)
        for kind in range(4)
    ]
    for number in range(count):
        yield _exchange(number, cached[number * 7 % len(cached)], 500 + number * 7919 % 200_000)
