"""Share groups on virtual brokers with a simulated clock: the distribution of records, and its timing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from attrs import define

from kafka_msgs.broker.coordinators.leadership import find_log, iter_records
from kafka_msgs.broker.coordinators.share_service import find_share_service
from kafka_msgs.broker.faults import MoveLeader
from kafka_msgs.broker.share import SharePartitionKey
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.messages.delete_groups_request import DeleteGroupsRequest
from kafka_msgs.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_msgs.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_msgs.messages.share_fetch_response import PartitionData, ShareFetchResponse
from kafka_msgs.records import BatchBuilder, BatchHeader
from tests.support.share_requests import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Said,
    heartbeat,
    share_acknowledge,
    share_fetch,
)
from tests.support.virtual_brokers import START, RecordedCall, VirtualCluster, batch

GROUP = 32
LOCK_MS = 15_000
Records = list[tuple[int, int, int]]


@define(eq=False)
class Group:
    """A share group on one topic with one partition, and its members with their session epochs."""

    cluster: VirtualCluster
    epochs: dict[str, int]

    @classmethod
    def start(cls, *members: str, settings: dict[str, Any] | None = None, **configs: str) -> Group:
        """Start a broker, and join members to a group that reads from the start."""
        cluster = VirtualCluster.start(**(settings or {}))
        cluster.create("t")
        group = cls(cluster, dict.fromkeys(members, 0))
        group.configure(share_auto_offset_reset="earliest", share_record_lock_duration_ms=str(LOCK_MS), **configs)
        cluster.call(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), 6)
        for member in members:
            assert cluster.call(heartbeat("g", member, 0, "t"), 1).error_code == 0
        cluster.advance(0)
        return group

    @property
    def topic_id(self) -> Any:
        """The topic id."""
        return self.cluster.topic_id("t")

    def configure(self, **configs: str) -> None:
        """Set configs of the group."""
        changes = tuple(AlterableConfig(name=key.replace("_", "."), value=each) for key, each in configs.items())
        resource = AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=changes)
        response = self.cluster.call(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
        assert response.responses[0].error_code == 0, response

    def produce(self, *values: bytes) -> None:
        """Append a batch."""
        self.cluster.produce("t", 0, batch(*values))

    def ask(self, member: str, said: list[Said] | None = None, **fields: Any) -> RecordedCall:
        """Send the next fetch of a member."""
        epoch = self.epochs[member]
        self.epochs[member] += 1
        return self.cluster.ask(share_fetch("g", member, epoch, self.topic_id, said=said or (), **fields), 2)

    def fetch(self, member: str, said: list[Said] | None = None, **fields: Any) -> Records:
        """Fetch, and return the acquired ranges: first offset, last offset and delivery count."""
        asked = self.ask(member, said, **fields)
        response = self.cluster.decoded(asked, ShareFetchResponse)
        assert response.error_code == 0, response
        assert self.cluster.cluster.errors == []
        return acquired(response)

    def say(self, member: str, *said: Said, **fields: Any) -> ErrorCode:
        """Acknowledge records, and return the error of the partition."""
        epoch = self.epochs[member]
        self.epochs[member] += 1
        response = self.cluster.call(share_acknowledge("g", member, epoch, self.topic_id, said, **fields), 2)
        assert response.error_code == 0, response
        (topic,) = response.responses
        (part,) = topic.partitions
        return ErrorCode(part.error_code)

    def leave(self, member: str) -> None:
        """End the session of a member."""
        request = share_fetch("g", member, -1, self.topic_id, ())
        assert self.cluster.call(request, 2).error_code == 0


def parts(response: ShareFetchResponse) -> list[PartitionData]:
    return [part for topic in response.responses for part in topic.partitions]


def acquired(response: ShareFetchResponse) -> Records:
    assert [part.error_code for part in parts(response) if part.error_code] == []
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for part in parts(response)
        for each in part.acquired_records
    ]


def test_records_go_to_one_member_each() -> None:
    group = Group.start("one", "two")
    group.fetch("one")
    group.produce(b"a", b"b")
    assert group.fetch("one") == [(0, 1, 1)]
    assert group.fetch("two") == []
    group.produce(b"c")
    assert group.fetch("two") == [(2, 2, 1)]


@pytest.mark.parametrize("kind", [ACCEPT, REJECT, GAP])
def test_what_is_done_with_is_not_delivered_again(kind: int) -> None:
    group = Group.start("one")
    group.fetch("one")
    group.produce(b"a", b"b")
    assert group.fetch("one") == [(0, 1, 1)]
    assert group.say("one", (0, 1, [kind])) is ErrorCode.NONE
    group.cluster.advance(LOCK_MS)
    assert group.fetch("one") == []


def test_released_records_are_delivered_again() -> None:
    group = Group.start("one", "two")
    group.fetch("one")
    group.produce(b"a", b"b", b"c")
    assert group.fetch("one") == [(0, 2, 1)]
    assert group.say("one", (0, 2, [ACCEPT, RELEASE, REJECT])) is ErrorCode.NONE
    assert group.fetch("two") == [(1, 1, 2)]


def test_acknowledgements_come_with_a_fetch() -> None:
    group = Group.start("one")
    group.fetch("one")
    group.produce(b"a", b"b")
    assert group.fetch("one") == [(0, 1, 1)]
    assert group.fetch("one", [(0, 1, [RELEASE])]) == []
    assert group.fetch("one") == [(0, 1, 2)]


def test_locks_end_after_their_time() -> None:
    group = Group.start("one", "two")
    group.fetch("one")
    group.produce(b"a")
    assert group.fetch("one") == [(0, 0, 1)]
    group.cluster.advance(LOCK_MS - 1)
    assert group.fetch("two") == []
    group.cluster.advance(1)
    assert group.fetch("two") == [(0, 0, 2)]
    assert group.say("one", (0, 0, [ACCEPT])) is ErrorCode.INVALID_RECORD_STATE


def test_a_renewed_lock_lasts_longer() -> None:
    group = Group.start("one", "two")
    group.fetch("one")
    group.produce(b"a", b"b")
    assert group.fetch("one") == [(0, 1, 1)]
    group.cluster.advance(LOCK_MS - 1)
    assert group.say("one", (0, 0, [RENEW]), is_renew_ack=True) is ErrorCode.NONE
    assert group.say("one", (0, 0, [RENEW])) is ErrorCode.INVALID_REQUEST
    group.cluster.advance(LOCK_MS - 1)
    assert group.fetch("two") == [(1, 1, 2)]
    assert group.say("one", (0, 0, [ACCEPT])) is ErrorCode.NONE


def test_a_record_is_delivered_a_limited_number_of_times() -> None:
    group = Group.start("one", share_delivery_count_limit="3")
    group.fetch("one")
    group.produce(b"a")
    assert group.fetch("one") == [(0, 0, 1)]
    for count in (2, 3):
        assert group.say("one", (0, 0, [RELEASE])) is ErrorCode.NONE
        assert group.fetch("one") == [(0, 0, count)]
    assert group.say("one", (0, 0, [RELEASE])) is ErrorCode.NONE
    assert group.fetch("one") == []
    group.produce(b"b")
    assert group.fetch("one") == [(1, 1, 1)]


def test_a_waiting_fetch_is_woken_by_new_records() -> None:
    group = Group.start("one")
    group.fetch("one")
    waiting = group.ask("one", max_wait_ms=1000)
    assert waiting.answer is None
    group.produce(b"a")
    assert acquired(group.cluster.decoded(waiting, ShareFetchResponse)) == [(0, 0, 1)]


def test_a_waiting_fetch_is_woken_by_released_records() -> None:
    group = Group.start("one", "two", settings={"brokers": 1})
    group.fetch("one")
    group.fetch("two")
    group.produce(b"a")
    assert group.fetch("one") == [(0, 0, 1)]
    waiting = group.ask("two", max_wait_ms=60_000)
    assert group.say("one", (0, 0, [RELEASE])) is ErrorCode.NONE
    assert acquired(group.cluster.decoded(waiting, ShareFetchResponse)) == [(0, 0, 2)]


def test_a_waiting_fetch_gets_what_it_releases_itself() -> None:
    group = Group.start("one")
    group.fetch("one")
    group.produce(b"a")
    assert group.fetch("one") == [(0, 0, 1)]
    waiting = group.ask("one", [(0, 0, [RELEASE])], max_wait_ms=60_000)
    assert acquired(group.cluster.decoded(waiting, ShareFetchResponse)) == [(0, 0, 2)]


def test_a_waiting_fetch_is_woken_by_the_end_of_a_lock() -> None:
    group = Group.start("one", "two")
    group.fetch("one")
    group.produce(b"a")
    assert group.fetch("one") == [(0, 0, 1)]
    waiting = group.ask("two", max_wait_ms=60_000)
    group.cluster.advance(LOCK_MS)
    assert acquired(group.cluster.decoded(waiting, ShareFetchResponse)) == [(0, 0, 2)]


def test_a_waiting_fetch_ends_with_its_time() -> None:
    group = Group.start("one")
    waiting = group.ask("one", max_wait_ms=1000)
    group.cluster.advance(999)
    assert waiting.answer is None
    group.cluster.advance(1)
    assert acquired(group.cluster.decoded(waiting, ShareFetchResponse)) == []


def test_the_end_of_a_session_releases_its_records() -> None:
    group = Group.start("one", "two")
    group.fetch("one")
    group.produce(b"a")
    assert group.fetch("one") == [(0, 0, 1)]
    group.leave("one")
    assert group.fetch("two") == [(0, 0, 2)]


def test_the_end_of_a_connection_releases_its_records() -> None:
    group = Group.start("one", "two")
    group.fetch("one")
    group.produce(b"a")
    assert group.fetch("one") == [(0, 0, 1)]
    group.cluster.sessions[0].end()
    assert group.fetch("two") == [(0, 0, 2)]


def test_a_broker_that_starts_again_knows_what_was_done() -> None:
    group = Group.start("one", settings={"brokers": 1})
    group.fetch("one")
    group.produce(b"a", b"b", b"c")
    assert group.fetch("one") == [(0, 2, 1)]
    assert group.say("one", (0, 1, [ACCEPT, RELEASE])) is ErrorCode.NONE
    group.cluster.cluster.kill_broker(0)
    group.cluster.cluster.start_broker(0)
    group.epochs["one"] = 0
    assert group.fetch("one") == [(1, 1, 2), (2, 2, 1)]


def test_another_leader_goes_on() -> None:
    group = Group.start("one", settings={"brokers": 2})
    cluster = group.cluster.cluster
    MoveLeader("t", 0, 0).apply(cluster)
    group.fetch("one")
    group.produce(b"a", b"b")
    assert group.fetch("one") == [(0, 1, 1)]
    assert group.say("one", (0, 0, [ACCEPT])) is ErrorCode.NONE
    MoveLeader("t", 0, 1).apply(cluster)
    moved = group.cluster.decoded(group.ask("one"), ShareFetchResponse)
    assert [part.error_code for part in parts(moved)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert [part.current_leader.leader_id for part in parts(moved)] == [1]
    there = group.cluster.call(share_fetch("g", "one", 0, group.topic_id), 2, broker=1)
    assert acquired(there) == [(1, 1, 1)]


def test_new_records_wait_for_room() -> None:
    group = Group.start("one", share_partition_max_record_locks="100")
    group.fetch("one")
    for _ in range(3):
        group.produce(*[b"x"] * 60)
    assert group.fetch("one", max_records=1000) == [(0, 119, 1)]
    assert group.fetch("one", max_records=1000) == []
    assert group.say("one", (0, 59, [ACCEPT])) is ErrorCode.NONE
    assert group.fetch("one", max_records=1000) == [(120, 179, 1)]


def test_a_fetch_with_a_limit_gets_parts_of_batches() -> None:
    group = Group.start("one", "two")
    group.fetch("one")
    group.produce(b"a", b"b", b"c")
    assert group.fetch("one", max_records=1, share_acquire_mode=1) == [(0, 0, 1)]
    assert group.fetch("two", max_records=1, share_acquire_mode=1) == [(1, 1, 1)]
    assert group.fetch("one", max_records=1) == [(2, 2, 1)]


def test_a_group_begins_where_its_setting_says() -> None:
    for reset, expected in (("earliest", [(0, 2, 1)]), ("latest", []), ("by_duration:PT1S", [(1, 2, 1)])):
        group = Group.start("one")
        group.configure(share_auto_offset_reset=reset)
        now = group.cluster.cluster.now
        for age in (2000, 500, 0):
            builder = BatchBuilder()
            builder.append(None, b"x", timestamp=now - age)
            group.cluster.produce("t", 0, builder.build())
        assert group.fetch("one", batch_size=1000) == expected, reset


@pytest.mark.parametrize(
    ("isolation", "expected"), [("read_uncommitted", [(0, 3, 1)]), ("read_committed", [(2, 3, 1)])]
)
def test_records_of_aborted_transactions_are_for_those_who_read_uncommitted(isolation: str, expected: Records) -> None:
    group = Group.start("one", share_isolation_level=isolation)
    group.fetch("one")
    log = group.cluster.cluster.log_manager.get((group.topic_id, 0))
    assert log is not None
    builder = BatchBuilder(BatchHeader(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    for value in (b"a", b"b"):
        builder.append(None, value, timestamp=START)
    now = group.cluster.cluster.now
    guard = log.verify(7, 0, 0, bumps_epoch=False, now=now)
    log.append(builder.build(), leader_epoch=0, now=now, guard=guard)
    log.append_marker(7, 0, committed=False, coordinator_epoch=0, leader_epoch=0, now=now)
    group.produce(b"c")
    assert group.fetch("one") == expected


def test_sessions_are_limited() -> None:
    group = Group.start("one", "two", settings={"configs": {"group.share.max.share.sessions": "1"}})
    group.fetch("one")
    waiting = group.ask("two", max_wait_ms=500)
    assert waiting.answer is None
    group.cluster.advance(500)
    assert group.cluster.decoded(waiting, ShareFetchResponse).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    group.leave("one")
    group.epochs["two"] = 0
    group.fetch("two")


def test_an_unknown_topic_is_an_error_of_its_partitions() -> None:
    group = Group.start("one")
    answer = group.cluster.call(share_fetch("g", "one", 0, UUID(int=7)), 2)
    assert [part.error_code for part in parts(answer)] == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_the_state_of_a_deleted_topic_is_forgotten() -> None:
    group = Group.start("one")
    group.fetch("one")
    key = SharePartitionKey("g", group.topic_id, 0)
    coordinator = find_share_service(group.cluster.cluster, key).coordinator
    assert [state for shard in coordinator.shards.values() for state in shard.state.states] == [key]
    group.cluster.call(DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),), timeout_ms=1000), 6)
    assert [state for shard in coordinator.shards.values() for state in shard.state.states] == []
    with pytest.raises(RequestRefusedError):
        coordinator.read_summary(key)


def test_a_deleted_group_has_no_state() -> None:
    group = Group.start("one")
    group.fetch("one")
    key = SharePartitionKey("g", group.topic_id, 0)
    coordinator = find_share_service(group.cluster.cluster, key).coordinator
    assert coordinator.read_summary(key) is not None
    group.cluster.call(heartbeat("g", "one", -1), 1)
    assert group.cluster.call(DeleteGroupsRequest(groups_names=("g",)), 2).results[0].error_code == 0
    assert coordinator.read_summary(key) is None


def test_old_records_of_the_state_are_deleted() -> None:
    """A snapshot follows every few updates, and records before all snapshots are deleted."""
    settings = {"share.coordinator.snapshot.update.records.per.snapshot": "3"}
    group = Group.start("one", settings={"configs": settings})
    group.fetch("one")
    key = SharePartitionKey("g", group.topic_id, 0)
    cluster = group.cluster.cluster
    place = find_share_service(cluster, key).coordinator.partition_for(key)
    log = find_log(cluster, "__share_group_state", place)
    assert log is not None
    for number in range(10):
        group.produce(b"x")
        group.fetch("one")
        assert group.say("one", (number, number, [ACCEPT])) is ErrorCode.NONE
    kinds = [type(each.value).__name__ for each in iter_records(log) if isinstance(each, TopicRecord)]
    assert kinds[:5] == ["ShareSnapshotValue", *["ShareUpdateValue"] * 3, "ShareSnapshotValue"]
    assert log.log_start_offset == 0
    group.cluster.advance(300_000)
    assert log.log_start_offset > 0
    cluster.kill_broker(0)
    cluster.start_broker(0)
    state = find_share_service(cluster, key).coordinator.read_summary(key)
    assert state is not None
    assert state.start_offset + state.delivery_complete_count == 10
