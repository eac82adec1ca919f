"""Topics and names of a test's own at the cluster that all tests share: two tests never meet in one topic or group.

A topic is made when one broker knows it. Others learn of it later, so whoever asks any broker waits for all of them. A
broker knows that it leads a partition before it does: until then it refuses records, and with ``acks=0`` says nothing.
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
    """Return a name that nothing else has."""
    return f"{prefix}-{uuid4().hex[:12]}"


def new_topic(
    cluster: ClusterAddresses,
    partitions: int = 1,
    *,
    replicas: int = 1,
    prefix: str = "topic",
    configs: Mapping[str, str | None] | None = None,
) -> str:
    """Make a topic with a name of its own; return the name when every broker knows its leaders."""
    name = new_name(prefix)
    make_topics(cluster, NewTopic(name, partitions, replicas, configs=configs or {}))
    return name


def make_topics(cluster: ClusterAddresses, *topics: NewTopic) -> None:
    """Make topics, and wait until every broker knows the leaders of all partitions, and each of these leads."""
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics(topics).all()
    wait_for_topics(cluster, [each.name for each in topics])


def wait_for_topics(cluster: ClusterAddresses, names: Iterable[str]) -> None:
    """Wait until every broker knows the leaders of all partitions of topics, and each of these leads."""
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
