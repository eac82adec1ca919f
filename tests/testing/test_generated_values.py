"""Values generated from a schema, by Hypothesis and at random: always encodable, and often edge cases."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, ClassVar
from uuid import UUID

import attrs
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.strategies import SearchStrategy

from kafka_msgs.errors import MissingExtraError, UnsupportedVersionError
from kafka_msgs.primitive_types import PRIMITIVES
from kafka_msgs.schema import ZERO_UUID, MessageInfo, MessageStruct, Struct, field
from kafka_msgs.testing.edge_values import LONG_STRINGS
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.testing.strategies import messages, struct


@attrs.frozen(kw_only=True, repr=False, eq=False)
class Partition(Struct):
    index: int = field("Index", "int32", default=0)
    epoch: int = field("Epoch", "int32", "2+", default=-1)
    note: str | None = field("Note", "string", "2+", nullable="2+", tag=0, tagged="2+", default=None)


@attrs.frozen(kw_only=True, repr=False, eq=False)
class Example(MessageStruct):
    INFO: ClassVar[MessageInfo] = MessageInfo(name="Example", kind="data", versions="0-3", flexible="2+")
    group: str = field("Group", "string", default="")
    topics: tuple[str, ...] | None = field("Topics", "[]string", nullable="1+", default=())
    partitions: tuple[Partition, ...] = field("Partitions", "[]Partition", default=(), struct=Partition)
    small: int = field("Small", "int8", default=7)
    port: int = field("Port", "uint16", default=0)
    crc: int = field("Crc", "uint32", default=0)
    when: int = field("When", "int64", default=-1)
    load: float = field("Load", "float64", default=0.0)
    id: UUID = field("Id", "uuid", default=ZERO_UUID)  # noqa: RUF009 - attrs, and the value is immutable
    flag: bool = field("Flag", "bool", default=False)
    payload: bytes | None = field("Payload", "bytes", nullable="0-1", default=b"")
    batch: bytes | None = field("Batch", "records", nullable="2+", default=None)
    leader: int = field("Leader", "int32", "2+", tag=1, tagged="2+", default=-1)
    cursor: Partition | None = field(  # noqa: RUF009 - attrs, and the value is immutable
        "Cursor", "Partition", "2+", nullable="2+", default=None, struct=Partition
    )


VERSIONS = (0, 1, 2, 3)
NULLABLE = {"topics": {1, 2, 3}, "payload": {0, 1}, "batch": {2, 3}, "cursor": {2, 3}}
RANGES = {"small": "int8", "port": "uint16", "crc": "uint32", "when": "int64", "leader": "int32"}


def assert_encodable(value: Example, version: int) -> None:
    """Check a value against the definition of ``Example``, field by field."""
    assert len(value.group.encode()) <= 32767
    for attribute, versions in NULLABLE.items():
        assert getattr(value, attribute) is not None or version in versions or attribute in absent(version)
    for attribute, type_ in RANGES.items():
        low, high = PRIMITIVES[type_].bounds
        assert low <= getattr(value, attribute) <= high
    for attribute in absent(version):
        assert getattr(value, attribute) == getattr(Example(), attribute)
    for part in (value, *value.partitions):
        assert_tags_encodable(part, version)
    for partition in value.partitions:
        assert version >= 2 or (partition.epoch, partition.note) == (-1, None)


def absent(version: int) -> set[str]:
    return set() if version >= 2 else {"leader", "cursor"}


def assert_tags_encodable(value: Struct, version: int) -> None:
    tags = [tag for tag, _ in value.unknown_tagged_fields]
    assert not tags or version >= 2
    assert tags == sorted(set(tags))
    assert not set(tags) & ({1} if isinstance(value, Example) else {0})
    assert all(0 <= tag < 2**31 - 1 for tag in tags)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_hypothesis_value_is_encodable_at_its_version(version: int) -> None:
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(messages(Example, version))
    def check(value: Example) -> None:
        assert_encodable(value, version)

    check()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_random_value_is_encodable_at_its_version(version: int) -> None:
    rng = Random(version)
    for _ in range(500):
        assert_encodable(random_message(Example, version, rng), version)


EDGES: dict[str, Callable[[Example], bool]] = {
    "null array": lambda value: value.topics is None,
    "empty array": lambda value: value.topics == (),
    "full array": lambda value: value.topics is not None and len(value.topics) >= 3,
    "null struct": lambda value: value.cursor is None,
    "lowest integer": lambda value: value.when == -(2**63),
    "highest integer": lambda value: value.crc == 2**32 - 1,
    "non-ASCII text": lambda value: not value.group.isascii(),
    "128 bytes of text": lambda value: len(value.group.encode()) == 128,
    "128 bytes or more": lambda value: len(value.batch or b"") >= 128,
    "tagged field at its default": lambda value: value.leader == -1,
    "tagged field set": lambda value: value.leader != -1,
    "unknown tag": lambda value: bool(value.unknown_tagged_fields),
    "unknown tag of two bytes": lambda value: any(tag > 127 for tag, _ in value.unknown_tagged_fields),
    "unknown tag in an element": lambda value: any(part.unknown_tagged_fields for part in value.partitions),
    "infinity": lambda value: value.load == float("inf"),
}


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # the result may contain a long string
@pytest.mark.parametrize("edge", EDGES)
def test_hypothesis_finds_the_edge(edge: str) -> None:
    limit = settings(max_examples=4000, database=None, deadline=None, phases=[Phase.generate])
    assert EDGES[edge](find(messages(Example, 2), EDGES[edge], settings=limit, random=Random(1)))


def random_values(count: int) -> Iterator[Example]:
    rng = Random(20)
    return (random_message(Example, 2, rng) for _ in range(count))


@pytest.mark.parametrize("edge", EDGES)
def test_random_values_reach_the_edge(edge: str) -> None:
    assert any(map(EDGES[edge], random_values(2000)))


def test_random_values_reach_the_longest_strings() -> None:
    longest = max(len(value.group.encode()) for value in random_values(10_000))
    assert longest == max(len(text.encode()) for text in LONG_STRINGS) == 32767


def test_the_same_seed_gives_the_same_value() -> None:
    first, second = ([random_message(Example, 2, rng) for _ in range(20)] for rng in (Random(5), Random(5)))
    assert first == second
    assert first != [random_message(Example, 2, rng) for rng in (Random(6),) for _ in range(20)]


def test_unknown_tags_can_be_left_out() -> None:
    rng = Random(1)
    values = [random_message(Example, 2, rng, unknown_tags=False) for _ in range(300)]
    assert not any(part.unknown_tagged_fields for value in values for part in (value, *value.partitions))

    @settings(max_examples=100, deadline=None)
    @given(messages(Example, 2, unknown_tags=False))
    def check(value: Example) -> None:
        assert value.unknown_tagged_fields == ()

    check()


def test_arrays_have_no_more_elements_than_asked_for() -> None:
    rng = Random(1)
    assert not any(random_message(Example, 2, rng, max_elements=0).partitions for _ in range(100))

    @settings(max_examples=50, deadline=None)
    @given(messages(Example, 2, max_elements=1))
    def check(value: Example) -> None:
        assert len(value.partitions) <= 1

    check()


@pytest.mark.parametrize("flexible", [True, False])
def test_a_nested_class_has_unknown_tags_only_where_its_message_is_flexible(flexible: bool) -> None:
    strategy: SearchStrategy[Partition] = struct(Partition, 2, flexible=flexible)
    seen: list[bool] = []

    @settings(max_examples=100, deadline=None, database=None)
    @given(strategy)
    def collect(value: Partition) -> None:
        seen.append(bool(value.unknown_tagged_fields))

    collect()
    assert any(seen) == flexible


@pytest.mark.parametrize("make", [messages, lambda cls, version: random_message(cls, version, Random(0))])
def test_a_version_that_the_message_lacks_is_refused(make: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedVersionError, match="Example has no version 4; it has 0-3"):
        make(Example, 4)


def test_without_hypothesis_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "kafka_msgs.testing.strategies")
    with pytest.raises(MissingExtraError, match=r"pip install 'kafka-msgs\[testing\]'"):
        importlib.import_module("kafka_msgs.testing.strategies")
