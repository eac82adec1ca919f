"""Compare our assignors and their protocol bytes with Kafka's own classes, on the same random groups."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest
from attrs import evolve, field, frozen

from kafka_msgs.client import TopicPartition
from kafka_msgs.client.consumer.assignors import ASSIGNORS
from kafka_msgs.client.consumer.consumer_protocol import (
    AssignorMember,
    UserData,
    decode_member,
    encode_assignment,
    encode_subscription,
    encode_user_data,
)
from tests.recorders.broker import Jars, java_command

pytestmark = pytest.mark.oracle

PROGRAM: Final = Path(__file__).with_name("Assignors.java")
GROUPS: Final = 400
TOPICS: Final = ("orders", "payments", "ünïcode", "t")
SECONDS: Final = 300


@frozen
class Case:
    """A group that rebalances."""

    assignor: str
    counts: dict[str, int]
    members: list[AssignorMember]
    racks: dict[TopicPartition, frozenset[str]] = field(factory=dict)

    def line(self) -> str:
        """Return the group in the input format of the Java program."""
        counts = ",".join(
            f"{topic}=" + ";".join("+".join(sorted(self.racks.get(TopicPartition(topic, n), ()))) for n in range(count))
            for topic, count in self.counts.items()
        )
        members = (
            "|".join(
                [
                    each.member_id, each.instance_id or "", ",".join(sorted(each.topics)),
                    ",".join(f"{topic}:{number}" for topic, number in each.owned), str(each.generation),
                    each.rack or "",
                ]
            )
            for each in self.members
        )  # fmt: skip
        return "\t".join([self.assignor, counts, *members])

    def ours(self) -> dict[str, set[TopicPartition]]:
        """Return the assignment of our assignor."""
        found = ASSIGNORS[self.assignor].assign(self.counts, self.members, self.racks)
        return {name: set(partitions) for name, partitions in found.items()}


@frozen
class Answer:
    """Kafka's assignment: the partitions of each member, in order, and the encoded bytes."""

    partitions: dict[str, list[TopicPartition]]
    subscriptions: dict[str, bytes]
    assignments: dict[str, bytes]

    @classmethod
    def parse(cls, line: str) -> Answer:
        """Parse one output line of the Java program."""
        found = cls({}, {}, {})
        for member in line.split("\t"):
            name, partitions, subscription, assignment = member.split("|")
            places = (each.rpartition(":") for each in partitions.split(",") if each)
            found.partitions[name] = [TopicPartition(topic, int(number)) for topic, _, number in places]
            found.subscriptions[name] = bytes.fromhex(subscription)
            found.assignments[name] = bytes.fromhex(assignment)
        return found

    def given(self) -> dict[str, set[TopicPartition]]:
        """Return the partitions of each member."""
        return {name: set(partitions) for name, partitions in self.partitions.items()}


def ask_kafka(cases: Iterable[Case]) -> list[Answer]:
    """Run Kafka's assignors on all cases."""
    command = java_command(str(PROGRAM), [], heap_mb=256, jars=Jars.TOOLS, options=("-Dfile.encoding=UTF-8",))
    lines = "".join(case.line() + "\n" for case in cases)
    done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return [Answer.parse(line) for line in done.stdout.decode().splitlines()]


def fresh(random: Random, *, same_topics: bool) -> tuple[dict[str, int], list[AssignorMember]]:
    """Return a group whose members own nothing yet; some are static."""
    counts = {topic: random.randint(1, 12) for topic in TOPICS if random.random() < 0.8}
    together = frozenset(random.sample(TOPICS, random.randint(1, 4)))
    members = []
    for number in random.sample(range(100), random.randint(1, 9)):
        topics = together if same_topics else frozenset(random.sample(TOPICS, random.randint(1, 4)))
        static = f"i{random.randint(0, 9)}-{number}" if random.random() < 0.3 else None
        members.append(AssignorMember(f"m{number}", topics, instance_id=static))
    return counts, members


@pytest.fixture(scope="module")
def random() -> Random:
    """A source of random groups, the same in each run."""
    return Random(20)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_range_and_round_robin_give_the_same(assignor: str, random: Random) -> None:
    cases = [Case(assignor, *fresh(random, same_topics=number % 2 == 0)) for number in range(GROUPS)]
    answers = ask_kafka(cases)
    assert len(answers) == GROUPS
    for case, answer in zip(cases, answers, strict=True):
        assert case.ours() == answer.given(), case


def test_sticky_gives_the_same_to_members_that_own_nothing(random: Random) -> None:
    cases = [Case("cooperative-sticky", *fresh(random, same_topics=True)) for _ in range(GROUPS)]
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        assert case.ours() == answer.given(), case


RACKS: Final = ("r1", "r2", "r3")


