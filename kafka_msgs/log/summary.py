"""What a walk over files of batches came to, in numbers.

Owns the counting; which files are walked over, and how, is the caller's.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kafka_msgs.errors import CrcMismatchError, KafkaMsgsError
from kafka_msgs.log.scan import AnyBatch
from kafka_msgs.records import NO_TIMESTAMP, Compression, RecordBatch, TimestampType

__all__ = ["LogSummary", "codec_name"]


def codec_name(number: int) -> str:
    """Return the name of a codec, or its number where there is none."""
    return Compression(number).name.lower() if number in Compression._value2member_map_ else str(number)


class LogSummary:
    """Counts batches and errors as they are added; ``facts`` has the numbers.

    Sizes are in bytes, times in milliseconds since the epoch. ``first_timestamp`` is the earliest that the headers of
    batches tell, which a record inside may precede.
    """

    def __init__(self) -> None:
        self.batches = 0
        self.records = 0
        self.bytes = 0
        self.errors = 0
        self.crc_failures = 0
        self.codecs: Counter[str] = Counter()
        self.producers: set[int] = set()
        self.first_timestamp: int | None = None
        self.last_timestamp: int | None = None

    def add_batch(self, batch: AnyBatch) -> None:
        """Count a batch; raises what ``records`` raises for a compressed message set of magic 0 or 1."""
        self.batches += 1
        self.bytes += batch.size
        self.codecs[codec_name(batch.codec)] += 1
        for timestamp in _times(batch):
            self.first_timestamp = timestamp if self.first_timestamp is None else min(timestamp, self.first_timestamp)
            self.last_timestamp = timestamp if self.last_timestamp is None else max(timestamp, self.last_timestamp)
        if isinstance(batch, RecordBatch):
            self.records += batch.count
            self.producers |= {batch.producer_id} - {-1}
        else:
            self.records += len(batch.records()) if batch.codec else 1

    def add_error(self, error: KafkaMsgsError) -> None:
        """Count an error."""
        self.errors += 1
        self.crc_failures += isinstance(error.__cause__, CrcMismatchError)

    def facts(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {
            "batches": self.batches,
            "records": self.records,
            "bytes": self.bytes,
            "codecs": dict(sorted(self.codecs.items())),
            "firstTimestamp": self.first_timestamp,
            "lastTimestamp": self.last_timestamp,
            "producers": len(self.producers),
            "errors": self.errors,
            "crcFailures": self.crc_failures,
        }


def _times(batch: AnyBatch) -> list[int]:
    times = [batch.max_timestamp]
    if isinstance(batch, RecordBatch) and batch.delete_horizon is None:
        # With the broker's time in the header, the base is still the producer's.
        times += [batch.base_timestamp] if batch.timestamp_type is TimestampType.CREATE_TIME else []
    return [timestamp for timestamp in times if timestamp != NO_TIMESTAMP]
