"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Any, Final

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.controller.config_changes import (
    alter_configs,
    check_operations,
    check_resource,
    replace_configs,
)
from kafka_msgs.broker.controller.config_defs import config_keys, log_effect
from kafka_msgs.broker.controller.config_entries import RESOURCES, ConfigEntry, resource_entries
from kafka_msgs.broker.controller.image import MetadataDelta, MetadataImage
from kafka_msgs.broker.controller.topics import check_topic_name
from kafka_msgs.broker.handlers.broker_loggers import change_levels, check_broker_id, describe_loggers
from kafka_msgs.broker.handlers.partition_access import ERROR_TEXTS
from kafka_msgs.broker.handlers.response_parts import element_class, outcome_of
from kafka_msgs.broker.server_call import CLUSTER_NAME, ApiHandler, ServerCall
from kafka_msgs.broker.struct_copies import copy_as
from kafka_msgs.enums import AclOperation, AlterConfigOp, ConfigResourceType, ConfigType, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.alter_configs_request import AlterConfigsRequest
from kafka_msgs.messages.config_record import ConfigRecord
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

__all__ = ["HANDLERS", "attach"]

_invalid: Final = partial(RequestRefusedError, ErrorCode.INVALID_REQUEST)

_RESOURCES: Final[Mapping[int, ResourceType]] = {
    ConfigResourceType.TOPIC: ResourceType.TOPIC,
    ConfigResourceType.BROKER: ResourceType.CLUSTER,
    ConfigResourceType.BROKER_LOGGER: ResourceType.CLUSTER,
    ConfigResourceType.GROUP: ResourceType.GROUP,
    ConfigResourceType.CLIENT_METRICS: ResourceType.CLUSTER,
}
"""The ACL resource types of the config resource types."""

