"""All protocols of a group coordinator. Each package adds its ``PROTOCOL`` here."""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups import classic_protocol as classic
from kafka_msgs.groups import group_admin
from kafka_msgs.groups.consumer import protocol as consumer
from kafka_msgs.groups.group_protocol import GroupProtocol
from kafka_msgs.groups.offsets import protocol as offsets
from kafka_msgs.groups.share import protocol as share
from kafka_msgs.groups.streams import protocol as streams

__all__ = ["PROTOCOLS"]

PROTOCOLS: Final[tuple[GroupProtocol, ...]] = (
    offsets.PROTOCOL,
    group_admin.PROTOCOL,
    classic.PROTOCOL,
    consumer.PROTOCOL,
    share.PROTOCOL,
    streams.PROTOCOL,
)
"""The protocols in the order in which their hooks run."""
