"""The records of a consumer group."""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups.consumer.member import current_assignment, from_current_assignment
from kafka_msgs.groups.modern_records import ModernRecords
from kafka_msgs.groups.partition_assignment import topic_partitions
from kafka_msgs.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kafka_msgs.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kafka_msgs.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kafka_msgs.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kafka_msgs.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)

__all__ = ["RECORDS"]

RECORDS: Final = ModernRecords(
    group_key=ConsumerGroupMetadataKey,
    member_key=ConsumerGroupMemberMetadataKey,
    target_key=ConsumerGroupTargetAssignmentMemberKey,
    target_metadata_key=ConsumerGroupTargetAssignmentMetadataKey,
    current_key=ConsumerGroupCurrentMemberAssignmentKey,
    target_value=lambda target: ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=topic_partitions(TopicPartition, target)
    ),
    current_value=current_assignment,
    with_current=from_current_assignment,
)
