"""A failed call keeps only its error alive, not the values made before the error or the stack frames."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import pytest

from kafka_msgs import DescribeGroupsRequest
from kafka_msgs.errors import EncodeError, InvalidUtf8Error
from tests.support.codecs import Codecs

E = TypeVar("E", bound=Exception)

GROUPS = 20_000
SMALL = 64 * 1024


def kept(action: Callable[[], object], error: type[E]) -> tuple[int, E]:
    """Return how many bytes a failed call keeps alive together with its error, and the error.

    The minimum of a few calls is used, because an interpreter table may grow during one of them.
    """
    sizes = []
    for _ in range(4):
        gc.collect()
        tracemalloc.start()
        try:
            with pytest.raises(error) as caught:
                action()
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    return min(sizes), caught.value


def test_a_decode_error_does_not_keep_the_values_before_it(codecs: Codecs) -> None:
    data = GROUPS.to_bytes(4, "big") + b"\0\6groups" * (GROUPS - 1) + b"\0\6group\xff"
    size, error = kept(lambda: codecs.decode(DescribeGroupsRequest, data, 0), InvalidUtf8Error)
    assert size < SMALL
    assert error.offset == len(data) - 1


def test_an_encode_error_does_not_keep_the_bytes_before_it(codecs: Codecs) -> None:
    message = DescribeGroupsRequest(groups=(*("groups",) * (GROUPS - 1), None))  # type: ignore[arg-type]
    size, error = kept(lambda: codecs.encode(message, 0), EncodeError)
    assert size < SMALL
    assert error.path == f"groups[{GROUPS - 1}]"
