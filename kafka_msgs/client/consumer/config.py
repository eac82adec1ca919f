"""The settings of a consumer, and their names in Kafka's properties files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

from attrs import Attribute, Factory, field, frozen

from kafka_msgs.client.config import ClientOptions
from kafka_msgs.client.config_loading import Keywords
from kafka_msgs.client.consumer.assignors import ASSIGNORS
from kafka_msgs.client.property_parsing import parse_settings
from kafka_msgs.errors import OptionError

__all__ = [
    "CONSUMER",
    "ConsumerConfig",
    "ConsumerOptions",
    "GroupProtocol",
    "IsolationLevel",
    "OffsetReset",
    "OffsetsStorage",
    "parse_consumer_properties",
]

GroupProtocol: TypeAlias = Literal["classic", "consumer"]
"""The group protocol: ``classic`` uses JoinGroup and SyncGroup, ``consumer`` is the protocol of KIP-848."""

IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]
OffsetReset: TypeAlias = Literal["earliest", "latest", "none"]
OffsetsStorage: TypeAlias = Literal["kafka", "external"]


def _refuse(option: str, value: object, reason: str) -> OptionError:
    return OptionError(source="consumer", option=option, value=value, reason=reason)


def _one_of(choices: Any) -> Callable[[Any, Attribute[Any], Any], None]:
    def check(_: Any, attribute: Attribute[Any], value: Any) -> None:
        if value not in get_args(choices):
            raise _refuse(attribute.name, value, f"expected one of {', '.join(get_args(choices))}")

    return check


def _at_least(low: int, *, whole: bool = True) -> Callable[[Any, Attribute[Any], Any], None]:
    def check(_: Any, attribute: Attribute[Any], value: Any) -> None:
        kinds: Any = int if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not value >= low:
            kind = "a whole number" if whole else "a number"
            raise _refuse(attribute.name, value, f"expected {kind}, {low} or more")

    return check


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(value.split(",")) if isinstance(value, str) else tuple(value)


@frozen(kw_only=True)
class ConsumerConfig:
    """The settings of a consumer. Times are in seconds, sizes in bytes.

    Group: ``group_id`` (None: no group, no commits), ``group_instance_id`` (a static member, KIP-345),
    ``group_protocol``, ``assignors`` (classic groups: names of ``ASSIGNORS``, the preferred one first),
    ``remote_assignor`` (KIP-848: ``uniform``, ``range``, or None for the broker's default), ``session_timeout``,
    ``heartbeat_frequency`` (heartbeats per session timeout, more than 1), ``max_poll_interval`` (how long the consumer
    stays in the group without a ``poll``), ``rebalance_timeout`` (maximum wait of a rebalance for this member;
    ``max_poll_interval`` by default, as in Kafka), ``client_rack``.

    Offsets: ``offsets_storage`` selects where positions are stored: in Kafka, or by the user (``external``).
    ``auto_commit`` commits positions every ``auto_commit_interval``, before partitions are revoked, and on close.
    Without ``auto_offset_store``, ``auto_commit`` and ``commit`` commit the offsets of ``store_offsets`` instead.
    ``auto_offset_reset`` selects the start of a partition without a position.

    Fetching: ``isolation_level``, ``fetch_min_bytes``, ``fetch_max_wait``, ``fetch_max_bytes`` (one response),
    ``partition_max_bytes`` (one partition in one response; the consumer also stops fetching a partition when it has
    buffered more than this), ``buffer_max_bytes`` (buffered bytes of all partitions at which fetching stops),
    ``max_records`` (one call of ``poll``), ``check_crc``. As in Kafka's consumer, a batch larger than these limits is
    still read; ``ClientConfig.max_frame_size`` is the hard limit for a response.
    """

    group_id: str | None = None
    group_instance_id: str | None = None
    group_protocol: GroupProtocol = field(default="classic", validator=_one_of(GroupProtocol))
    assignors: tuple[str, ...] = field(default=("range", "cooperative-sticky"), converter=_names)
    remote_assignor: str | None = None
    session_timeout: float = field(default=45.0, validator=_at_least(0, whole=False))
    heartbeat_frequency: int = field(default=15, validator=_at_least(2))
    max_poll_interval: float = field(default=300.0, validator=_at_least(0, whole=False))
    rebalance_timeout: float = field(
        default=Factory(lambda config: config.max_poll_interval, takes_self=True), validator=_at_least(0, whole=False)
    )
    client_rack: str = ""
    offsets_storage: OffsetsStorage = field(default="kafka", validator=_one_of(OffsetsStorage))
    auto_commit: bool = False
    auto_commit_interval: float = field(default=5.0, validator=_at_least(0, whole=False))
    auto_offset_store: bool = True
    auto_offset_reset: OffsetReset = field(default="latest", validator=_one_of(OffsetReset))
    isolation_level: IsolationLevel = field(default="read_uncommitted", validator=_one_of(IsolationLevel))
    fetch_min_bytes: int = field(default=1, validator=_at_least(0))
    fetch_max_wait: float = field(default=0.5, validator=_at_least(0, whole=False))
    fetch_max_bytes: int = field(default=50 << 20, validator=_at_least(1))
    partition_max_bytes: int = field(default=1 << 20, validator=_at_least(1))
    buffer_max_bytes: int = field(default=50 << 20, validator=_at_least(1))
    max_records: int = field(default=500, validator=_at_least(1))
    check_crc: bool = True

    @assignors.validator
    def _known(self, attribute: Attribute[Any], value: tuple[str, ...]) -> None:
        if not value or any(name not in ASSIGNORS for name in value):
            raise _refuse(attribute.name, value, f"expected some of {', '.join(ASSIGNORS)}")

    @property
    def heartbeat_interval(self) -> float:
        """The time between two heartbeats of a classic group, in seconds."""
        return self.session_timeout / self.heartbeat_frequency


class ConsumerOptions(ClientOptions, total=False):
    """Consumer keyword arguments: all settings of ``ConsumerConfig``, and some settings of ``ClientConfig``."""

    group_id: str | None
    group_instance_id: str | None
    group_protocol: GroupProtocol
    assignors: str | Sequence[str]
    remote_assignor: str | None
    session_timeout: float
    heartbeat_frequency: int
    max_poll_interval: float
    rebalance_timeout: float
    client_rack: str
    offsets_storage: OffsetsStorage
    auto_commit: bool
    auto_commit_interval: float
    auto_offset_store: bool
    auto_offset_reset: OffsetReset
    isolation_level: IsolationLevel
    fetch_min_bytes: int
    fetch_max_wait: float
    fetch_max_bytes: int
    partition_max_bytes: int
    buffer_max_bytes: int
    max_records: int
    check_crc: bool


def parse_consumer_properties(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the consumer settings from properties with Kafka's names.

    ``heartbeat.interval.ms`` becomes a frequency: the session timeout divided by it, rounded up. Raises ``OptionError``
    for a value that cannot be read.
    """
    settings = parse_settings(properties, "consumer")
    interval = settings.pop("heartbeat_interval", None)
    if interval is not None:
        session = settings.get("session_timeout", ConsumerConfig().session_timeout)
        if not 0 < interval < session:
            raise _refuse("heartbeat.interval.ms", interval, "expected less than the session timeout, and more than 0")
        settings["heartbeat_frequency"] = max(2, -int(-session // interval))
    return settings


CONSUMER: Final = Keywords("consumer", ConsumerConfig, parse_consumer_properties)
"""The consumer keyword arguments, and the parser for consumer properties."""
