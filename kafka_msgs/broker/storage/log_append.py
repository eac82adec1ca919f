"""The steps of an append before its bytes are written.

``partition_log`` calls them in the order of Kafka's ``UnifiedLog``: offset assignment first, then producer checks.
"""

from __future__ import annotations

from attrs import frozen

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

__all__ = ["AppendContext", "assign_offsets", "prepare_producers"]


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
        raise RequestRefusedError(
            error=ErrorCode.INVALID_RECORD, message="Compressed outer record has more than one batch"
        )
    check_header(batches[0], context.origin)
    batch, latest = batches[0], batches[0].header.max_timestamp
    if context.origin is AppendOrigin.CLIENT:
        latest = check_records(batch, context.config, context.place, context.now)
    header, data = convert_for_storage(batch, context.config, end_offset, context.leader_epoch, context.now, latest)
    if header.size > context.config.max_message_bytes:
        reason = f"Message batch size is {header.size} bytes which exceeds {context.config.max_message_bytes}"
        raise RequestRefusedError(error=ErrorCode.MESSAGE_TOO_LARGE, message=reason)
    return [header], data


def _as_given(batches: list[RawBatch], context: AppendContext, end: int) -> tuple[list[PositionedHeader], Buffer]:
    for batch in batches:
        if batch.header.base_offset < end:
            reason = f"Unexpected offset in append to {context.place}. {batch.header.base_offset} is less than {end}"
            raise RequestRefusedError(error=ErrorCode.UNKNOWN_SERVER_ERROR, message=reason)
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
    raise RequestRefusedError(
        error=ErrorCode.INVALID_TXN_STATE, message="Record was not part of an ongoing transaction"
    )
