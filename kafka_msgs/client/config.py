"""Client configuration: bootstrap servers, timeouts, connections and credentials.

Secrets never appear in a ``repr``. ``ClientConfig.from_properties`` reads Kafka's property names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, get_args

from attrs import Attribute, field, frozen

from kafka_msgs.client.network import Address
from kafka_msgs.errors import OptionError
from kafka_msgs.wire import MAX_FRAME_SIZE

if TYPE_CHECKING:
    import ssl

    from kafka_msgs.client.auth import Credentials

__all__ = ["ClientConfig", "ClientOptions", "DnsLookup"]

DEFAULT_TIMEOUT: Final = 30.0

DnsLookup: TypeAlias = Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
"""How host names are resolved (KIP-602)."""


def _addresses(servers: str | Sequence[str] | Sequence[Address]) -> tuple[Address, ...]:
    texts = servers.split(",") if isinstance(servers, str) else servers
    found = tuple(each if isinstance(each, Address) else Address.parse(each) for each in texts)
    if not found:
        raise OptionError(source="client", option="bootstrap_servers", value=servers, reason="expected an address")
    return found


def _is_time(instance: object, attribute: Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
        reason = "expected a number of seconds above 0"
        raise OptionError(source="client", option=attribute.name, value=value, reason=reason)


def _is_time_or_none(instance: object, attribute: Attribute[Any], value: Any) -> None:
    if value is not None:
        _is_time(instance, attribute, value)


def _is_count(instance: object, attribute: Attribute[int], value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        reason = "expected a whole number above 0"
        raise OptionError(source="client", option=attribute.name, value=value, reason=reason)


def _is_proxy(instance: object, attribute: Attribute[Any], value: str | None) -> None:
    if value is not None:
        from kafka_msgs.client.proxy import check_proxy

        check_proxy(value)


def _is_lookup(instance: object, attribute: Attribute[str], value: str) -> None:
    if value not in get_args(DnsLookup):
        reason = f"expected one of {', '.join(get_args(DnsLookup))}"
        raise OptionError(source="client", option=attribute.name, value=value, reason=reason)


@frozen(kw_only=True)
class ClientConfig:
    """The settings of a client. Times are in seconds.

    ``bootstrap_servers``: addresses of some brokers of the cluster, as ``host:port``, in one string or a sequence.
    ``client_id``: the name that the brokers log for this client.
    ``timeout``: the default time limit of a whole operation, including retries.
    ``request_timeout``: the time limit for one response. Afterwards the client closes the connection.
    ``connect_timeout``: the time limit for one connection, from name resolution to the end of authentication.
    ``backoff`` and ``max_backoff``: the first and the longest pause before a retry. Each pause is random, between 50 %
    and 100 % of its length, which doubles with each attempt.
    ``reconnect_backoff`` and ``reconnect_backoff_max``: the first and the longest pause before the client reconnects to
    an unreachable broker. ``connection_max_idle``: the client closes connections that were unused for this time; None
    keeps them. ``dns_lookup``: Kafka's ``client.dns.lookup`` (KIP-602).
    ``metadata_max_age``: the age after which the client refreshes the cluster metadata.
    ``max_frame_size``: the largest response in bytes.
    ``max_brokers``: the maximum number of brokers in a cluster. The client rejects larger responses, so that a response
    cannot make it connect to an unlimited number of addresses.
    ``max_in_flight``: the maximum number of in-flight requests per connection. Further calls wait.
    ``tls``: the TLS context, or None. It verifies certificates and host names unless you change it. ``credentials``:
    the SASL credentials, or None. ``proxy``: the URL of a SOCKS proxy, or None (extra ``socks``):
    ``socks5://user:password@host:1080``. ``hooks``: objects with methods of ``ClientHooks``.
    """

    bootstrap_servers: tuple[Address, ...] = field(converter=_addresses)
    client_id: str | None = "kafka-msgs"
    timeout: float = field(default=DEFAULT_TIMEOUT, validator=_is_time)
    request_timeout: float = field(default=30.0, validator=_is_time)
    connect_timeout: float = field(default=10.0, validator=_is_time)
    backoff: float = field(default=0.05, validator=_is_time)
    max_backoff: float = field(default=1.0, validator=_is_time)
    reconnect_backoff: float = field(default=0.05, validator=_is_time)
    reconnect_backoff_max: float = field(default=1.0, validator=_is_time)
    connection_max_idle: float | None = field(default=540.0, validator=_is_time_or_none)
    dns_lookup: DnsLookup = field(default="use_all_dns_ips", validator=_is_lookup)
    metadata_max_age: float = field(default=300.0, validator=_is_time)
    max_frame_size: int = field(default=MAX_FRAME_SIZE, validator=_is_count)
    max_brokers: int = field(default=1000, validator=_is_count)
    max_in_flight: int = field(default=1000, validator=_is_count)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    credentials: Credentials | None = field(default=None, repr=False)
    hooks: tuple[object, ...] = field(default=(), converter=tuple, repr=False)
    proxy: str | None = field(default=None, repr=False, validator=_is_proxy)

    @classmethod
    def from_properties(cls, properties: Mapping[str, object], *, timeout: float | None = None) -> ClientConfig:
        """Return the client configuration in a mapping of properties (see ``property_table``).

        ``timeout`` (seconds) overrides the property. Raises ``OptionError`` for an unknown name or an invalid value.
        """
        from kafka_msgs.client.client_properties import parse_client_properties
        from kafka_msgs.client.property_parsing import resolve_names

        settings = parse_client_properties(resolve_names(properties))
        if timeout is not None:
            settings["timeout"] = timeout
        if "bootstrap_servers" not in settings:
            raise OptionError(source="client", option="bootstrap.servers", value=None, reason="it is missing")
        return cls(**settings)


class ClientOptions(TypedDict, total=False):
    """The keyword arguments that every client accepts. See ``ClientConfig``."""

    client_id: str | None
    timeout: float
    request_timeout: float
    connect_timeout: float
    backoff: float
    max_backoff: float
    reconnect_backoff: float
    reconnect_backoff_max: float
    connection_max_idle: float | None
    dns_lookup: DnsLookup
    metadata_max_age: float
    max_frame_size: int
    max_brokers: int
    max_in_flight: int
    tls: ssl.SSLContext | None
    credentials: Credentials | None
    proxy: str | None
    hooks: Sequence[object]
