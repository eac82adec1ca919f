"""The log directories of brokers: describe their contents, and move replicas between them (KIP-113)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kafka_msgs.admin.fan_out import fan_out_to_brokers
from kafka_msgs.admin.partitions import by_topic
from kafka_msgs.admin.results import Outcome, Results, api_name, item_as_value, no_value, outcomes, raise_top_level
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.messages import alter_replica_log_dirs_request as alter
from kafka_msgs.messages import describe_log_dirs_request as describe
from kafka_msgs.messages.describe_log_dirs_response import DescribeLogDirsResult

__all__ = ["TopicPartitionReplica", "alter_replica_log_dirs", "describe_log_dirs"]


class TopicPartitionReplica(NamedTuple):
    """A broker's replica of a partition."""

    topic: str
    partition: int
    broker: int


def describe_log_dirs(
    client: ClientCore,
    brokers: Collection[int] | None = None,
    partitions: Collection[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> Flow[Results[int, Results[str, DescribeLogDirsResult]]]:
    """Return the log directories of brokers, or of all brokers, by broker id and path, with partition sizes.

    ``partitions`` restricts the result to these partitions. Sizes are in bytes.
    """
    deadline = client.deadline(timeout)
    request = describe.DescribeLogDirsRequest(
        topics=None
        if partitions is None
        else tuple(
            describe.DescribableLogDirTopic(topic=name, partitions=numbers)
            for name, numbers in by_topic(partitions).items()
        )
    )

    def ask(broker_id: int) -> Flow[Results[str, DescribeLogDirsResult]]:
        response = yield from client.call(request, broker_id=broker_id, deadline=deadline)
        raise_top_level(response, api_name(request), broker_id)
        return outcomes(api_name(request), ((each.log_dir, each) for each in response.results), item_as_value)

    return (yield from fan_out_to_brokers(client, ask, deadline=deadline, nodes=brokers))


def alter_replica_log_dirs(
    client: ClientCore, moves: Mapping[TopicPartitionReplica, str], *, timeout: float | None = None
) -> Flow[Results[TopicPartitionReplica, None]]:
    """Start moves of replicas to other log directories of their brokers, given by path."""
    deadline = client.deadline(timeout)
    by_broker: dict[int, dict[str, list[TopicPartition]]] = {}
    for replica, path in moves.items():
        paths = by_broker.setdefault(replica.broker, {})
        paths.setdefault(path, []).append(TopicPartition(replica.topic, replica.partition))

    def ask(broker_id: int) -> Flow[Results[TopicPartitionReplica, None]]:
        request = alter.AlterReplicaLogDirsRequest(
            dirs=tuple(
                alter.AlterReplicaLogDir(
                    path=path,
                    topics=tuple(
                        alter.AlterReplicaLogDirTopic(name=name, partitions=numbers)
                        for name, numbers in by_topic(partitions).items()
                    ),
                )
                for path, partitions in by_broker[broker_id].items()
            )
        )
        response = yield from client.call(request, broker_id=broker_id, deadline=deadline)
        items = (
            (TopicPartitionReplica(t.topic_name, p.partition_index, broker_id), p)
            for t in response.results
            for p in t.partitions
        )
        return outcomes(api_name(request), items, no_value, [each for each in moves if each.broker == broker_id])

    answers = yield from fan_out_to_brokers(client, ask, deadline=deadline, nodes=by_broker)
    found: dict[TopicPartitionReplica, Outcome[None]] = {}
    for replica in moves:
        of_broker = answers.outcomes[replica.broker]
        found[replica] = of_broker if isinstance(of_broker, Exception) else of_broker.outcomes[replica]
    return Results(found)
