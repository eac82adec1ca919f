"""Keywords, mappings of properties and properties files become configs here, for every client alike.

``property_table`` lists the settings. An unknown keyword and an unknown property in a mapping are refused. An unknown
property in a file is logged, because several tools may share the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from attrs import evolve, fields_dict, frozen

from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.properties_file import read_properties
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

__all__ = [
    "CLIENT",
    "Keywords",
    "Servers",
    "check_keywords",
    "load_properties",
    "parse_settings",
    "resolve_names",
    "settings_of",
]

Servers: TypeAlias = "str | Sequence[str] | ClientConfig | Mapping[str, object] | Path"
"""Addresses of brokers, the configuration of a client, or Kafka's properties: a mapping of them, or their file."""

_log: Final = logging.getLogger("kafka_msgs.client")
_CLIENT_KEYWORDS: Final = frozenset(fields_dict(cast(Any, ClientConfig))) - {"bootstrap_servers"}


@frozen
class Keywords:
    """The keywords of one kind of client besides those of ``ClientConfig``."""

    role: Role
    config: type[Any] | None
    """The config class that has the keywords."""
    parse: Callable[[Mapping[str, str]], dict[str, Any]]
    """The function that parses properties by Kafka's names into keywords."""

    @property
    def names(self) -> frozenset[str]:
        """The keywords."""
        return frozenset() if self.config is None else frozenset(fields_dict(self.config))


CLIENT: Final = Keywords("client", None, lambda _: {})
"""Clients without settings of their own: ``Client``, ``Admin`` and their asyncio forms."""


def settings_of(
    servers: Servers, settings: Mapping[str, Any], keywords: Keywords = CLIENT
) -> tuple[ClientConfig, dict[str, Any]]:
    """Return the configuration of the client, and the other settings. Keywords go before properties.

    A keyword of both the client and the role applies to both. Raises ``OptionError``.
    """
    check_keywords(settings, keywords, _CLIENT_KEYWORDS | keywords.names)
    apart = keywords.names & _APART
    options = {name: value for name, value in settings.items() if name in _CLIENT_KEYWORDS - apart}
    others = {name: value for name, value in settings.items() if name in keywords.names}
    if isinstance(servers, Path):
        properties = load_properties(servers)
    elif isinstance(servers, Mapping):
        properties = resolve_names(servers)
    else:
        config = servers if isinstance(servers, ClientConfig) else ClientConfig(bootstrap_servers=servers)
        return evolve(config, **options), others
    return evolve(ClientConfig.from_properties(properties), **options), keywords.parse(properties) | others


def load_properties(path: Path) -> dict[str, str]:
    """Return the properties in a file by Kafka's names. Unknown names are logged. Raises ``OptionError``."""
    return resolve_names(read_properties(path), source=str(path), strict=False)


_APART: Final = frozenset({"max_in_flight"})
"""Keywords that producers have in a meaning of their own."""


def check_keywords(settings: Iterable[str], keywords: Keywords, accepted: frozenset[str]) -> None:
    """Raise ``OptionError`` with the nearest name for a keyword that a client does not have."""
    for name in settings:
        if name not in accepted:
            reason = f"there is no such setting{_hint(name, keywords.role, accepted)}"
            raise OptionError(source=keywords.role, option=name, value=None, reason=reason)


def resolve_names(
    properties: Mapping[str, object], *, source: str = "properties", strict: bool = True
) -> dict[str, str]:
    """Return properties as texts by Kafka's names, without those that have no meaning here and without None.

    Unknown names raise ``OptionError`` with the nearest name, or without ``strict`` are logged as one warning. Two
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
        raise _refusal(unknown[0], f"there is no such property{_hint(unknown[0], 'client', frozenset())}")
    for names, level, words in (
        (unknown, logging.WARNING, "unknown properties"),
        (unsupported, logging.WARNING, "properties without effect in this client"),
        (ignored, logging.DEBUG, "properties without meaning in this client"),
    ):
        if names:
            _log.log(level, "%s: %s: %s", source, words, ", ".join(sorted(names)))
    return texts


def parse_settings(properties: Mapping[str, str], role: Role) -> dict[str, Any]:
    """Return the keywords of a role that properties (by Kafka's names) set.

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
    """Return the value, or nothing. An error with the text as its context could show a secret."""
    try:
        return (setting.unit.parse(text),)
    except (ValueError, KeyError):
        return ()


def _is_known(name: str) -> bool:
    return bool({name, name.replace("_", ".")} & UNSUPPORTED) or is_ignored(name)


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _hint(name: str, role: Role, accepted: frozenset[str]) -> str:
    """Return a question about the nearest known name: a keyword, or without keywords a property."""
    from difflib import get_close_matches

    names = {each: each for each in accepted}
    if accepted:
        names |= {known: keyword for known, keyword in known_names(role) if keyword in accepted}
    else:
        names |= {setting.name: setting.name for setting in SETTINGS}
    key = name if accepted else name.replace("_", ".")
    nearest = get_close_matches(key.replace(".", "_") if accepted else key, names, n=1, cutoff=0.6)
    return f"; did you mean {names[nearest[0]]}?" if nearest else ""


def _refusal(option: str, reason: str) -> OptionError:
    return OptionError(source="client", option=option, value=None, reason=reason)
