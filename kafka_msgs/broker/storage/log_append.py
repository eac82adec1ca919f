"""The steps of an append before its bytes are written, and the results of appends and reads.

``partition_log`` calls them in the order of Kafka's ``UnifiedLog``: offset assignment first, then producer checks.
"""

from __future__ import annotations

from attrs import frozen

from kafka_msgs.binary_layouts import NO_TIMESTAMP
from kafka_msgs.broker.storage.batch_headers import PositionedHeader
from kafka_msgs.broker.storage.log_validator import (
    RawBatch,
    check_header,
    check_records,
    convert_for_storage,
    read_marker,
)
from kafka_msgs.broker.storage.producer_state import (
    AppendOrigin,
    BatchMetadata,
    ProducerAppendInfo,
    ProducerStateManager,
)
from kafka_msgs.broker.storage.topic_config import TopicConfig
from kafka_msgs.broker.storage.verification import VerificationGuard
from kafka_msgs.codec import Buffer
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.log.indexes import AbortedTransaction

__all__ = ["AppendContext", "AppendResult", "ReadResult", "assign_offsets", "prepare_producers"]


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


@frozen(kw_only=True)
class AppendContext:
    """The partition, origin and options of an append; ``PartitionLog.append`` documents the values."""

    place: str
    config: TopicConfig
    leader_epoch: int
    now: int
    origin: AppendOrigin
    guard: VerificationGuard | None
    verify: bool
    transaction_version: int


def assign_offsets(
    batches: list[RawBatch], context: AppendContext, end_offset: int
) -> tuple[list[PositionedHeader], Buffer]:
    """Return the bytes to store, and their headers with the assigned offsets.

    Only a replay may contain several batches. They keep their offsets and leader epochs.
    """
    if context.origin is AppendOrigin.REPLAY:
        return _as_given(batches, context, end_offset)
    if len(batches) > 1:
        raise RequestRefusedError(ErrorCode.INVALID_RECORD, "Compressed outer record has more than one batch")
    check_header(batches[0], context.origin)
    batch, latest = batches[0], batches[0].header.max_timestamp
    if context.origin is AppendOrigin.CLIENT:
        latest = check_records(batch, context.config, context.place, context.now)
    header, data = convert_for_storage(batch, context.config, end_offset, context.leader_epoch, context.now, latest)
    if header.size > context.config.max_message_bytes:
        reason = f"Message batch size is {header.size} bytes which exceeds {context.config.max_message_bytes}"
        raise RequestRefusedError(ErrorCode.MESSAGE_TOO_LARGE, reason)
    return [header], data


def _as_given(batches: list[RawBatch], context: AppendContext, end: int) -> tuple[list[PositionedHeader], Buffer]:
    for batch in batches:
        if batch.header.base_offset < end:
            reason = f"Unexpected offset in append to {context.place}. {batch.header.base_offset} is less than {end}"
            raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, reason)
        end = batch.header.last_offset + 1
    return [batch.header for batch in batches], b"".join(batch.data for batch in batches)


def prepare_producers(
    batches: list[RawBatch], headers: list[PositionedHeader], context: AppendContext, producers: ProducerStateManager
) -> ProducerAppendInfo | BatchMetadata:
    """Return the effect of the batches on the producers, or the original batch if the append is a duplicate."""
    prepared = ProducerAppendInfo()
    for header, batch in zip(headers, batches, strict=True):
        if not header.has_producer:
            continue
        state = producers.states.get(header.producer_id)
        if (
            context.origin is AppendOrigin.CLIENT
            and state is not None
            and (duplicate := state.duplicate_of(header)) is not None
        ):
            return duplicate
        if context.origin is not AppendOrigin.REPLAY and header.is_transactional:
            _check_open(header, context, producers)
        marker = read_marker(batch) if header.is_control else None
        producers.prepare(header, context.origin, marker, context.transaction_version, prepared)
    return prepared


def _check_open(header: PositionedHeader, context: AppendContext, producers: ProducerStateManager) -> None:
    producer_id, epoch = header.producer_id, header.producer_epoch
    if producers.has_open_transaction(producer_id, epoch):
        return
    producers.check_epoch(producer_id, epoch)
    if header.is_control or not context.verify or producers.verification.is_verified(producer_id, context.guard):
        return
    raise RequestRefusedError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
