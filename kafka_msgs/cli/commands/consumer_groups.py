"""``kafka-msgs consumer-groups``: the options of Kafka's tool of that name (KIP-88)."""

from __future__ import annotations

from kafka_msgs.cli.group_commands.command import groups_command
from kafka_msgs.cli.group_commands.specs import CONSUMER

__all__ = ["consumer_groups_command"]

consumer_groups_command = groups_command(
    CONSUMER,
    """List and describe consumer groups, and reset or delete their offsets.

    They are groups of the classic protocol and of KIP-848. A group without members shows its offsets too (KIP-88);
    standard error notes that it has none. The exit status is 1 where something was refused or failed.
    """,
)
