"""Partition choice: the key hash of Kafka's producer, and a choice by waiting batches for records without keys."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.client.producer import partition_of_key
from kafka_msgs.client.producer.partitioner import next_sticky
from tests.oracle import Oracle


@pytest.mark.oracle
@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=50), st.integers(1, 1000))
def test_a_key_goes_where_kafkas_producer_sends_it(oracle: Oracle, keys: list[bytes], partitions: int) -> None:
    hashes = [int.from_bytes(answer, "big") for answer in oracle.hash_many(keys) if isinstance(answer, bytes)]
    assert [partition_of_key(key, partitions) for key in keys] == [(each & 0x7FFFFFFF) % partitions for each in hashes]


def test_partitions_without_waiting_batches_are_chosen_equally() -> None:
    random = Random(1)
    found = Counter(next_sticky([0, 0, 0, 0], random) for _ in range(4000))
    assert set(found) == {0, 1, 2, 3}
    assert all(900 < count < 1100 for count in found.values())


def test_the_more_batches_wait_the_less_a_partition_is_chosen() -> None:
    random = Random(1)
    found = Counter(next_sticky([0, 3, 1], random) for _ in range(8000))  # shares 4, 1, 3
    assert [round(found[place] / 1000) for place in range(3)] == [4, 1, 3]


def test_the_only_partition_is_chosen() -> None:
    assert next_sticky([5], Random(1)) == 0
    assert next_sticky([], Random(1)) == 0
