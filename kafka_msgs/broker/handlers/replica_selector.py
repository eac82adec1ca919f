"""Preferred read replicas: a replica in the consumer's rack, if the brokers use rack-aware selection (KIP-392).

The config ``replica.selector.class`` must name Kafka's ``RackAwareReplicaSelector``, the only supported selector.
"""

from __future__ import annotations

from typing import Final

from kafka_msgs.broker.handlers.partition_access import LeaderPartition
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.messages.fetch_request import FetchRequest

__all__ = ["FIRST_WITH_RACKS", "preferred_replica"]

FIRST_WITH_RACKS: Final = 11
"""The first version of Fetch that contains the consumer's rack."""

_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred_replica(call: ServerCall[FetchRequest], led: LeaderPartition, offset: int) -> int | None:
    """Return the broker that the consumer should fetch a partition from, or None for this one.

    Only the leader selects a replica. All in-sync replicas have the same records here, so the last matching one is
    used, as in Kafka.
    """
    state, rack, image = led.state, call.request.rack_id, call.cluster.image
    if call.version < FIRST_WITH_RACKS or not rack or state.leader != call.session.broker_id:
        return None
    if call.cluster.configs.text("replica.selector.class") != _SELECTOR:
        return None
    listener = call.session.listener.name
    brokers = (image.brokers[each] for each in state.isr if image.is_alive(each))
    same = {broker.id for broker in brokers if broker.rack == rack and listener in broker.endpoints}
    if not same or state.leader in same or not led.log.log_start_offset <= offset <= led.log.log_end_offset:
        return None
    return max(same)
