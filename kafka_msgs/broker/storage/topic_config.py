"""The topic configs that partitions use.

The controller merges the configs of a topic with the defaults of its brokers. ``TopicConfig.of`` takes the result.
Field names are Kafka's names, with ``_`` for ``.``. The source is ``org.apache.kafka.storage.internals.log.LogConfig``.
``segment.jitter.ms`` is not supported, because segments roll deterministically. Tiered storage (KIP-405) is not
supported either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from attrs import field, fields, frozen

from kafka_msgs.log.writers.index_writer import DEFAULT_INDEX_BYTES, DEFAULT_INTERVAL

__all__ = ["TopicConfig"]

FOREVER: Final = 2**63 - 1
"""The value of an unlimited time in milliseconds."""
_WEEK: Final = 7 * 24 * 3_600_000
_DAY: Final = 24 * 3_600_000
_HOUR: Final = 3_600_000


def _policies(text: str) -> frozenset[str]:
    return frozenset(filter(None, (part.strip() for part in text.split(","))))


def _read(parse: Callable[[str], Any], default: Any) -> Any:
    return field(default=default, metadata={"parse": parse})


@frozen(kw_only=True)
class TopicConfig:
    """The configs of one topic, as values. Times are in milliseconds, sizes in bytes.

    A negative ``retention_ms`` or ``retention_bytes`` means no limit.
    """

    cleanup_policy: frozenset[str] = _read(_policies, frozenset({"delete"}))
    compression_type: str = _read(str, "producer")
    compression_gzip_level: int = _read(int, -1)
    compression_lz4_level: int = _read(int, 9)
    compression_zstd_level: int = _read(int, 3)
    delete_retention_ms: int = _read(int, _DAY)
    file_delete_delay_ms: int = _read(int, 60_000)
    index_interval_bytes: int = _read(int, DEFAULT_INTERVAL)
    max_compaction_lag_ms: int = _read(int, FOREVER)
    max_message_bytes: int = _read(int, 2**20 + 12)
    message_timestamp_after_max_ms: int = _read(int, _HOUR)
    message_timestamp_before_max_ms: int = _read(int, FOREVER)
    message_timestamp_type: str = _read(str, "CreateTime")
    min_cleanable_dirty_ratio: float = _read(float, 0.5)
    min_compaction_lag_ms: int = _read(int, 0)
    retention_bytes: int = _read(int, -1)
    retention_ms: int = _read(int, _WEEK)
    segment_bytes: int = _read(int, 2**30)
    segment_index_bytes: int = _read(int, DEFAULT_INDEX_BYTES)
    segment_ms: int = _read(int, _WEEK)

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> Self:
        """Return the values of ``configs``, which maps Kafka's names to texts. Other names are ignored.

        Missing configs have the defaults of Kafka's brokers. Raises ``ValueError`` for an invalid text.
        """
        values = {each.name: (each.name.replace("_", "."), each.metadata["parse"]) for each in fields(cls)}
        return cls(**{name: parse(configs[key]) for name, (key, parse) in values.items() if key in configs})

    @property
    def compacts(self) -> bool:
        """Whether only the latest record of each key is kept."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether old segments are deleted by time and size."""
        return "delete" in self.cleanup_policy

    @property
    def broker_time(self) -> bool:
        """Whether records get their log append time as their timestamp."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def longest_segment_ms(self) -> int:
        """The maximum time span of a segment. Compaction skips the last segment, so it may limit this."""
        if self.compacts and self.max_compaction_lag_ms > 0:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms
