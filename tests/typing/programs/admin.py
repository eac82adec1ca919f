"""One table of operations generates blocking methods and coroutines, with the same arguments and typed results."""

from __future__ import annotations

from typing import assert_type

from kafka_msgs.admin import Admin, AsyncAdmin, GroupListing, GroupState, OffsetAndMetadata, PartialList, Results
from kafka_msgs.client import TopicPartition

Offsets = Results[TopicPartition, OffsetAndMetadata]


def blocking(admin: Admin, partition: TopicPartition) -> None:
    offsets = admin.list_group_offsets("g", [partition], timeout=1.0)
    assert_type(offsets, Offsets)
    assert_type(offsets[partition], OffsetAndMetadata)
    assert_type(offsets.all(), dict[TopicPartition, OffsetAndMetadata])
    assert_type(offsets.errors, dict[TopicPartition, Exception])
    assert_type(admin.list_groups(states=[GroupState.EMPTY]), PartialList[GroupListing])
    assert_type(admin.alter_group_offsets("g", {partition: 1})[partition], None)
    admin.list_group_offsets()  # refused
    admin.list_group_offsets(3)  # refused
    admin.list_group_offsets("g", until=1.0)  # refused
    admin.list_groups(states=["Empty"])  # refused
    admin.no_such_operation()  # refused


async def on_asyncio(admin: AsyncAdmin, partition: TopicPartition) -> None:
    offsets = await admin.list_group_offsets("g", [partition], timeout=1.0)
    assert_type(offsets, Offsets)
    assert_type(await admin.list_groups(), PartialList[GroupListing])
    await admin.list_group_offsets(3)  # refused
    await admin.list_groups(states=["Empty"])  # refused


def not_mixed(admin: Admin, on_loop: AsyncAdmin) -> None:
    listed: PartialList[GroupListing] = admin.list_groups()
    later: PartialList[GroupListing] = on_loop.list_groups()  # refused
    print(listed, later)
