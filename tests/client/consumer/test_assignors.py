"""Assignment of partitions to the members of a classic group, and its encoded bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.client import TopicPartition
from kafka_msgs.client.consumer.assignors import ASSIGNORS, assign_round_robin
from kafka_msgs.client.consumer.consumer_protocol import (
    Assigned,
    AssignorMember,
    UserData,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_subscription,
    encode_user_data,
)
from kafka_msgs.client.consumer.range_assignor import assign_range
from kafka_msgs.client.consumer.sticky_assignor import assign_cooperatively, assign_sticky


def member(name: str, *topics: str, owned: Sequence[tuple[str, int]] = (), generation: int = -1) -> AssignorMember:
    """Return a member."""
    return AssignorMember(name, frozenset(topics), tuple(TopicPartition(*each) for each in owned), generation)


def numbers(assigned: Assigned) -> dict[str, str]:
    """Return an assignment in short form: ``t0 t1``."""
    return {name: " ".join(f"{topic}{number}" for topic, number in found) for name, found in assigned.items()}


def test_range_gives_runs_and_the_first_members_one_more() -> None:
    members = [member("c", "t", "u"), member("a", "t", "u"), member("b", "t")]
    assert numbers(assign_range({"t": 7, "u": 3}, members)) == {"a": "t0 t1 t2 u0 u1", "b": "t3 t4", "c": "t5 t6 u2"}


def test_round_robin_deals_in_turn_and_passes_over_members_without_the_topic() -> None:
    members = [member("b", "t"), member("a", "t", "u"), member("c", "u")]
    assert numbers(assign_round_robin({"t": 3, "u": 3}, members)) == {"a": "t0 t2 u1", "b": "t1", "c": "u0 u2"}


def test_static_members_come_first_by_their_instance_ids() -> None:
    members = [
        AssignorMember("a", frozenset("t")),
        AssignorMember("z", frozenset("t"), instance_id="1"),
        AssignorMember("y", frozenset("t"), instance_id="2"),
    ]
    assert numbers(assign_range({"t": 3}, members)) == {"z": "t0", "y": "t1", "a": "t2"}


RACKS = {TopicPartition("t", number): frozenset({"ab"[number % 2]}) for number in range(6)}
IN_RACKS = [AssignorMember("m1", frozenset("t"), rack="a"), AssignorMember("m2", frozenset("t"), rack="b")]


def test_members_get_what_has_a_replica_in_their_rack() -> None:
    for assign in (assign_range, assign_sticky):
        assert numbers(assign({"t": 6}, IN_RACKS, RACKS)) == {"m1": "t0 t2 t4", "m2": "t1 t3 t5"}
    everywhere = {name: frozenset("ab") for name in RACKS}
    assert numbers(assign_range({"t": 6}, IN_RACKS, everywhere)) == {"m1": "t0 t1 t2", "m2": "t3 t4 t5"}


def test_an_eager_member_says_in_its_user_data_what_it_had() -> None:
    had = [TopicPartition("t", 1), TopicPartition("u", 0)]
    data = encode_user_data(UserData.PARTITIONS, had, 7)
    assert data == bytes.fromhex("00000002 000174 00000001 00000001 000175 00000001 00000000 00000007")
    assert encode_user_data(UserData.PARTITIONS, had, -1) is None
    subscription = encode_subscription({"t"}, user_data=data)
    found = decode_member("m", None, subscription, UserData.PARTITIONS)
    assert (found.owned, found.generation) == (tuple(had), 7)
    older = decode_member("m", None, encode_subscription({"t"}, user_data=data[:-4]), UserData.PARTITIONS)
    assert (older.owned, older.generation) == (tuple(had), -1)
    for nothing in (None, b"", b"\0\0\0\x05"):
        found = decode_member("m", None, encode_subscription({"t"}, user_data=nothing), UserData.PARTITIONS)
        assert (found.owned, found.generation) == ((), -1)


def test_topics_that_do_not_exist_give_nothing() -> None:
    for assignor in ASSIGNORS.values():
        assert assignor.assign({}, [member("a", "gone")], {}) == {"a": []}
        assert assignor.assign({"t": 1}, [], {}) == {}


def test_sticky_keeps_what_members_own_and_moves_as_little_as_possible() -> None:
    owned = [("t", number) for number in range(6)]
    members = [member("a", "t", owned=owned, generation=3), member("b", "t")]
    assigned = assign_sticky({"t": 6}, members)
    assert numbers(assigned) == {"a": "t0 t1 t2", "b": "t3 t4 t5"}
    assert numbers(assign_cooperatively({"t": 6}, members)) == {"a": "t0 t1 t2", "b": ""}


def test_an_older_generation_does_not_count_against_a_newer_one_and_equal_claims_count_for_nobody() -> None:
    old, new = (
        member("a", "t", owned=[("t", 0), ("t", 1)], generation=1),
        member("b", "t", owned=[("t", 0)], generation=2),
    )
    assert numbers(assign_sticky({"t": 2}, [old, new])) == {"a": "t1", "b": "t0"}
    twice = [member(name, "t", owned=[("t", 1)], generation=2) for name in "ab"]
    assert sorted(numbers(assign_sticky({"t": 2}, twice)).items()) == [("a", "t0"), ("b", "t1")]


TOPICS = ("t", "u", "v")


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, int], list[AssignorMember]]:
    """Draw partition counts, and members with possible assignments from an earlier rebalance."""
    counts = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), max_size=3))
    everything = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
    same = draw(st.booleans())
    topics = draw(st.frozensets(st.sampled_from(TOPICS), min_size=1))
    found = []
    for name in draw(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)):
        wanted = topics if same else draw(st.frozensets(st.sampled_from(TOPICS), min_size=1))
        owned = draw(st.lists(st.sampled_from(everything), unique=True)) if everything else []
        found.append(AssignorMember(name, wanted, tuple(owned), draw(st.integers(-1, 3))))
    return counts, found


def check_complete(counts: Mapping[str, int], members: Sequence[AssignorMember], assigned: Assigned) -> None:
    """Check that each subscribed partition is assigned to exactly one member, a subscriber of its topic."""
    wanted = frozenset[str]().union(*(each.topics for each in members))
    given_out = Counter(each for found in assigned.values() for each in found)
    everything = {TopicPartition(topic, number) for topic in wanted & counts.keys() for number in range(counts[topic])}
    assert given_out == Counter(everything)
    assert all(each.topic in m.topics for m in members for each in assigned[m.member_id])


@given(groups())
def test_every_assignor_gives_each_partition_to_one_member_that_wants_it(
    case: tuple[dict[str, int], list[AssignorMember]],
) -> None:
    for assign in (assign_range, assign_round_robin, assign_sticky):
        check_complete(*case, assign(*case))


@given(groups())
def test_sticky_is_balanced(case: tuple[dict[str, int], list[AssignorMember]]) -> None:
    counts, members = case
    assigned = assign_sticky(counts, members)
    for one, other in product(members, members):
        mine, theirs = assigned[one.member_id], assigned[other.member_id]
        if len(mine) >= len(theirs) + 2:
            assert not [each for each in mine if each.topic in other.topics], "a partition could have moved"


@given(groups())
def test_cooperation_gives_nobody_what_another_member_still_owns(
    case: tuple[dict[str, int], list[AssignorMember]],
) -> None:
    counts, members = case
    assigned = assign_cooperatively(counts, members)
    for one, other in product(members, members):
        if one is not other:
            fresh = set(assigned[one.member_id]) - set(one.owned)
            assert not fresh & set(other.owned)


@given(groups())
def test_a_second_rebalance_of_an_unchanged_group_moves_nothing(
    case: tuple[dict[str, int], list[AssignorMember]],
) -> None:
    counts, members = case
    first = assign_sticky(counts, members)
    again = [AssignorMember(m.member_id, m.topics, tuple(first[m.member_id]), 9) for m in members]
    second = assign_cooperatively(counts, again)
    assert {name: set(found) for name, found in second.items()} == {name: set(found) for name, found in first.items()}


def test_subscriptions_are_those_of_kafka_to_the_byte() -> None:
    owned = [TopicPartition("u", 1), TopicPartition("t", 5), TopicPartition("t", 2)]
    data = encode_subscription({"u", "t"}, owned, generation=7, rack="r", user_data=b"\0\0\0\7")
    assert data == bytes.fromhex(
        "0003" "00000002" "000174" "000175" "00000004" "00000007"
        "00000002" "000174" "00000002" "00000002" "00000005" "000175" "00000001" "00000001"
        "00000007" "000172"
    )  # fmt: skip
    found = decode_member("m", "i", data)
    assert found == AssignorMember("m", frozenset("tu"), tuple(sorted(owned)), 7, "i", "r")


def test_the_generation_of_an_older_client_is_in_its_user_data() -> None:
    data = bytes.fromhex("0001000000010001740000000400000009000000010001740000000100000000")
    assert decode_member("m", None, data).generation == 9


def test_assignments_are_those_of_kafka_to_the_byte() -> None:
    partitions = [TopicPartition("u", 1), TopicPartition("t", 2), TopicPartition("u", 0)]
    data = encode_assignment(partitions)
    assert data == bytes.fromhex(
        "0003" "00000002" "000175" "00000002" "00000001" "00000000" "000174" "00000001" "00000002" "ffffffff"
    )  # fmt: skip
    assert sorted(decode_assignment(data)) == sorted(partitions)
    assert decode_assignment(b"") == []


@pytest.mark.parametrize("count", [1_000, 4_000])
def test_sticky_takes_linear_work(count: int) -> None:
    """A new member takes 50 % of the partitions; visits per partition do not grow with the partition count."""
    looked = 0

    class Counted(dict[str, int]):
        def get(self, key: str, default: int | None = None) -> int:  # type: ignore[override]
            nonlocal looked
            looked += 1
            return super().get(key, default or 0)

    owned = [("t", number) for number in range(count)]
    assigned = assign_sticky(Counted({"t": count}), [member("a", "t", owned=owned, generation=1), member("b", "t")])
    assert {len(found) for found in assigned.values()} == {count // 2}
    assert looked <= 2 * count
