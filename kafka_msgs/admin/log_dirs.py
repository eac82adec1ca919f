"""The log directories of brokers: what is in them, and moving replicas between them (KIP-113)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kafka_msgs.admin.keyed import at_every_broker
from kafka_msgs.admin.partitions import by_topic
from kafka_msgs.admin.results import Outcome, Results, api_of, itself, nothing, outcomes, raise_top_level
from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.waiting import Steps
from kafka_msgs.messages import alter_replica_log_dirs_request as alter
from kafka_msgs.messages import describe_log_dirs_request as describe
from kafka_msgs.messages.describe_log_dirs_response import DescribeLogDirsResult

__all__ = ["Replica", "alter_replica_log_dirs", "describe_log_dirs"]


class Replica(NamedTuple):
    """The copy of a partition that a broker has."""

    topic: str
    partition: int
    broker: int


def describe_log_dirs(
    core: ClientCore,
    brokers: Collection[int] | None = None,
    partitions: Collection[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> Steps[Results[int, Results[str, DescribeLogDirsResult]]]:
    """Return the log directories of brokers, or of all brokers: by broker id and path, with the size of each partition.

    ``partitions`` leaves out all others. Sizes are in bytes.
    """
    deadline = core.deadline(timeout)
    request = describe.DescribeLogDirsRequest(
        topics=None
        if partitions is None
        else tuple(
            describe.DescribableLogDirTopic(topic=name, partitions=numbers)
            for name, numbers in by_topic(partitions).items()
        )
    )

    def ask(node: int) -> Steps[Results[str, DescribeLogDirsResult]]:
        response = yield from core.call(request, node=node, deadline=deadline)
        raise_top_level(response, api_of(request), node)
        return outcomes(api_of(request), ((each.log_dir, each) for each in response.results), itself)

    return (yield from at_every_broker(core, ask, deadline=deadline, nodes=brokers))


def alter_replica_log_dirs(
    core: ClientCore, moves: Mapping[Replica, str], *, timeout: float | None = None
) -> Steps[Results[Replica, None]]:
    """Move replicas to other log directories of their brokers, given by path. It begins the move, and does not wait."""
    deadline = core.deadline(timeout)
    by_broker: dict[int, dict[str, list[TopicPartition]]] = {}
    for replica, path in moves.items():
        paths = by_broker.setdefault(replica.broker, {})
        paths.setdefault(path, []).append(TopicPartition(replica.topic, replica.partition))

    def ask(node: int) -> Steps[Results[Replica, None]]:
        request = alter.AlterReplicaLogDirsRequest(
            dirs=tuple(
                alter.AlterReplicaLogDir(
                    path=path,
                    topics=tuple(
                        alter.AlterReplicaLogDirTopic(name=name, partitions=numbers)
                        for name, numbers in by_topic(partitions).items()
                    ),
                )
                for path, partitions in by_broker[node].items()
            )
        )
        response = yield from core.call(request, node=node, deadline=deadline)
        items = ((Replica(t.topic_name, p.partition_index, node), p) for t in response.results for p in t.partitions)
        return outcomes(api_of(request), items, nothing, [each for each in moves if each.broker == node])

    answers = yield from at_every_broker(core, ask, deadline=deadline, nodes=by_broker)
    found: dict[Replica, Outcome[None]] = {}
    for replica in moves:
        of_broker = answers.outcomes[replica.broker]
        found[replica] = of_broker if isinstance(of_broker, Exception) else of_broker.outcomes[replica]
    return Results(found)
