"""Changes of settings: of topics, brokers, groups and client metrics, from what is asked to metadata records.

Checks, error codes and their texts are those of Kafka's ``ConfigurationControlManager`` and
``ControllerConfigurationValidator``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import fields_dict

from kafka_msgs.broker.controller.configs import RESOURCES, own_configs, topic_values
from kafka_msgs.broker.controller.settings import BROKER, CLIENT_METRICS, GROUP, Setting, settings_of
from kafka_msgs.broker.controller.topics import check_topic_configs, check_topic_name
from kafka_msgs.enums import AlterConfigOp, ConfigResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import OptionError, RefusedError
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.re2 import InvalidRegexError, compile_regex
from kafka_msgs.messages.config_record import ConfigRecord

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster

__all__ = ["MIN_IN_SYNC", "alter_configs", "check_resource", "replace_configs"]

MIN_IN_SYNC: Final = "min.insync.replicas"
"""The setting of brokers that the controller keeps itself (KIP-966)."""

_LONGEST_VALUE: Final = 32767
_MATCHED: Final = frozenset(
    {"client_instance_id", "client_id", "client_software_name", "client_software_version"}
    | {"client_source_address", "client_source_port"}
)
"""What subscriptions to client metrics may match (KIP-714)."""
_ENDPOINT: Final = re.compile(r"\w+://\[?[\w\-%.:]*\]?:-?\d+", re.ASCII)

Change = tuple[str, int, str | None]
"""The name of a setting, the operation (``AlterConfigOp``) and its value."""


def alter_configs(
    cluster: Cluster, kind: ConfigResourceType, name: str, changes: Sequence[Change]
) -> list[ConfigRecord]:
    """Return the records that change some settings of a resource. Raises ``RefusedError``."""
    own = own_configs(cluster, kind, name)
    after: dict[str, str | None] = dict(own)
    for setting, operation, value in changes:
        after[setting] = _operated(cluster, kind, name, setting, operation, value, own)
    asked = {setting: value for setting, operation, value in changes if operation != AlterConfigOp.DELETE}
    return _checked(cluster, kind, name, {each: after[each] for each in asked}, after)


def replace_configs(
    cluster: Cluster, kind: ConfigResourceType, name: str, configs: Mapping[str, str | None]
) -> list[ConfigRecord]:
    """Return the records that give a resource these settings, and no others. Raises ``RefusedError``."""
    after = {**dict.fromkeys(own_configs(cluster, kind, name)), **configs}
    return _checked(cluster, kind, name, configs, after)


def check_resource(kind: ConfigResourceType, name: str) -> None:
    """Raise ``RefusedError`` for a resource that cannot be."""
    if kind is ConfigResourceType.TOPIC:
        if not name:
            raise _invalid("Default topic resources are not allowed.")
        check_topic_name(name)
    elif kind is ConfigResourceType.GROUP and not name:
        raise _invalid("Default group resources are not allowed.")
    elif kind is ConfigResourceType.CLIENT_METRICS and not name:
        raise _invalid("Subscription name can't be empty")


def _check_there(cluster: Cluster, kind: ConfigResourceType, name: str) -> None:
    if kind is ConfigResourceType.TOPIC and name not in cluster.image.topics:
        message = f"The topic '{name}' does not exist."
        raise RefusedError(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message)


_WITH_LISTS: Final = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)
"""The resources of whose settings the controller of Kafka knows that they are lists."""


def _operated(
    cluster: Cluster,
    kind: ConfigResourceType,
    resource: str,
    setting: str,
    operation: int,
    value: str | None,
    own: Mapping[str, str],
) -> str | None:
    """Return the new value of a setting, or None if it has none of its own any more."""
    if operation == AlterConfigOp.DELETE:
        return None
    if operation == AlterConfigOp.SET:
        return value
    if operation not in (AlterConfigOp.APPEND, AlterConfigOp.SUBTRACT):
        raise _invalid(f"Unknown operations type {operation}")
    known = settings_of(RESOURCES[kind][0]).get(setting)
    if known is None or known.type != "list" or kind not in _WITH_LISTS:
        word = AlterConfigOp(operation).name
        raise _bad_config(f"Can't {word} to key {setting} because its type is not LIST.")
    present = own.get(setting)
    if present is None:
        present = topic_values(cluster, resource)[setting] if kind is ConfigResourceType.TOPIC else known.default
    parts = [each for each in (present or "").split(",") if each]
    given = [each.strip() for each in (value or "").split(",") if each.strip()]
    if operation == AlterConfigOp.APPEND:
        parts += [each for each in given if each not in parts]
    else:
        parts = [each for each in parts if each not in given]
    return ",".join(parts)


def _checked(
    cluster: Cluster,
    kind: ConfigResourceType,
    name: str,
    asked: Mapping[str, str | None],
    after: Mapping[str, str | None],
) -> list[ConfigRecord]:
    check_resource(kind, name)
    for value in asked.values():
        if len((value or "").encode()) > _LONGEST_VALUE:
            raise _bad_config(
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{_LONGEST_VALUE} bytes."
            )
    kept = {setting: value for setting, value in after.items() if value is not None}
    _CHECKS[kind](cluster, kept)
    _check_min_in_sync(kind, name, after)
    _check_there(cluster, kind, name)
    own = own_configs(cluster, kind, name)
    return [
        ConfigRecord(resource_type=kind, resource_name=name, name=setting, value=value)
        for setting, value in after.items()
        if value != own.get(setting)
    ]


def _check_topic(cluster: Cluster, configs: Mapping[str, str]) -> None:
    check_topic_configs(configs)


def _check_brokers(cluster: Cluster, configs: Mapping[str, str]) -> None:
    known = settings_of(BROKER)
    fixed = [name for name in configs if name in known and not known[name].dynamic]
    if fixed:
        raise _invalid(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    for name, value in configs.items():
        if name in known:
            _check_value(known[name], value)
    _check_listeners(configs.get("listeners", ""))


def _check_listeners(text: str) -> None:
    endpoints = [each.strip() for each in text.split(",") if text.strip()]
    wrong = next((each for each in endpoints if not _ENDPOINT.fullmatch(each)), None)
    if wrong is not None:
        reason = f"Unable to parse {wrong} to a broker endpoint"
        raise _invalid(f"Error creating broker listeners from '[{', '.join(endpoints)}]': {reason}")


def _check_value(setting: Setting, value: str) -> Any:
    """Return a value of a broker or of client metrics. A wrong one makes the request wrong, in Kafka."""
    try:
        return setting.check(value)
    except RefusedError as error:
        raise _invalid(error.message or "") from None


def _check_min_in_sync(kind: ConfigResourceType, name: str, after: Mapping[str, str | None]) -> None:
    if kind is ConfigResourceType.BROKER and MIN_IN_SYNC in after:
        if name:
            raise _bad_config("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
        if after[MIN_IN_SYNC] is None:
            raise _bad_config("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")


def _check_group(cluster: Cluster, configs: Mapping[str, str]) -> None:
    known = settings_of(GROUP)
    for name, value in configs.items():
        if name not in known:
            raise _bad_config(f"Unknown group config name: {name}")
        known[name].check(value)
    try:
        _coordinator_config(cluster).validate_group(configs)
    except OptionError as error:
        raise _bad_config(f"{error.option} {error.reason}") from None


def _coordinator_config(cluster: Cluster) -> CoordinatorConfig:
    """Return the settings of the group coordinators, whose bounds hold for groups."""
    names = {name.replace("_", "."): name for name in fields_dict(CoordinatorConfig)}
    return CoordinatorConfig.parse({name: text for name, text in cluster.settings.static.items() if name in names})


def _check_client_metrics(cluster: Cluster, configs: Mapping[str, str]) -> None:
    known = settings_of(CLIENT_METRICS)
    for name, value in configs.items():
        if name not in known:
            raise _invalid(f"Unknown client metrics configuration: {name}")
        number = _check_value(known[name], value)
        if name == "interval.ms" and not 100 <= number <= 3_600_000:
            raise _invalid(f"Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)")
        if name == "match":
            _check_matches(value)


def _check_matches(text: str) -> None:
    """Check the clients that a subscription matches: names of facts, each with a regular expression."""
    for part in (each.strip() for each in text.split(",") if text.strip()):
        name, *patterns = part.rstrip("=").split("=")
        if len(patterns) != 1 or name.strip() not in _MATCHED or not _is_regex(patterns[0].strip()):
            raise _bad_config(f"Illegal client matching pattern: {part}")


def _is_regex(pattern: str) -> bool:
    try:
        compile_regex(pattern)
    except InvalidRegexError:
        return False
    return True


_CHECKS: Final[Mapping[ConfigResourceType, Callable[[Cluster, Mapping[str, str]], None]]] = {
    ConfigResourceType.TOPIC: _check_topic,
    ConfigResourceType.BROKER: _check_brokers,
    ConfigResourceType.GROUP: _check_group,
    ConfigResourceType.CLIENT_METRICS: _check_client_metrics,
}


def _invalid(message: str) -> RefusedError:
    return RefusedError(error=ErrorCode.INVALID_REQUEST, message=message)


def _bad_config(message: str) -> RefusedError:
    return RefusedError(error=ErrorCode.INVALID_CONFIG, message=message)
