"""Metrics of a coordinator, which count only committed changes."""

from __future__ import annotations

from kafka_msgs import OffsetCommitRequest
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.compat.quirks import Quirks
from kafka_msgs.groups.metrics import (
    CLASSIC_REBALANCES,
    CONSUMER_REBALANCES,
    OFFSET_COMMITS,
    SHARE_REBALANCES,
    Metrics,
)
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.coordinator.player import Player
from tests.coordinator.transcripts import read
from tests.groups.classic.coordinator_fixture import Desk


def _counted(name: str) -> Metrics:
    player = Player(Quirks())
    for command in read(name)[0]:
        player.do(command)
    return player.coordinator.metrics


def test_a_rebalance_of_a_classic_group_counts_when_its_leader_sent_the_assignment() -> None:
    assert _counted("classic-two-members").counts[CLASSIC_REBALANCES] == 1


def test_each_epoch_of_a_heartbeat_counts_for_consumer_and_share_groups() -> None:
    assert _counted("consumer-states").counts[CONSUMER_REBALANCES] == 2
    assert _counted("share-topics").counts[SHARE_REBALANCES] == 7


def test_groups_are_counted_once_a_minute_by_kind_and_state() -> None:
    metrics = _counted("consumer-timeouts")
    assert (metrics.group_count("consumer"), metrics.group_count("consumer", "Assigning")) == (1, 0)


def test_a_commit_that_fails_does_not_count() -> None:
    desk = Desk()
    reached = OffsetCommitRequestPartition(partition_index=0, committed_offset=42)
    commit = OffsetCommitRequest(
        group_id="other", topics=(OffsetCommitRequestTopic(name="orders", partitions=(reached, reached)),)
    )
    desk.log.fail_next = GroupError(error=ErrorCode.NOT_ENOUGH_REPLICAS)
    desk.ask(commit, 8)
    assert desk.coordinator.metrics.counts[OFFSET_COMMITS] == 0

    desk.ask(commit, 8)
    assert desk.coordinator.metrics.counts[OFFSET_COMMITS] == 2
