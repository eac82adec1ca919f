"""Configurations of topics, brokers, loggers, groups and client metrics subscriptions: list, describe, alter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from attrs import frozen

from kafka_msgs.admin.results import Outcome, Results, api_name, no_value, outcomes, raise_top_level
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.scheduler import gather
from kafka_msgs.enums import AlterConfigOp, ConfigResourceType
from kafka_msgs.messages import describe_configs_request as describe
from kafka_msgs.messages import incremental_alter_configs_request as alter
from kafka_msgs.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from kafka_msgs.messages.list_config_resources_request import ListConfigResourcesRequest

__all__ = [
    "ConfigChange",
    "ConfigResource",
    "alter_configs",
    "describe_configs",
    "list_client_metrics_resources",
    "list_config_resources",
]

V = TypeVar("V")

_OF_ONE_BROKER = (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)


class ConfigResource(NamedTuple):
    """The owner of a configuration. The name of a broker is its id as text; ``""`` is the default of all brokers."""

    type: int
    name: str

    @property
    def node(self) -> int | None:
        """The broker that must handle the request, or None for any broker."""
        return int(self.name) if self.type in _OF_ONE_BROKER and self.name else None


@frozen
class ConfigChange:
    """A change of one configuration. The default operation sets ``value``."""

    name: str
    value: str | None = None
    op: AlterConfigOp = AlterConfigOp.SET


def list_config_resources(
    client: ClientCore, types: Collection[ConfigResourceType] = (), *, timeout: float | None = None
) -> Flow[tuple[ConfigResource, ...]]:
    """Return the resources with configurations: of these types, or of all types (KIP-1142).

    Brokers before Kafka 4.1 list only client metrics subscriptions.
    """
    request = ListConfigResourcesRequest(resource_types=tuple(types))
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return tuple(ConfigResource(each.resource_type, each.resource_name) for each in response.config_resources)


def list_client_metrics_resources(client: ClientCore, *, timeout: float | None = None) -> Flow[tuple[str, ...]]:
    """Return the names of the client metrics subscriptions (KIP-714, KIP-1000)."""
    request = ListConfigResourcesRequest(resource_types=(ConfigResourceType.CLIENT_METRICS,))
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return tuple(each.resource_name for each in response.config_resources)


def describe_configs(
    client: ClientCore,
    resources: Collection[ConfigResource] | Mapping[ConfigResource, Collection[str]],
    *,
    include_synonyms: bool = False,
    include_documentation: bool = False,
    timeout: float | None = None,
) -> Flow[Results[ConfigResource, dict[str, DescribeConfigsResourceResult]]]:
    """Return the configurations of each resource by name: all, or with a mapping only the named ones.

    The value of a secret is None. The request for a broker's own configurations goes to that broker.
    """
    deadline = client.deadline(timeout)

    def ask(broker_id: int | None, part: Sequence[ConfigResource]) -> Flow[Results[ConfigResource, _Configs]]:
        request = describe.DescribeConfigsRequest(
            resources=tuple(
                describe.DescribeConfigsResource(
                    resource_type=each.type,
                    resource_name=each.name,
                    configuration_keys=tuple(resources[each]) if isinstance(resources, Mapping) else None,
                )
                for each in part
            ),
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        response = yield from client.call(request, broker_id=broker_id, deadline=deadline)
        items = ((ConfigResource(each.resource_type, each.resource_name), each) for each in response.results)
        return outcomes(api_name(request), items, _by_name, part)

    return (yield from _by_node(resources, ask))


_Configs = dict[str, DescribeConfigsResourceResult]


def _by_name(result: DescribeConfigsResult) -> _Configs:
    return {each.name: each for each in result.configs}


def alter_configs(
    client: ClientCore,
    changes: Mapping[ConfigResource, Iterable[ConfigChange]],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Flow[Results[ConfigResource, None]]:
    """Change configurations one by one (KIP-339); all other configurations keep their values.

    The request for a broker's own configurations goes to that broker.
    """
    deadline = client.deadline(timeout)
    wanted = {resource: tuple(each) for resource, each in changes.items()}

    def ask(broker_id: int | None, part: Sequence[ConfigResource]) -> Flow[Results[ConfigResource, None]]:
        request = alter.IncrementalAlterConfigsRequest(
            resources=tuple(
                alter.AlterConfigsResource(
                    resource_type=each.type,
                    resource_name=each.name,
                    configs=tuple(
                        alter.AlterableConfig(name=change.name, config_operation=change.op, value=change.value)
                        for change in wanted[each]
                    ),
                )
                for each in part
            ),
            validate_only=validate_only,
        )
        response = yield from client.call(request, broker_id=broker_id, deadline=deadline)
        items = ((ConfigResource(each.resource_type, each.resource_name), each) for each in response.responses)
        return outcomes(api_name(request), items, no_value, part)

    return (yield from _by_node(wanted, ask))


class _Ask(Protocol[V]):
    def __call__(self, broker_id: int | None, part: Sequence[ConfigResource]) -> Flow[Results[ConfigResource, V]]: ...


def _by_node(resources: Iterable[ConfigResource], ask: _Ask[V]) -> Flow[Results[ConfigResource, V]]:
    """Send a request for each resource to its broker; return all outcomes."""
    by_node: dict[int | None, list[ConfigResource]] = {}
    for resource in dict.fromkeys(resources):
        by_node.setdefault(resource.node, []).append(resource)
    answers = yield from gather([ask(broker_id, part) for broker_id, part in by_node.items()])
    found: dict[ConfigResource, Outcome[V]] = {}
    for part, answer in zip(by_node.values(), answers, strict=True):
        found |= dict.fromkeys(part, answer) if isinstance(answer, Exception) else answer.outcomes
    return Results(found)
