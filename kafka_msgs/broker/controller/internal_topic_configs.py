"""Names and configs of the internal topics in which coordinators store their state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import frozen

if TYPE_CHECKING:
    from kafka_msgs.broker.controller.config_defs import BrokerConfigs

__all__ = ["CONSUMER_OFFSETS", "INTERNAL_TOPICS", "SHARE_GROUP_STATE", "TRANSACTION_STATE", "is_internal"]

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"


@frozen
class InternalTopicConfig:
    """An internal topic.

    ``prefix`` is the common prefix of the broker configs for creating the topic. ``fixed`` maps topic configs to their
    values, and ``settings`` maps topic configs to broker configs.
    """

    name: str
    prefix: str
    fixed: Mapping[str, str]
    settings: Mapping[str, str]

    def partitions(self, settings: BrokerConfigs) -> int:
        """Return the number of partitions."""
        return settings.number(f"{self.prefix}.num.partitions")


INTERNAL_TOPICS: Final[Mapping[str, InternalTopicConfig]] = {
    each.name: each
    for each in (
        InternalTopicConfig(
            CONSUMER_OFFSETS,
            "offsets.topic",
            {"cleanup.policy": "compact", "compression.type": "producer"},
            {"segment.bytes": "offsets.topic.segment.bytes"},
        ),
        InternalTopicConfig(
            TRANSACTION_STATE,
            "transaction.state.log",
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
            },
            {
                "min.insync.replicas": "transaction.state.log.min.isr",
                "segment.bytes": "transaction.state.log.segment.bytes",
            },
        ),
        InternalTopicConfig(
            SHARE_GROUP_STATE,
            "share.coordinator.state.topic",
            {"cleanup.policy": "delete", "compression.type": "uncompressed", "retention.ms": "-1"},
            {
                "min.insync.replicas": "share.coordinator.state.topic.min.isr",
                "segment.bytes": "share.coordinator.state.topic.segment.bytes",
            },
        ),
    )
}
"""The internal topics by name. Their configs are those in Kafka's ``AutoTopicCreationManager`` and coordinators."""


def is_internal(name: str) -> bool:
    """Return whether a topic is internal."""
    return name in INTERNAL_TOPICS
