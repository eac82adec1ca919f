"""Configuration of an embedded broker: the number of brokers, their listeners, release and Kafka configs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import field, frozen, validators
from attrs.converters import optional

from kafka_msgs.errors import OptionError
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.validators import int_range, one_of

if TYPE_CHECKING:
    import ssl

__all__ = ["LAST_PORT", "SECURITY_PROTOCOLS", "WILDCARDS", "BrokerConfig", "ListenerConfig"]

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The security protocols of listeners. The index of a protocol is its number in metadata records."""

_MOST_BROKERS: Final = 100
WILDCARDS: Final[Mapping[str | None, str]] = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Wildcard addresses, and the loopback address that clients use for each."""
LAST_PORT: Final = 65535


@frozen(kw_only=True)
class ListenerConfig:
    """A listener of every broker. Broker n of the cluster listens on ``port`` + n; 0 lets the system choose a port.

    ``host`` is the bind address and defaults to the host of the cluster. Clients receive ``advertised_host`` and
    ``advertised_port`` + n, for example the address of a proxy or of a container host. They default to the bind
    address, or to the loopback address for a wildcard bind address. ``tls`` is the server-side TLS configuration for
    the protocols SSL and SASL_SSL.
    """

    name: str = "PLAINTEXT"
    protocol: str = field(default="PLAINTEXT", validator=one_of(*SECURITY_PROTOCOLS))
    host: str | None = None
    port: int = field(default=0, validator=int_range(0, LAST_PORT))
    advertised_host: str | None = None
    advertised_port: int = field(default=0, validator=int_range(0, LAST_PORT))
    tls: ssl.SSLContext | None = None

    @property
    def sasl(self) -> bool:
        """Whether clients of this listener must authenticate."""
        return self.protocol.startswith("SASL")

    def advertised(self, number: int, listening: tuple[str, int]) -> tuple[str, int]:
        """Return the advertised host and port of broker ``number``, which is bound to ``listening``."""
        host, port = listening
        return (
            self.advertised_host or WILDCARDS.get(host, host),
            self.advertised_port + number if self.advertised_port else port,
        )

    def __attrs_post_init__(self) -> None:
        wrong = partial(OptionError, source="ListenerConfig")
        if self.advertised_host in WILDCARDS:
            raise wrong(option="advertised_host", value=self.advertised_host, reason="clients cannot connect to it")
        if (self.tls is not None) != self.protocol.endswith("SSL"):
            raise wrong(option="tls", value=self.tls, reason="SSL and SASL_SSL need it, no other")


@frozen(kw_only=True)
class BrokerConfig:
    """Configuration of an embedded cluster. Every attribute has a default.

    ``brokers`` is the number of virtual brokers; their ids begin at 0. ``release``, for example ``"3.7"``, limits the
    supported versions to a Kafka release. ``profile`` configures the group coordinators. ``configs`` are Kafka broker
    configs by name, for example ``{"auto.create.topics.enable": "false"}``. ``racks`` lists the racks of the brokers in
    order.

    ``directory`` stores all data in Kafka's own file formats; without it, data stays in memory. For a single broker it
    is the log directory. For several brokers it contains one log directory each, for example ``broker-0``. If it
    contains log directories of existing nodes, the brokers are these nodes, with their ids. With ``durable``, each
    append is flushed to disk before it is acknowledged, so acknowledged data survives a machine crash. ``durable``
    requires ``directory``.

    ``users`` maps names to passwords for SASL listeners: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. ``authorizer`` enables
    ACLs. ``super_users``, for example ``User:admin``, may do everything, and ``allow_everyone`` permits access to
    resources without ACLs.

    ``telemetry`` lets clients push metrics (KIP-714), which ``EmbeddedBroker.pushed_metrics`` returns.
    ``control_port`` enables remote control over HTTP on this port of 127.0.0.1; 0 lets the system choose a port.
    ``registry_port`` enables an in-memory schema registry on ``registry_host``. ``seed`` makes generated ids
    reproducible: the same seed and the same calls give the same ids. The default None generates unpredictable ids.
    Raises ``OptionError``.
    """

    brokers: int = field(default=1, validator=int_range(1, _MOST_BROKERS))
    host: str = "127.0.0.1"
    listeners: tuple[ListenerConfig, ...] = (ListenerConfig(),)
    release: str | None = None
    profile: Profile = SHIPPED
    directory: Path | None = field(default=None, converter=optional(Path))
    durable: bool = False
    configs: Mapping[str, str] = field(factory=dict)
    racks: tuple[str | None, ...] = ()
    cluster_id: str | None = None
    users: Mapping[str, str] = field(factory=dict, repr=False)
    authorizer: bool = False
    super_users: tuple[str, ...] = ()
    allow_everyone: bool = False
    telemetry: bool = False
    control_port: int | None = field(default=None, validator=validators.optional(int_range(0, LAST_PORT)))
    registry_host: str = "127.0.0.1"
    registry_port: int | None = field(default=None, validator=validators.optional(int_range(0, LAST_PORT)))
    seed: int | None = None

    def __attrs_post_init__(self) -> None:
        names = [listener.name for listener in self.listeners]
        if not names or len(set(names)) != len(names):
            reason = "one or more of distinct names are needed"
            raise OptionError(source="BrokerConfig", option="listeners", value=names, reason=reason)
        if self.durable and self.directory is None:
            raise OptionError(source="BrokerConfig", option="durable", value=True, reason="it needs a directory")

    @staticmethod
    def embedded_defaults(brokers: int) -> Mapping[str, str]:
        """Return Kafka configs whose defaults suit large clusters, with values for this number of brokers.

        ``configs`` overrides them. Replication factors are at most the number of brokers.
        """
        factor = str(min(3, brokers))
        in_sync = "1" if brokers == 1 else "2"
        return {
            "group.initial.rebalance.delay.ms": "0",
            "group.streams.initial.rebalance.delay.ms": "0",
            "max.connections": "10000",
            "metadata.log.max.record.bytes.between.snapshots": str(2**20),
            "offsets.topic.replication.factor": factor,
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "transaction.state.log.replication.factor": factor,
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": factor,
            "share.coordinator.state.topic.min.isr": in_sync,
        }

    def rack(self, number: int) -> str | None:
        """Return the rack of the broker with this number, counted from 0, or None."""
        return self.racks[number] if number < len(self.racks) else None
