"""OffsetCommit and TxnOffsetCommit: members and other clients store committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.group import CommitCheck, Committer, group_not_found
from kafka_msgs.groups.metrics import OFFSET_COMMITS
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestTopic
from kafka_msgs.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.messages.txn_offset_commit_request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from kafka_msgs.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

__all__ = ["commit_offsets", "commit_transactional_offsets"]

_NO_RETENTION: Final = -1
_EXPIRING_VERSION: Final = 1
"""The version of ``OffsetCommitValue`` that has an expire timestamp."""

_NOT_FOUND_SINCE: Final = 9
"""The first version of OffsetCommit that reports GROUP_ID_NOT_FOUND instead of ILLEGAL_GENERATION."""

_MEMBER_EPOCHS_SINCE: Final = 6
"""The first version of TxnOffsetCommit that reports member epoch errors instead of ILLEGAL_GENERATION."""


def commit_offsets(op: OperationContext, context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Store the offsets of an OffsetCommit request."""
    check = _check(op, context, request, not_found_since=_NOT_FOUND_SINCE)
    expires = _NO_RETENTION if request.retention_time_ms == _NO_RETENTION else op.now + request.retention_time_ms
    errors = _commit(op, request.group_id, request.topics, check, expires)
    topics = _topics(request, errors, OffsetCommitResponseTopic, OffsetCommitResponsePartition)
    return OffsetCommitResponse(topics=topics)


def commit_transactional_offsets(
    op: OperationContext, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Store the offsets of a TxnOffsetCommit request. They take effect when the transaction is committed."""
    try:
        check = _check(op, context, request, not_found_since=_MEMBER_EPOCHS_SINCE)
        errors = _commit(op, request.group_id, request.topics, check, _NO_RETENTION)
    except GroupError as error:
        if context.version < _MEMBER_EPOCHS_SINCE and error.error is ErrorCode.STALE_MEMBER_EPOCH:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION) from None
        raise
    topics = _topics(request, errors, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition)
    return TxnOffsetCommitResponse(topics=topics)


def _check(
    op: OperationContext,
    context: RequestContext,
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    *,
    not_found_since: int,
) -> CommitCheck | None:
    """Check that the request may commit to its group. Return a check of each partition, or None.

    A commit from outside a group needs no group: its offsets create it. Any other commit is refused, with
    GROUP_ID_NOT_FOUND from the version ``not_found_since`` on.
    """
    group = op.state.groups.get(request.group_id)
    if group is not None:
        committer = Committer(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            epoch=request.generation_id_or_member_epoch,
            transactional=isinstance(request, TxnOffsetCommitRequest),
            version=context.version,
        )
        return group.validate_offset_commit(op, committer)
    if request.generation_id_or_member_epoch < 0:
        if op.quirks.commit_makes_group:
            op.keep_simple_group(request.group_id)
        return None
    if context.version >= not_found_since:
        raise group_not_found(request.group_id)
    raise GroupError(ErrorCode.ILLEGAL_GENERATION)


def _commit(
    op: OperationContext,
    group_id: str,
    topics: Iterable[OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic],
    check: CommitCheck | None,
    expires: int,
) -> Iterator[int]:
    """Emit the offsets. Return the error code of each partition, in order."""
    errors: list[int] = []
    for topic in topics:
        for each in topic.partitions:
            metadata = each.committed_metadata or ""
            if _size(op, metadata) > op.config.offset_metadata_max_bytes:
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            if check is not None:
                check(topic.name, topic.topic_id, each.partition_index)
            errors.append(ErrorCode.NONE)
            value = OffsetCommitValue(
                offset=each.committed_offset,
                leader_epoch=each.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp=op.now,
                expire_timestamp=expires,
                topic_id=topic.topic_id,
            )
            key = OffsetCommitKey(group=group_id, topic=topic.name, partition=each.partition_index)
            op.emit(key, value, None if expires == _NO_RETENTION else _EXPIRING_VERSION)
    if op.records:
        op.count_metric(OFFSET_COMMITS, len(op.records))
    return iter(errors)


def _size(op: OperationContext, metadata: str) -> int:
    """The size of the metadata of an offset in bytes; in UTF-16 units for ``Quirks.offset_metadata_in_characters``."""
    if metadata.isascii():
        return len(metadata)
    if op.quirks.offset_metadata_in_characters:
        return len(metadata.encode("utf-16-le", "surrogatepass")) // 2
    return len(metadata.encode("utf-8", "surrogatepass"))


def _topics(request: Any, errors: Iterator[int], topic: type[Any], partition: type[Any]) -> tuple[Any, ...]:
    """Return the topics of a response, of these classes, with an error code for each partition of the request."""
    return tuple(
        topic(
            name=asked.name,
            topic_id=asked.topic_id,
            partitions=tuple(
                partition(partition_index=each.partition_index, error_code=next(errors)) for each in asked.partitions
            ),
        )
        for asked in request.topics
    )
