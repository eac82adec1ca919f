"""Counts from batch headers: both implementations agree on any bytes, and end at the first invalid batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from random import Random

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs._backend import CORE
from kafka_msgs.log.batch_counts import BatchCounts
from tests.support.implementations import implementations, name_of
from tests.support.log_fragments import PIECES, PLAIN, PRODUCER, batch
from tests.support.refcounts import check_balance, fail_each

Count = Callable[..., BatchCounts]
COUNTS: dict[str, Count] = {name_of(each): each.count_batches for each in implementations("kafka_msgs.log")}
BY_NAME = pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)
EVERYTHING = 2**40


@BY_NAME
def test_what_batches_come_to(count: Count) -> None:
    data = batch(5, 9, **PRODUCER) + batch(7, 2, base_offset=2)
    assert count(data, 0, EVERYTHING, True) == BatchCounts(
        len(data), len(batch(5, 9, **PRODUCER)), 2, 4, 5, 9, (2, 0, 0, 0, 0, 0, 0, 0), {7}
    )


@BY_NAME
def test_counting_ends_behind_the_batch_that_starts_before_the_stop(count: Count) -> None:
    size = len(PLAIN)
    assert [count(PLAIN * 3, 0, stop, True).position for stop in (0, 1, size, size + 1, EVERYTHING)] == [
        0, size, size, 2 * size, 3 * size,
    ]  # fmt: skip
    assert count(PLAIN * 3, size, EVERYTHING, True).batches == 2
    assert count(PLAIN * 3, 4 * size, EVERYTHING, True).batches == 0


@BY_NAME
@pytest.mark.parametrize("size", range(len(PLAIN)))
def test_a_batch_that_is_cut_off_is_not_counted(count: Count, size: int) -> None:
    found = count(PLAIN + PLAIN[:size], 0, EVERYTHING, True)
    assert (found.position, found.batches) == (len(PLAIN), 1)


@BY_NAME
def test_checksums_may_be_left_aside(count: Count) -> None:
    assert [count(PLAIN[:-1] + b"?", 0, EVERYTHING, check).batches for check in (True, False)] == [0, 1]


HEADER = st.builds(
    lambda offset, size, magic, flags, delta, base, latest, producer, count, rest: (
        offset.to_bytes(8, "big", signed=True) + size.to_bytes(4, "big", signed=True) + bytes(4) + bytes([magic])
        + bytes(4) + flags.to_bytes(2, "big") + delta.to_bytes(4, "big", signed=True)
        + base.to_bytes(8, "big", signed=True) + latest.to_bytes(8, "big", signed=True)
        + producer.to_bytes(8, "big", signed=True) + bytes(6)
        + count.to_bytes(4, "big", signed=True) + rest
    ),
    offset=st.sampled_from((0, 0, 1, 10, -(2**63), 2**63 - 1)),
    delta=st.sampled_from((0, 0, 1, -1, 2**31 - 1)),
    size=st.sampled_from((49, 49, 49, 48, 50, 60, -1, 2**31 - 1)),
    magic=st.sampled_from((2, 2, 2, 1, 3, 255)),
    flags=st.integers(0, 2**16 - 1),
    base=st.sampled_from((-1, 0, 5, -(2**63), 2**63 - 1)) | st.integers(-9, 9),
    latest=st.sampled_from((-1, 0, 5, -(2**63), 2**63 - 1)) | st.integers(-9, 9),
    producer=st.sampled_from((-1, 7, 8, -(2**63), 2**63 - 1)),
    count=st.sampled_from((0, 1, -1, 2**31 - 1, -(2**31))),
    rest=st.sampled_from((b"", b"", b"", b"x", bytes(11))),
)  # fmt: skip


def sealed(data: bytes) -> bytes:
    """Return a header with the checksum for its stated size, if that many bytes exist."""
    end = 12 + int.from_bytes(data[8:12], "big", signed=True)
    return data[:17] + crc32c(data[21:end]).to_bytes(4, "big") + data[21:] if 61 <= end <= len(data) else data


@settings(max_examples=400, deadline=None)
@given(pieces=st.lists(HEADER.map(sealed) | st.sampled_from(PIECES), max_size=8), data=st.data())
def test_both_agree_on_any_headers(pieces: list[bytes], data: st.DataObject) -> None:
    content = b"".join(pieces)
    position, stop = (data.draw(st.integers(0, len(content) + 1)) for _ in range(2))
    without = data.draw(st.sampled_from((0, 8, 16, 32, 48, 7)))
    first, last = (data.draw(st.sampled_from((-(2**63), -1, 0, 1, 2, 11, 2**63 - 1))) for _ in range(2))
    for start, end in ((0, EVERYTHING), (position, stop)):
        for check in (True, False):
            for limits in ((), (without, first, last)):
                found = [count(content, start, end, check, *limits) for count in COUNTS.values()]
                assert found[1:] == found[:-1]


@BY_NAME
def test_counting_ends_before_a_batch_with_an_attribute_or_an_offset_that_is_not_wanted(count: Count) -> None:
    plain, other = batch(1, 2, base_offset=5), batch(3, base_offset=7, **PRODUCER | {"transactional": True})
    wanted = [(0, 5, 7), (16, 5, 7), (0, 6, 7), (0, 5, 5), (0, 5, 6), (0, -(2**63), 2**63 - 1)]
    assert [count(plain + other, 0, EVERYTHING, True, *each).batches for each in wanted] == [2, 1, 0, 0, 1, 2]


@BY_NAME
def test_a_count_over_mutated_files_ends_within_them(count: Count) -> None:
    rng = Random(3)
    for _ in range(2000):
        content = bytearray(b"".join(rng.choices(PIECES, k=4)))
        for _ in range(rng.randrange(4)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        found = count(bytes(content), 0, EVERYTHING, True)
        assert 0 <= found.last <= found.position <= len(content)


def test_the_core_leaves_the_counts_as_they_were() -> None:
    core = pytest.importorskip(CORE)
    data = b"".join(PIECES[:7])

    def calls() -> None:
        for checksum in (crc32c, None, lambda view: 0, lambda view: "checksum"):
            with contextlib.suppress(TypeError):
                core.count_batches(data, 0, EVERYTHING, checksum)

    check_balance(calls, [None, 0, data, crc32c])


def test_the_core_ends_in_memory_error_wherever_an_allocation_fails() -> None:
    core = pytest.importorskip(CORE)
    data = batch(2**40, 2**41, **{**PRODUCER, "producer_id": 2**40}) * 3
    found: list[int] = []
    check_balance(
        lambda: found.append(fail_each(lambda: core.count_batches(data, 0, EVERYTHING, crc32c))),
        [None, 0, data, crc32c],
    )
    assert min(found) >= 5


def test_the_core_hands_on_what_goes_wrong() -> None:
    core = pytest.importorskip(CORE)
    with pytest.raises(ZeroDivisionError):
        core.count_batches(PLAIN, 0, EVERYTHING, lambda view: 1 // 0)
    with pytest.raises(TypeError):
        core.count_batches(PLAIN, 0, EVERYTHING, lambda view: "checksum")
    with pytest.raises(ValueError, match="negative position"):
        core.count_batches(PLAIN, -1, EVERYTHING, None)
    with pytest.raises(TypeError):
        core.count_batches("text", 0, EVERYTHING, None)
