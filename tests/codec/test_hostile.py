"""Malicious input: it leads to a typed error or a value, in linear time, with memory proportional to its size."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from kafka_msgs import OffsetFetchRequest, iter_message_classes
from kafka_msgs.codec import CodecOptions, DecodeBudget
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.ops import MAX_TAGS, Op
from kafka_msgs.codec.plan import Plan, WireValue, compile_plan
from kafka_msgs.codec.reference import annotate
from kafka_msgs.errors import (
    BudgetExceededError,
    DecodeError,
    InvalidLengthError,
    InvalidTagError,
    KafkaMsgsError,
    UnexpectedNullError,
    UnsupportedFieldError,
)
from kafka_msgs.primitives import write_uvarint
from kafka_msgs.schema import field
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import Codecs, message_class, struct_class
from tests.support.line_counter import lines_run
from tests.support.nested_structs import SHAPES, nested

CLASSES = sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)
NAMES = [cls.INFO.name for cls in CLASSES]
MEGABYTE = 1 << 20


def sample(cls: type[Any], version: int, most: int = 160) -> bytes:
    """Return the bytes of a random message with non-empty arrays, at most ``most`` bytes if possible."""
    rng = Random(cls.INFO.name)
    found: list[bytes] = [random_message(cls, version, rng, max_elements=2).encode(version) for _ in range(30)]
    return max((data for data in found if len(data) <= most), key=len, default=min(found, key=len))


def peak_memory(action: Callable[[], Any]) -> int:
    """Return the peak of allocated bytes while ``action`` ran."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Lengths


def values(plan: Plan) -> dict[str, WireValue]:
    """Return each wire value of a plan by its text in annotated spans."""
    found: dict[str, WireValue] = {}

    def walk(value: WireValue) -> None:
        found[str(value)] = value
        if value.op is Op.ARRAY:
            walk(value.item)
        if value.op is Op.STRUCT:
            for step in value.inner.steps + value.inner.tagged:
                walk(step.value)

    walk(WireValue(Op.STRUCT, struct=plan.root))
    return found


def hostile_lengths(value: WireValue) -> list[str]:
    if value.compact:
        return ["feffffff0f", "ffffffff0f", "ffffffff07", "8080808008", "ffffffff7f", "ffffffffff01"]
    if value.op is Op.STRING:
        return ["7fff", "8000", "fffe"]
    return ["7fffffff", "80000000", "fffffffe", "0fffffff"]


def with_hostile_lengths(plan: Plan, data: bytes) -> Iterator[bytes]:
    """Replace the length of every string, bytes and array in ``data``, one at a time."""
    known = values(plan)
    for span in annotate(plan, data)[0]:
        value = known.get(span.kind)
        if value is not None and value.op in (Op.STRING, Op.BYTES, Op.RECORDS, Op.ARRAY):
            for length in hostile_lengths(value):
                yield data[: span.start] + bytes.fromhex(length) + b"\0\0\0\0"


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_a_length_beyond_the_input_is_refused_before_anything_is_allocated(codecs: Codecs, cls: type[Any]) -> None:
    version = cls.INFO.versions.highest
    hostile = list(with_hostile_lengths(compile_plan(cls, version), sample(cls, version)))
    codecs.decode(cls, sample(cls, version), version)

    def decode_all() -> None:
        for data in hostile:
            with pytest.raises(DecodeError):
                codecs.decode(cls, data, version)

    decode_all()  # compiles the decoder that locates faults, once per plan
    assert peak_memory(decode_all) < MEGABYTE


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_nine_bytes_of_anything(codecs: Codecs, cls: type[Any]) -> None:
    version = cls.INFO.versions.highest
    rng = Random(cls.INFO.name)
    inputs = [b"\xff" * 9, bytes.fromhex("feffffff0f00000000"), bytes.fromhex("7fffffff0000000000"), b"\x7f" * 9]
    inputs += [rng.randbytes(9) for _ in range(20)]

    def decode_all() -> None:
        for data in inputs:
            with contextlib.suppress(DecodeError):
                codecs.decode(cls, data, version)

    decode_all()  # compiles the codec, and the decoder that locates faults
    assert peak_memory(decode_all) < MEGABYTE


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_a_message_cut_off_at_any_byte_is_an_error(codecs: Codecs, cls: type[Any]) -> None:
    version = cls.INFO.versions.highest
    data = sample(cls, version)
    for size in range(len(data)):
        with pytest.raises(DecodeError) as caught:
            codecs.decode(cls, data[:size], version)
        assert caught.value.offset <= size


