"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kafka_msgs.broker.call import CLUSTER_NAME, Call, Handler
from kafka_msgs.broker.controller.altering import alter_configs, check_resource, replace_configs
from kafka_msgs.broker.controller.configs import ConfigEntry, resource_entries
from kafka_msgs.broker.controller.topics import check_topic_name
from kafka_msgs.broker.handlers.leading import ERROR_TEXTS
from kafka_msgs.enums import AclOperation, ConfigResourceType, ConfigType, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages import alter_configs_response, incremental_alter_configs_response
from kafka_msgs.messages.alter_configs_request import AlterConfigsRequest
from kafka_msgs.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kafka_msgs.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kafka_msgs.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from kafka_msgs.messages.list_config_resources_request import ListConfigResourcesRequest
from kafka_msgs.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse

__all__ = ["HANDLERS"]

_RESOURCES: Final[Mapping[int, tuple[ResourceType, str | None, ErrorCode]]] = {
    ConfigResourceType.TOPIC: (ResourceType.TOPIC, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ConfigResourceType.BROKER: (ResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ConfigResourceType.GROUP: (ResourceType.GROUP, None, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ConfigResourceType.CLIENT_METRICS: (ResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
}
"""What stands for each type of resource in ACLs: its type, its name if it is fixed, and the error."""


def _resource(call: Call[Any], operation: AclOperation, number: int, name: str) -> ConfigResourceType:
    """Return the type of a resource that the client may use. Raises ``RefusedError``."""
    if number not in _RESOURCES:
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=f"Unknown resource type {number}")
    kind, fixed, error = _RESOURCES[number]
    if not call.allows(operation, kind, fixed or name):
        raise RefusedError(error=error)
    return ConfigResourceType(number)


def _describe_configs(call: Call[DescribeConfigsRequest]) -> None:
    if any(each.resource_type not in _RESOURCES for each in call.request.resources):
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=ERROR_TEXTS[ErrorCode.INVALID_REQUEST])
    call.answer(DescribeConfigsResponse(results=tuple(_described(call, each) for each in call.request.resources)))


def _described(call: Call[DescribeConfigsRequest], asked: DescribeConfigsResource) -> DescribeConfigsResult:
    facts: dict[str, Any] = {"resource_type": asked.resource_type, "resource_name": asked.resource_name}
    try:
        kind = _resource(call, AclOperation.DESCRIBE_CONFIGS, asked.resource_type, asked.resource_name)
        _check_described(call, kind, asked.resource_name)
    except RefusedError as error:
        return DescribeConfigsResult(error_code=error.error, error_message=error.message or "", **facts)
    keys = asked.configuration_keys
    return DescribeConfigsResult(
        configs=tuple(
            _entry(call, kind, entry)
            for entry in resource_entries(call.cluster, kind, asked.resource_name)
            if not keys or entry.setting.name in keys
        ),
        **facts,
    )


def _check_described(call: Call[DescribeConfigsRequest], kind: ConfigResourceType, name: str) -> None:
    if kind is not ConfigResourceType.BROKER:
        if kind is ConfigResourceType.TOPIC and name not in call.cluster.image.topics:
            check_topic_name(name)
            raise RefusedError(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if kind is ConfigResourceType.CLIENT_METRICS and not name:
            message = "Client metrics subscription name must not be empty"
            raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=message)
        check_resource(kind, name)
    elif name and not name.lstrip("-").isdecimal():
        message = f"Broker id must be an integer, but it is: {name}"
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=message)
    elif name and int(name) != call.session.broker_id:
        message = f"Unexpected broker id, expected {call.session.broker_id} or empty string, but received {name}"
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=message)


def _entry(
    call: Call[DescribeConfigsRequest], kind: ConfigResourceType, entry: ConfigEntry
) -> DescribeConfigsResourceResult:
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    if call.request.include_synonyms:
        synonyms = tuple(
            DescribeConfigsSynonym(name=each.name, value=None if entry.sensitive else each.value, source=each.source)
            for each in entry.synonyms
        )
    return DescribeConfigsResourceResult(
        name=entry.setting.name,
        value=None if entry.sensitive else entry.value,
        read_only=not entry.setting.dynamic,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=synonyms,
        config_type=ConfigType[entry.setting.type.upper()],
        documentation=None,
    )


