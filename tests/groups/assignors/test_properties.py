"""Invariants of every assignment: no duplicates, no omissions, balanced load, few moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.errors import AssignorError
from kafka_msgs.groups.assignors import CONSUMER_ASSIGNORS, TASK_ASSIGNORS
from kafka_msgs.groups.assignors.simple import assign_simple
from kafka_msgs.groups.assignors.spec import (
    AssignmentMemberSpec,
    GroupSpec,
    MemberSpec,
    StreamsSpec,
    SubtopologySpec,
    TaskAssignment,
    TopicSubscription,
)
from kafka_msgs.groups.assignors.sticky import assign_sticky
from kafka_msgs.groups.assignors.uniform import assign_uniform

TOPIC = UUID(int=1)
COUNTS = st.lists(st.integers(0, 20), min_size=1, max_size=5)
MEMBERS = st.integers(1, 12)


def _group(counts: Sequence[int], members: int) -> GroupSpec:
    topics = [UUID(int=number) for number in range(1, len(counts) + 1)]
    subscription = TopicSubscription(tuple(topics))
    return GroupSpec(
        members={f"m{number}": MemberSpec(subscription=subscription) for number in range(members)},
        partitions=dict(zip(topics, counts, strict=True)),
        homogeneous=True,
    )


def _streams(counts: Sequence[int], members: int, standbys: int) -> StreamsSpec:
    return StreamsSpec(
        members={f"m{number}": AssignmentMemberSpec(process_id=f"p{number // 2}") for number in range(members)},
        subtopologies=[SubtopologySpec(str(number), count, stateful=True) for number, count in enumerate(counts)],
        standby_replicas=standbys,
    )


def _pairs(assigned: Mapping[str, Mapping[str, Sequence[int]]]) -> Counter[tuple[str, int]]:
    return Counter((key, number) for each in assigned.values() for key in each for number in each[key])


@pytest.mark.parametrize("name", CONSUMER_ASSIGNORS)
@given(counts=COUNTS, members=MEMBERS)
def test_each_partition_has_one_owner(name: str, counts: list[int], members: int) -> None:
    spec = _group(counts, members)

    assigned = CONSUMER_ASSIGNORS[name](spec)

    owned = Counter((topic, number) for each in assigned.values() for topic in each for number in each[topic])
    assert owned == {(topic, number): 1 for topic, count in spec.partitions.items() for number in range(count)}


@given(counts=COUNTS, members=MEMBERS)
def test_uniform_gives_members_the_same_number_but_for_one(counts: list[int], members: int) -> None:
    sizes = [sum(map(len, each.values())) for each in assign_uniform(_group(counts, members)).values()]

    assert max(sizes) - min(sizes) <= 1


@given(counts=COUNTS, members=st.integers(2, 12))
def test_uniform_moves_only_what_a_member_that_left_had(counts: list[int], members: int) -> None:
    spec = _group(counts, members)
    before = assign_uniform(spec)
    left = {key: evolve(each, assigned=before[key]) for key, each in list(spec.members.items())[1:]}

    after = assign_uniform(evolve(spec, members=left))

    for member, assigned in after.items():
        for topic, numbers in before[member].items():
            assert set(numbers) <= set(assigned[topic])


def test_a_group_without_a_change_gets_the_same_objects() -> None:
    spec = _group([7, 5], 3)
    before = assign_uniform(spec)
    kept = {key: evolve(each, assigned=before[key]) for key, each in spec.members.items()}

    after = assign_uniform(evolve(spec, members=kept))

    assert all(after[member] is before[member] for member in before)


@given(count=st.integers(1, 10), members=MEMBERS)
def test_simple_gives_each_partition_the_same_number_of_members_but_for_one(count: int, members: int) -> None:
    assigned = assign_simple(_group([count], members))

    holders = Counter(number for each in assigned.values() for numbers in each.values() for number in numbers)
    assert len(holders) == count
    assert max(holders.values()) - min(holders.values()) <= 1


@pytest.mark.parametrize("name", TASK_ASSIGNORS)
@given(counts=COUNTS, members=MEMBERS)
def test_each_task_is_active_once(name: str, counts: list[int], members: int) -> None:
    assigned = TASK_ASSIGNORS[name](_streams(counts, members, 0))

    active = _pairs({member: each.active for member, each in assigned.items()})
    assert active == {(str(place), number): 1 for place, count in enumerate(counts) for number in range(count)}


@given(counts=COUNTS, members=MEMBERS, standbys=st.integers(1, 3))
def test_no_process_has_a_task_twice(counts: list[int], members: int, standbys: int) -> None:
    spec = _streams(counts, members, standbys)

    assigned = assign_sticky(spec)

    for process in {each.process_id for each in spec.members.values()}:
        held = Counter[tuple[str, int]]()
        for member, each in spec.members.items():
            if each.process_id == process:
                held += _pairs({"active": assigned[member].active, "standby": assigned[member].standby})
        assert set(held.values()) <= {1}


@given(counts=COUNTS, members=MEMBERS, standbys=st.integers(0, 2))
def test_sticky_leaves_a_settled_group_as_it_is(counts: list[int], members: int, standbys: int) -> None:
    spec = _streams(counts, members, standbys)
    before = assign_sticky(spec)

    after = assign_sticky(evolve(spec, members=_owning(spec, before)))

    assert {member: each.active for member, each in after.items()} == {
        member: each.active for member, each in before.items()
    }


def _owning(spec: StreamsSpec, assigned: Mapping[str, TaskAssignment]) -> dict[str, AssignmentMemberSpec]:
    return {
        member: evolve(each, active=assigned[member].active, standby=assigned[member].standby)
        for member, each in spec.members.items()
    }


@pytest.mark.parametrize("name", TASK_ASSIGNORS)
def test_tasks_without_members_are_an_error(name: str) -> None:
    with pytest.raises(AssignorError, match=r"No (process|member) available to assign"):
        TASK_ASSIGNORS[name](_streams([1], 0, 0))


@pytest.mark.parametrize("name", CONSUMER_ASSIGNORS)
def test_a_topic_that_does_not_exist_is_an_error(name: str) -> None:
    spec = evolve(_group([1], 1), partitions={})

    with pytest.raises(AssignorError, match="does not exist"):
        CONSUMER_ASSIGNORS[name](spec)
