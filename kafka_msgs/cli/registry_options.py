"""The option for the schemas that decode keys and values in a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from kafka_msgs.registry import SchemaResolver

__all__ = ["payload_schemas", "registry_option"]

_TIMEOUT: Final = 5.0

registry_option = click.option(
    "--registry",
    metavar="SOURCE",
    help="Decode keys and values with the schemas of a registry: its URL, a JSON file with the response to GET "
    "/schemas, or the directory of the partition of its topic.",
)


def payload_schemas(source: str | None) -> SchemaResolver | None:
    """Return the schemas of the option. Raises ``RegistryError``, ``LogFileError`` and ``OptionError``."""
    if source is None:
        return None
    from kafka_msgs.cli.record_commands.registry_payloads import open_schemas

    try:
        return open_schemas(source, _TIMEOUT)
    except OSError as error:
        raise click.ClickException(f"{source}: {error.strerror}") from None
