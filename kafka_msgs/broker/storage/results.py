"""Results of partition appends and reads."""

from __future__ import annotations

from attrs import frozen

from kafka_msgs.binary_layouts import NO_TIMESTAMP
from kafka_msgs.codec import Buffer
from kafka_msgs.log.indexes import AbortedTransaction

__all__ = ["AppendResult", "ReadResult"]


@frozen
class AppendResult:
    """The offsets of an append. ``log_append_time`` is -1 if the records keep their own timestamps.

    The offsets are -1 for an append without a complete batch. ``duplicate`` means that the batch was already in the
    log; the result then contains the original offsets, and ``log_append_time`` is the latest timestamp of that batch,
    as in Kafka.
    """

    base_offset: int
    last_offset: int
    log_append_time: int = NO_TIMESTAMP
    log_start_offset: int = 0
    duplicate: bool = False


@frozen
class ReadResult:
    """Complete batches, in pieces. The first batch may start below the requested offset.

    ``next_offset`` is the offset after the last batch. ``aborted`` lists the aborted transactions that may have records
    in the batches, or is None unless the reader requests committed records only.
    """

    data: list[Buffer]
    size: int
    next_offset: int
    aborted: tuple[AbortedTransaction, ...] | None
