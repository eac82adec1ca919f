"""Parses properties with the names of any client into keywords. ``property_table`` lists the names.

An unknown property is an error, or with ``strict=False`` logged, because several tools may share a file.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from kafka_msgs.client.property_table import (
    REPLACED,
    SETTINGS,
    UNSUPPORTED,
    Role,
    Setting,
    find_setting,
    is_ignored,
    known_names,
)
from kafka_msgs.errors import OptionError
from kafka_msgs.suggestions import did_you_mean, similar_names

__all__ = ["nearest_name", "parse_settings", "resolve_names"]

_log: Final = logging.getLogger("kafka_msgs.client")


def resolve_names(
    properties: Mapping[str, object], *, source: str = "properties", strict: bool = True
) -> dict[str, str]:
    """Return the properties as strings with Kafka's names, without ignored properties and None values.

    Unknown names raise ``OptionError`` with the nearest name, or without ``strict`` are logged in one warning. Two
    names of one setting raise ``OptionError``.
    """
    texts: dict[str, str] = {}
    given: dict[str, str] = {}
    unknown: list[str] = []
    unsupported: list[str] = []
    ignored: list[str] = []
    for name, value in properties.items():
        setting = find_setting(name)
        dotted = name.replace("_", ".")
        if setting is not None and value is not None:
            if setting.name in texts:
                raise _refusal(name, f"it is the same setting as {given[setting.name]}")
            texts[setting.name], given[setting.name] = _text(value), name
        elif setting is None and (replacement := REPLACED.get(name) or REPLACED.get(dotted)):
            raise _refusal(name, f"it is not supported; use {replacement} instead")
        elif setting is None and (value is not None or not _is_known(name)):
            kind = unsupported if {name, dotted} & UNSUPPORTED else ignored if is_ignored(name) else unknown
            kind.append(name)
    if unknown and strict:
        raise _refusal(unknown[0], f"there is no such property{nearest_name(unknown[0], 'client', frozenset())}")
    for names, level, words in (
        (unknown, logging.WARNING, "unknown properties"),
        (unsupported, logging.WARNING, "properties without effect in this client"),
        (ignored, logging.DEBUG, "properties without meaning in this client"),
    ):
        if names:
            _log.log(level, "%s: %s: %s", source, words, ", ".join(sorted(names)))
    return texts


def parse_settings(properties: Mapping[str, str], role: Role) -> dict[str, Any]:
    """Return the keywords of a role from properties with Kafka's names.

    Raises ``OptionError`` for a value that cannot be parsed, and for two properties of one keyword.
    """
    settings: dict[str, Any] = {}
    for setting in SETTINGS:
        keyword = setting.keyword(role)
        if keyword is None or setting.unit.name == "security" or setting.name not in properties:
            continue
        if keyword in settings:
            raise _refusal(setting.name, f"another property sets {keyword}, too")
        text = properties[setting.name].strip()
        values = _parsed(setting, text)
        if not values:
            value = None if setting.is_secret else text
            reason = f"the value cannot be read ({setting.unit.name} expected)"
            raise OptionError(source=role, option=setting.name, value=value, reason=reason)
        settings[keyword] = values[0]
    return settings


def _parsed(setting: Setting, text: str) -> tuple[Any, ...]:
    """Return the value in a tuple, or an empty tuple, because a chained error could expose a secret."""
    try:
        return (setting.unit.parse(text),)
    except (ValueError, KeyError):
        return ()


def _is_known(name: str) -> bool:
    return bool({name, name.replace("_", ".")} & UNSUPPORTED) or is_ignored(name)


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def nearest_name(name: str, role: Role, accepted: frozenset[str]) -> str:
    """Return a question with the nearest known name: a keyword, or without keywords a property."""
    names = {each: each for each in accepted}
    if accepted:
        names |= {known: keyword for known, keyword in known_names(role) if keyword in accepted}
    else:
        names |= {setting.name: setting.name for setting in SETTINGS}
    key = name if accepted else name.replace("_", ".")
    return did_you_mean(names[near] for near in similar_names(key.replace(".", "_") if accepted else key, names, 1))


def _refusal(option: str, reason: str) -> OptionError:
    return OptionError(source="client", option=option, value=None, reason=reason)
