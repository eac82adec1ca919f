"""Test vectors: (message, version, bytes in hexadecimal).

The bytes were derived by hand from the protocol's rules and proposals, not with this library.
"""

from __future__ import annotations

from typing import Any, TypeAlias
from uuid import UUID

from kafka_msgs import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeTopicPartitionsRequest,
    FetchSnapshotResponse,
    LegacyOffsetCommitKey,
    MetadataRequest,
    NoOpRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProduceRequest,
    ProducerSnapshot,
    RequestHeader,
    ResponseHeader,
    StreamsGroupDescribeRequest,
    StreamsGroupMetadataValue,
    TransactionLogValue,
)
from kafka_msgs.drafts import kafka_0_9, kip_88, kip_1071
from kafka_msgs.drafts.kip_88.describe_groups_response import Group, Member, Offset
from kafka_msgs.drafts.kip_88.offset_fetch_request import RequestTopic
from kafka_msgs.drafts.kip_1071 import streams_group_current_member_assignment_value as draft_assignment
from kafka_msgs.drafts.kip_1071 import streams_group_describe_response as draft_describe
from kafka_msgs.drafts.kip_1071 import streams_group_heartbeat_request as draft_request
from kafka_msgs.drafts.kip_1071 import streams_group_heartbeat_response as draft_response
from kafka_msgs.drafts.kip_1071 import streams_group_partition_metadata_value as draft_partitions
from kafka_msgs.drafts.kip_1071 import streams_group_topology_value as draft_topology
from kafka_msgs.messages.api_versions_response import ApiVersion
from kafka_msgs.messages.describe_topic_partitions_request import Cursor, TopicRequest
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.messages.offset_fetch_request import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponsePartition, OffsetFetchResponseTopic
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.messages.producer_snapshot import ProducerEntry
from kafka_msgs.messages.transaction_log_value import PartitionsSchema

ID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
ID_HEX = "0102030405060708 090a0b0c0d0e0f10"

# KIP-88: the group's committed offsets

TWO_PARTITIONS = OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1)),))
ONE_OFFSET = OffsetFetchResponse(
    topics=(
        OffsetFetchResponseTopic(
            name="t",
            partitions=(
                OffsetFetchResponsePartition(
                    partition_index=0, committed_offset=42, committed_leader_epoch=-1, metadata=None, error_code=0
                ),
            ),
        ),
    )
)
Vector: TypeAlias = tuple[Any, int, str]

OFFSETS: list[Vector] = [
    (TWO_PARTITIONS, 1, "000167 00000001 000174 00000002 00000000 00000001"),
    (OffsetFetchRequest(group_id="g", topics=()), 1, "000167 00000000"),
    (OffsetFetchRequest(group_id="g", topics=None), 2, "000167 ffffffff"),
    (OffsetFetchRequest(group_id="g", topics=()), 2, "000167 00000000"),
    (OffsetFetchRequest(group_id="g", topics=None), 6, "0267 00 00"),
    (OffsetFetchRequest(group_id="g", topics=None, require_stable=True), 7, "0267 00 01 00"),
    (TWO_PARTITIONS, 6, "0267 02 0274 03 00000000 00000001 00 00"),
    (
        OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),)),
        8,
        "02 0267 00 00 00 00",
    ),
    (
        OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(
                    group_id="g",
                    topics=(OffsetFetchRequestTopics(topic_id=ID, partition_indexes=(7,)),),
                ),
            )
        ),
        10,
        f"02 0267 00 ffffffff 02 {ID_HEX} 02 00000007 00 00 00 00",
    ),
    (ONE_OFFSET, 1, "00000001 000174 00000001 00000000 000000000000002a ffff 0000"),
    (ONE_OFFSET, 2, "00000001 000174 00000001 00000000 000000000000002a ffff 0000 0000"),
    (OffsetFetchResponse(topics=(), error_code=16), 2, "00000000 0010"),
    (ONE_OFFSET, 6, "00000000 02 0274 02 00000000 000000000000002a ffffffff 00 0000 00 00 0000 00"),
]

