"""Each point at which this library is stricter than Kafka's own classes, and each at which it is deliberately not.

``docs/reference/strictness.md`` documents these points; a point missing here or there causes a failure.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.codec.ops import MAX_TAGS
from kafka_msgs.errors import (
    DecodeError,
    InvalidLengthError,
    InvalidTagError,
    InvalidUtf8Error,
    InvalidVarintError,
    TrailingDataError,
    TruncatedError,
)
from kafka_msgs.messages import ApiVersionsRequest
from kafka_msgs.primitives import write_uvarint
from tests.oracle import Oracle, OracleReject
from tests.oracle.class_pairs import Subject, subjects_of
from tests.oracle.lenient_decoder import DEVIATIONS
from tests.oracle.parity import compare_inputs

pytestmark = pytest.mark.oracle

FETCH = f"{'00' * 21} 01 01 01"
"""A FetchRequest v17 up to its tag section, in which tag 0 is a string and tag 1 a struct."""

TAGS = write_uvarint(MAX_TAGS + 1) + b"".join(write_uvarint(tag) + b"\0" for tag in range(MAX_TAGS + 1))
"""A tag section with one tag too many."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "strictness.md"


def subject_of(oracle: Oracle, name: str, version: int) -> Subject:
    return next(subject for subject in subjects_of(name, oracle) if subject.version == version)


STRICTER: list[tuple[str, str, int, str, type[DecodeError]]] = [
    ("varint of more than 32 bits", "OffsetFetchRequest", 6, "82 80 80 80 10 67 00 00", InvalidVarintError),
    ("varint of more than 32 bits", "ApiVersionsRequest", 3, "0261 0231 8080808010", InvalidVarintError),
    ("negative length other than -1", "OffsetFetchRequest", 2, "000167 fffffffe", InvalidLengthError),
    ("negative length other than -1", "OffsetFetchRequest", 2, "000167 80000000", InvalidLengthError),
    ("negative length other than -1", "OffsetFetchRequest", 6, "0267 ffffffff0f 00", InvalidLengthError),
    ("negative length other than -1", "EnvelopeResponse", 0, "feffffff0f 4a74 00", TruncatedError),
    ("negative length other than -1", "RequestHeader", 1, "0009 0002 00000007 8000", InvalidLengthError),
    ("tag number above 2147483647", "ApiVersionsRequest", 3, "0261 0231 01 8080808008 00", InvalidTagError),
    ("tags out of order or repeated", "ApiVersionsRequest", 3, "0261 0231 02 09 01aa 05 01bb", InvalidTagError),
    ("tags out of order or repeated", "ApiVersionsRequest", 3, "0261 0231 02 05 01aa 05 01bb", InvalidTagError),
    ("tags out of order or repeated", "FetchRequest", 17, f"{FETCH} 02 00 02 0261 00 02 0262", InvalidTagError),
    ("wrong size of a known tag", "FetchRequest", 17, f"{FETCH} 01 00 03 0261 00", InvalidTagError),
    ("wrong size of a known tag", "FetchRequest", 17, f"{FETCH} 01 00 01 0261", TruncatedError),
    ("text that is not UTF-8", "OffsetFetchRequest", 2, "0001ff ffffffff", InvalidUtf8Error),
    ("text that is not UTF-8", "OffsetFetchRequest", 2, "0003eda080 ffffffff", InvalidUtf8Error),
    ("text that is not UTF-8", "OffsetFetchRequest", 2, "0004edbfc802 ffffffff", InvalidUtf8Error),
    ("text that is not UTF-8", "OffsetFetchRequest", 2, "0003e1eda0 ffffffff", InvalidUtf8Error),
    ("text that is not UTF-8", "OffsetFetchRequest", 2, "0007f0908080f48fe0 ffffffff", InvalidUtf8Error),
    ("text that is not UTF-8", "OffsetFetchRequest", 2, "0006c080e080f490 ffffffff", InvalidUtf8Error),
    ("trailing bytes", "OffsetFetchRequest", 2, "000167 ffffffff 00", TrailingDataError),
]

AS_KAFKA: list[tuple[str, str, int, str]] = [
    ("a varint longer than it needs to be", "OffsetFetchRequest", 6, "8280808000 67 00 00"),
    ("any byte but zero is true", "OffsetFetchRequest", 7, "0267 00 7f 00"),
    ("a struct's marker of zero or more: present", "NullableStructMessage", 0, "7f 0000 00000000 0000 00000000"),
    ("a struct's negative marker: null", "NullableStructMessage", 0, "80 0000 00000000"),
    ("a tagged struct's marker of zero: null", "NullableStructMessage", 1, "ff ff 01 01 01 00"),
    ("a tagged struct's negative marker: null", "NullableStructMessage", 1, "ff ff 01 01 05 8080808008"),
    ("a tagged field at its default", "NullableStructMessage", 1, "ff ff 01 00 01 00"),
    ("the highest tag", "ApiVersionsRequest", 3, "0261 0231 01 ffffffff07 00"),
    ("an empty unknown tag", "ApiVersionsRequest", 3, "0261 0231 01 05 00"),
]

