"""Hostile bytes cause an error of this library, quickly, and without large allocations."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs import KafkaMsgsError, RecordError
from kafka_msgs.binary_layouts import RecordField
from kafka_msgs.records import ReadOptions, RecordBatch, python, read_batches
from kafka_msgs.records.record import RecordFaultError, explain
from tests.support.batches import by_hand, read_one
from tests.support.damaged_batches import mutated, outcome, samples
from tests.support.implementations import name_of


def read_everything(data: bytes, check_crc: bool) -> int:
    """Read all readable data, continuing after errors; return the number of records."""
    found = 0
    reader = read_batches(data, ReadOptions(check_crc=check_crc, max_decompressed_bytes=1 << 20))
    for _ in range(len(data) // 14 + 2):
        try:
            batch = next(reader)
            found += len(batch.records())
            if isinstance(batch, RecordBatch):
                batch.control_records()
        except StopIteration:
            return found
        except RecordError as error:
            assert 0 <= error.position <= len(data)  # noqa: PT017 - damage may go unnoticed
    raise AssertionError("the walk does not end")


@pytest.mark.parametrize("check_crc", [True, False])
def test_mutated_batches_end_in_errors_of_this_library(check_crc: bool) -> None:
    chance = random.Random(17)
    for sample in samples():
        for _ in range(300):
            read_everything(mutated(sample, chance) + sample, check_crc)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_end_in_errors_of_this_library(data: bytes) -> None:
    read_everything(data, check_crc=False)


def test_the_loops_and_their_explanation_agree(implementation: Any) -> None:
    """The slow reader finds a fault in all bytes that a loop rejects, and in none that it accepts."""
    chance = random.Random(23)
    whole = read_one(next(each for each in samples() if each[16] == 2))
    verdicts: Counter[str] = Counter()
    for _ in range(4000):
        body = mutated(bytes(whole.stored_bytes[61:]), chance) + bytes(chance.choice([0, 0, 12]))
        end = chance.choice([len(body), len(body), chance.randrange(len(body))])
        count = chance.choice([whole.count, whole.count, chance.randrange(8)])
        for part in RecordField:
            place = (part, body, 0, end, count, 0, 0, None, False)
            verdict, found = outcome(lambda: implementation.read(*place))  # noqa: B023
            slow = explain(body, 0, end, count)
            assert (verdict, found) == outcome(lambda: python.read(*place))  # noqa: B023
            assert (verdict == "fault") == isinstance(slow, RecordFaultError)
            if (
                name_of(implementation) == "native"
            ):  # which leaves only damaged data to Python: there are no wide numbers here
                assert (implementation.extension.read_records(*place) is None) == (verdict == "fault")
        verdicts[verdict] += 1
    assert min(verdicts.values()) > 50


HOSTILE = [
    by_hand("10 00 00 00 02 6b 02 76 00", count=2**31 - 1),
    by_hand("feffffff0f 00 00 00 02 6b 02 76 00"),
    by_hand("1a 00 00 00 feffffff0f 6b 02 76 00"),
    by_hand("1a 00 00 00 02 6b feffffff0f 76 00"),
    by_hand("18 00 00 00 02 6b 02 76 feffffff0f"),
    by_hand("20 00 00 00 02 6b 02 76 02 feffffff0f 00 00"),
    by_hand("28b52ffd e0 ffffffffffffff7f 010000", attributes=4),
    by_hand("04224d18 6c70 ffffffffffffff7f 00 ffffff7f 00", attributes=3),
    by_hand("ffffffff0f 00", attributes=2),
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_lengths_allocate_nothing(data: bytes) -> None:
    batch = read_one(data)
    tracemalloc.start()
    try:
        with pytest.raises(KafkaMsgsError):
            batch.records()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_a_long_run_of_tiny_damaged_batches_is_walked_in_one_pass() -> None:
    chance = random.Random(9)
    one = by_hand("10 00 00 00 02 6b 02 76 00")
    data = bytearray(one * 2000)
    for at in islice(iter(lambda: chance.randrange(len(data)), None), 500):
        data[at] = chance.randrange(256)
    assert 0 < read_everything(bytes(data), check_crc=True) < 2000