def _incremental_alter_configs(call: Call[IncrementalAlterConfigsRequest]) -> None:
    def records(kind: ConfigResourceType, resource: Any) -> Iterable[MetadataRecord]:
        changes = [(each.name, each.config_operation, each.value) for each in resource.configs]
        return alter_configs(call.cluster, kind, resource.resource_name, changes)

    module = incremental_alter_configs_response
    responses = tuple(_altered(call, module.AlterConfigsResourceResponse, records))
    call.answer(module.IncrementalAlterConfigsResponse(responses=responses))


def _alter_configs(call: Call[AlterConfigsRequest]) -> None:
    def records(kind: ConfigResourceType, resource: Any) -> Iterable[MetadataRecord]:
        configs = {each.name: each.value for each in resource.configs}
        return replace_configs(call.cluster, kind, resource.resource_name, configs)

    module = alter_configs_response
    responses = tuple(_altered(call, module.AlterConfigsResourceResponse, records))
    call.answer(module.AlterConfigsResponse(responses=responses))


def _altered(
    call: Call[Any], result: Callable[..., Any], records: Callable[[ConfigResourceType, Any], Iterable[MetadataRecord]]
) -> Iterator[Any]:
    """Yield the outcome for each resource of a request, which changes unless the request only validates."""
    times = Counter((each.resource_type, each.resource_name) for each in call.request.resources)
    for each in call.request.resources:
        facts = {"resource_type": each.resource_type, "resource_name": each.resource_name}
        try:
            if times[each.resource_type, each.resource_name] > 1:
                message = "Each resource must appear at most once."
                raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=message)
            if len({config.name for config in each.configs}) != len(each.configs):
                message = "Error due to duplicate config keys"
                raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=message)
            kind = _resource(call, AclOperation.ALTER_CONFIGS, each.resource_type, each.resource_name)
            if kind is ConfigResourceType.BROKER and each.resource_name:
                _check_this_broker(call, each.resource_name)
            changes = list(records(kind, each))
        except RefusedError as error:
            yield result(error_code=error.error, error_message=error.message, **facts)
            continue
        if changes and not call.request.validate_only:
            call.cluster.commit(changes)
        yield result(error_message=None, **facts)


def _check_this_broker(call: Call[Any], name: str) -> None:
    """Refuse to change the settings of another broker than the one that was asked, as Kafka does."""
    if not name.lstrip("-").isdecimal():
        message = f"Node id must be an integer, but it is: {name}"
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=message)
    if int(name) != call.session.broker_id:
        message = f"Unexpected broker id, expected {call.session.broker_id}, but received {name}"
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=message)


def _list_config_resources(call: Call[ListConfigResourcesRequest]) -> None:
    call.require_cluster(AclOperation.DESCRIBE_CONFIGS)
    image = call.cluster.image
    listed: dict[int, Callable[[], Iterable[str]]] = {
        ConfigResourceType.GROUP: lambda: _with_configs(call, ConfigResourceType.GROUP),
        ConfigResourceType.CLIENT_METRICS: lambda: _with_configs(call, ConfigResourceType.CLIENT_METRICS),
        ConfigResourceType.BROKER_LOGGER: lambda: (str(each.id) for each in image.alive()),
        ConfigResourceType.BROKER: lambda: (str(each.id) for each in image.alive()),
        ConfigResourceType.TOPIC: lambda: image.topics,
    }
    if call.version == 0:
        wanted = {int(ConfigResourceType.CLIENT_METRICS)}
    else:
        wanted = set(call.request.resource_types or listed)
    if not wanted <= listed.keys():
        raise RefusedError(error=ErrorCode.UNSUPPORTED_VERSION)
    call.answer(
        ListConfigResourcesResponse(
            config_resources=tuple(
                ConfigResource(resource_name=name, resource_type=kind)
                for kind, names in listed.items()
                if kind in wanted
                for name in names()
            )
        )
    )


def _with_configs(call: Call[Any], kind: ConfigResourceType) -> list[str]:
    return [name for each, name in call.cluster.image.configs if each == kind]


HANDLERS: Final = (
    Handler(DescribeConfigsRequest, _describe_configs),
    Handler(AlterConfigsRequest, _alter_configs),
    Handler(IncrementalAlterConfigsRequest, _incremental_alter_configs),
    Handler(ListConfigResourcesRequest, _list_config_resources),
)