def in_racks(case: Case, random: Random) -> Case:
    """Return a case whose members and replicas are in racks; some have none."""
    members = [evolve(each, rack=random.choice((*RACKS, None))) for each in case.members]
    partitions = [TopicPartition(topic, number) for topic, count in case.counts.items() for number in range(count)]
    racks = {each: frozenset(random.sample(RACKS, random.choice((0, 1, 1, 2, 3)))) for each in partitions}
    if random.random() < 0.3:
        same = {number: frozenset(random.sample(RACKS, 2)) for number in range(12)}
        racks = {each: same[each.partition] for each in partitions}
    return evolve(case, members=members, racks=racks)


def test_range_gives_the_same_where_members_have_racks(random: Random) -> None:
    """Some cases contain topics with equal partitions, which the assignor divides together."""
    cases = []
    for number in range(GROUPS):
        counts, members = fresh(random, same_topics=number % 2 == 0)
        if number % 4 == 0:
            counts = dict.fromkeys(counts, 6)
        cases.append(in_racks(Case("range", counts, members), random))
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        assert case.ours() == answer.given(), case


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_gives_the_same_where_members_have_racks(assignor: str, random: Random) -> None:
    cases = [in_racks(Case(assignor, *fresh(random, same_topics=True)), random) for _ in range(GROUPS)]
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        assert case.ours() == answer.given(), case
    assert sum(case.ours() != evolve(case, racks={}).ours() for case in cases) > GROUPS // 4, "racks change little"


def changed(case: Case, owned: dict[str, set[TopicPartition]], random: Random) -> Case:
    """Return the group of a case after one member joined or left."""
    members = [
        AssignorMember(each.member_id, each.topics, tuple(sorted(owned[each.member_id])), 5, each.instance_id)
        for each in case.members
    ]
    if random.random() < 0.5 or len(members) == 1:
        members.append(AssignorMember("new", members[0].topics))
    else:
        members.remove(random.choice(members))
    return evolve(case, members=members)


@pytest.mark.parametrize("racks", [False, True])
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_moves_no_more_and_balances_as_well_after_a_change(assignor: str, racks: bool, random: Random) -> None:
    """In Kafka, hash table order decides which of several equal members keeps the extra partition."""
    cases = [Case(assignor, *fresh(random, same_topics=True)) for _ in range(GROUPS)]
    cases = [in_racks(case, random) if racks else case for case in cases]
    cases = [changed(case, answer.given(), random) for case, answer in zip(cases, ask_kafka(cases), strict=True)]
    same = 0
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        ours, theirs = case.ours(), answer.given()
        same += ours == theirs
        assert sorted(map(len, ours.values())) == sorted(map(len, theirs.values())), case
        kept = [sum(len(given[m.member_id] & set(m.owned)) for m in case.members) for given in (ours, theirs)]
        assert kept[0] >= kept[1] - racks, case
    assert same > GROUPS // 2


def squares(given: dict[str, set[TopicPartition]]) -> int:
    """Return the imbalance of an assignment: the sum of the squared loads."""
    return sum(len(found) ** 2 for found in given.values())


def test_sticky_is_as_even_as_kafkas_where_members_want_different_topics(random: Random) -> None:
    cases = [Case("cooperative-sticky", *fresh(random, same_topics=False)) for _ in range(GROUPS)]
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        assert squares(case.ours()) <= squares(answer.given()), case


def test_sticky_finds_as_many_near_partitions_where_members_want_different_topics(random: Random) -> None:
    """Both assignors use heuristics, so the test compares them over all groups."""
    cases = [in_racks(Case("cooperative-sticky", *fresh(random, same_topics=False)), random) for _ in range(GROUPS)]
    uneven, near = [0, 0], [0, 0]
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        racks = {each.member_id: each.rack for each in case.members}
        for place, given in enumerate((case.ours(), answer.given())):
            uneven[place] += squares(given)
            near[place] += sum(racks[name] in case.racks[each] for name, found in given.items() for each in found)
    assert uneven[0] <= uneven[1] * 1.001
    assert near[0] >= near[1]


def test_the_bytes_of_subscriptions_and_assignments_are_the_same(random: Random) -> None:
    cases = [Case(name, *fresh(random, same_topics=False)) for name in ("range", "sticky") for _ in range(100)]
    cases = [in_racks(changed(case, case.ours(), random), random) for case in cases]
    compared = list[bool](_same_bytes(cases))
    assert len(compared) > 200


def _same_bytes(cases: list[Case]) -> Iterator[bool]:
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        for each in case.members:
            theirs = answer.subscriptions[each.member_id]
            if case.assignor == "sticky":
                data = encode_user_data(UserData.PARTITIONS, each.owned, each.generation)
                made = encode_subscription(each.topics, generation=each.generation, rack=each.rack, user_data=data)
                assert len(made) == len(theirs), "the order of topics is that of a hash table"
                found = decode_member(each.member_id, each.instance_id, theirs, UserData.PARTITIONS)
                assert evolve(found, owned=tuple(sorted(found.owned))) == evolve(each, owned=tuple(sorted(each.owned)))
            else:
                made = encode_subscription(each.topics, each.owned, generation=each.generation, rack=each.rack)
            assert made == theirs or len({name.topic for name in each.owned}) > 1
            assert encode_assignment(answer.partitions[each.member_id]) == answer.assignments[each.member_id]
            yield True
