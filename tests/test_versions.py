"""Version ranges: parsing their text, and their algebra compared with Python sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.versions import MAX_VERSION, NONE, VersionRange


@pytest.mark.parametrize(
    ("text", "lowest", "highest"),
    [
        ("none", 0, -1),
        ("0", 0, 0),
        ("7", 7, 7),
        ("0-0", 0, 0),
        ("1-4", 1, 4),
        ("2+", 2, 32767),
        ("0+", 0, 32767),
        ("0-32767", 0, 32767),
        ("32767", 32767, 32767),
        ("32767+", 32767, 32767),
        (" 1-4\t", 1, 4),
        ("00-02", 0, 2),
    ],
)
def test_a_range_as_definitions_write_it(text: str, lowest: int, highest: int) -> None:
    assert VersionRange.parse(text) == VersionRange(lowest, highest)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-1", "1-", "+", "0++", "+1", "1 - 3", "1-2-3", "1.0", "0x1", "NONE", "None", "1,2", "1-+", "1+-2",
        "\u0663", "5-3", "32768", "0-32768", "40000", "99999999999999999999",
    ],
)  # fmt: skip
def test_anything_else_is_not_a_range(text: str) -> None:
    with pytest.raises(ValueError, match="bad version range"):
        VersionRange.parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("5-3", "bad version range '5-3': 5 is above 3"),
        ("0-32768", "bad version range '0-32768': a version is at most 32767"),
        ("all", "bad version range 'all': expected 'none', 'N', 'A-B' or 'N+'"),
    ],
)
def test_the_reason_names_the_text(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="bad") as caught:
        VersionRange.parse(text)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("version_range", "text"),
    [
        (NONE, "none"),
        (VersionRange(3, 3), "3"),
        (VersionRange(1, 4), "1-4"),
        (VersionRange(2, MAX_VERSION), "2+"),
        (VersionRange(MAX_VERSION, MAX_VERSION), "32767+"),
    ],
)
def test_a_range_prints_in_its_shortest_form(version_range: VersionRange, text: str) -> None:
    assert str(version_range) == text
    assert repr(version_range) == f"VersionRange({text})"
    assert VersionRange.parse(text) == version_range


def test_only_none_is_empty_and_only_plus_is_open_ended() -> None:
    ranges = ["none", "0", "1-4", "2+"]
    assert [VersionRange.parse(text).empty for text in ranges] == [True, False, False, False]
    assert [VersionRange.parse(text).open_ended for text in ranges] == [False, False, False, True]


RANGES = st.just(NONE) | st.tuples(st.integers(0, 12), st.integers(0, 12)).map(
    lambda ends: VersionRange(min(ends), max(ends))
)


@given(RANGES, st.integers(-2, 14))
def test_membership_is_that_of_the_set(versions: VersionRange, version: int) -> None:
    assert (version in versions) == (version in set(versions))


@given(RANGES, RANGES)
def test_intersection_is_that_of_the_sets(one: VersionRange, other: VersionRange) -> None:
    shared = one.intersect(other)
    assert set(shared) == set(one) & set(other)
    assert shared == other.intersect(one)
    assert shared.empty == (not set(shared))


@given(RANGES, RANGES)
def test_covering_is_the_superset_relation(one: VersionRange, other: VersionRange) -> None:
    assert one.contains(other) == (set(one) >= set(other))


@given(RANGES, RANGES)
def test_subtraction_is_that_of_the_sets_where_it_leaves_one_range(one: VersionRange, other: VersionRange) -> None:
    expected = sorted(set(one) - set(other))
    contiguous = not expected or expected[-1] - expected[0] + 1 == len(expected)
    left = one.subtract(other)
    assert (left is not None) == contiguous
    if left is not None:
        assert sorted(left) == expected


def test_open_ended_ranges_meet_and_part() -> None:
    assert VersionRange.parse("2+").intersect(VersionRange.parse("0-5")) == VersionRange(2, 5)
    assert VersionRange.parse("0+").subtract(VersionRange.parse("4+")) == VersionRange(0, 3)
    assert VersionRange.parse("0+").subtract(VersionRange.parse("0-3")) == VersionRange(4, MAX_VERSION)
    assert VersionRange.parse("0+").subtract(VersionRange.parse("2-3")) is None


@given(RANGES)
def test_text_and_range_are_the_same_thing(versions: VersionRange) -> None:
    assert VersionRange.parse(str(versions)) == versions
    assert hash(VersionRange.parse(str(versions))) == hash(versions)
