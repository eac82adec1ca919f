"""``kafka-msgs acls``: list, add and remove access control rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kafka_msgs.cli.admin_commands.outcomes import OptionActions, action_options, print_outcomes, required, words
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.enums import AclOperation, AclPermissionType, PatternType, ResourceType

if TYPE_CHECKING:
    from kafka_msgs.admin.acls import AclBinding

__all__ = ["acls_command"]

F = TypeVar("F", bound=Callable[..., Any])

_COLUMNS: Final = ("resourceType", "resource", "patternType", "principal", "host", "operation", "permission")
_RESOURCES: Final[Mapping[str, ResourceType]] = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
_CLUSTER: Final = "kafka-cluster"
"""The name of the only cluster resource."""


def _operation(text: str) -> AclOperation:
    """Return an operation by Kafka's name, such as ``Read`` or ``DescribeConfigs``."""
    wanted = text.replace("_", "").replace("-", "").upper()
    for operation in AclOperation:
        if operation.name.replace("_", "") == wanted:
            return operation
    raise click.BadParameter(
        f"{text!r} is not one of {', '.join(operation.name.lower() for operation in AclOperation)}"
    )


def _name_option(flag: str, text: str) -> Callable[[F], F]:
    return click.option(flag, metavar="NAMES", multiple=True, callback=words, help=text)


_ONLY_WITH: Final[OptionActions] = {"allowed": ("add",), "denied": ("add",), "principals": ("list", "remove")}


@click.command("acls")
@action_options("list", _ONLY_WITH, list="List rules.", add="Add rules.", remove="Remove matching rules.")
@broker_options()
@_name_option("--topic", "Topics, or * for all.")
@_name_option("--group", "Groups, or * for all.")
@_name_option("--transactional-id", "Transactional ids, or * for all.")
@_name_option("--delegation-token", "Delegation tokens, or * for all.")
@_name_option("--user-principal", "Users, or * for all.")
@click.option("--cluster", "of_cluster", is_flag=True, help="The cluster.")
@click.option(
    "--resource-pattern-type",
    type=click.Choice(["literal", "prefixed", "match", "any"]),
    default=None,
    help="With --add, literal by default; otherwise any. match also finds rules for wildcards and prefixes.",
)
@click.option(
    "--operation", "operations", type=_operation, multiple=True, metavar="NAME", help="Such as Read; all by default."
)
@click.option("--allow-principal", "allowed", metavar="PRINCIPAL", multiple=True, help="With --add, allow User:alice.")
@click.option("--deny-principal", "denied", metavar="PRINCIPAL", multiple=True, help="With --add, deny User:alice.")
@click.option(
    "--principal", "principals", metavar="PRINCIPAL", multiple=True, help="List or remove rules of User:alice."
)
@click.option("--allow-host", "--deny-host", "hosts", metavar="HOST", multiple=True, help="Addresses; all by default.")
@listing_option
def acls_command(
    action: str,
    cluster: ClusterOptions,
    of_cluster: bool,
    resource_pattern_type: str | None,
    operations: tuple[AclOperation, ...],
    allowed: tuple[str, ...],
    denied: tuple[str, ...],
    principals: tuple[str, ...],
    hosts: tuple[str, ...],
    output_format: str,
    **resources: tuple[str, ...],
) -> None:
    """List, add or remove access control rules (ACLs).

    Options have the names of kafka-acls. The exit status is 1 if a change failed.

    Example: kafka-msgs acls --add --allow-principal User:alice --operation Read --topic orders -b localhost
    """
    from kafka_msgs.admin.acls import AclBinding, AclFilter

    named: list[tuple[ResourceType, str | None]] = [
        (kind, name) for option, kind in _RESOURCES.items() for name in resources[option]
    ]
    named += [(ResourceType.CLUSTER, _CLUSTER)] if of_cluster else []
    with cluster.admin() as admin:
        if action == "add":
            pattern = PatternType[(resource_pattern_type or "literal").upper()]
            people = [(principal, AclPermissionType.ALLOW) for principal in allowed]
            people += [(principal, AclPermissionType.DENY) for principal in denied]
            required(tuple(people), "--allow-principal", "--deny-principal")
            required(tuple(named), "--topic", "--group", "--cluster", "--transactional-id")
            rules = [
                AclBinding(kind, str(name), who, operation, permission, host, pattern)
                for (kind, name), (who, permission), operation, host in product(
                    named, people, operations or (AclOperation.ALL,), hosts or ("*",)
                )
            ]
            print_outcomes(output_format, _COLUMNS, admin.create_acls(rules), lambda rule, _: _row(rule))
            return
        filters = [
            AclFilter(
                kind,
                name,
                who,
                operation,
                host=host,
                pattern_type=PatternType[(resource_pattern_type or "any").upper()],
            )
            for (kind, name), who, operation, host in product(
                named or [(ResourceType.ANY, None)],
                principals or (None,),
                operations or (AclOperation.ANY,),
                hosts or (None,),
            )
        ]
        if action == "list":
            rules = list(dict.fromkeys(rule for acl_filter in filters for rule in admin.describe_acls(acl_filter)))
            print_listing(output_format, _COLUMNS, map(_row, rules))
            return
        if filters == [AclFilter()]:
            raise click.UsageError("--remove needs a resource, a principal, an operation or a host")
        from kafka_msgs.admin.results import Results

        removed = admin.delete_acls(filters).all()
        outcomes = {rule: outcome for deleted in removed.values() for rule, outcome in deleted.outcomes.items()}
        print_outcomes(output_format, _COLUMNS, Results(outcomes), lambda rule, _: _row(rule))


def _row(rule: AclBinding) -> dict[str, Any]:
    return {
        "resourceType": _name(ResourceType, rule.resource_type),
        "resource": rule.resource_name,
        "patternType": _name(PatternType, rule.pattern_type),
        "principal": rule.principal,
        "host": rule.host,
        "operation": _name(AclOperation, rule.operation),
        "permission": _name(AclPermissionType, rule.permission),
    }


def _name(words: Any, code: int) -> str:
    """Return Kafka's name of a code, or the code itself if it is of a later release."""
    return next((str(word.name) for word in words if word == code), str(code))
