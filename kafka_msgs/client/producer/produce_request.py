"""Produce requests: build a request from batches, and match its response to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from kafka_msgs.client.producer.producer_batch import ProducerBatch
from kafka_msgs.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_msgs.messages.produce_response import PartitionProduceResponse, ProduceResponse

__all__ = ["BEFORE_TOPIC_IDS", "BEFORE_TRANSACTIONS_V2", "ProduceParams", "match_responses", "produce_request"]

BEFORE_TOPIC_IDS: Final = 12
"""The last version with topic names. Later versions use topic ids (KIP-516)."""
BEFORE_TRANSACTIONS_V2: Final = 11
"""The last version before brokers add partitions to transactions themselves (KIP-890)."""


class ProduceParams(NamedTuple):
    """Fields that all requests of a producer share."""

    transactional_id: str | None
    acks: int
    timeout_ms: int


def produce_request(
    settings: ProduceParams, batches: Sequence[ProducerBatch], ids: dict[str, UUID] | None
) -> ProduceRequest:
    """Return a request with these batches. ``ids`` are the topic ids, or None for a version with topic names."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for batch in batches:
        entry = PartitionProduceData(index=batch.partition, records=batch.encode())
        topics.setdefault(batch.topic, []).append(entry)
    data = [
        TopicProduceData(name=topic, partition_data=tuple(entries))
        if ids is None
        else TopicProduceData(topic_id=ids[topic], partition_data=tuple(entries))
        for topic, entries in topics.items()
    ]
    return ProduceRequest(
        transactional_id=settings.transactional_id,
        acks=settings.acks,
        timeout_ms=settings.timeout_ms,
        topic_data=tuple(data),
    )


def match_responses(
    response: ProduceResponse, batches: Sequence[ProducerBatch], ids: dict[str, UUID] | None
) -> Iterator[tuple[ProducerBatch, PartitionProduceResponse | None]]:
    """Yield each batch with its part of the response, or with None if the response omits it."""
    found = {
        (topic.name if ids is None else topic.topic_id, answer.index): answer
        for topic in response.responses
        for answer in topic.partition_responses
    }
    for batch in batches:
        topic = batch.topic if ids is None else ids[batch.topic]
        yield batch, found.get((topic, batch.partition))
