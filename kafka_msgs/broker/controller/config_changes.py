"""Config changes for topics, brokers, groups and client metrics, as metadata records.

Checks, error codes and error messages match Kafka's ``ConfigurationControlManager`` and
``ControllerConfigurationValidator``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import fields_dict

from kafka_msgs.broker.controller.config_defs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    BrokerConfigs,
    ConfigKey,
    config_keys,
)
from kafka_msgs.broker.controller.config_entries import RESOURCES, resource_overrides
from kafka_msgs.broker.controller.image import MetadataImage
from kafka_msgs.broker.controller.topics import check_topic_configs, check_topic_name
from kafka_msgs.enums import AlterConfigOp, ConfigResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import OptionError, RequestRefusedError
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.re2 import InvalidRegexError, compile_regex
from kafka_msgs.messages.config_record import ConfigRecord

__all__ = ["MIN_IN_SYNC", "alter_configs", "check_operations", "check_resource", "replace_configs"]

_invalid: Final = partial(RequestRefusedError, ErrorCode.INVALID_REQUEST)
_bad_config: Final = partial(RequestRefusedError, ErrorCode.INVALID_CONFIG)

MIN_IN_SYNC: Final = "min.insync.replicas"
"""The broker config that the controller manages itself (KIP-966)."""

_LONGEST_VALUE: Final = 32767
_MATCHED: Final = frozenset(
    {"client_instance_id", "client_id", "client_software_name", "client_software_version"}
    | {"client_source_address", "client_source_port"}
)
"""The client attributes that a client metrics subscription can match (KIP-714)."""
_SHORTEST_MS: Final = 100
_LONGEST_MS: Final = 3_600_000
_ENDPOINT: Final = re.compile(r"\w+://\[?[\w\-%.:]*\]?:-?\d+", re.ASCII)

Change = tuple[str, int, str | None]
"""A config name, an operation (``AlterConfigOp``) and a value."""


def alter_configs(
    image: MetadataImage, configs: BrokerConfigs, kind: ConfigResourceType, name: str, changes: Sequence[Change]
) -> list[ConfigRecord]:
    """Return the records that change individual configs of a resource. Raises ``RequestRefusedError``."""
    own = resource_overrides(image, kind, name)
    after: dict[str, str | None] = dict(own)
    for setting, operation, value in changes:
        after[setting] = _operated(kind, setting, operation, value, own)
    asked = {setting: value for setting, operation, value in changes if operation != AlterConfigOp.DELETE}
    return _checked(image, configs, kind, name, {each: after[each] for each in asked}, after)


def check_operations(image: MetadataImage, kind: ConfigResourceType, name: str, changes: Sequence[Change]) -> None:
    """Raise ``RequestRefusedError`` for an operation that a config does not support, without a check of the values."""
    own = resource_overrides(image, kind, name)
    for setting, operation, value in changes:
        _operated(kind, setting, operation, value, own)


def replace_configs(
    image: MetadataImage,
    configs: BrokerConfigs,
    kind: ConfigResourceType,
    name: str,
    replacement: Mapping[str, str | None],
) -> list[ConfigRecord]:
    """Return the records that replace all configs of a resource. Raises ``RequestRefusedError``."""
    after = {**dict.fromkeys(resource_overrides(image, kind, name)), **replacement}
    return _checked(image, configs, kind, name, replacement, after)


def check_resource(kind: ConfigResourceType, name: str) -> None:
    """Raise ``RequestRefusedError`` for an invalid resource."""
    if kind is ConfigResourceType.TOPIC:
        if not name:
            raise _invalid("Default topic resources are not allowed.")
        check_topic_name(name)
    elif kind is ConfigResourceType.GROUP and not name:
        raise _invalid("Default group resources are not allowed.")
    elif kind is ConfigResourceType.CLIENT_METRICS and not name:
        raise _invalid("Subscription name can't be empty")


_WITH_LISTS: Final = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)
"""The resource types whose list configs Kafka's controller recognizes."""


def _operated(
    kind: ConfigResourceType, setting: str, operation: int, value: str | None, own: Mapping[str, str]
) -> str | None:
    """Return the new value of a config, or None if the resource no longer overrides it."""
    if operation == AlterConfigOp.DELETE:
        return None
    if operation == AlterConfigOp.SET:
        return value
    if operation not in (AlterConfigOp.APPEND, AlterConfigOp.SUBTRACT):
        raise _invalid(f"Unknown operations type {operation}")
    known = config_keys(RESOURCES[kind][0]).get(setting)
    if known is None or known.type != "list" or kind not in _WITH_LISTS:
        raise _bad_config(_no_list(kind, setting, AlterConfigOp(operation).name, is_known=known is not None))
    parts = [each for each in own.get(setting, known.default or "").split(",") if each]
    given, there = _split(value or ""), set(parts)
    if operation == AlterConfigOp.APPEND:
        return ",".join([*parts, *(each for each in dict.fromkeys(given) if each not in there)])
    gone = Counter(given)
    kept = []
    for each in parts:
        if gone[each]:
            gone[each] -= 1
        else:
            kept.append(each)
    return ",".join(kept)