_OF_ONE_BROKER: Final = (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
"""The resource types that the receiving broker handles itself."""

_NAMELESS: Final[Mapping[ConfigResourceType, str]] = {
    ConfigResourceType.GROUP: "Group name must not be empty",
    ConfigResourceType.CLIENT_METRICS: "Client metrics subscription name must not be empty",
}
"""The error messages for a resource without a name."""


def _check_resource(call: ServerCall[Any], operation: AclOperation, number: int, name: str) -> None:
    """Raise ``RequestRefusedError`` for an unknown resource type, or without this permission."""
    if number not in _RESOURCES:
        raise _invalid(f"Unknown resource type {number}")
    kind = _RESOURCES[number]
    call.require(operation, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else name)


def _describe_configs(call: ServerCall[DescribeConfigsRequest]) -> None:
    if any(each.resource_type not in _RESOURCES for each in call.request.resources):
        raise _invalid(ERROR_TEXTS[ErrorCode.INVALID_REQUEST])
    call.respond(DescribeConfigsResponse(results=tuple(_described(call, each) for each in call.request.resources)))


def _described(call: ServerCall[DescribeConfigsRequest], asked: DescribeConfigsResource) -> DescribeConfigsResult:
    try:
        _check_resource(call, AclOperation.DESCRIBE_CONFIGS, asked.resource_type, asked.resource_name)
        entries = _entries(call, ConfigResourceType(asked.resource_type), asked.resource_name)
    except RequestRefusedError as error:
        return copy_as(DescribeConfigsResult, asked, error_code=error.error, error_message=error.message or "")
    keys = asked.configuration_keys
    return copy_as(
        DescribeConfigsResult, asked, configs=tuple(each for each in entries if not keys or each.name in keys)
    )


def _entries(
    call: ServerCall[DescribeConfigsRequest], kind: ConfigResourceType, name: str
) -> Iterator[DescribeConfigsResourceResult]:
    """Return the configs of a resource. Raises ``RequestRefusedError``."""
    if kind is ConfigResourceType.BROKER_LOGGER:
        return describe_loggers(call, name)
    _check_described(call, kind, name)
    is_one = kind is ConfigResourceType.BROKER and bool(name)
    node_configs = _node_configs(call.cluster, int(name)) if is_one else {}
    found = resource_entries(call.cluster.image, call.cluster.configs, kind, name, node_configs)
    return (_entry(call, entry) for entry in found)


def _node_configs(cluster: BrokerInterface, broker_id: int) -> dict[str, str]:
    """Return the configs that are specific to one broker's properties file: its id, rack and listeners."""
    broker = cluster.brokers[broker_id]
    listeners, advertised = (
        ",".join(f"{name}://{f'[{host}]' if ':' in host else host}:{port}" for name, (host, port) in each.items())
        for each in (broker.addresses, broker.advertised)
    )
    protocols = ",".join(f"{each.name}:{each.protocol}" for each in cluster.config.listeners)
    rack, path = cluster.image.brokers[broker_id].rack, cluster.log_dir_path(broker_id)
    return {
        "node.id": str(broker_id),
        "broker.id": str(broker_id),
        "listeners": listeners,
        "advertised.listeners": advertised,
        "listener.security.protocol.map": protocols,
        **({} if path is None else {"log.dirs": str(path)}),
        **({} if rack is None else {"broker.rack": rack}),
    }


def _check_described(call: ServerCall[DescribeConfigsRequest], kind: ConfigResourceType, name: str) -> None:
    if kind is not ConfigResourceType.BROKER:
        if kind is ConfigResourceType.TOPIC and name not in call.cluster.image.topics:
            check_topic_name(name)
            raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if kind in _NAMELESS and not name:
            raise _invalid(_NAMELESS[kind])
        check_resource(kind, name)
    elif name:
        check_broker_id(call, name, f"{call.session.broker_id} or empty string, but")


def _entry(call: ServerCall[DescribeConfigsRequest], entry: ConfigEntry) -> DescribeConfigsResourceResult:
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    if call.request.include_synonyms:
        synonyms = tuple(
            DescribeConfigsSynonym(name=each.name, value=_shown(entry, each.value), source=each.source)
            for each in entry.synonyms
        )
    return DescribeConfigsResourceResult(
        name=entry.setting.name,
        value=_shown(entry, entry.value),
        read_only=not entry.setting.dynamic,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=synonyms,
        config_type=ConfigType[entry.setting.type.upper()],
        documentation=None,
    )


def _shown(entry: ConfigEntry, value: str | None) -> str | None:
    """Return a value for a response, without secrets."""
    return None if entry.sensitive else value


def _alter_configs(call: ServerCall[Any]) -> None:
    """Handle both APIs that change configs.

    As in Kafka, the receiving broker handles its own resources first and forwards all others to the controller.
    """
    resources = call.request.resources
    times = Counter((each.resource_type, each.resource_name) for each in resources)
    errors = [
        outcome_of(_check_request, each, times)
        or outcome_of(_check_resource, call, AclOperation.ALTER_CONFIGS, each.resource_type, each.resource_name)
        for each in resources
    ]
    handed_on = [each for each, error in zip(resources, errors, strict=True) if error is None]
    lost = any(_has_unknown_operation(call.cluster.image, each) for each in handed_on)
    response = call.request.response_class()
    result: Any = element_class(response, "responses")
    responses = []
    for each, error in zip(resources, errors, strict=True):
        refused = error or outcome_of(_change, call, each, lost)
        code, message = (refused.error, refused.message) if refused else (ErrorCode.NONE, None)
        responses.append(copy_as(result, each, error_code=code, error_message=message))
    call.respond(response(responses=tuple(responses)))


def _check_request(resource: Any, times: Mapping[tuple[int, str], int]) -> None:
    """Raise ``RequestRefusedError`` for an invalid resource or config name in the request."""
    if times[resource.resource_type, resource.resource_name] > 1:
        raise _invalid("Each resource must appear at most once.")
    changes = _changes(resource)
    if len({name for name, _, _ in changes}) != len(changes):
        raise _invalid("Error due to duplicate config keys")
    nulls = [name for name, operation, value in changes if value is None and operation != AlterConfigOp.DELETE]
    if nulls:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")


def _changes(resource: Any) -> list[tuple[str, int, str | None]]:
    """Return the name, the operation and the value of each config. AlterConfigs only sets configs."""
    return [(each.name, getattr(each, "config_operation", AlterConfigOp.SET), each.value) for each in resource.configs]


def _has_unknown_operation(image: MetadataImage, resource: Any) -> bool:
    """Return whether the controller reaches an unknown operation. It then fails for all forwarded resources.

    An earlier operation that a config does not support ends the work for its resource.
    """
    if resource.resource_type in _OF_ONE_BROKER:
        return False
    changes = _changes(resource)
    known = list(takewhile(lambda change: change[1] in list(AlterConfigOp), changes))
    if len(known) == len(changes):
        return False
    kind = ConfigResourceType(resource.resource_type)
    return outcome_of(check_operations, image, kind, resource.resource_name, known) is None


def _change(call: ServerCall[Any], resource: Any, lost: bool) -> None:
    kind, name, changes = ConfigResourceType(resource.resource_type), resource.resource_name, _changes(resource)
    incremental = isinstance(call.request, IncrementalAlterConfigsRequest)
    if lost and kind not in _OF_ONE_BROKER:
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if kind is ConfigResourceType.BROKER_LOGGER and not incremental:
        raise _invalid("Unexpected resource type BROKER_LOGGER.")
    if kind is ConfigResourceType.BROKER_LOGGER or (kind is ConfigResourceType.BROKER and name):
        check_broker_id(call, name, f"{call.session.broker_id}, but", "Node")
    if kind is ConfigResourceType.BROKER_LOGGER:
        change_levels(changes, validate_only=call.request.validate_only)
        return
    image, configs = call.cluster.image, call.cluster.configs
    if incremental:
        records = alter_configs(image, configs, kind, name, changes)
    else:
        records = replace_configs(image, configs, kind, name, {config: value for config, _, value in changes})
    if lost:
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if records and not call.request.validate_only:
        call.cluster.commit(records)


def _list_config_resources(call: ServerCall[ListConfigResourcesRequest]) -> None:
    call.require_cluster(AclOperation.DESCRIBE_CONFIGS)
    image = call.cluster.image
    brokers = [str(each.id) for each in image.alive()]
    listed: dict[int, Iterable[str]] = {
        ConfigResourceType.GROUP: [name for kind, name in image.configs if kind == ConfigResourceType.GROUP],
        ConfigResourceType.CLIENT_METRICS: [
            name for kind, name in image.configs if kind == ConfigResourceType.CLIENT_METRICS
        ],
        ConfigResourceType.BROKER_LOGGER: brokers,
        ConfigResourceType.BROKER: brokers,
        ConfigResourceType.TOPIC: image.topics,
    }
    wanted = set(call.request.resource_types or listed) if call.version else {int(ConfigResourceType.CLIENT_METRICS)}
    if not wanted <= listed.keys():
        raise RequestRefusedError(ErrorCode.UNSUPPORTED_VERSION)
    found = (
        ConfigResource(resource_name=name, resource_type=kind)
        for kind, names in listed.items()
        if kind in wanted
        for name in names
    )
    call.respond(ListConfigResourcesResponse(config_resources=tuple(found)))


def attach(cluster: BrokerInterface) -> None:
    """Log a warning for each changed config that has no effect, or none until a broker starts."""
    cluster.image_listeners.append(partial(_log_effects, cluster))


def _log_effects(cluster: BrokerInterface, delta: MetadataDelta) -> None:
    if not delta.configs:
        return
    for record in delta.records:
        if isinstance(record, ConfigRecord) and record.value is not None:
            kind = ConfigResourceType(record.resource_type)
            setting = config_keys(RESOURCES[kind][0]).get(record.name)
            if setting is not None:
                place = f"{kind.name.lower()} {record.resource_name}".rstrip()
                log_effect(setting, place, telemetry=cluster.config.telemetry)


HANDLERS: Final = (
    ApiHandler(DescribeConfigsRequest, _describe_configs),
    ApiHandler(AlterConfigsRequest, _alter_configs),
    ApiHandler(IncrementalAlterConfigsRequest, _alter_configs),
    ApiHandler(ListConfigResourcesRequest, _list_config_resources),
)
