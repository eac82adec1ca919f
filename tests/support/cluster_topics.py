"""Unique topics and names in the cluster that all tests share, so that tests never use the same topic or group.

Topic creation returns when one broker has the metadata. The other brokers receive it later, so tests that may send
requests to any broker wait for all of them. A broker may also learn of its leadership before the partition is ready:
until then it rejects records, and with ``acks=0`` it drops them without an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import uuid4

from kafka_msgs.admin import Admin, NewTopic, OffsetSpec
from kafka_msgs.client import TopicPartition
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses

__all__ = ["make_topics", "new_name", "new_topic", "wait_for_topics"]


def new_name(prefix: str) -> str:
    """Return a unique name."""
    return f"{prefix}-{uuid4().hex[:12]}"


def new_topic(
    cluster: ClusterAddresses,
    partitions: int = 1,
    *,
    replicas: int = 1,
    prefix: str = "topic",
    configs: Mapping[str, str | None] | None = None,
) -> str:
    """Create a topic with a unique name; return the name when every broker knows the leaders."""
    name = new_name(prefix)
    make_topics(cluster, NewTopic(name, partitions, replicas, configs=configs or {}))
    return name


def make_topics(cluster: ClusterAddresses, *topics: NewTopic) -> None:
    """Create topics, and wait until every broker knows all partition leaders, and each leader is ready."""
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics(topics).all()
    wait_for_topics(cluster, [each.name for each in topics])


def wait_for_topics(cluster: ClusterAddresses, names: Iterable[str]) -> None:
    """Wait until every broker knows all partition leaders of the topics, and each leader is ready."""
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=each) for each in names))
    with Admin(cluster.bootstrap_servers) as admin:

        def known(node: int) -> bool:
            found = admin.client.call(request, broker_id=node).topics
            return all(not topic.error_code and all(p.leader_id >= 0 for p in topic.partitions) for topic in found)

        def led() -> bool:
            found = admin.client.call(request).topics
            places = [TopicPartition(topic.name or "", p.partition_index) for topic in found for p in topic.partitions]
            return not admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST)).errors

        until(lambda: all(known(node) for node in cluster.nodes))
        until(led)