@pytest.mark.parametrize("length", [-2, -7, -32768])
def test_a_negative_classic_length_is_an_error(codecs: Codecs, length: int) -> None:
    with pytest.raises(InvalidLengthError, match=f"negative length {length}"):
        codecs.decode(OffsetFetchRequest, length.to_bytes(2, "big", signed=True) + bytes(8), 2)


@pytest.mark.parametrize("type_", ["[]int32", "[]string", "[]uuid", "[]bool", "[]Leaf", "string", "bytes", "records"])
def test_null_is_refused_where_a_field_cannot_be_null(codecs: Codecs, type_: str) -> None:
    leaf = struct_class("Leaf", number=field("Number", "int32", default=0))
    facts: dict[str, Any] = {"struct": leaf} if "Leaf" in type_ else {}
    cls = message_class("Strict", "0-1", "1+", a=field("A", type_, default=None, **facts))
    for version, null in enumerate(("ffff" if type_ == "string" else "ffffffff", "00")):
        with pytest.raises(UnexpectedNullError):
            codecs.decode(cls, null + "00", version)


# Tags


def many_tags(count: int) -> bytes:
    """Return an OffsetFetchRequest v6 with that many unknown tags of the minimum size."""
    tags = b"".join(write_uvarint(tag) + b"\0" for tag in range(count))
    return b"\x01\x01" + write_uvarint(count) + tags


def test_as_many_tags_as_a_section_may_have_take_memory_in_proportion(codecs: Codecs) -> None:
    data = many_tags(MAX_TAGS)
    assert peak_memory(lambda: codecs.decode(OffsetFetchRequest, data, 6)) <= 4 * len(data) + 8 * MEGABYTE
    message = codecs.decode(OffsetFetchRequest, data, 6)
    assert len(message.unknown_tagged_fields) == MAX_TAGS
    assert codecs.encode(message, 6) == data


def test_more_tags_than_a_section_may_have_are_refused_both_ways(codecs: Codecs) -> None:
    with pytest.raises(InvalidTagError, match="10001 tags: at most 10000 are allowed"):
        codecs.decode(OffsetFetchRequest, many_tags(MAX_TAGS + 1), 6)
    message = OffsetFetchRequest(unknown_tagged_fields=tuple((tag, b"") for tag in range(MAX_TAGS + 1)))
    with pytest.raises(UnsupportedFieldError, match="10001 tags: at most 10000 are allowed"):
        codecs.encode(message, 6)


def test_known_tags_count_among_those_of_a_section(codecs: Codecs) -> None:
    cls = message_class("Known", flexible="0+", known=field("Known", "int8", tag=0, tagged="0+", default=0))
    unknown = tuple((tag, b"") for tag in range(1, MAX_TAGS + 1))
    with pytest.raises(UnsupportedFieldError, match="10001 tags"):
        codecs.encode(cls(known=1, unknown_tagged_fields=unknown), 0)
    full = cls(known=1, unknown_tagged_fields=unknown[1:])
    data = codecs.encode(full, 0)
    assert codecs.decode(cls, data, 0) == full
    with pytest.raises(InvalidTagError, match="10001 tags"):
        codecs.decode(cls, write_uvarint(MAX_TAGS + 1) + data[2:] + write_uvarint(MAX_TAGS + 1) + b"\0", 0)


@pytest.mark.parametrize("executor", [name for name in EXECUTORS if name != "c"])
@pytest.mark.parametrize("direction", ["decode", "encode"])
def test_twice_as_many_tags_take_twice_as_long(codecs: Codecs, direction: str) -> None:
    def run(count: int) -> int:
        data = many_tags(count)
        message = codecs.decode(OffsetFetchRequest, data, 6)
        if direction == "encode":
            return lines_run(lambda: codecs.encode(message, 6))
        return lines_run(lambda: codecs.decode(OffsetFetchRequest, data, 6))

    assert 1.8 < run(2000) / run(1000) < 2.2


def test_a_count_of_tags_beyond_the_input(codecs: Codecs) -> None:
    data = b"\x01\x01" + write_uvarint(2**32 - 1) + b"\0\0"

    def decode() -> None:
        with pytest.raises(DecodeError):
            codecs.decode(OffsetFetchRequest, data, 6)

    decode()  # makes the codec, whose cost is not measured
    assert lines_run(decode) < 1000
    assert peak_memory(decode) < MEGABYTE


