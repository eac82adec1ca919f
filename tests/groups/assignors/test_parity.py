"""Assignors return the same assignments as Kafka's own, in Kafka's record order.

These tests run a part of the inputs of ``python -m tests.groups.assignors``.
"""

from __future__ import annotations

from random import Random

import pytest

from kafka_msgs.groups.assignors.java_hash_order import hash_map_order, sized_capacity
from tests.coordinator.oracle import AssignorOracle
from tests.groups.assignors.inputs import ASSIGNORS, compare

INPUTS = 300


@pytest.mark.parametrize("name", ASSIGNORS)
def test_random_groups_are_assigned_as_by_kafka(kafka_assignors: AssignorOracle, name: str) -> None:
    different = compare(name, Random(name), INPUTS, lambda command: kafka_assignors.assign([command])[0])

    assert different == []


def test_keys_have_the_order_of_a_hash_map(kafka_assignors: AssignorOracle) -> None:
    random = Random("hash map")
    questions = [(_keys(random), random.choice([0, 1, 3, 16, 40, 1000])) for _ in range(INPUTS)]

    answers = kafka_assignors.assign({"hashMap": keys, "capacity": size} for keys, size in questions)

    for (keys, size), answer in zip(questions, answers, strict=True):
        assert hash_map_order(keys, capacity=sized_capacity(size)) == answer["order"]


def _keys(random: Random) -> list[str]:
    """Return distinct strings, often with equal hash codes."""
    count = random.choice([1, 5, 12, 13, 50, 300])
    if random.random() < 0.5:
        return list(dict.fromkeys(f"{random.getrandbits(32):08x}-m{random.randint(0, 999)}" for _ in range(count)))
    # "Aa" and "BB" have the same hash code, and so do strings with the same number of such pairs.
    heads = [f"{random.getrandbits(16):04x}" for _ in range(count)]
    return list(dict.fromkeys(head + "".join(random.choices(["Aa", "BB"], k=3)) for head in heads))
