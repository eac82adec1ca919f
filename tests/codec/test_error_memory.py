"""A failed call keeps only its error alive. It keeps neither the values made before the error nor the stack frames."""

from __future__ import annotations

import tracemalloc

import pytest

from kafka_msgs import DescribeGroupsRequest
from kafka_msgs.errors import EncodeError, InvalidUtf8Error
from tests.support.codecs import Codecs

GROUPS = 20_000
SMALL = 64 * 1024


def growth(before: int) -> int:
    return tracemalloc.get_traced_memory()[0] - before


def test_a_decode_error_does_not_keep_the_values_before_it(codecs: Codecs) -> None:
    data = GROUPS.to_bytes(4, "big") + b"\0\6groups" * (GROUPS - 1) + b"\0\6group\xff"
    with pytest.raises(InvalidUtf8Error):
        codecs.decode(DescribeGroupsRequest, data, 0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with pytest.raises(InvalidUtf8Error) as caught:
            codecs.decode(DescribeGroupsRequest, data, 0)
        assert growth(before) < SMALL
    finally:
        tracemalloc.stop()
    assert caught.value.offset == len(data) - 1


def test_an_encode_error_does_not_keep_the_bytes_before_it(codecs: Codecs) -> None:
    message = DescribeGroupsRequest(groups=(*("groups",) * (GROUPS - 1), None))  # type: ignore[arg-type]
    with pytest.raises(EncodeError):
        codecs.encode(message, 0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with pytest.raises(EncodeError) as caught:
            codecs.encode(message, 0)
        assert growth(before) < SMALL
    finally:
        tracemalloc.stop()
    assert caught.value.path == f"groups[{GROUPS - 1}]"