# Drafts: proposals that Kafka never released

MEMBER = Member(member_id="m", client_id="c", client_host="h", member_metadata=b"\x01", member_assignment=b"\x02\x03")
MEMBER_HEX = "00016d 000163 000168 00000001 01 00000002 0203"
STORED = Offset(topic="t", partition=1, offset=42, metadata="")
GROUP = Group(error_code=0, group_id="g", state="Stable", protocol_type="consumer", protocol="range", members=(MEMBER,))
GROUP_HEX = f"0000 000167 0006537461626c65 0008636f6e73756d6572 000572616e6765 00000001 {MEMBER_HEX}"
EMPTY_GROUP = Group(group_id="g", state="Empty", offsets=(STORED,))

DRAFTS: list[Vector] = [
    (kip_88.DescribeGroupsRequest(group_ids=("g1",)), 0, "00000001 0002 6731"),
    (kip_88.DescribeGroupsRequest(group_ids=("g1",)), 1, "00000001 0002 6731"),
    (kip_88.DescribeGroupsResponse(groups=(GROUP,)), 0, f"00000001 {GROUP_HEX}"),
    (kip_88.DescribeGroupsResponse(groups=(GROUP,)), 1, f"00000001 {GROUP_HEX} 00000000"),
    (
        kip_88.DescribeGroupsResponse(groups=(EMPTY_GROUP,)),
        1,
        "00000001 0000 000167 0005456d707479 0000 0000 00000000 00000001 000174 00000001 000000000000002a 0000",
    ),
    (
        kip_88.OffsetFetchRequest(group_id="g", topics=(RequestTopic(topic="t", partitions=(0, 1)),)),
        0,
        "000167 00000001 000174 00000002 00000000 00000001",
    ),
    (kip_88.OffsetFetchRequest(group_id="g", topics=None), 2, "000167 ffffffff"),
    (kip_88.OffsetFetchResponse(error_code=16), 2, "00000000 0010"),
    (
        kafka_0_9.FindCoordinatorRequest(version=0, correlation_id=1, client_id="c", group_id="g"),
        0,
        "0000 0000000000000001 000163 000167",
    ),
    (
        kip_1071.StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1),
        0,
        "0267 026d ffffffff 00 00 ffffffff ff 00 00 00 00 ff 00 00 00 00 00",
    ),
    (
        kip_1071.StreamsGroupHeartbeatRequest(
            group_id="g",
            topology=draft_request.Topology(
                epoch=1,
                subtopologies=(
                    draft_request.Subtopology(
                        subtopology_id="0",
                        source_topics=("a",),
                        copartition_groups=(draft_request.CopartitionGroup(source_topics=(0, -1)),),
                    ),
                ),
            ),
            active_tasks=(),
            user_endpoint=draft_request.Endpoint(host="h", port=65535),
        ),
        0,
        "0267 01 00000000 00 00 ffffffff"
        " 01 00000001 02 0230 02 0261 01 01 01 01 02 03 0000 ffff 01 01 00 00 00"
        " 01 00 00 00 01 0268 ffff 00 00 00 00 00 00",
    ),
    (
        kip_1071.StreamsGroupHeartbeatResponse(),
        0,
        "00000000 0000 00 01 00000000 00000000 00000000 00000000 00 00 00 00 00 00",
    ),
    (
        kip_1071.StreamsGroupHeartbeatResponse(
            member_id="m",
            status=(draft_response.Status(status_code=4, status_detail="d"),),
            partitions_by_user_endpoint=(
                draft_response.EndpointToPartitions(
                    user_endpoint=draft_response.Endpoint(host="h", port=1),
                    partitions=(draft_response.TopicPartition(topic="t", partitions=(3,)),),
                ),
            ),
        ),
        0,
        "00000000 0000 00 026d 00000000 00000000 00000000 00000000"
        " 02 04 0264 00 00 00 00 02 0268 0001 00 02 0274 02 00000003 00 00 00",
    ),
    (
        kip_1071.StreamsGroupDescribeRequest(group_ids=("g",), include_authorized_operations=True),
        0,
        "02 0267 01 00",
    ),
    (
        kip_1071.StreamsGroupDescribeResponse(groups=(draft_describe.DescribedGroup(),)),
        0,
        "00000000 02 0000 00 01 01 00000000 00000000 ff 01 80000000 00 00",
    ),
    (
        kip_1071.StreamsGroupDescribeResponse(
            groups=(draft_describe.DescribedGroup(topology=draft_describe.Topology(epoch=2, subtopologies=None)),)
        ),
        0,
        "00000000 02 0000 00 01 01 00000000 00000000 01 00000002 00 00 01 80000000 00 00",
    ),
    (
        kip_1071.StreamsGroupDescribeResponse(
            groups=(draft_describe.DescribedGroup(topology=draft_describe.Topology(epoch=2, subtopologies=())),)
        ),
        0,
        "00000000 02 0000 00 01 01 00000000 00000000 01 00000002 01 00 01 80000000 00 00",
    ),
    (kip_1071.StreamsGroupTopologyKey(group_id="g"), 23, "0001 67"),
    (kip_1071.StreamsGroupMemberMetadataKey(group_id="g", member_id="m"), 19, "0001 67 0001 6d"),
    (
        kip_1071.StreamsGroupPartitionMetadataValue(
            topics=(
                draft_partitions.TopicMetadata(
                    topic_id=ID,
                    topic_name="t",
                    num_partitions=2,
                    partition_metadata=(draft_partitions.PartitionMetadata(partition=1, racks=("a", "b")),),
                ),
            )
        ),
        0,
        f"02 {ID_HEX} 0274 00000002 02 00000001 03 0261 0262 00 00 00",
    ),
    (
        kip_1071.StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=2,
            previous_member_epoch=1,
            state=-1,
            active_tasks=(draft_assignment.TaskIds(subtopology_id="0", partitions=(1, 2)),),
            warmup_tasks_pending_revocation=(draft_assignment.TaskIds(subtopology_id="1"),),
        ),
        0,
        "00000002 00000001 ff 02 0230 03 00000001 00000002 00 01 01 01 01 02 0231 01 00 00",
    ),
    (
        kip_1071.StreamsGroupTopologyValue(
            epoch=3,
            subtopologies=(
                draft_topology.Subtopology(
                    subtopology_id="0",
                    state_changelog_topics=(
                        draft_topology.TopicInfo(
                            name="c",
                            replication_factor=-1,
                            topic_configs=(draft_topology.TopicConfig(key="k", value="v"),),
                        ),
                    ),
                ),
            ),
        ),
        0,
        "00000003 02 0230 01 01 02 0263 00000000 ffff 02 026b 0276 00 00 01 01 01 00 00",
    ),
    (kip_1071.StreamsGroupMetadataValue(epoch=5), 0, "00000005 00"),
    (kip_1071.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=5), 0, "00000005 00"),
    (
        kip_1071.StreamsGroupMemberMetadataValue(client_id="c", client_host="h", process_id="p"),
        0,
        "01 01 0263 0268 ffffffff 00000000 0270 ff 01 00",
    ),
]

