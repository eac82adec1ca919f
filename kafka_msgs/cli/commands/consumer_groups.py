"""``kafka-msgs consumer-groups``: the options of Kafka's tool of that name (KIP-88)."""

from __future__ import annotations

from kafka_msgs.cli.group_commands.command import groups_command
from kafka_msgs.cli.group_commands.specs import CONSUMER

__all__ = ["consumer_groups_command"]

consumer_groups_command = groups_command(
    CONSUMER,
    """List and describe consumer groups, and reset or delete their offsets.

    The groups use the classic protocol or KIP-848. Offsets of groups without members are shown (KIP-88), with a
    note on standard error. The exit status is 1 if the command failed or an item was refused.

    Example: kafka-msgs consumer-groups --describe --group billing -b localhost
    """,
)
