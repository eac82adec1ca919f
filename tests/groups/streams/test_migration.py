"""Requirement G15: groups that migrate between the classic and the streams protocol with active members.

The worked example of the KIP: A and B are classic members at generation 23, and C joins with the streams protocol.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.page.user_data import NEVER, write_answer
from kafka_msgs.groups.profiles import SHIPPED
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.messages import streams_group_heartbeat_request as wire
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_msgs.messages.subscription_info_data import SubscriptionInfoData
from kafka_msgs.versioned import encode_versioned
from tests.groups.streams.broker import changelog, page, subtopology, topology
from tests.groups.streams.classic_app import ClassicApp, given, ids, numbers

STATEFUL = topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),)))
END = 100_000
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS


class Example:
    """The example, starting with the classic group at ``generation``."""

    def __init__(self, generation: int = 23, **fields: Any) -> None:
        config = {"group_streams_num_standby_replicas": 1, "group_streams_num_warmup_replicas": 2}
        self.broker = page(topics={"in": 6, "c": 6}, config=config, **fields)
        known = dict.fromkeys(range(6), END)
        self.a = ClassicApp(
            self.broker, "A", "A", generation, {0, 2, 4}, {1, 3, 5}, offsets=known, ends=known, topology=STATEFUL
        )
        self.b = ClassicApp(
            self.broker, "B", "B", generation, {1, 3, 5}, {0, 2, 4}, offsets=known, ends=known, topology=STATEFUL
        )
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=generation,
            protocol="stream",
            leader="A",
            current_state_timestamp=0,
            members=tuple(self._recorded(app) for app in (self.a, self.b)),
        )
        record = TopicRecord(topic="__consumer_offsets", key=GroupMetadataKey(group="g"), value=value, version=3)
        self.broker.log.partitions[0].append(record)
        self.broker.reload()

    def _recorded(self, app: ClassicApp) -> MemberMetadata:
        answer = given(app.active, app.standby)
        subscription = app.subscription()
        return MemberMetadata(
            member_id=app.member_id,
            client_id=app.name,
            client_host="/127.0.0.1",
            rebalance_timeout=60_000,
            session_timeout=10_000,
            subscription=subscription,
            assignment=write_answer(answer, {}, self.broker.coordinator.image, subscription),
        )

    def join_c(self) -> Any:
        """Join C with the streams protocol."""
        return self.broker.heartbeat("C", topology=STATEFUL)

    def beat_c(self, **fields: Any) -> Any:
        """Send a heartbeat of C that reports its assigned tasks as owned."""
        member = self.broker.group().members["C"]
        held: dict[str, Any] = {
            f"{role}_tasks": ids(number for _, number in getattr(member.assigned, role))
            for role in ("active", "standby", "warmup")
        }
        return self.broker.heartbeat("C", member.epoch, **held, **fields)

    def settle(self, rounds: int = 8) -> None:
        """Make all members follow the coordinator until nothing changes."""
        for _ in range(rounds):
            moved = [self.a.follow(), self.b.follow()]
            self.beat_c()
            if not any(moved) and self.broker.group().state_name() == "Stable":
                return

    def warm(self) -> Any:
        """Report that C has caught up on task 2."""
        return self.beat_c(task_offsets=(wire.TaskOffset(subtopology_id="0", partition=2, offset=END - 10),))

    def target(self, member: str) -> tuple[set[int], set[int], set[int]]:
        """Return the target assignment of a member: active, standby and warm-up tasks."""
        target = self.broker.group().targets[member]
        active, standby, warmup = (
            {number for _, number in role} for role in (target.active, target.standby, target.warmup)
        )
        return active, standby, warmup

    def kind(self) -> str:
        return self.broker.coordinator.shards[0].state.groups["g"].kind


@pytest.fixture
def example() -> Example:
    return Example()


@pytest.fixture
def settled(example: Example) -> Example:
    """Return the example after step 1: C has joined, and all members have the target assignment of epoch 24."""
    example.join_c()
    example.settle()
    return example


def test_g15_1_the_first_heartbeat_of_the_streams_protocol_converts_a_classic_group(example: Example) -> None:
    assert example.join_c().error_code == ErrorCode.NONE
    group = example.broker.group()
    assert (group.kind, group.epoch, group.assignment_epoch) == ("streams", 24, 24)
    assert set(group.members) == {"A", "B", "C"}
    kinds = example.broker.kinds
    assert kinds[0] == "-GroupMetadata"
    assert kinds[1:3] == ["MemberMetadata", "MemberMetadata"]


def test_g15_1_the_release_refuses_a_classic_group_with_members() -> None:
    example = Example()
    example.broker.profile = SHIPPED
    example.broker.reload()
    assert example.join_c().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert example.kind() == "classic"


def test_g15_2_the_group_is_classic_again_when_the_last_streams_member_leaves(settled: Example) -> None:
    settled.broker.heartbeat("C", -1)
    assert settled.kind() == "classic"
    live: dict[Any, Any] = {}
    for record in settled.broker.log.records(0):
        assert isinstance(record, TopicRecord)
        live[record.key] = record.value
    left = {str(key.INFO.name) for key, value in live.items() if value is not None}
    assert left == {"GroupMetadataKey"}

    assert settled.a.heartbeat() is REBALANCE
    assert settled.a.join() is None
    answer = settled.b.join()
    described = settled.broker.ask(DescribeGroupsRequest(groups=("g",))).groups[0]
    assert described.group_state == "CompletingRebalance"
    assert answer is not None
    assert {member.member_id for member in described.members} == {"A", "B"}


def test_g15_2_members_of_the_classic_protocol_may_be_alone_only_in_a_classic_group(settled: Example) -> None:
    settled.broker.advance(1)
    for app in (settled.a, settled.b):
        app.heartbeat()
    settled.broker.advance(9_000)
    for app in (settled.a, settled.b):
        app.heartbeat()
    for _ in range(5):
        settled.broker.advance(9_000)
        for app in (settled.a, settled.b):
            app.heartbeat()
    assert settled.kind() == "classic"


def test_g15_3_members_learn_of_a_new_assignment_by_their_heartbeats(example: Example) -> None:
    assert example.a.heartbeat() is ErrorCode.NONE
    example.join_c()
    assert example.a.heartbeat() is REBALANCE
    assert example.b.heartbeat() is REBALANCE
    example.settle()
    assert example.a.heartbeat() is ErrorCode.NONE


def test_g15_4_a_join_brings_what_a_member_has_and_a_sync_what_it_gets(example: Example) -> None:
    example.join_c()
    answer = example.a.join()
    assert answer is not None
    member = example.broker.group().members["A"]
    assert answer.generation_id == member.epoch
    assert {number for _, number in member.revoking.active} == {4}
    assert example.a.sync() is ErrorCode.NONE
    assert example.a.active == {number for _, number in member.assigned.active} == {0, 2}


def test_g15_5_nobody_leads(example: Example) -> None:
    example.join_c()
    answer = example.a.join()
    assert answer is not None
    assert (answer.leader, answer.members, answer.protocol_name) == ("", (), "stream")


def test_g15_6_a_warm_up_task_of_a_classic_member_is_a_standby_task(settled: Example) -> None:
    """D and E are new members with the classic protocol. So they get warm-up tasks, and one of the two has to probe."""
    apps = [ClassicApp(settled.broker, name, topology=STATEFUL) for name in "DE"]
    for app in apps:
        answer = app.join()
        assert answer is not None
        assert answer.error_code == ErrorCode.NONE
        app.sync()
    everyone = [settled.a, settled.b, *apps]
    for _ in range(12):
        for app in everyone:
            app.follow()
        settled.beat_c()
    members = settled.broker.group().members
    warm = [app for app in everyone if members[app.member_id].assigned.warmup]
    assert warm
    for app in warm:
        assert {number for _, number in members[app.member_id].assigned.warmup} <= app.standby
    for app in everyone:
        assert app.sync() is ErrorCode.NONE
    probing = [app for app in everyone if app.next_rebalance_ms != NEVER]
    assert len(probing) == 1
    assert probing[0].next_rebalance_ms == settled.broker.now + 60_000

    others = [app for app in warm if app is not probing[0]]
    probing[0].join()
    assert [app.heartbeat() for app in others] == [REBALANCE] * len(others)
    for app in others:
        app.join()
        app.sync()
        assert app.heartbeat() is ErrorCode.NONE


def test_g15_7_the_target_of_the_first_step(example: Example) -> None:
    example.join_c()
    assert example.target("A") == ({0, 2, 3}, {1, 5}, set())
    assert example.target("B") == ({1, 4, 5}, {2, 3}, set())
    assert example.target("C") == (set(), {0, 4}, {2, 5})
    example.settle()
    assert (example.a.generation, example.a.active, example.a.standby) == (24, {0, 2, 3}, {1, 5})
    assert (example.b.generation, example.b.active, example.b.standby) == (24, {1, 4, 5}, {2, 3})
    answer = example.broker.describe()
    assert {member.member_id: member.member_epoch for member in answer.members} == {"A": 24, "B": 24, "C": 24}


def test_g15_8_a_warm_up_task_that_has_caught_up_moves_the_active_one(settled: Example) -> None:
    answer = settled.warm()
    assert (answer.member_epoch, numbers(settled.beat_c().active_tasks)) == (25, set())
    assert settled.target("A") == ({0, 3}, {1, 5}, set())
    assert settled.target("B") == ({1, 4, 5}, {2, 3}, set())
    assert settled.target("C") == ({2}, {0, 4}, {5})
    assert [settled.a.heartbeat(), settled.b.heartbeat()] == [REBALANCE, REBALANCE]
    for app, generation, active in ((settled.a, 24, {0, 3}), (settled.b, 25, {1, 4, 5})):
        joined = app.join()
        assert joined is not None
        assert joined.generation_id == generation
        assert app.sync() is ErrorCode.NONE
        assert app.active == active


def test_y18_g15_9_the_task_goes_over_when_its_owner_has_given_it_up(settled: Example) -> None:
    settled.warm()
    for app in (settled.a, settled.b):
        app.follow()
    assert not settled.beat_c().active_tasks
    assert settled.a.follow()
    assert (settled.a.generation, settled.a.active, settled.a.standby) == (25, {0, 3}, {1, 5})
    answer = settled.beat_c()
    assert (answer.member_epoch, numbers(answer.active_tasks)) == (25, {2})
    assert (numbers(answer.standby_tasks), numbers(answer.warmup_tasks)) == ({0, 4}, {5})
    settled.settle()
    assert settled.broker.group().state_name() == "Stable"


def test_y19_g15_10_user_data_has_what_the_assignment_needs(example: Example) -> None:
    """The layout is specific to this library: the KIP only requires additional fields in the user data."""
    example.join_c()
    app = ClassicApp(example.broker, "D", topology=STATEFUL, offsets={0: 5}, ends={0: 9})
    assert app.join() is not None
    metadata = example.broker.group().members[app.member_id].metadata
    assert (metadata.process_id, metadata.topology_epoch) == ("process-D", 0)
    described = next(each for each in example.broker.describe().members if each.member_id == app.member_id)
    assert [(each.partition, each.offset) for each in described.task_offsets] == [(0, 5)]
    assert [(each.partition, each.offset) for each in described.task_end_offsets] == [(0, 9)]


def _old_subscription() -> bytes:
    """Return version 11 of the user data, which contains no topology."""
    old = SubscriptionInfoData(version=11, latest_supported_version=11).encode(11)
    return encode_versioned(ConsumerProtocolSubscription(topics=("in",), user_data=old), 3)


@pytest.mark.parametrize("metadata", [_old_subscription(), b"\0\3\0\0\0\0\xff\xff\xff\xff\0\0\0\0", b"", b"\0"])
def test_g15_11_members_without_that_data_cannot_join(example: Example, metadata: bytes) -> None:
    example.join_c()
    answer = ClassicApp(example.broker, "D").join(metadata or b"\xff")
    assert answer is not None
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert set(example.broker.group().members) == {"A", "B", "C"}


def test_g15_11_a_group_with_such_members_is_not_converted() -> None:
    broker = page(topics={"in": 6, "c": 6})
    old = ClassicApp(broker, "old")
    old.join(_old_subscription())
    broker.advance(3000)
    answer = broker.heartbeat("C", topology=STATEFUL)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "user data of version 12" in answer.error_message


def test_g15_13_describe_tells_who_is_classic(settled: Example) -> None:
    described = settled.broker.describe()
    assert {member.member_id: member.is_classic for member in described.members} == {"A": True, "B": True, "C": False}
    listed = settled.broker.ask(ListGroupsRequest()).groups
    assert [(group.group_id, group.group_type) for group in listed] == [("g", "streams")]


# Points that the KIP leaves to the rules of KIP-848.


def test_a_converted_group_is_loaded_as_it_was(settled: Example) -> None:
    before = settled.broker.describe()
    settled.broker.reload()
    group = settled.broker.group()
    assert set(group.classic_members) == {"A", "B"}
    assert settled.a.heartbeat() is ErrorCode.NONE
    settled.beat_c()
    after = settled.broker.describe()
    assert [each.assignment for each in after.members] == [each.assignment for each in before.members]
    settled.broker.heartbeat("C", -1)
    assert settled.kind() == "classic"


def test_a_classic_member_changes_to_the_streams_protocol(settled: Example) -> None:
    settled.a.leave()
    answer = settled.broker.heartbeat("A2", topology=STATEFUL)
    assert answer.error_code == ErrorCode.NONE
    assert set(settled.broker.group().classic_members) == {"B"}
    settled.b.leave()
    assert settled.kind() == "streams"
    assert not settled.broker.group().classic_members


def test_a_static_member_changes_its_protocol_both_ways(settled: Example) -> None:
    app = ClassicApp(settled.broker, "D", topology=STATEFUL, instance_id="i")
    assert app.join() is not None
    answer = settled.broker.heartbeat("D2", topology=STATEFUL, instance_id="i", process_id="process-D")
    assert answer.error_code == ErrorCode.NONE
    members = settled.broker.group().members
    assert app.member_id not in members
    assert members["D2"].classic is None
    assert app.heartbeat() is ErrorCode.FENCED_INSTANCE_ID

    back = ClassicApp(settled.broker, "D", topology=STATEFUL, instance_id="i")
    assert back.join() is not None
    members = settled.broker.group().members
    assert "D2" not in members
    assert members[back.member_id].classic is not None


def test_the_last_streams_member_may_come_back_as_a_classic_one() -> None:
    broker = page(topics={"in": 2, "c": 2})
    broker.heartbeat("C", topology=STATEFUL, instance_id="i")
    app = ClassicApp(broker, "C", topology=STATEFUL, instance_id="i")
    answer = app.join()
    assert answer is not None
    assert answer.error_code == REBALANCE
    assert broker.coordinator.shards[0].state.groups["g"].kind == "classic"
    app.member_id = answer.member_id
    joined = app.join()
    assert joined is not None
    assert joined.error_code == ErrorCode.NONE


def test_a_classic_member_that_does_not_join_again_is_removed(settled: Example) -> None:
    settled.warm()
    assert settled.b.heartbeat() is REBALANCE
    for _ in range(8):
        settled.broker.advance(9_000)
        settled.a.follow()
        settled.b.heartbeat()
        settled.beat_c()
    assert "B" not in settled.broker.group().members


def test_a_classic_member_commits_at_its_generation(settled: Example) -> None:
    def commit(generation: int) -> int:
        request = OffsetCommitRequest(
            group_id="g",
            member_id="A",
            generation_id_or_member_epoch=generation,
            topics=(
                OffsetCommitRequestTopic(
                    name="in", partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=3),)
                ),
            ),
        )
        return int(settled.broker.ask(request, version=8).topics[0].partitions[0].error_code)

    assert commit(24) == ErrorCode.NONE
    assert commit(25) == ErrorCode.ILLEGAL_GENERATION


def test_a_failed_append_leaves_the_classic_group(example: Example) -> None:
    example.broker.log.fail_next = GroupError(error=ErrorCode.NOT_ENOUGH_REPLICAS)
    example.join_c()
    assert example.kind() == "classic"
    assert example.a.heartbeat() is ErrorCode.NONE


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_topology_that_does_not_fit_is_refused(example: Example, epoch: int) -> None:
    other = topology(subtopology("0", "in"), epoch=epoch)
    answer = example.broker.heartbeat("C", topology=other)
    expected = ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH if epoch == 0 else ErrorCode.NONE
    assert answer.error_code == expected
    assert example.kind() == ("classic" if epoch == 0 else "streams")
