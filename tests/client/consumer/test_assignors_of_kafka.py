"""Our assignors against Kafka's own classes, on the same random groups; and the bytes of their protocol."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest
from attrs import frozen

from kafka_msgs.client import TopicPartition
from kafka_msgs.client.consumer.assignors import ASSIGNORS
from kafka_msgs.client.consumer.protocol import GroupMember, assignment_bytes, subscription_bytes
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
    members: list[GroupMember]

    def line(self) -> str:
        """The group as the Java program reads it."""
        counts = ",".join(f"{topic}={count}" for topic, count in self.counts.items())
        members = (
            "|".join(
                [
                    each.member_id, each.instance_id or "", ",".join(sorted(each.topics)),
                    ",".join(f"{topic}:{number}" for topic, number in each.owned), str(each.generation),
                ]
            )
            for each in self.members
        )  # fmt: skip
        return "\t".join([self.assignor, counts, *members])

    def ours(self) -> dict[str, set[TopicPartition]]:
        """What our assignor gives."""
        found = ASSIGNORS[self.assignor].assign(self.counts, self.members)
        return {name: set(partitions) for name, partitions in found.items()}


@frozen
class Answer:
    """What Kafka gave to each member, in order, and its bytes."""

    partitions: dict[str, list[TopicPartition]]
    subscriptions: dict[str, bytes]
    assignments: dict[str, bytes]

    @classmethod
    def parse(cls, line: str) -> Answer:
        """Read a line of the program's output."""
        found = cls({}, {}, {})
        for member in line.split("\t"):
            name, partitions, subscription, assignment = member.split("|")
            places = (each.rpartition(":") for each in partitions.split(",") if each)
            found.partitions[name] = [TopicPartition(topic, int(number)) for topic, _, number in places]
            found.subscriptions[name] = bytes.fromhex(subscription)
            found.assignments[name] = bytes.fromhex(assignment)
        return found

    def given(self) -> dict[str, set[TopicPartition]]:
        """What each member got."""
        return {name: set(partitions) for name, partitions in self.partitions.items()}


def ask_kafka(cases: Iterable[Case]) -> list[Answer]:
    """Let Kafka's assignors divide."""
    command = java_command(str(PROGRAM), [], heap_mb=256, jars=Jars.TOOLS, options=("-Dfile.encoding=UTF-8",))
    lines = "".join(case.line() + "\n" for case in cases)
    done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return [Answer.parse(line) for line in done.stdout.decode().splitlines()]


def fresh(random: Random, *, same_topics: bool) -> tuple[dict[str, int], list[GroupMember]]:
    """Return a group whose members own nothing yet; some are static."""
    counts = {topic: random.randint(1, 12) for topic in TOPICS if random.random() < 0.8}
    together = frozenset(random.sample(TOPICS, random.randint(1, 4)))
    members = []
    for number in random.sample(range(100), random.randint(1, 9)):
        topics = together if same_topics else frozenset(random.sample(TOPICS, random.randint(1, 4)))
        static = f"i{random.randint(0, 9)}-{number}" if random.random() < 0.3 else None
        members.append(GroupMember(f"m{number}", topics, instance_id=static))
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


def changed(case: Case, owned: dict[str, set[TopicPartition]], random: Random) -> Case:
    """Return the group of a case after a member came, or one left."""
    members = [
        GroupMember(each.member_id, each.topics, tuple(sorted(owned[each.member_id])), 5, each.instance_id)
        for each in case.members
    ]
    if random.random() < 0.5 or len(members) == 1:
        members.append(GroupMember("new", members[0].topics))
    else:
        members.remove(random.choice(members))
    return Case(case.assignor, case.counts, members)


def test_sticky_moves_no_more_and_balances_as_well_after_a_change(random: Random) -> None:
    """Which of several equal members keeps one more depends in Kafka on the order of a hash table."""
    cases = [Case("cooperative-sticky", *fresh(random, same_topics=True)) for _ in range(GROUPS)]
    cases = [changed(case, answer.given(), random) for case, answer in zip(cases, ask_kafka(cases), strict=True)]
    same = 0
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        ours, theirs = case.ours(), answer.given()
        same += ours == theirs
        assert sorted(map(len, ours.values())) == sorted(map(len, theirs.values())), case
        kept = [sum(len(given[m.member_id] & set(m.owned)) for m in case.members) for given in (ours, theirs)]
        assert kept[0] >= kept[1], case
    assert same > GROUPS // 2


def test_sticky_is_as_even_as_kafkas_where_members_want_different_topics(random: Random) -> None:
    cases = [Case("cooperative-sticky", *fresh(random, same_topics=False)) for _ in range(GROUPS)]
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        loads = [sum(len(found) ** 2 for found in given.values()) for given in (case.ours(), answer.given())]
        assert loads[0] <= loads[1], case


def test_the_bytes_of_subscriptions_and_assignments_are_the_same(random: Random) -> None:
    cases = [Case("range", *fresh(random, same_topics=False)) for _ in range(100)]
    cases = [changed(case, case.ours(), random) for case in cases]
    compared = list[bool](_same_bytes(cases))
    assert len(compared) > 100


def _same_bytes(cases: list[Case]) -> Iterator[bool]:
    for case, answer in zip(cases, ask_kafka(cases), strict=True):
        for each in case.members:
            made = subscription_bytes(each.topics, each.owned, generation=each.generation)
            assert made == answer.subscriptions[each.member_id]
            assert assignment_bytes(answer.partitions[each.member_id]) == answer.assignments[each.member_id]
            yield True
