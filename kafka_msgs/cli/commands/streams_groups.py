"""``kafka-msgs streams-groups``: the options of Kafka's tool of that name (KIP-1071)."""

from __future__ import annotations

from kafka_msgs.cli.group_commands.command import groups_command
from kafka_msgs.cli.group_commands.specs import STREAMS

__all__ = ["streams_groups_command"]

streams_groups_command = groups_command(
    STREAMS,
    """List and describe groups of Kafka Streams, and reset or delete their offsets.

    They are the groups of KIP-1071; a group id is an application id. --delete deletes the internal topics of the group
    too. The exit status is 1 where something was refused or failed.
    """,
)
