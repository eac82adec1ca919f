"""``kafka-msgs streams-groups``: the options of Kafka's tool of that name (KIP-1071)."""

from __future__ import annotations

from kafka_msgs.cli.group_commands.command import groups_command
from kafka_msgs.cli.group_commands.specs import STREAMS

__all__ = ["streams_groups_command"]

streams_groups_command = groups_command(
    STREAMS,
    """List and describe Kafka Streams groups, and reset or delete their offsets.

    These are the groups of KIP-1071; the group id is the application id. --delete also deletes the internal topics of
    the group. The exit status is 1 if the command failed or an item was refused.

    Example: kafka-msgs streams-groups --describe --group word-count -b localhost
    """,
)
