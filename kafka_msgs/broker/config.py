"""What an embedded broker is started with: how many brokers, where they listen, their release and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import field, frozen
from attrs.converters import optional

from kafka_msgs.errors import OptionError
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.validators import int_range, one_of

if TYPE_CHECKING:
    import ssl

__all__ = ["LAST_PORT", "SECURITY_PROTOCOLS", "BrokerConfig", "ListenerConfig"]

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The security protocols of listeners. The place of each is its number in records."""

_MOST_BROKERS: Final = 100
_LOOPBACK: Final[Mapping[str | None, str]] = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""The addresses of all interfaces, and where clients find a broker that listens there."""
LAST_PORT: Final = 65535


@frozen(kw_only=True)
class ListenerConfig:
    """A listener that each broker has. Broker n of the cluster listens on ``port`` + n; 0 lets the system choose.

    ``host`` is where it listens, by default the one of the cluster. Clients are sent to ``advertised_host`` and
    ``advertised_port`` + n, such as those of a proxy or of the host of a container; by default to where the broker
    listens, and to the loopback address if that is on all interfaces. ``tls`` has the server's side of a listener whose
    protocol is SSL or SASL_SSL.
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
        """Whether clients of this listener must log in."""
        return self.protocol.startswith("SASL")

    def advertised(self, number: int, listening: tuple[str, int]) -> tuple[str, int]:
        """Return the host and port for clients of the broker with this number, which listens at an address."""
        host, port = listening
        return (
            self.advertised_host or _LOOPBACK.get(host, host),
            self.advertised_port + number if self.advertised_port else port,
        )

    def __attrs_post_init__(self) -> None:
        if self.advertised_host in _LOOPBACK:
            reason = "clients cannot connect to it"
            raise OptionError(
                source="ListenerConfig", option="advertised_host", value=self.advertised_host, reason=reason
            )
        if (self.tls is not None) != self.protocol.endswith("SSL"):
            raise OptionError(
                source="ListenerConfig", option="tls", value=self.tls, reason="SSL and SASL_SSL need it, no other"
            )


@frozen(kw_only=True)
class BrokerConfig:
    """The settings of an embedded cluster. All have defaults.

    ``brokers`` is the number of virtual brokers; their ids begin at 0. ``release`` such as ``"3.7"`` offers the
    versions of that release only. ``profile`` is for the group coordinators. ``configs`` are Kafka's own settings of
    brokers by name, such as ``{"auto.create.topics.enable": "false"}``. ``racks`` has the racks of the brokers, in
    order.

    ``directory`` keeps all data in Kafka's own files; without it, everything is in memory. One broker has it as its log
    directory. Several have a log directory each in it, such as ``broker-0``. If it has log directories of nodes, these
    nodes are the brokers, with their ids. With ``durable`` each append is on the disk before it is acknowledged, so a
    crash of the machine loses nothing. It needs a directory.

    ``users`` has names and passwords for listeners with SASL: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. ``authorizer``
    decides by ACLs what clients may do. ``super_users`` such as ``User:admin`` may do everything, and
    ``allow_everyone`` allows what no ACL is about.

    Limits: ``max_connections`` per broker, and ``max_request_size`` in bytes as a broker's
    ``socket.request.max.bytes``. ``seed`` makes ids: the same seed and the same calls give the same ids. None means
    ids that nobody can guess. Raises ``OptionError``.
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
    max_connections: int = field(default=10_000, validator=int_range(1))
    max_request_size: int = field(default=100 * 2**20, validator=int_range(1024))
    seed: int | None = None

    def __attrs_post_init__(self) -> None:
        names = [listener.name for listener in self.listeners]
        if not names or len(set(names)) != len(names):
            raise OptionError(
                source="BrokerConfig",
                option="listeners",
                value=names,
                reason="one or more of distinct names are needed",
            )

        if self.durable and self.directory is None:
            raise OptionError(source="BrokerConfig", option="durable", value=True, reason="it needs a directory")

    @staticmethod
    def embedded_defaults(brokers: int) -> Mapping[str, str]:
        """Return Kafka's settings whose defaults are for large clusters, with values for so many brokers.

        ``configs`` replaces them. Replication factors are at most the number of brokers.
        """
        factor = str(min(3, brokers))
        in_sync = "1" if brokers == 1 else "2"
        return {
            "group.initial.rebalance.delay.ms": "0",
            "group.streams.initial.rebalance.delay.ms": "0",
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
