"""The settings of a client: which brokers, how long to wait, and how to prove who it is.

Secrets are in no ``repr``. ``ClientConfig.from_properties`` reads the names that Kafka's own clients use.
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

    ``bootstrap_servers``: addresses of some brokers of the cluster, as ``host:port``, in one text or several.
    ``client_id``: the name that the brokers log for this client.
    ``timeout``: how long an operation may take as a whole, if the caller does not say otherwise.
    ``request_timeout``: how long one broker may take for one answer. After it the connection is closed.
    ``connect_timeout``: how long one connection may take, from the host name to the end of authentication.
    ``backoff`` and ``max_backoff``: the first pause before a request is tried again, and the longest one. A pause
    is drawn at random between a half and all of its length, and doubles with each trial.
    ``reconnect_backoff`` and ``reconnect_backoff_max``: the first and the longest pause before the client connects
    again to a broker that it could not reach. ``connection_max_idle``: unused connections are closed after this time;
    None keeps them. ``dns_lookup``: Kafka's ``client.dns.lookup`` (KIP-602).
    ``metadata_max_age``: after how long the metadata of the cluster is asked for again.
    ``max_frame_size``: the largest response in bytes.
    ``max_brokers``: how many brokers a cluster may name. A response with more of them is refused, so that nobody makes
    a client connect to any number of addresses.
    ``max_in_flight``: how many requests may wait for answers on one connection. A further call waits for its turn.
    ``tls``: the context of encrypted connections, or None. It verifies certificates and host names unless you change
    it. ``credentials``: who the client is (SASL), or None. ``proxy``: the URL of a SOCKS proxy, such as
    ``socks5://user:password@host:1080``, or None (extra ``socks``). ``hooks``: objects with methods of
    ``ClientHooks``.
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
    hooks: tuple[Any, ...] = field(default=(), converter=tuple, repr=False)
    proxy: str | None = field(default=None, repr=False, validator=_is_proxy)

    @classmethod
    def from_properties(cls, properties: Mapping[str, object], *, timeout: float | None = None) -> ClientConfig:
        """Return the client's settings in a mapping of properties (see ``property_table``).

        ``timeout`` (seconds) precedes the one in the properties. Raises ``OptionError`` for an unknown name and for a
        wrong value.
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
    """The settings that are keywords of every client. See ``ClientConfig``."""

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
    hooks: Sequence[Any]
