"""Administration of a Kafka cluster: groups, topics, configurations, security and the cluster itself.

    >>> from kafka_msgs.admin import Admin
    >>> admin = Admin("localhost:9092")              # nothing connects before the first call
    >>> admin.close()

``Admin`` blocks, ``AsyncAdmin`` is for asyncio. Both have the same methods: one for every api of the release, except
apis for producers, for consumers, and between brokers. Operations on many items return ``Results``, with one
outcome for each item. Administration does not join groups.
"""

from kafka_msgs.admin.acls import AclBinding, AclFilter
from kafka_msgs.admin.admin import Admin
from kafka_msgs.admin.async_admin import AsyncAdmin
from kafka_msgs.admin.cluster import ClusterDescription, Features, FeatureUpdate, Quorum
from kafka_msgs.admin.configs import ConfigChange, ConfigResource
from kafka_msgs.admin.group_descriptions import GroupDescription, GroupListing, GroupMember
from kafka_msgs.admin.groups import MemberToRemove
from kafka_msgs.admin.log_dirs import TopicPartitionReplica
from kafka_msgs.admin.offset_resets import OffsetChange, OffsetTarget
from kafka_msgs.admin.partitions import IsolationLevel, OffsetSpec
from kafka_msgs.admin.quotas import ANY_NAME
from kafka_msgs.admin.results import PartialList, Results
from kafka_msgs.admin.streams_groups import (
    StreamsGroupDescription,
    StreamsGroupMemberDescription,
    StreamsGroupSubtopologyDescription,
    TopicInfo,
)
from kafka_msgs.admin.topics import NewPartitions, NewTopic
from kafka_msgs.admin.transactions import ProducerIdAndEpoch
from kafka_msgs.admin.users import ScramDeletion, ScramUpsertion
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.enums import (
    AclOperation,
    AclPermissionType,
    AlterConfigOp,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
    ElectionType,
    GroupState,
    GroupType,
    PatternType,
    ResourceType,
    ScramMechanism,
    UpgradeType,
)

__all__ = [
    "ANY_NAME",
    "AclBinding",
    "AclFilter",
    "AclOperation",
    "AclPermissionType",
    "Admin",
    "AlterConfigOp",
    "AsyncAdmin",
    "ClusterDescription",
    "ConfigChange",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigType",
    "ElectionType",
    "FeatureUpdate",
    "Features",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupState",
    "GroupType",
    "IsolationLevel",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetChange",
    "OffsetSpec",
    "OffsetTarget",
    "PartialList",
    "PatternType",
    "ProducerIdAndEpoch",
    "Quorum",
    "ResourceType",
    "Results",
    "ScramDeletion",
    "ScramMechanism",
    "ScramUpsertion",
    "StreamsGroupDescription",
    "StreamsGroupMemberDescription",
    "StreamsGroupSubtopologyDescription",
    "TopicInfo",
    "TopicPartitionReplica",
    "UpgradeType",
]
