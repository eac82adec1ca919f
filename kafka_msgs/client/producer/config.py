"""Producer configuration. The fields have the names of Kafka's producer properties; times are in seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Never, TypeAlias

from attrs import Attribute, field, frozen

from kafka_msgs.client.config import ClientOptions
from kafka_msgs.client.config_loading import Keywords
from kafka_msgs.client.property_parsing import parse_settings
from kafka_msgs.errors import OptionError
from kafka_msgs.records import CompressionType
from kafka_msgs.records.compression import check_level

__all__ = ["PRODUCER", "Acks", "ProducerConfig", "ProducerOptions", "Serializer", "parse_producer_properties"]

Serializer: TypeAlias = Callable[[Never], bytes]
"""A function that turns a key or value of any type into bytes."""

Acks: TypeAlias = Literal[0, 1, -1, "all"]
"""When a record counts as written: 0 at once, 1 if the leader has it, -1 or ``all`` if all in-sync replicas have it."""

_ACKS: Final[dict[object, int]] = {0: 0, 1: 1, -1: -1, "all": -1}


def _refuse(name: str, value: object, reason: str) -> OptionError:
    return OptionError(source="Producer", option=name, value=value, reason=reason)


def _acks(value: object) -> int:
    if isinstance(value, bool) or value not in _ACKS:
        raise _refuse("acks", value, "it is 0, 1, -1 or 'all'")
    return _ACKS[value]


def _compression(value: object) -> CompressionType:
    names = {codec.name.lower(): codec for codec in CompressionType}
    if value is None:
        return CompressionType.NONE
    if isinstance(value, str) and value in names:
        return names[value]
    if isinstance(value, int) and value in names.values():
        return CompressionType(value)
    raise _refuse("compression", value, f"it is one of {', '.join(names)}")


def _whole(low: int, high: int) -> Callable[[object, Attribute[int], Any], None]:
    def check(config: object, attribute: Attribute[Any], value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise _refuse(attribute.name, value, f"a whole number from {low} to {high} is needed")

    return check


def _seconds(config: object, attribute: Attribute[float], value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**31 / 1000:
        raise _refuse(attribute.name, value, "a number of seconds, 0 or more, is needed")


def _text_or_none(config: object, attribute: Attribute[str | None], value: Any) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise _refuse(attribute.name, value, "a text that is not empty is needed")


@frozen(kw_only=True)
class ProducerConfig:
    """Configuration of batching, sending and retries. Raises ``OptionError`` for an invalid value.

    The defaults match Kafka 4, with two exceptions: ``batch_size`` is larger, because a batch uses only the memory of
    its records, and ``buffer_memory`` is 64 MB.
    """

    acks: int = field(default=-1, converter=_acks)
    """When a record counts as written. See ``Acks``."""
    compression: CompressionType = field(default=None, converter=_compression)
    """The codec of the batches: a name or a ``CompressionType``. None means no compression."""
    compression_level: int | None = None
    """The compression level (KIP-390). None is the default of the codec; for lz4 that is the fast compressor."""
    batch_size: int = field(default=1 << 18, validator=_whole(0, 1 << 30))
    """Maximum batch size in bytes, before compression. A larger record is sent in a separate batch."""
    linger: float = field(default=0.005, validator=_seconds)
    """Seconds that a partly filled batch waits for more records."""
    buffer_memory: int = field(default=64 << 20, validator=_whole(1, 1 << 40))
    """Maximum memory for unsent records in bytes, before compression. When it is full, ``send`` waits."""
    max_request_size: int = field(default=1 << 20, validator=_whole(1, (1 << 31) - 1))
    """Maximum size of a record, and approximate maximum size of a request, in bytes."""
    max_in_flight: int = field(default=5, validator=_whole(1, 1000))
    """Maximum number of in-flight requests per broker. Idempotence allows at most 5."""
    idempotence: bool | None = None
    """Whether brokers drop duplicate batches (KIP-98). None enables it if ``acks`` and ``max_in_flight`` allow it."""
    transactional_id: str | None = field(default=None, validator=_text_or_none)
    """The transactional id. None disables transactions."""
    transaction_timeout: float = field(default=60.0, validator=_seconds)
    """Seconds after which the coordinator aborts an open transaction."""
    delivery_timeout: float = field(default=120.0, validator=_seconds)
    """Seconds after ``send`` until an undelivered record fails."""
    request_timeout: float = field(default=30.0, validator=_seconds)
    """Seconds to wait for the response to one request."""
    retry_backoff: float = field(default=0.1, validator=_seconds)
    """Seconds before the first retry. The pause doubles with each retry (KIP-580)."""
    retry_backoff_max: float = field(default=1.0, validator=_seconds)
    """Maximum number of seconds before a retry."""
    max_block: float = field(default=60.0, validator=_seconds)
    """Seconds that ``send`` waits for metadata and for buffer memory."""

    def __attrs_post_init__(self) -> None:
        check_level(self.compression, self.compression_level)
        if self.idempotence and not self._allows_idempotence:
            raise _refuse("idempotence", True, "it needs acks='all' and max_in_flight of at most 5")
        if self.transactional_id is not None and not self.is_idempotent:
            raise _refuse("transactional_id", self.transactional_id, "transactions need idempotence and acks='all'")

    @property
    def is_idempotent(self) -> bool:
        """Whether batches have a producer id and sequences."""
        return self._allows_idempotence if self.idempotence is None else self.idempotence

    @property
    def _allows_idempotence(self) -> bool:
        return self.acks == -1 and self.max_in_flight <= 5

    def backoff(self, attempts: int) -> float:
        """Return the seconds to wait after this number of failed attempts, without jitter."""
        delay: float = min(self.retry_backoff * 2.0 ** min(attempts - 1, 30), self.retry_backoff_max)
        return delay


class ProducerOptions(ClientOptions, total=False):
    """Keyword arguments of producers: all fields of ``ProducerConfig``, and some of ``ClientConfig``."""

    acks: Acks
    compression: CompressionType | int | str | None
    compression_level: int | None
    batch_size: int
    linger: float
    buffer_memory: int
    max_request_size: int
    idempotence: bool | None
    transactional_id: str | None
    transaction_timeout: float
    delivery_timeout: float
    retry_backoff: float
    retry_backoff_max: float
    max_block: float


def parse_producer_properties(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the producer settings in properties with Kafka's names.

    The compression level (``compression.zstd.level``, ...) is read for the selected compression type only (KIP-390).
    Raises ``OptionError`` for a value that cannot be parsed.
    """
    level = f"compression.{properties.get('compression.type', '').strip().lower()}.level"
    others = {f"compression.{name}.level" for name in ("gzip", "lz4", "zstd")} - {level}
    return parse_settings({name: text for name, text in properties.items() if name not in others}, "producer")


PRODUCER: Final = Keywords("producer", ProducerConfig, parse_producer_properties)
"""The keyword arguments of producers, and the parser of their properties."""