# Sharing


def chain(length: int) -> type[Any]:
    """Return a message with an array of structs that each contain the next one twice: 2**length values."""
    struct = struct_class("Leaf", leaf=field("Leaf", "int8", default=0))
    for level in range(length):
        struct = struct_class(
            f"Level{level}",
            a=field("A", struct.__name__, struct=struct, default=None),
            b=field("B", struct.__name__, struct=struct, default=None),
        )
    return message_class("Chain", items=field("Items", f"[]{struct.__name__}", struct=struct, default=()))


def test_a_plan_grows_with_the_definition_and_not_with_what_it_may_hold(codecs: Codecs) -> None:
    def run(length: int) -> int:
        cls = chain(length)
        return lines_run(lambda: codecs.decode(cls, "00000000", 0))

    assert run(16) < 4 * run(8)
    depth = compile_plan(chain(56), 0).root.depth
    assert depth == 58
    with pytest.raises(InvalidLengthError):
        codecs.decode(chain(16), "00000001 00", 0)


# Depth


def filled(cls: type[Any], level: int, array: bool) -> Any:
    """Return a value with all levels of structs, each struct numbered by its level."""
    below = next((attribute for attribute in cls.__attrs_attrs__ if attribute.name == "below"), None)
    if below is None:
        return cls(leaf=level)
    inner = filled(below.metadata["kafka_msgs"][9], level + 1, array)
    return cls(leaf=level, below=(inner,) if array else inner)


ONE_BELOW: dict[str, Callable[[int, bytes], bytes]] = {
    "arrays": lambda leaf, below: bytes([leaf, 2]) + below + b"\0",
    "tagged arrays": lambda leaf, below: bytes([leaf, 1, 0]) + write_uvarint(len(below) + 1) + b"\2" + below,
    "nullable structs": lambda leaf, below: bytes([leaf, 1]) + below + b"\0",
    "tagged nullable structs": lambda leaf, below: bytes([leaf, 1, 0]) + write_uvarint(len(below) + 1) + b"\1" + below,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_thirty_levels(codecs: Codecs, shape: str) -> None:
    type_, facts = SHAPES[shape]
    cls = nested(30, type_, **facts)
    message = filled(cls, 1, array="arrays" in shape)
    data = bytes([30, 0])
    for level in range(29, 0, -1):
        data = ONE_BELOW[shape](level, data)
    assert codecs.encode(message, 0) == data
    assert codecs.decode(cls, data, 0) == message
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            codecs.decode(cls, data[:size], 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_schema_deeper_than_the_budget(codecs: Codecs, shape: str) -> None:
    type_, facts = SHAPES[shape]
    cls = nested(30, type_, **facts)
    data = codecs.encode(filled(cls, 1, array="arrays" in shape), 0)
    at, under = (CodecOptions(budget=DecodeBudget(depth=depth)) for depth in (30, 29))
    assert codecs.decode(cls, data, 0, at) == codecs.decode(cls, data, 0)
    with pytest.raises(BudgetExceededError) as caught:
        codecs.decode(cls, data, 0, under)
    assert str(caught.value) == "Nested v0: at byte 0: 30 levels deep, more than the budget of 29"


def test_the_default_budget_bounds_depth(codecs: Codecs) -> None:
    with pytest.raises(BudgetExceededError, match="65 levels deep, more than the budget of 64"):
        codecs.decode(nested(65, "[]"), bytes(65 * 3), 0)
    assert codecs.decode(nested(64, "[]"), "00 01 00", 0).below == ()


def test_no_released_message_comes_near_the_default_budget() -> None:
    depths = {compile_plan(cls, version).root.depth for cls in CLASSES for version in cls.INFO.versions}
    assert max(depths) <= 8


# Budget: elements and bytes

Item = struct_class("Item", name=field("Name", "string", default=""))
Bundle = message_class(
    "Bundle",
    flexible="0+",
    text=field("Text", "string", nullable="0+", default=""),
    data=field("Data", "bytes", default=b""),
    batch=field("Batch", "records", nullable="0+", default=None),
    numbers=field("Numbers", "[]int16", default=()),
    ids=field("Ids", "[]uuid", default=()),
    items=field("Items", "[]Item", default=(), struct=Item),
    extra=field("Extra", "string", tag=0, tagged="0+", default=""),
)
FULL = Bundle(
    text="abc", data=b"12", batch=b"xyzw", numbers=(1, 2), items=(Item(name="a"), Item(name="bc")), extra="de",
    unknown_tagged_fields=((7, b"unknown"), (9, b"")),
)  # fmt: skip
ELEMENTS = 2 + 2 + 2
BYTES = 3 + 2 + 4 + 1 + 2 + 2 + 7


@pytest.mark.parametrize(("elements", "size"), [(ELEMENTS, 10**6), (10**6, BYTES), (ELEMENTS, BYTES)])
def test_a_budget_that_is_just_enough(codecs: Codecs, elements: int, size: int) -> None:
    options = CodecOptions(budget=DecodeBudget(elements=elements, bytes=size))
    assert codecs.decode(Bundle, codecs.encode(FULL, 0), 0, options) == FULL


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        ({"elements": ELEMENTS - 1}, "Bundle v0: at byte 43: more than the budget of 5 elements"),
        ({"bytes": BYTES - 1}, "Bundle v0: at byte 34: more than the budget of 20 bytes"),
        ({"elements": 0}, "Bundle v0: numbers at byte 13: more than the budget of 0 elements"),
        ({"elements": 2}, "Bundle v0: items at byte 19: more than the budget of 2 elements"),
        ({"bytes": 0}, "Bundle v0: text at byte 4: more than the budget of 0 bytes"),
        ({"bytes": 5}, "Bundle v0: batch at byte 12: more than the budget of 5 bytes"),
        ({"bytes": 9}, "Bundle v0: items[0].name at byte 21: more than the budget of 9 bytes"),
        ({"bytes": 13}, "Bundle v0: extra at byte 32: more than the budget of 13 bytes"),
    ],
)
def test_a_budget_that_is_one_short(codecs: Codecs, budget: dict[str, int], text: str) -> None:
    with pytest.raises(BudgetExceededError) as caught:
        codecs.decode(Bundle, codecs.encode(FULL, 0), 0, CodecOptions(budget=DecodeBudget(**budget)))
    assert str(caught.value) == text


