"""``kafka-msgs sample``: a small log directory of a real broker, to try the other commands on."""

from __future__ import annotations

from pathlib import Path

import click

from kafka_msgs.cli.render.output import echo
from kafka_msgs.samples import write_sample

__all__ = ["sample_command"]


@click.command("sample")
@click.argument("directory", type=click.Path(path_type=Path))
def sample_command(directory: Path) -> None:
    """Write a small log directory of a real broker to DIRECTORY, for trying out commands.

    It contains groups of every kind, including empty ones, and their topics. DIRECTORY must be new or empty.

    Example: kafka-msgs sample kafka-logs
    """
    for path in write_sample(directory):
        echo(path)
