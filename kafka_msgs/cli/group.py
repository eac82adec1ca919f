"""The commands as one group, and how a failure ends: one line on standard error, exit status 1."""

from __future__ import annotations

from typing import Any

import click

from kafka_msgs import __version__
from kafka_msgs.cli.decode import decode_command
from kafka_msgs.cli.dump_log import dump_log_command
from kafka_msgs.cli.encode import encode_command
from kafka_msgs.cli.errors import errors_command
from kafka_msgs.cli.frame import frame_command
from kafka_msgs.cli.listing import list_command
from kafka_msgs.cli.plan import plan_command
from kafka_msgs.cli.show import show_command
from kafka_msgs.errors import KafkaMsgsError

__all__ = ["command"]


class _PlainErrors(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KafkaMsgsError as error:
            raise click.ClickException(str(error)) from None


@click.group(
    cls=_PlainErrors,
    commands=[
        list_command,
        show_command,
        plan_command,
        decode_command,
        encode_command,
        frame_command,
        dump_log_command,
        errors_command,
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__)
def command() -> None:
    """Look up Kafka's messages; decode, explain and encode them at any version."""
