"""Variable-length integers and UUIDs, compared with bytes computed by hand."""

from __future__ import annotations

import pickle
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.primitives import ZERO_UUID, read_uvarint, uuid_from_bytes, write_uvarint

MINIMAL = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2097151, "ffff7f"),
    (2097152, "80808001"),
    (268435455, "ffffff7f"),
    (268435456, "8080808001"),
    (2147483647, "ffffffff07"),
    (4294967295, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), MINIMAL)
def test_uvarints_are_written_in_their_shortest_form_and_read_back(value: int, encoded: str) -> None:
    assert write_uvarint(value).hex() == encoded
    assert read_uvarint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize(("encoded", "value"), [("8000", 0), ("ff00", 127), ("8180808000", 1), ("80808000", 0)])
def test_longer_forms_are_read_too(encoded: str, value: int) -> None:
    assert read_uvarint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


def test_reading_starts_at_a_position_and_stops_after_the_last_byte() -> None:
    assert read_uvarint(bytes.fromhex("ffff800155"), 2) == (128, 4)


@pytest.mark.parametrize("encoded", ["", "80", "ffffffff"])
def test_a_uvarint_that_the_buffer_cuts_off(encoded: str) -> None:
    with pytest.raises(IndexError):
        read_uvarint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        ("ffffffffff01", "more than five bytes"),
        ("808080808000", "more than five bytes"),
        ("ffffffff10", "more than 32 bits"),
        ("ffffffff7f", "more than 32 bits"),
    ],
)
def test_a_uvarint_that_is_too_large(encoded: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_uvarint(bytes.fromhex(encoded), 0)


@given(st.integers(0, 2**32 - 1))
def test_every_32_bit_value_survives(value: int) -> None:
    encoded = write_uvarint(value)
    assert read_uvarint(encoded + b"\xff", 0) == (value, len(encoded))
    assert len(encoded) == max(1, -(-value.bit_length() // 7))


@given(st.binary(min_size=16, max_size=16))
def test_a_uuid_of_bytes_is_what_the_standard_library_makes_of_them(raw: bytes) -> None:
    value = uuid_from_bytes(raw)
    assert value == UUID(bytes=raw)
    assert hash(value) == hash(UUID(bytes=raw))
    assert value.bytes == raw


def test_a_uuid_of_bytes_behaves_like_any_other() -> None:
    raw = bytes(range(16))
    value = uuid_from_bytes(raw)
    assert str(value) == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert value.is_safe is UUID(bytes=raw).is_safe
    assert pickle.loads(pickle.dumps(value)) == value
    with pytest.raises(TypeError):
        value.int = 0  # type: ignore[misc]


def test_zero_bytes_give_the_shared_absent_id() -> None:
    assert uuid_from_bytes(bytes(16)) is ZERO_UUID
    assert UUID(int=0) == ZERO_UUID
