"""``kafka-msgs configs``: describe and alter configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import OptionActions, action_options, pairs, print_outcomes, required, words
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.enums import AlterConfigOp, ConfigResourceType, ConfigSource

if TYPE_CHECKING:
    from kafka_msgs.admin.admin import Admin
    from kafka_msgs.admin.configs import ConfigResource

__all__ = ["configs_command"]

_TYPES: Final[Mapping[str, ConfigResourceType]] = {
    "topics": ConfigResourceType.TOPIC,
    "brokers": ConfigResourceType.BROKER,
    "broker-loggers": ConfigResourceType.BROKER_LOGGER,
    "groups": ConfigResourceType.GROUP,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
}
_COLUMNS: Final = ("entityType", "entity", "name", "value", "source", "sensitive", "readOnly", "synonyms")
_IN_TABLE: Final = ("entity", "name", "value", "source")


_ONLY_WITH: Final[OptionActions] = {
    "include_defaults": ("describe",),
    **dict.fromkeys(("added", "deleted", "validate_only"), ("alter",)),
}


@click.command("configs")
@action_options("describe", _ONLY_WITH, describe="Show configurations.", alter="Add and delete configurations.")
@broker_options()
@click.option("--entity-type", type=click.Choice([*_TYPES]), help="Type of the configured entities.")
@click.option("--entity-name", "names", metavar="NAMES", multiple=True, callback=words, help="Entity names.")
@click.option("--entity-default", is_flag=True, help="The default of all brokers.")
@click.option("-t", "--topic", metavar="NAME", help="Short for --entity-type topics --entity-name NAME.")
@click.option("--broker", metavar="ID", help="Short for --entity-type brokers --entity-name ID.")
@click.option("--broker-logger", metavar="ID", help="Short for --entity-type broker-loggers --entity-name ID.")
@click.option("--group", metavar="ID", help="Short for --entity-type groups --entity-name ID.")
@click.option("--client-metrics", metavar="NAME", help="Short for --entity-type client-metrics --entity-name NAME.")
@click.option("--all", "include_defaults", is_flag=True, help="Include configurations with default values.")
@click.option(
    "--add-config",
    "added",
    metavar="NAME=VALUE",
    multiple=True,
    callback=pairs,
    help="Set configurations, separated by commas. A list in brackets is one value: cleanup.policy=[compact,delete].",
)
@click.option(
    "--delete-config", "deleted", metavar="NAMES", multiple=True, callback=words, help="Reset configurations."
)
@click.option("--validate-only", "--dry-run", is_flag=True, help="With --alter, change nothing.")
@listing_option
def configs_command(
    action: str,
    cluster: ClusterOptions,
    entity_type: str | None,
    names: tuple[str, ...],
    entity_default: bool,
    include_defaults: bool,
    added: dict[str, str],
    deleted: tuple[str, ...],
    validate_only: bool,
    output_format: str,
    **short: str | None,
) -> None:
    """Describe or alter the configurations of topics, brokers, groups and client metrics subscriptions.

    Options have the names of kafka-configs. Without --all, only values that differ from the default are shown. For
    quotas and SCRAM users, see the commands quotas and users.

    Example: kafka-msgs configs --alter -t orders --add-config retention.ms=60000 -b localhost
    """
    with cluster.admin() as admin:
        entities = _entities(admin, entity_type, (*names, "") if entity_default else names, short)
        if action == "describe":
            print_listing(output_format, _COLUMNS, _rows(admin, entities, all=include_defaults), in_table=_IN_TABLE)
            return
        from kafka_msgs.admin.configs import ConfigChange

        changes = [ConfigChange(name, value) for name, value in added.items()]
        changes += [ConfigChange(name, op=AlterConfigOp.DELETE) for name in deleted]
        required(tuple(changes), "--add-config", "--delete-config")
        results = admin.alter_configs(dict.fromkeys(entities, changes), validate_only=validate_only)
        print_outcomes(output_format, ("entityType", "entity"), results, lambda entity, _: _entity(entity))


def _entities(
    admin: Admin, entity_type: str | None, names: tuple[str, ...], short: Mapping[str, str | None]
) -> list[ConfigResource]:
    """Return the selected entities; without names, all topics, brokers or other entities of the type."""
    from kafka_msgs.admin.configs import ConfigResource

    resources = [
        ConfigResource(_TYPES[f"{option.replace('_', '-')}s" if option != "client_metrics" else "client-metrics"], name)
        for option, name in short.items()
        if name is not None
    ]
    if resources:
        if entity_type or names:
            raise click.UsageError("--entity-type and --entity-name exclude the short options for an entity")
        return resources
    kind = _TYPES[required(entity_type, "--entity-type")]
    if not names:
        names = _all_names(admin, kind)
    return [ConfigResource(kind, name) for name in names]


def _all_names(admin: Admin, kind: ConfigResourceType) -> tuple[str, ...]:
    if kind == ConfigResourceType.TOPIC:
        return tuple(sorted(admin.list_topics(include_internal=True)))
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        return tuple(map(str, sorted(admin.describe_cluster().nodes)))
    return tuple(resource.name for resource in admin.list_config_resources([kind]))


def _entity(entity: ConfigResource) -> dict[str, Any]:
    return {"entityType": ConfigResourceType(entity.type).name, "entity": entity.name}


def _rows(admin: Admin, entities: list[ConfigResource], *, all: bool) -> list[dict[str, Any]]:
    described = admin.describe_configs(entities, include_synonyms=True).all()
    return [
        {
            **_entity(entity),
            "name": name,
            "value": entry.value,
            "source": _source(entry.config_source),
            "sensitive": entry.is_sensitive,
            "readOnly": entry.read_only,
            "synonyms": {_source(synonym.source): synonym.value for synonym in entry.synonyms or ()},
        }
        for entity, configs in described.items()
        for name, entry in sorted(configs.items())
        if all or entry.config_source != ConfigSource.DEFAULT_CONFIG
    ]


def _source(code: int) -> str:
    return ConfigSource(code).name if code in ConfigSource.__members__.values() else str(code)