# Released messages: one for every wire encoding

RELEASED: list[Vector] = [
    (NoOpRecord(), 0, "00"),
    (
        RequestHeader(request_api_key=9, request_api_version=2, correlation_id=5, client_id="c"),
        1,
        "0009 0002 00000005 0001 63",
    ),
    (
        RequestHeader(request_api_key=9, request_api_version=6, correlation_id=5, client_id="c"),
        2,
        "0009 0006 00000005 0001 63 00",
    ),
    (RequestHeader(request_api_key=18, correlation_id=-1, client_id=None), 2, "0012 0000 ffffffff ffff 00"),
    (ResponseHeader(correlation_id=7), 0, "00000007"),
    (ResponseHeader(correlation_id=7), 1, "00000007 00"),
    (ApiVersionsRequest(), 0, ""),
    (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, "0261 0231 00"),
    (
        ApiVersionsResponse(error_code=35, api_keys=(ApiVersion(api_key=18, min_version=0, max_version=4),)),
        0,
        "0023 00000001 0012 0000 0004",
    ),
    (
        ApiVersionsResponse(api_keys=(ApiVersion(api_key=18, max_version=4),), finalized_features_epoch=3),
        3,
        "0000 02 0012 0000 0004 00 00000000 01 01 08 0000000000000003",
    ),
    (ApiVersionsResponse(zk_migration_ready=True), 3, "0000 01 00000000 01 03 01 01"),
    (MetadataRequest(topics=None), 1, "ffffffff"),
    (MetadataRequest(topics=()), 0, "00000000"),
    (
        MetadataRequest(topics=(MetadataRequestTopic(topic_id=ID, name=None),), allow_auto_topic_creation=False),
        12,
        f"02 {ID_HEX} 00 00 00 00 00",
    ),
    (DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),)), 0, "02 0274 00 000007d0 ff 00"),
    (
        DescribeTopicPartitionsRequest(response_partition_limit=1, cursor=Cursor(topic_name="t", partition_index=2)),
        0,
        "01 00000001 01 0274 00000002 00 00",
    ),
    (
        ProduceRequest(
            acks=-1,
            timeout_ms=30000,
            topic_data=(
                TopicProduceData(
                    name="t",
                    partition_data=(
                        PartitionProduceData(index=0, records=b"\xca\xfe"),
                        PartitionProduceData(index=1, records=None),
                    ),
                ),
            ),
        ),
        3,
        "ffff ffff 00007530 00000001 000174 00000002 00000000 00000002 cafe 00000001 ffffffff",
    ),
    (
        ProduceRequest(
            transactional_id="x",
            topic_data=(TopicProduceData(name="t", partition_data=(PartitionProduceData(records=b"\xca\xfe"),)),),
        ),
        9,
        "0278 0000 00000000 02 0274 02 00000000 03 cafe 00 00 00",
    ),
    (FetchSnapshotResponse(throttle_time_ms=1, error_code=2), 0, "00000001 0002 01 00"),
    (
        ProducerSnapshot(crc=4294967295, producer_entries=(ProducerEntry(producer_id=-1, epoch=1),)),
        1,
        "ffffffff 00000001 ffffffffffffffff 0001 00000000 0000000000000000 00000000 0000000000000000 00000000"
        " 0000000000000000",
    ),
    (StreamsGroupDescribeRequest(group_ids=("g",), include_authorized_operations=True), 0, "02 0267 01 00"),
    (StreamsGroupMetadataValue(epoch=5), 0, "00000005 0000000000000000 00"),
    (LegacyOffsetCommitKey(group="g", topic="t", partition=1), 0, "000167 000174 00000001"),
    (OffsetCommitKey(group="g", topic="t", partition=1), 0, "000167 000174 00000001"),
    (OffsetCommitValue(offset=5, metadata="m", commit_timestamp=6), 0, "0000000000000005 00016d 0000000000000006"),
    (
        OffsetCommitValue(offset=5, metadata="m", commit_timestamp=6, expire_timestamp=7),
        1,
        "0000000000000005 00016d 0000000000000006 0000000000000007",
    ),
    (
        OffsetCommitValue(offset=5, leader_epoch=9, metadata="m", commit_timestamp=6),
        3,
        "0000000000000005 00000009 00016d 0000000000000006",
    ),
    (
        TransactionLogValue(producer_id=1, producer_epoch=2, transaction_timeout_ms=3, transaction_partitions=None),
        0,
        "0000000000000001 0002 00000003 00 ffffffff 0000000000000000 0000000000000000",
    ),
    (
        TransactionLogValue(
            producer_id=1,
            previous_producer_id=4,
            next_producer_epoch=5,
            client_transaction_version=2,
            transaction_partitions=(PartitionsSchema(topic="t", partition_ids=(6,)),),
        ),
        1,
        "0000000000000001 0000 00000000 00 02 0274 02 00000006 00 0000000000000000 0000000000000000"
        " 03 00 08 0000000000000004 02 02 0002 03 02 0005",
    ),
]
