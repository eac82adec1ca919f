"""Keywords, mappings of properties and properties files become configs here, for every client alike.

``property_table`` lists the settings. An unknown keyword and an unknown property in a mapping are refused. An unknown
property in a file is logged, because several tools may share the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from attrs import evolve, fields_dict, frozen

from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.properties_file import read_properties
from kafka_msgs.client.property_parsing import nearest_name, resolve_names
from kafka_msgs.client.property_table import Role
from kafka_msgs.errors import OptionError

__all__ = [
    "CLIENT",
    "Keywords",
    "Servers",
    "check_keywords",
    "load_config",
    "load_properties",
]

Servers: TypeAlias = "str | Sequence[str] | ClientConfig | Mapping[str, object] | Path"
"""Addresses of brokers, the configuration of a client, or Kafka's properties: a mapping of them, or their file."""

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


def load_config(
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
            reason = f"there is no such setting{nearest_name(name, keywords.role, accepted)}"
            raise OptionError(source=keywords.role, option=name, value=None, reason=reason)
