"""``kafka-msgs completion``: the shell script that completes commands, options and message names."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from kafka_msgs.cli.render.output import echo

__all__ = ["completion_command"]

_PROGRAM: Final = "kafka-msgs"
_VARIABLE: Final = "_KAFKA_MSGS_COMPLETE"
"""The environment variable that the script sets for the program; click derives it from the program's name."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    For bash or zsh, add the example to ~/.bashrc or ~/.zshrc. For fish, write the script to
    ~/.config/fish/completions/kafka-msgs.fish.

    Example: eval "$(kafka-msgs completion bash)"
    """
    made = get_completion_class(shell)
    assert made is not None, "click knows these shells"
    echo(made(ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source())