def test_a_message_that_creates_nothing_needs_no_budget(codecs: Codecs) -> None:
    nothing = CodecOptions(budget=DecodeBudget(elements=0, bytes=0, depth=2))
    assert codecs.decode(Bundle, "01 01 00 01 01 01 00", 0, nothing) == Bundle()


def test_counting_makes_no_difference_but_to_the_budget(codecs: Codecs) -> None:
    generous = CodecOptions(budget=DecodeBudget(elements=10_000, bytes=10_000, depth=64))
    counted = CodecOptions(budget=DecodeBudget(elements=60, bytes=10_000, depth=64))
    message = Bundle(text="x" * 100)
    data = codecs.encode(message, 0)
    assert codecs.decode(Bundle, data, 0, generous) == codecs.decode(Bundle, data, 0, counted) == message
    for size in range(len(data)):
        texts = set()
        for options in (generous, counted):
            with pytest.raises(KafkaMsgsError) as caught:
                codecs.decode(Bundle, data[:size], 0, options)
            texts.add(str(caught.value))
        assert len(texts) == 1


def test_elements_without_bytes_are_charged(codecs: Codecs) -> None:
    """Each group may claim as many empty elements as there are bytes left, so their number grows quadratically."""
    nothing = struct_class("Nothing")
    group = struct_class("Group", a=field("A", "[]Nothing", default=(), struct=nothing))
    cls = message_class("Square", groups=field("Groups", "[]Group", default=(), struct=group))
    groups = 120
    lengths = [(groups - number - 1) * 4 for number in range(groups)]
    data = b"".join(length.to_bytes(4, "big") for length in (groups, *lengths))
    total = groups + sum(lengths)
    exact, short = (CodecOptions(budget=DecodeBudget(elements=limit)) for limit in (total, total - 1))
    assert sum(len(item.a) for item in codecs.decode(cls, data, 0, exact).groups) == sum(lengths)
    with pytest.raises(BudgetExceededError, match=f"more than the budget of {total - 1} elements"):
        codecs.decode(cls, data, 0, short)


@pytest.mark.parametrize("limits", [{"elements": -1}, {"bytes": -1}, {"depth": -1}])
def test_a_budget_is_not_negative(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="a whole number from 0 is needed"):
        DecodeBudget(**limits)
