"""The hash of keys: Kafka's own class, C and Python return the same number."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs._backend import backend_module
from tests.oracle import Oracle

KEYS = st.lists(st.binary(max_size=80), min_size=1, max_size=50)


@pytest.mark.oracle
@settings(max_examples=40, deadline=None)
@given(KEYS)
def test_a_key_has_the_hash_that_kafka_gives_it(oracle: Oracle, implementation: Any, keys: list[bytes]) -> None:
    theirs = [int.from_bytes(answer, "big") for answer in oracle.hash_many(keys) if isinstance(answer, bytes)]
    assert [implementation.murmur2(key) for key in keys] == theirs


@given(KEYS)
def test_a_view_of_a_key_has_the_hash_of_its_bytes(keys: list[bytes]) -> None:
    murmur2 = backend_module("kafka_msgs.records").murmur2
    for key in keys:
        assert murmur2(memoryview(b"#" + key)[1:]) == murmur2(key)


def test_what_is_not_bytes_has_no_hash(implementation: Any) -> None:
    for key in (None, 7):
        with pytest.raises(TypeError):
            implementation.murmur2(key)
