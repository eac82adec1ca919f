"""``kafka-msgs plan``: the wire format at one version, and the Python code generated for it."""

from __future__ import annotations

from typing import Any

import click
from rich.syntax import Syntax

from kafka_msgs.cli.message_names import message_argument
from kafka_msgs.cli.output_options import json_option
from kafka_msgs.cli.render.console import console, print_json
from kafka_msgs.cli.render.output import echo
from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.plan import StructPlan, WireValue, compile_plan
from kafka_msgs.codec.python import source
from kafka_msgs.message import Message

__all__ = ["plan_command"]


@click.command("plan")
@message_argument
@click.argument("version", type=int)
@json_option("Print a JSON object; its fields are in the order of the wire.")
@click.option("--source", "show_source", is_flag=True, help="Print the generated Python instead.")
def plan_command(message: type[Message], version: int, as_json: bool, show_source: bool) -> None:
    """Print the plan of MESSAGE at VERSION: every value on the wire, in order.

    Example: kafka-msgs plan HeartbeatRequest 4
    """
    plan = compile_plan(message, version)
    if as_json and show_source:
        raise click.UsageError("--json excludes --source")
    if as_json:
        print_json(
            {"name": plan.name, "version": version, "flexible": plan.root.flexible, "fields": _fields(plan.root)}
        )
        return
    if not show_source:
        echo(str(plan))
        return
    text = source(plan, DEFAULT_OPTIONS)
    out = console()
    if out.is_terminal:
        out.print(Syntax(text, "python", background_color="default", word_wrap=True))
    else:
        echo(text, nl=False)


def _fields(plan: StructPlan) -> list[dict[str, Any]]:
    return [
        {
            "attribute": step.attribute,
            "type": str(step.value),
            "tag": step.tag,
            "fields": [] if (inner := _struct(step.value)) is None else _fields(inner),
        }
        for step in plan.steps + plan.tagged
    ]


def _struct(value: WireValue) -> StructPlan | None:
    return value.item.struct if value.op is Op.ARRAY else value.struct
