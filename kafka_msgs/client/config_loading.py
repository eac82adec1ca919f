"""Loading of configuration from keyword arguments, property mappings and properties files, for all clients.

``property_table`` lists the settings. Unknown keyword arguments and unknown properties in a mapping raise
``OptionError``. Unknown properties in a file are logged, because several tools may share the file.
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
"""Broker addresses, a client configuration, or Kafka's properties: a mapping or the path of a file."""

_CLIENT_KEYWORDS: Final = frozenset(fields_dict(cast(Any, ClientConfig))) - {"bootstrap_servers"}


@frozen
class Keywords:
    """The keyword arguments of one kind of client, in addition to the fields of ``ClientConfig``."""

    role: Role
    config: type[Any] | None
    """The config class whose fields are the keywords."""
    parse: Callable[[Mapping[str, str]], dict[str, Any]]
    """The function that parses properties with Kafka's names into keywords."""

    @property
    def names(self) -> frozenset[str]:
        """The keywords."""
        return frozenset() if self.config is None else frozenset(fields_dict(self.config))


CLIENT: Final = Keywords("client", None, lambda _: {})
"""Clients without additional keywords: ``Client``, ``Admin`` and their asyncio versions."""


def load_config(
    servers: Servers, settings: Mapping[str, Any], keywords: Keywords = CLIENT
) -> tuple[ClientConfig, dict[str, Any]]:
    """Return the client configuration, and the remaining settings. Keywords override properties.

    A keyword that the client and the role share applies to both. Raises ``OptionError``.
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
    """Return the properties in a file with Kafka's names. Unknown names are logged. Raises ``OptionError``."""
    return resolve_names(read_properties(path), source=str(path), strict=False)


_APART: Final = frozenset({"max_in_flight"})
"""Keywords with a separate meaning for producers."""


def check_keywords(settings: Iterable[str], keywords: Keywords, accepted: frozenset[str]) -> None:
    """Raise ``OptionError``, with the nearest valid name, for an unknown keyword."""
    for name in settings:
        if name not in accepted:
            reason = f"there is no such setting{nearest_name(name, keywords.role, accepted)}"
            raise OptionError(source=keywords.role, option=name, value=None, reason=reason)
