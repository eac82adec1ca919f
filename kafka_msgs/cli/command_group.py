"""The commands as one group, and their failures: one line on standard error, exit status 1.

A command is imported when it runs, so that no command waits for the imports of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

from kafka_msgs import __version__, backend
from kafka_msgs.cli.help import HELP, FullHelpGroup
from kafka_msgs.errors import KafkaMsgsError

__all__ = ["command"]

_COMMANDS: Final[Mapping[str, str]] = {
    "list": "list.list_command",
    "show": "show.show_command",
    "plan": "plan.plan_command",
    "decode": "decode.decode_command",
    "encode": "encode.encode_command",
    "frame": "frame.frame_command",
    "call": "call.call_command",
    "api-versions": "api_versions.api_versions_command",
    "consume": "consume.consume_command",
    "produce": "produce.produce_command",
    "groups": "groups.groups_command",
    "consumer-groups": "consumer_groups.consumer_groups_command",
    "streams-groups": "streams_groups.streams_groups_command",
    "share-groups": "share_groups.share_groups_command",
    "lag": "lag.lag_command",
    "profile": "profile.profile_command",
    "sql": "sql.sql_command",
    "dump-log": "dump_log.dump_log_command",
    "capture": "capture.capture_command",
    "tap": "tap.tap_command",
    "broker": "broker.broker_command",
    "redact": "redact.redact_command",
    "pipeline": "pipeline.pipeline_command",
    "sample": "sample.sample_command",
    "errors": "errors.errors_command",
    "completion": "completion.completion_command",
}
"""The location of each command in ``commands``."""


class _Commands(FullHelpGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name].split(".")
        found: click.Command = getattr(import_module(f"kafka_msgs.cli.commands.{module}"), name)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KafkaMsgsError as error:
            raise click.ClickException(str(error)) from None


def _print_version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    """Print the versions of the library, of Kafka's definitions and of Python, and which code runs."""
    if not requested:
        return
    from platform import python_implementation, python_version

    from kafka_msgs.messages import RELEASE

    code = "C core" if backend() == "c" else "pure Python"
    python = f"{python_implementation()} {python_version()}"
    click.echo(f"kafka-msgs {__version__} (Apache Kafka {RELEASE}, {code}, {python})")
    ctx.exit()


@click.group(cls=_Commands, context_settings=HELP)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version, with Kafka's release and the executor, and exit.",
)
def command() -> None:
    """Look up Kafka's messages, decode, explain and encode them at any version, ask brokers, and read their files."""
