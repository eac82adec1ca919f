"""Topics and names of a test's own at the cluster that all tests share: two tests never meet in one topic or group."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from kafka_msgs.admin import Admin, NewTopic
from tests.support.kafka_cluster import ClusterAddresses

__all__ = ["new_name", "new_topic"]


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
    """Make a topic with a name of its own; return the name."""
    name = new_name(prefix)
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, partitions, replicas, configs=configs or {})]).all()
    return name
