"""Share group requests, for tests that choose the bytes sent to a broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from kafka_msgs.messages.share_acknowledge_request import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kafka_msgs.messages.share_fetch_request import AcknowledgementBatch as FetchAcknowledgementBatch
from kafka_msgs.messages.share_fetch_request import FetchPartition, FetchTopic, ForgottenTopic, ShareFetchRequest
from kafka_msgs.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest

__all__ = ["ACCEPT", "GAP", "REJECT", "RELEASE", "RENEW", "Said", "heartbeat", "share_acknowledge", "share_fetch"]

GAP: Final = 0
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4

Said = tuple[int, int, Sequence[int]]
"""First offset, last offset, and acknowledgement types."""


def heartbeat(group_id: str, member_id: str, epoch: int, *topics: str) -> ShareGroupHeartbeatRequest:
    """Return a member's heartbeat. It lists the topics when joining."""
    return ShareGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=topics or None,
        rack_id=None,
    )


def share_fetch(
    group_id: str | None,
    member_id: str,
    epoch: int,
    topic_id: UUID,
    partitions: Sequence[int] = (0,),
    *,
    said: Sequence[Said] = (),
    forgotten: Sequence[int] = (),
    **fields: Any,
) -> ShareFetchRequest:
    """Return a fetch of a topic's partitions. ``said`` are the acknowledgements for each; ``fields`` override
    fields.
    """
    batches = tuple(
        FetchAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=tuple(types))
        for first, last, types in said
    )
    asked = tuple(FetchPartition(partition_index=each, acknowledgement_batches=batches) for each in partitions)
    defaults: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 100_000, "max_records": 100}
    return ShareFetchRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        topics=(FetchTopic(topic_id=topic_id, partitions=asked),) if asked else (),
        forgotten_topics_data=(ForgottenTopic(topic_id=topic_id, partitions=tuple(forgotten)),) if forgotten else (),
        **{**defaults, "batch_size": 100, **fields},
    )


def share_acknowledge(
    group_id: str | None, member_id: str, epoch: int, topic_id: UUID, said: Sequence[Said], **fields: Any
) -> ShareAcknowledgeRequest:
    """Return a member's acknowledgements of records in partition 0 of a topic."""
    batches = tuple(
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=tuple(types))
        for first, last, types in said
    )
    part = AcknowledgePartition(partition_index=fields.pop("partition", 0), acknowledgement_batches=batches)
    return ShareAcknowledgeRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        topics=(AcknowledgeTopic(topic_id=topic_id, partitions=(part,)),),
        **fields,
    )
