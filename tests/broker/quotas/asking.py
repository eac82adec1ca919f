"""Requests that manage quotas, and requests that are subject to quotas."""

from __future__ import annotations

from kafka_msgs import AlterClientQuotasRequest, CreateTopicsRequest, DescribeClientQuotasRequest, ProduceRequest
from kafka_msgs.messages.alter_client_quotas_request import EntityData, EntryData, OpData
from kafka_msgs.messages.create_topics_request import CreatableTopic
from kafka_msgs.messages.describe_client_quotas_request import ComponentData
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData

__all__ = ["altered", "created", "described", "entry", "produced", "quota"]


def entry(entity: dict[str, str | None], *changes: tuple[str, float | None]) -> EntryData:
    """Return a change of one entity's quotas. The value None removes a quota."""
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()),
        ops=tuple(OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes),
    )


def altered(*entries: EntryData, validate_only: bool = False) -> AlterClientQuotasRequest:
    """Return a request that changes quotas."""
    return AlterClientQuotasRequest(entries=entries, validate_only=validate_only)


def quota(client_id: str, name: str, value: float | None) -> AlterClientQuotasRequest:
    """Return a request that sets or removes a client id's quota."""
    return altered(entry({"client-id": client_id}, (name, value)))


def described(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    """Return a request that describes quotas, with components of type, match type, and name."""
    return DescribeClientQuotasRequest(
        components=tuple(ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components),
        strict=strict,
    )


def produced(topic: str, records: bytes, acks: int = -1) -> ProduceRequest:
    """Return a request that produces to the first partition of a topic."""
    part = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),))
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=(part,))


def created(topic: str, partitions: int) -> CreateTopicsRequest:
    """Return a request that creates a topic."""
    new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=(new,), timeout_ms=10_000)
