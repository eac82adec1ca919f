"""The steps of an append that come before the bytes are written.

``log`` calls them in the order of Kafka's ``UnifiedLog``: the offsets of the batches, then what their producers may do.
"""

from __future__ import annotations

from attrs import frozen

from kafka_msgs.broker.partitions.config import TopicConfig
from kafka_msgs.broker.partitions.headers import Header
from kafka_msgs.broker.partitions.incoming import Incoming, check_header, check_records, marker_of, stored_form
from kafka_msgs.broker.partitions.producers import Origin, Prepared, Producers, WrittenBatch
from kafka_msgs.broker.partitions.verification import Guard
from kafka_msgs.codec import Buffer
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError

__all__ = ["Append", "placed", "prepare"]


@frozen(kw_only=True)
class Append:
    """Who appends, to which partition, and how; ``PartitionLog.append`` explains the values."""

    place: str
    config: TopicConfig
    leader_epoch: int
    now: int
    origin: Origin
    guard: Guard | None
    verify: bool
    transaction_version: int


def placed(batches: list[Incoming], how: Append, end_offset: int) -> tuple[list[Header], Buffer]:
    """Return the bytes that the log stores, and their headers with the offsets in the log.

    Only a replay may have several batches. They keep their offsets and leader epochs.
    """
    if how.origin is Origin.REPLAY:
        return _as_given(batches, how, end_offset)
    if len(batches) > 1:
        raise RefusedError(error=ErrorCode.INVALID_RECORD, message="Compressed outer record has more than one batch")
    check_header(batches[0], how.origin)
    batch, latest = batches[0], batches[0].header.max_timestamp
    if how.origin is Origin.CLIENT:
        latest = check_records(batch, how.config, how.place, how.now)
    header, data = stored_form(batch, how.config, end_offset, how.leader_epoch, how.now, latest)
    if header.size > how.config.max_message_bytes:
        reason = f"Message batch size is {header.size} bytes which exceeds {how.config.max_message_bytes}"
        raise RefusedError(error=ErrorCode.MESSAGE_TOO_LARGE, message=reason)
    return [header], data


def _as_given(batches: list[Incoming], how: Append, end: int) -> tuple[list[Header], Buffer]:
    for batch in batches:
        if batch.header.base_offset < end:
            reason = f"Unexpected offset in append to {how.place}. {batch.header.base_offset} is less than {end}"
            raise RefusedError(error=ErrorCode.UNKNOWN_SERVER_ERROR, message=reason)
        end = batch.header.last_offset + 1
    return [batch.header for batch in batches], b"".join(batch.data for batch in batches)


def prepare(
    batches: list[Incoming], headers: list[Header], how: Append, producers: Producers
) -> Prepared | WrittenBatch:
    """Return the effect of the batches on the producers, or the batch of which a client repeats the append."""
    prepared = Prepared()
    for header, batch in zip(headers, batches, strict=True):
        if not header.has_producer:
            continue
        state = producers.states.get(header.producer_id)
        if how.origin is Origin.CLIENT and state is not None and (duplicate := state.duplicate_of(header)) is not None:
            return duplicate
        if how.origin is not Origin.REPLAY and header.is_transactional:
            _check_open(header, how, producers)
        marker = marker_of(batch) if header.is_control else None
        producers.prepare(header, how.origin, marker, how.transaction_version, prepared)
    return prepared


def _check_open(header: Header, how: Append, producers: Producers) -> None:
    producer_id, epoch = header.producer_id, header.producer_epoch
    if producers.has_open_transaction(producer_id, epoch):
        return
    producers.check_epoch(producer_id, epoch)
    if header.is_control or not how.verify or producers.verification.confirms(producer_id, how.guard):
        return
    raise RefusedError(error=ErrorCode.INVALID_TXN_STATE, message="Record was not part of an ongoing transaction")
