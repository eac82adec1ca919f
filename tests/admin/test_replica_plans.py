"""Plans of replicas: even, across racks, and with the replication factors of today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from kafka_msgs.admin.replica_plans import plan_replicas
from kafka_msgs.client import TopicPartition


def _current(partitions: int, factor: int) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", number): tuple(range(factor)) for number in range(partitions)}


@pytest.mark.parametrize("brokers", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("partitions", [1, 6, 40])
def test_leaders_and_replicas_are_spread_evenly(brokers: int, partitions: int) -> None:
    for factor in range(1, brokers + 1):
        plan = plan_replicas(_current(partitions, factor), dict.fromkeys(range(brokers)))
        assert {len(set(replicas)) for replicas in plan.values()} == {factor}
        for counted in (
            Counter(replicas[0] for replicas in plan.values()),
            Counter(broker for replicas in plan.values() for broker in replicas),
        ):
            counts = [counted[broker] for broker in range(brokers)]
            assert max(counts) - min(counts) <= (1 if counted.total() == partitions else factor)


@pytest.mark.parametrize("racks", [{0: "a", 1: "a", 2: "b", 3: "b"}, {0: "a", 1: "b", 2: "b", 3: "b", 4: "c"}])
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_replicas_are_in_as_many_racks_as_possible(racks: Mapping[int, str], factor: int) -> None:
    plan = plan_replicas(_current(24, factor), racks)
    possible = min(factor, len(set(racks.values())))
    assert {len({racks[broker] for broker in replicas}) for replicas in plan.values()} == {possible}
    assert {len(set(replicas)) for replicas in plan.values()} == {factor}


def test_followers_of_a_leader_differ() -> None:
    plan = plan_replicas(_current(12, 2), dict.fromkeys(range(4)))
    assert {replicas for replicas in plan.values() if replicas[0] == 0} == {(0, 1), (0, 2), (0, 3)}


def test_a_partition_keeps_its_number_of_replicas() -> None:
    current = {TopicPartition("a", 0): (1,), TopicPartition("b", 0): (1, 2, 3), TopicPartition("c", 0): ()}
    assert [len(replicas) for replicas in plan_replicas(current, dict.fromkeys((4, 5, 6))).values()] == [1, 3, 0]
    with pytest.raises(ValueError, match="3 replicas, and there are 2 brokers"):
        plan_replicas(current, dict.fromkeys((4, 5)))
