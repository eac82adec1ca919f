"""``kafka-msgs plan``: what is on the wire at one version, and the Python that is generated for it."""

from __future__ import annotations

import click
from rich.syntax import Syntax

from kafka_msgs.cli.message_names import message_argument
from kafka_msgs.cli.render.console import console
from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.codec.python import source
from kafka_msgs.message import Message

__all__ = ["plan_command"]


@click.command("plan")
@message_argument
@click.argument("version", type=int)
@click.option("--source", "show_source", is_flag=True, help="Print the generated Python instead.")
def plan_command(message: type[Message], version: int, show_source: bool) -> None:
    """Print the plan of MESSAGE at VERSION: every value on the wire, in order."""
    plan = compile_plan(message, version)
    if not show_source:
        click.echo(str(plan))
        return
    text = source(plan, DEFAULT_OPTIONS)
    out = console()
    if out.is_terminal:
        out.print(Syntax(text, "python", background_color="default", word_wrap=True))
    else:
        click.echo(text, nl=False)
