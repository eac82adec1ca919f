"""The command ``kafka-msgs``, with ranges of 1 MB, so that jobs over small logs have many tasks."""

from __future__ import annotations

from unittest.mock import patch

from kafka_msgs.cli.command_group import command
from kafka_msgs.engines import plan

if __name__ == "__main__":
    with patch.object(plan, "SPLIT_BYTES", 1 << 20):
        command(prog_name="kafka-msgs")