def _no_list(kind: ConfigResourceType, setting: str, operation: str, *, is_known: bool) -> str:
    """Return the error message for a config that is not a list.

    Brokers check their own configs, and controllers check all others.
    """
    if kind is not ConfigResourceType.BROKER:
        return f"Can't {operation} to key {setting} because its type is not LIST."
    if not is_known:
        return f"Unknown config name: {setting}"
    return f"Config value {operation.lower()} is not allowed for config key: {setting}"


def _split(text: str) -> list[str]:
    """Return the text between commas like Java's ``split``: without trailing empty strings."""
    return text.rstrip(",").split(",") if text.strip(",") or not text else []


def _checked(
    image: MetadataImage,
    configs: BrokerConfigs,
    kind: ConfigResourceType,
    name: str,
    asked: Mapping[str, str | None],
    after: Mapping[str, str | None],
) -> list[ConfigRecord]:
    check_resource(kind, name)
    for value in asked.values():
        if len((value or "").encode()) > _LONGEST_VALUE:
            reason = f"it exceeds the maximum value size of {_LONGEST_VALUE} bytes."
            raise _bad_config(f"The configuration value cannot be added because {reason}")
    kept = {setting: value for setting, value in after.items() if value is not None}
    _CHECKS[kind](configs, kept)
    _check_min_in_sync(kind, name, after)
    if kind is ConfigResourceType.TOPIC and name not in image.topics:
        raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    own = resource_overrides(image, kind, name)
    return [
        ConfigRecord(resource_type=kind, resource_name=name, name=setting, value=value)
        for setting, value in after.items()
        if value != own.get(setting)
    ]


def _check_topic(defaults: BrokerConfigs, configs: Mapping[str, str]) -> None:
    check_topic_configs(configs)


def _check_brokers(defaults: BrokerConfigs, configs: Mapping[str, str]) -> None:
    known = config_keys(BROKER)
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


def _check_value(setting: ConfigKey, value: str) -> None:
    """Check a value of a broker config. As in Kafka, a wrong value makes the whole request invalid."""
    try:
        setting.check(value)
    except RequestRefusedError as error:
        raise _invalid(error.message or "") from None


def _check_min_in_sync(kind: ConfigResourceType, name: str, after: Mapping[str, str | None]) -> None:
    if kind is ConfigResourceType.BROKER and MIN_IN_SYNC in after:
        if name:
            raise _bad_config("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
        if after[MIN_IN_SYNC] is None:
            raise _bad_config("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")


def _check_group(defaults: BrokerConfigs, configs: Mapping[str, str]) -> None:
    known = config_keys(GROUP)
    for name, value in configs.items():
        if name not in known:
            raise _bad_config(f"Unknown group config name: {name}")
        known[name].check(value)
    try:
        _coordinator_config(defaults).validate_group(configs)
    except OptionError as error:
        raise _bad_config(f"{error.option} {error.reason}") from None


def _coordinator_config(configs: BrokerConfigs) -> CoordinatorConfig:
    """Return the group coordinator configs, whose bounds apply to groups."""
    names = {name.replace("_", "."): name for name in fields_dict(CoordinatorConfig)}
    return CoordinatorConfig.parse({name: text for name, text in configs.static.items() if name in names})


def _check_client_metrics(defaults: BrokerConfigs, configs: Mapping[str, str]) -> None:
    known = config_keys(CLIENT_METRICS)
    unknown = next((name for name in configs if name not in known), None)
    if unknown is not None:
        raise _invalid(f"Unknown client metrics configuration: {unknown}")
    values = {name: known[name].check(text) for name, text in configs.items()}
    interval = values.get("interval.ms", _SHORTEST_MS)
    if not _SHORTEST_MS <= interval <= _LONGEST_MS:
        reason = f"interval must be between {_SHORTEST_MS} and {_LONGEST_MS} (1 hour)"
        raise _invalid(f"Invalid value {interval} for interval.ms, {reason}")
    _check_matches(values.get("match", ()))


def _check_matches(parts: Iterable[str]) -> None:
    """Check the client match patterns of a subscription: attribute names, each with a regular expression."""
    for part in parts:
        name, *patterns = part.rstrip("=").split("=")
        if len(patterns) != 1 or name.strip() not in _MATCHED or not _is_regex(patterns[0].strip()):
            raise _bad_config(f"Illegal client matching pattern: {part}")


def _is_regex(pattern: str) -> bool:
    try:
        compile_regex(pattern)
    except InvalidRegexError:
        return False
    return True


_CHECKS: Final[Mapping[ConfigResourceType, Callable[[BrokerConfigs, Mapping[str, str]], None]]] = {
    ConfigResourceType.TOPIC: _check_topic,
    ConfigResourceType.BROKER: _check_brokers,
    ConfigResourceType.GROUP: _check_group,
    ConfigResourceType.CLIENT_METRICS: _check_client_metrics,
}
