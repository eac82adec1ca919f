"""``kafka-msgs share-groups``: the options of Kafka's tool of that name (KIP-932)."""

from __future__ import annotations

from kafka_msgs.cli.group_commands.command import groups_command
from kafka_msgs.cli.group_commands.specs import SHARE

__all__ = ["share_groups_command"]

share_groups_command = groups_command(
    SHARE,
    """List and describe share groups, and reset or delete their offsets.

    These are the groups of KIP-932. Their offsets are start offsets. The exit status is 1 if the command failed or an
    item was refused.

    Example: kafka-msgs share-groups --describe --all-groups -b localhost
    """,
)
