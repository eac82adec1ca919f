"""The commands as one group, and their failures: one line on standard error, exit status 1.

A command is imported when it runs, so that no command waits for the imports of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click

from kafka_msgs import __version__, backend
from kafka_msgs.cli.help import EXIT_STATUSES, HELP, FullHelpGroup
from kafka_msgs.cli.interruption import exit_status
from kafka_msgs.cli.render.output import CommandError, OvertakenError, echo
from kafka_msgs.errors import ConcurrentRunError, KafkaMsgsError
from kafka_msgs.suggestions import similar_names

__all__ = ["command"]

_FAILURES: Final[Mapping[type[KafkaMsgsError], type[CommandError]]] = {ConcurrentRunError: OvertakenError}
"""The failures with another exit status than 1."""
_SECTIONS: Final[Mapping[str, Sequence[str]]] = {
    "Messages": ("messages", "show", "plan", "decode", "encode", "frame", "guess", "explain", "errors"),
    "Cluster": (
        "consume", "produce", "topics", "configs", "cluster", "get-offsets", "delete-records", "groups",
        "consumer-groups", "streams-groups", "share-groups", "lag", "acls", "users", "quotas", "transactions",
        "reassign", "elect-leaders", "features", "api-versions", "call",
    ),
    "Files": ("dump-log", "sql", "profile", "pipeline", "tables", "sample"),
    "Traffic": ("tap", "view", "capture", "redact", "upgrade-check"),
    "Tests": ("broker",),
    "Shell": ("completion",),
}  # fmt: skip
"""The headings of the command list, and the commands under each."""

_LOCATIONS: Final[Mapping[str, str]] = dict.fromkeys(
    ("acls", "cluster", "configs", "delete-records", "elect-leaders", "features", "get-offsets", "quotas", "reassign",
     "topics", "transactions", "users"),
    "kafka_msgs.cli.admin_commands",
)  # fmt: skip
"""The packages of commands that are not in ``commands``."""


class _Commands(FullHelpGroup):
    sections = _SECTIONS

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in _SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = cmd_name.replace("-", "_")
        package = _LOCATIONS.get(cmd_name, "kafka_msgs.cli.commands")
        loaded: click.Command = getattr(import_module(f"{package}.{module}"), f"{module}_command")
        return loaded

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit status"):
            formatter.write_dl([(str(status), meaning) for status, meaning in EXIT_STATUSES.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            nearest = list(similar_names(error.option_name, error.possibilities or (), 1))
            raise click.NoSuchOption(error.option_name, possibilities=nearest, ctx=error.ctx) from None
        except click.UsageError:
            raise
        except click.ClickException as error:
            raise CommandError(error.message) from None
        except KafkaMsgsError as error:
            raise _FAILURES.get(type(error), CommandError)(str(error)) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None
        except KeyboardInterrupt as interruption:
            ctx.exit(exit_status(interruption))


def _print_version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    """Print the versions of the library, of Kafka's definitions and of Python, and which code runs."""
    if not requested:
        return
    from platform import python_implementation, python_version

    from kafka_msgs.messages import RELEASE

    code = "C core" if backend() == "c" else "pure Python"
    python = f"{python_implementation()} {python_version()}"
    echo(f"kafka-msgs {__version__} (Apache Kafka {RELEASE}, {code}, {python})")
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
    """Inspect Kafka messages, manage clusters, and read log directories and captured traffic.

    Example: kafka-msgs consume orders -b localhost --from -10
    """
