"""Command help: ``-h``, and a command list with complete sentences."""

from __future__ import annotations

from typing import Any, Final

import click

__all__ = ["HELP", "FullHelpGroup"]

HELP: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""The context settings of the outermost command; click passes them on to its subcommands."""

_WHOLE: Final = 1000
"""More letters than the first sentence of any command has."""


class FullHelpGroup(click.Group):
    """A group whose help shows the full first sentence of each command; click would cut it to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and first sentences of the commands to ``formatter``."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in found if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
