"""``kafka-msgs users``: SCRAM credentials of users (KIP-554)."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import OptionActions, action_options, print_outcomes, required
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.enums import ScramMechanism

__all__ = ["users_command"]

_MECHANISMS: Final = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_COLUMNS: Final = ("user", "mechanism", "iterations")


_ONLY_WITH: Final[OptionActions] = {"mechanism": ("add", "delete"), "iterations": ("add",)}


@click.command("users")
@click.argument("users", metavar="[USER]...", nargs=-1)
@action_options(
    "describe",
    _ONLY_WITH,
    describe="Show the credentials of users.",
    add="Add or replace the credential of users; the password is read from the terminal or standard input.",
    delete="Delete the credential of users.",
)
@click.option(
    "--mechanism",
    type=click.Choice([*_MECHANISMS]),
    default="SCRAM-SHA-512",
    show_default=True,
    help="The mechanism of --add and --delete.",
)
@click.option(
    "--iterations",
    metavar="N",
    type=click.IntRange(4096, 16384),
    default=4096,
    show_default=True,
    help="Iterations of a new credential.",
)
@broker_options()
@listing_option
def users_command(
    users: tuple[str, ...],
    action: str,
    mechanism: str,
    iterations: int,
    cluster: ClusterOptions,
    output_format: str,
) -> None:
    """Describe, add or delete the SCRAM credentials of users.

    Passwords never appear on the command line, in the output or in requests, which contain only salted hashes.

    Example: kafka-msgs users --add alice -b localhost < password.txt
    """
    from kafka_msgs.admin.users import ScramDeletion, ScramUpsertion

    kind = _MECHANISMS[mechanism]
    if action == "describe":
        with cluster.admin() as admin:
            described = admin.describe_user_scram_credentials(users or None).all()
        print_listing(
            output_format,
            _COLUMNS,
            [_row(user, credential) for user, parts in described.items() for credential in parts],
        )
        return
    required(users, "USER")
    if action == "add":
        password = _password()
        changes: list[Any] = [ScramUpsertion(user, kind, password, iterations) for user in users]
    else:
        changes = [ScramDeletion(user, kind) for user in users]
    with cluster.admin() as admin:
        results = admin.alter_user_scram_credentials(changes)
    print_outcomes(output_format, ("user",), results, lambda user, _: {"user": user})


def _password() -> str:
    """Return the password: from a prompt, or the first line of standard input."""
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    password = sys.stdin.readline().removesuffix("\n").removesuffix("\r")
    if not password:
        raise click.UsageError("standard input contains no password")
    return password


def _row(user: str, credential: Any) -> dict[str, Any]:
    names = {code: name for name, code in _MECHANISMS.items()}
    mechanism = names.get(credential.mechanism, str(credential.mechanism))
    return {"user": user, "mechanism": mechanism, "iterations": credential.iterations}
