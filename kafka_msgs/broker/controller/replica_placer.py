"""Replica placement for new partitions: round-robin over the brokers, alternating between racks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from kafka_msgs.broker.controller.image import BrokerRegistration
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError

__all__ = ["place_replicas"]


def place_replicas(
    brokers: Sequence[BrokerRegistration], *, partitions: int, replication_factor: int, first: int
) -> list[tuple[int, ...]]:
    """Return the replicas of each new partition. ``first`` rotates the order, so that leaders are spread.

    ``brokers`` are the registered brokers. Only running brokers receive replicas, unless too few brokers run. Raises
    ``RequestRefusedError`` with INVALID_REPLICATION_FACTOR.
    """
    running = [broker for broker in brokers if broker.alive and not broker.in_controlled_shutdown]
    if not running:
        raise _refused(replication_factor, "All brokers are currently fenced or in controlled shutdown.")
    if replication_factor > len(brokers):
        reason = (
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
        raise _refused(replication_factor, reason)
    order = _by_turns(running) + _by_turns([broker for broker in brokers if broker not in running])
    count = len(order) if replication_factor > len(running) else len(running)
    return [
        tuple(order[(first + partition + replica) % count] for replica in range(replication_factor))
        for partition in range(partitions)
    ]


def _by_turns(brokers: Sequence[BrokerRegistration]) -> list[int]:
    """Return the broker ids, alternating between racks."""
    racks: dict[str | None, list[int]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack, []).append(broker.id)
    return [broker for turn in zip_longest(*racks.values()) for broker in turn if broker is not None]


def _refused(replication_factor: int, reason: str) -> RequestRefusedError:
    message = f"Unable to replicate the partition {replication_factor} time(s): {reason}"
    return RequestRefusedError(error=ErrorCode.INVALID_REPLICATION_FACTOR, message=message)
