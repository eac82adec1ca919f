"""Command help: ``-h``, commands in groups, complete sentences, and suggestions for mistyped names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from kafka_msgs.suggestions import similar_names

__all__ = ["EXIT_STATUSES", "HELP", "FullHelpGroup"]

HELP: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""The context settings of the outermost command; click passes them on to its subcommands."""

EXIT_STATUSES: Final[Mapping[int, str]] = {
    0: "Success. Stopping consume, lag --watch, lag --listen, tap or broker with Ctrl-C is also success.",
    1: "Failure; the reason is on standard error. Commands that read files also fail if a file is damaged.",
    2: "Invalid call: an unknown option, command or message, or a missing argument.",
    3: "lag: a lag exceeds --max-lag or --max-seconds. pipeline: another run has committed its output first. "
    "upgrade-check: a client or a file blocks the upgrade.",
    130: "Interrupted by Ctrl-C.",
    143: "Stopped by SIGTERM.",
}
"""The exit statuses of all commands."""

_WHOLE: Final = 1000
"""More letters than the first sentence of any command has."""


class FullHelpGroup(click.Group):
    """A group whose help shows the full first sentence of each command; click would cut it to one line."""

    sections: Mapping[str, Sequence[str]] = {}
    """The headings of the command list, and the commands under each; one heading if it is empty."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command in the arguments. Raises ``click.UsageError`` with similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = similar_names(args[0], self.list_commands(ctx))
            if not close or isinstance(error, click.NoSuchOption):
                raise
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {' or '.join(close)}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and first sentences of the commands to ``formatter``."""
        for heading, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl(
                    [(name, command.get_short_help_str(_WHOLE)) for name, command in commands if command]
                )
