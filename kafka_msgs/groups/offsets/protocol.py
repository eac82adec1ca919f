"""The definition of committed offsets for the coordinator: apis, appliers, and the expiration timer."""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups.group_protocol import GroupProtocol, MultiGroupApi, SingleGroupApi, accept_any
from kafka_msgs.groups.offsets.appliers import apply_legacy_offset, apply_marker, apply_offset
from kafka_msgs.groups.offsets.commit import commit_offsets, commit_transactional_offsets
from kafka_msgs.groups.offsets.deletion import delete_offsets, delete_offsets_of_topics, schedule_expiry
from kafka_msgs.groups.offsets.fetch import fetch_offsets, fetch_response, refuse_fetch, requested_groups
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch
from kafka_msgs.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequest
from kafka_msgs.messages.offset_delete_request import OffsetDeleteRequest
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from kafka_msgs.messages.txn_offset_commit_request import TxnOffsetCommitRequest

__all__ = ["PROTOCOL"]

PROTOCOL: Final = GroupProtocol(
    apis=(
        SingleGroupApi(request=OffsetCommitRequest, handle=commit_offsets, check=accept_any),
        SingleGroupApi(
            request=TxnOffsetCommitRequest,
            handle=commit_transactional_offsets,
            producer=lambda request: ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        ),
        SingleGroupApi(request=OffsetDeleteRequest, handle=delete_offsets),
        MultiGroupApi(
            request=OffsetFetchRequest,
            groups=requested_groups,
            handle=fetch_offsets,
            refuse=refuse_fetch,
            respond=fetch_response,
            is_read_only=lambda request: not request.require_stable,
            one_operation_each=True,
        ),
    ),
    appliers={OffsetCommitKey: apply_offset, LegacyOffsetCommitKey: apply_legacy_offset},
    apply_end_transaction=apply_marker,
    on_started=(schedule_expiry,),
    on_topics_deleted=(delete_offsets_of_topics,),
)