REFUSED_BY_BOTH: list[tuple[str, str, int, str]] = [
    ("a declared tag that this version lacks", "BrokerHeartbeatRequest", 0, f"{'00' * 22} 01 00 00"),
    ("a varint of six bytes", "OffsetFetchRequest", 6, "818080808001 67 00 00"),
    ("null where it is not allowed", "OffsetFetchRequest", 2, "ffff ffffffff"),
    ("a negative length where null is not allowed", "OffsetFetchRequest", 2, "fffe ffffffff"),
    ("a count beyond the bytes that are left", "OffsetFetchRequest", 2, "000167 7fffffff"),
    ("a compact count that overflows an int32", "OffsetFetchRequest", 6, "0267 8080808008 00"),
    ("a negative number of tags", "ApiVersionsRequest", 3, "0261 0231 ffffffff0f"),
    ("a negative number of tags", "FetchRequest", 17, f"{FETCH} ffffffff0f 00 01 00 01 01 00"),
    ("more tags than bytes", "ApiVersionsRequest", 3, "0261 0231 03 00 00"),
    ("more than 10,000 tags", "ApiVersionsRequest", 3, f"0261 0231 {TAGS.hex()}"),
    ("an unknown tag of negative size", "ApiVersionsRequest", 3, "0261 0231 01 05 ffffffff0f"),
    ("a string of more than 32,767 bytes", "OffsetFetchRequest", 6, f"818002 {'61' * 32768} 00 00"),
    ("no bytes at all", "OffsetFetchRequest", 6, ""),
]


def ids(table: list[tuple[Any, ...]]) -> list[str]:
    return [f"{row[0]}: {row[1]} v{row[2]} #{number}" for number, row in enumerate(table)]


@pytest.mark.parametrize(("why", "name", "version", "data", "error"), STRICTER, ids=ids(STRICTER))
def test_kafka_accepts_and_we_refuse(
    oracle: Oracle, why: str, name: str, version: int, data: str, error: type[DecodeError]
) -> None:
    subject = subject_of(oracle, name, version)
    tally = compare_inputs(oracle, subject, [bytes.fromhex(data)])
    assert not tally.differences, tally.differences[0]
    assert tally.counts[f"stricter: {why}"] == 1
    assert issubclass(error, DEVIATIONS[why])
    with pytest.raises(error):
        subject.cls.decode(bytes.fromhex(data), version)


@pytest.mark.parametrize(("why", "name", "version", "data"), AS_KAFKA, ids=ids(AS_KAFKA))
def test_both_accept_and_read_the_same(oracle: Oracle, why: str, name: str, version: int, data: str) -> None:
    tally = compare_inputs(oracle, subject_of(oracle, name, version), [bytes.fromhex(data)])
    assert not tally.differences, tally.differences[0]
    assert tally.counts["both accept"] == 1


@pytest.mark.parametrize(("why", "name", "version", "data"), REFUSED_BY_BOTH, ids=ids(REFUSED_BY_BOTH))
def test_both_refuse(oracle: Oracle, why: str, name: str, version: int, data: str) -> None:
    tally = compare_inputs(oracle, subject_of(oracle, name, version), [bytes.fromhex(data)])
    assert not tally.differences, tally.differences[0]
    assert tally.counts["both refuse"] == 1


def test_every_deviation_has_an_example() -> None:
    assert {why for why, *_ in STRICTER} == set(DEVIATIONS)


def test_the_page_lists_the_deviations_and_their_errors() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().split("## ")[1].splitlines() if line[:1] == "|"]
    documented = {row[0]: set(re.findall(r"`(\w+Error)`", row[2])) for row in rows[2:]}
    assert documented == {why: {error.__name__ for error in errors} for why, errors in DEVIATIONS.items()}


def test_kafka_reads_the_highest_tag_but_cannot_write_it(oracle: Oracle) -> None:
    data = bytes.fromhex("0261 0231 01 ffffffff07 00")
    assert isinstance(oracle.decode("ApiVersionsRequest", 3, data).reencoded, OracleReject)
    assert ApiVersionsRequest.decode(data, 3).encode(3) == data
