"""Plans for the replicas of partitions: which brokers should have them (``kafka-reassign-partitions --generate``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["plan_replicas"]


def plan_replicas(
    current: Mapping[TopicPartition, Sequence[int]], racks: Mapping[int, str | None]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return brokers for partitions that spread leaders and replicas evenly, with as many replicas as today.

    ``racks`` contains the available brokers. The replicas of a partition are in different racks, as far as there are
    racks. Equal arguments have equal plans. Raises ``ValueError`` if a partition has more replicas than there are
    brokers.
    """
    order = _alternating(racks)
    plan = {}
    for number, (partition, replicas) in enumerate(sorted(current.items())):
        if len(replicas) > len(order):
            raise ValueError(f"{partition} has {len(replicas)} replicas, and there are {len(order)} brokers")
        plan[partition] = _placed(order, racks, number, len(replicas))
    return plan


def _alternating(racks: Mapping[int, str | None]) -> list[int]:
    """Return the brokers, alternating between racks."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    return [broker for turn in zip_longest(*by_rack.values()) for broker in turn if broker is not None]


def _placed(order: Sequence[int], racks: Mapping[int, str | None], number: int, count: int) -> tuple[int, ...]:
    """Return the replicas of a partition. Each turn through the brokers pairs leaders with other followers."""
    turn, first = divmod(number, len(order))
    others = [*order[first + 1 :], *order[:first]]
    start = turn % len(others) if others else 0
    candidates = [*others[start:], *others[:start]]
    chosen = [order[first]] if count else []
    while len(chosen) < count:
        used = {racks[broker] for broker in chosen}
        chosen.append(next((broker for broker in candidates if racks[broker] not in used), candidates[0]))
        candidates.remove(chosen[-1])
    return tuple(chosen)
