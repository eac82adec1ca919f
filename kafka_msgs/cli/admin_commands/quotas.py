"""``kafka-msgs quotas``: describe and alter client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import OptionActions, action_options, pairs, print_outcomes, required, words
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing

if TYPE_CHECKING:
    from kafka_msgs.admin.quotas import QuotaEntity

__all__ = ["quotas_command"]

_TYPES: Final[Mapping[str, str]] = {"user": "user", "client": "client-id", "ip": "ip"}
_COLUMNS: Final = ("user", "clientId", "ip", "name", "value")
_DEFAULT: Final = "<default>"
"""The shown name of the default of a type."""


_ONLY_WITH: Final[OptionActions] = dict.fromkeys(("added", "deleted", "validate_only"), ("alter",))


@click.command("quotas")
@action_options("describe", _ONLY_WITH, describe="Show quotas.", alter="Set and remove quotas.")
@broker_options()
@click.option("--user", metavar="NAME", help="The quotas of a user.")
@click.option("--client", metavar="ID", help="The quotas of a client id; with --user, of this user's client.")
@click.option("--ip", metavar="ADDRESS", help="The quotas of an IP address.")
@click.option("--user-defaults", is_flag=True, help="The default of all users.")
@click.option("--client-defaults", is_flag=True, help="The default of all client ids.")
@click.option("--ip-defaults", is_flag=True, help="The default of all addresses.")
@click.option(
    "--add-config",
    "added",
    metavar="NAME=VALUE",
    multiple=True,
    callback=pairs,
    help="Set quotas: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate or "
    "connection_creation_rate.",
)
@click.option("--delete-config", "deleted", metavar="NAMES", multiple=True, callback=words, help="Remove quotas.")
@click.option("--validate-only", "--dry-run", is_flag=True, help="With --alter, change nothing.")
@listing_option
def quotas_command(
    action: str,
    cluster: ClusterOptions,
    added: dict[str, str],
    deleted: tuple[str, ...],
    validate_only: bool,
    output_format: str,
    **entities: Any,
) -> None:
    """Describe or alter the quotas of users, client ids and IP addresses.

    Options have the names of kafka-configs. Rates are in bytes per second.

    Example: kafka-msgs quotas --alter --user alice --add-config consumer_byte_rate=1048576 -b localhost
    """
    entity = {kind: None for option, kind in _TYPES.items() if entities[f"{option}_defaults"]}
    named = {kind: entities[option] for option, kind in _TYPES.items() if entities[option] is not None}
    with cluster.admin() as admin:
        if action == "describe":
            described = admin.describe_client_quotas({**entity, **named})
            rows = [
                {**_entity_row(client), "name": name, "value": value}
                for client, quotas in described.items()
                for name, value in sorted(quotas.items())
            ]
            print_listing(output_format, _COLUMNS, sorted(rows, key=lambda row: [str(row[name]) for name in _COLUMNS]))
            return
        wanted = frozenset({**entity, **named}.items())
        required(tuple(wanted), "--user", "--client", "--ip")
        required((*added, *deleted), "--add-config", "--delete-config")
        values = {**{name: _number(name, value) for name, value in added.items()}, **dict.fromkeys(deleted)}
        results = admin.alter_client_quotas({wanted: values}, validate_only=validate_only)
    print_outcomes(output_format, _COLUMNS[:3], results, lambda client, _: _entity_row(client))


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"--add-config {name}: {text!r} is not a number") from None


def _entity_row(entity: QuotaEntity) -> dict[str, Any]:
    names = {kind: _DEFAULT if name is None else name for kind, name in entity}
    return {"user": names.get("user"), "clientId": names.get("client-id"), "ip": names.get("ip")}
