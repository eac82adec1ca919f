"""Kafka's encoding and decoding rules, one small message per rule."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

import pytest

from kafka_msgs.errors import InvalidLengthError, InvalidTagError, UnsupportedFieldError
from kafka_msgs.schema import ZERO_UUID, field
from tests.support.codecs import Codecs, message_class, struct_class

Leaf = struct_class("Leaf", number=field("Number", "int32", default=0), flag=field("Flag", "bool", default=False))
ID = UUID(int=1)


def tagged(type_: str, default: Any, **facts: Any) -> type[Any]:
    """Return a message with one tagged field."""
    return message_class("Tagged", flexible="0+", a=field("A", type_, tag=0, tagged="0+", default=default, **facts))


def positional(type_: str, default: Any, **facts: Any) -> type[Any]:
    """Return a message with one field, classic in version 0 and flexible in version 1."""
    return message_class("Plain", "0-1", "1+", a=field("A", type_, default=default, **facts))


# Tagged fields: omitted when default, and the flexible form of the value otherwise

TAGGED: list[tuple[type[Any], Any, str]] = [
    (tagged("bool", False), True, "01 00 01 01"),
    (tagged("bool", True), False, "01 00 01 00"),
    (tagged("int8", 0), -1, "01 00 01 ff"),
    (tagged("int16", 0), 256, "01 00 02 0100"),
    (tagged("int32", -1), 0, "01 00 04 00000000"),
    (tagged("int64", -1), 5, "01 00 08 0000000000000005"),
    (tagged("uint16", 0), 65535, "01 00 02 ffff"),
    (tagged("uint32", 0), 4294967295, "01 00 04 ffffffff"),
    (tagged("float64", 0.0), 1.0, "01 00 08 3ff0000000000000"),
    (tagged("uuid", ZERO_UUID), ID, "01 00 10 00000000000000000000000000000001"),
    (tagged("uuid", ID), ZERO_UUID, "01 00 10 00000000000000000000000000000000"),
    (tagged("string", ""), "abc", "01 00 04 04 616263"),
    (tagged("string", "abc"), "", "01 00 01 01"),
    (tagged("string", "", nullable="0+"), None, "01 00 01 00"),
    (tagged("string", None, nullable="0+"), "", "01 00 01 01"),
    (tagged("bytes", b""), b"\xca\xfe", "01 00 03 03 cafe"),
    (tagged("bytes", b"", nullable="0+"), None, "01 00 01 00"),
    (tagged("bytes", None, nullable="0+"), b"", "01 00 01 01"),
    (tagged("[]int32", ()), (7, -7), "01 00 09 03 00000007 fffffff9"),
    (tagged("[]int32", (), nullable="0+"), None, "01 00 01 00"),
    (tagged("[]int32", None, nullable="0+"), (), "01 00 01 01"),
    (tagged("[]string", ()), ("", "a"), "01 00 04 03 01 0261"),
    (tagged("[]bool", ()), (True, False), "01 00 03 03 01 00"),
    (tagged("[]uuid", ()), (ID,), "01 00 11 02 00000000000000000000000000000001"),
    (tagged("[]Leaf", (), struct=Leaf), (Leaf(number=1),), "01 00 07 02 00000001 00 00"),
    (tagged("Leaf", Leaf(), struct=Leaf), Leaf(number=1), "01 00 06 00000001 00 00"),
    (tagged("Leaf", Leaf(), struct=Leaf, nullable="0+"), Leaf(number=1), "01 00 07 01 00000001 00 00"),
    (tagged("Leaf", Leaf(), struct=Leaf, nullable="0+"), None, "01 00 01 00"),
    (tagged("Leaf", None, struct=Leaf, nullable="0+"), Leaf(), "01 00 07 01 00000000 00 00"),
    (
        tagged("Leaf", Leaf(), struct=Leaf),
        Leaf(unknown_tagged_fields=((3, b"x"),)),
        "01 00 09 00000000 00 01 03 01 78",
    ),
]


@pytest.mark.parametrize(("cls", "value", "data"), TAGGED)
def test_a_tagged_field_that_is_set(codecs: Codecs, cls: type[Any], value: Any, data: str) -> None:
    assert codecs.encode(cls(a=value), 0).hex() == bytes.fromhex(data).hex()
    assert codecs.decode(cls, data, 0).a == value


@pytest.mark.parametrize(("cls", "value", "data"), TAGGED)
def test_a_tagged_field_with_its_default_is_not_written(codecs: Codecs, cls: type[Any], value: Any, data: str) -> None:
    assert codecs.encode(cls(), 0).hex() == "00"
    assert codecs.decode(cls, "00", 0) == cls()


def test_an_empty_list_is_the_empty_default(codecs: Codecs) -> None:
    assert codecs.encode(tagged("[]int32", ())(a=[]), 0).hex() == "00"
    assert codecs.encode(tagged("[]int32", None, nullable="0+")(a=[]), 0).hex() == "01000101"


def test_a_tagged_negative_zero_is_the_default_and_not_a_number_never_is(codecs: Codecs) -> None:
    zero = tagged("float64", 0.0)
    assert codecs.encode(zero(a=-0.0), 0).hex() == "00"
    assert codecs.encode(zero(a=math.nan), 0).hex() == "0100087ff8000000000000"
    assert math.isnan(codecs.decode(zero, "01 00 08 7ff8000000000000", 0).a)
    assert codecs.encode(tagged("float64", math.nan)(), 0).hex() == "0100087ff8000000000000"


def test_a_negative_zero_that_is_not_tagged_keeps_its_sign(codecs: Codecs) -> None:
    cls = positional("float64", 0.0)
    assert codecs.encode(cls(a=-0.0), 0).hex() == "8000000000000000"
    assert math.copysign(1.0, codecs.decode(cls, "8000000000000000", 0).a) == -1.0


def test_the_marker_of_a_tagged_struct_is_a_varint(codecs: Codecs) -> None:
    cls = tagged("Leaf", None, struct=Leaf, nullable="0+")
    for marker in ("01", "02", "7f"):
        assert codecs.decode(cls, f"01 00 07 {marker} 00000005 00 00", 0).a == Leaf(number=5)
    assert codecs.decode(cls, "01 00 08 8001 00000005 00 00", 0).a == Leaf(number=5)
    for marker in ("00", "ffffffff0f", "8080808008"):
        assert codecs.decode(cls, f"01 00 0{len(marker) // 2} {marker}", 0).a is None


# Order of tags, and undeclared tags

Ordered = message_class(
    "Ordered",
    "0-1",
    "0+",
    last=field("Last", "int8", tag=2, tagged="0+", default=0),
    first=field("First", "int8", tag=0, tagged="0+", default=0),
    plain=field("Plain", "int8", default=0),
    middle=field("Middle", "int8", "1+", tag=1, tagged="1+", default=0, ignorable=True),
    leaf=field("Leaf", "Leaf", default=Leaf(), struct=Leaf),
)
TAGS: list[tuple[int, dict[str, Any], str]] = [
    (0, {"last": 3, "first": 1}, "02 00 01 01 02 01 03"),
    (1, {"last": 3, "first": 1, "middle": 2}, "03 00 01 01 01 01 02 02 01 03"),
    (0, {"unknown_tagged_fields": ((3, b""), (300, b"\xaa"))}, "02 03 00 ac02 01 aa"),
    (1, {"last": 3, "unknown_tagged_fields": ((9, b"xy"),)}, "02 02 01 03 09 02 7879"),
    (1, {"first": 1, "unknown_tagged_fields": ((2147483646, b"z"),)}, "02 00 01 01 feffffff07 01 7a"),
    (0, {"unknown_tagged_fields": ((5, bytes(200)),)}, "01 05 c801" + "00" * 200),
]


@pytest.mark.parametrize(("version", "values", "section"), TAGS)
def test_tags_ascend_and_unknown_ones_are_kept(
    codecs: Codecs, version: int, values: dict[str, Any], section: str
) -> None:
    message = Ordered(plain=7, **values)
    data = bytes.fromhex(f"07 00000000 00 00 {section}")
    assert codecs.encode(message, version).hex() == data.hex()
    decoded = codecs.decode(Ordered, data, version)
    assert decoded == message
    assert codecs.encode(decoded, version) == data


def test_unknown_tags_stay_with_their_own_struct(codecs: Codecs) -> None:
    cls = message_class("Outer", flexible="0+", leaves=field("Leaves", "[]Leaf", default=(), struct=Leaf))
    data = bytes.fromhex("03 00000001 01 01 00 01 aa 00000002 00 01 07 00 01 01 02 bbcc")
    message = codecs.decode(cls, data, 0)
    assert [leaf.unknown_tagged_fields for leaf in message.leaves] == [((0, b"\xaa"),), ((7, b""),)]
    assert message.unknown_tagged_fields == ((1, b"\xbb\xcc"),)
    assert codecs.encode(message, 0) == data


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("02 02 01 03 00 01 01", "tag 0 after tag 2: tags must ascend"),
        ("02 00 01 01 00 01 01", "tag 0 after tag 0: tags must ascend"),
        ("02 09 00 09 00", "tag 9 after tag 9: tags must ascend"),
        ("01 8080808008 00", "tag 2147483648 after tag -1: tags must ascend"),
        ("01 01 01 05", "tag 1 is not valid at this version"),
        ("01 00 02 0101", "tag 0 declares 2 bytes, its value took 1"),
    ],
)
def test_a_tag_section_that_kafka_would_not_write(codecs: Codecs, section: str, reason: str) -> None:
    with pytest.raises(InvalidTagError) as caught:
        codecs.decode(Ordered, f"07 00000000 00 00 {section}", 0)
    assert caught.value.reason == reason


@pytest.mark.parametrize(("data", "needed"), [("01 00 00", 1), ("01 00 03 04 616263", 3)])
def test_a_tagged_value_ends_after_its_size(codecs: Codecs, data: str, needed: int) -> None:
    cls = tagged("string", "")
    with pytest.raises(Exception, match=rf"a at byte \d: .* needs {needed} bytes"):
        codecs.decode(cls, data, 0)


# Nullable structs among the positional fields

NULLABLE_LEAF = positional("Leaf", None, struct=Leaf, nullable="0+")


@pytest.mark.parametrize(
    ("value", "classic", "flexible"),
    [(None, "ff", "ff 00"), (Leaf(number=1), "01 00000001 00", "01 00000001 00 00 00")],
)
def test_a_nullable_struct_has_a_marker(codecs: Codecs, value: Any, classic: str, flexible: str) -> None:
    for version, data in enumerate((classic, flexible)):
        assert codecs.encode(NULLABLE_LEAF(a=value), version).hex() == bytes.fromhex(data).hex()
        assert codecs.decode(NULLABLE_LEAF, data, version).a == value


@pytest.mark.parametrize("marker", [0, 1, 2, 127, 128, 200, 255])
def test_a_negative_marker_is_null_and_any_other_is_not(codecs: Codecs, marker: int) -> None:
    null = marker > 127
    data = bytes([marker]) + (b"" if null else bytes.fromhex("00000001 01"))
    expected = None if null else Leaf(number=1, flag=True)
    assert codecs.decode(NULLABLE_LEAF, data, 0).a == expected
    assert codecs.encode(NULLABLE_LEAF(a=expected), 0)[0] == (255 if null else 1)


def test_a_struct_has_a_marker_only_in_the_versions_where_it_is_nullable(codecs: Codecs) -> None:
    cls = positional("Leaf", Leaf(), struct=Leaf, nullable="1+")
    assert codecs.encode(cls(a=Leaf(number=1)), 0).hex() == "0000000100"
    assert codecs.encode(cls(a=Leaf(number=1)), 1).hex() == "01000000010000" + "00"
    assert codecs.decode(cls, "00000001 00", 0).a == Leaf(number=1)


# Fields that a version lacks

ABSENT: list[tuple[str, dict[str, Any], Any]] = [
    ("bool", {"default": False}, True),
    ("int32", {"default": -1}, 0),
    ("float64", {"default": 0.0}, math.nan),
    ("string", {"default": ""}, "x"),
    ("string", {"default": None, "nullable": "1+"}, ""),
    ("string", {"default": "", "nullable": "1+"}, None),
    ("bytes", {"default": b""}, b"x"),
    ("records", {"default": None, "nullable": "1+"}, b""),
    ("uuid", {"default": ZERO_UUID}, ID),
    ("[]int32", {"default": ()}, (1,)),
    ("[]int32", {"default": None, "nullable": "1+"}, ()),
    ("Leaf", {"default": Leaf(), "struct": Leaf}, Leaf(number=1)),
    ("Leaf", {"default": None, "struct": Leaf, "nullable": "1+"}, Leaf()),
    ("int32", {"default": 0, "tag": 0, "tagged": "1+"}, 5),
]


def since_version_1(type_: str, facts: dict[str, Any], *, ignorable: bool) -> type[Any]:
    return message_class("Newer", "0-1", "1+", a=field("A", type_, "1+", ignorable=ignorable, **facts))


@pytest.mark.parametrize(("type_", "facts", "value"), ABSENT)
def test_a_set_field_is_refused_where_the_version_lacks_it(
    codecs: Codecs, type_: str, facts: dict[str, Any], value: Any
) -> None:
    cls = since_version_1(type_, facts, ignorable=False)
    assert codecs.encode(cls(), 0) == b""
    with pytest.raises(UnsupportedFieldError) as refused:
        codecs.encode(cls(a=value), 0)
    assert (refused.value.path, refused.value.version) == ("a", 0)
    assert codecs.encode(cls(a=value), 1)


@pytest.mark.parametrize(("type_", "facts", "value"), ABSENT)
def test_a_set_field_is_dropped_where_it_is_ignorable(
    codecs: Codecs, type_: str, facts: dict[str, Any], value: Any
) -> None:
    cls = since_version_1(type_, facts, ignorable=True)
    assert codecs.encode(cls(a=value), 0) == b""
    assert codecs.decode(cls, b"", 0).a == facts["default"]


def test_a_negative_zero_does_not_count_as_loss(codecs: Codecs) -> None:
    assert codecs.encode(since_version_1("float64", {"default": 0.0}, ignorable=False)(a=-0.0), 0) == b""


def test_what_is_dropped_whole_is_not_looked_into(codecs: Codecs) -> None:
    inner = struct_class("Inner", late=field("Late", "int32", "2+", default=0))
    cls = message_class(
        "Dropping", "0-2", items=field("Items", "[]Inner", "1+", default=(), struct=inner, ignorable=True)
    )
    message = cls(items=(inner(late=1),))
    assert codecs.encode(message, 0) == b""
    with pytest.raises(UnsupportedFieldError) as refused:
        codecs.encode(message, 1)
    assert refused.value.path == "items[0].late"


def test_a_field_is_positional_before_it_is_tagged(codecs: Codecs) -> None:
    cls = message_class("Moving", "0-2", "1+", a=field("A", "int16", tag=0, tagged="2+", default=7))
    assert [codecs.encode(cls(), version).hex() for version in range(3)] == ["0007", "000700", "00"]
    assert [codecs.encode(cls(a=1), version).hex() for version in range(3)] == ["0001", "000100", "0100020001"]
    with pytest.raises(InvalidTagError):
        codecs.decode(cls, "0001 01 00 02 0001", 1)


def test_a_retired_field_keeps_its_default(codecs: Codecs) -> None:
    cls = message_class("Older", "0-1", a=field("A", "int32", "0", default=-1), b=field("B", "int8", default=0))
    assert codecs.decode(cls, "05", 1) == cls(a=-1, b=5)


# Elements keep duplicates and order; empty structs take no bytes


def test_map_keys_do_not_make_entries_unique(codecs: Codecs) -> None:
    entry = struct_class("Entry", key=field("Key", "string", default="", map_key=True))
    cls = positional("[]Entry", (), struct=entry)
    data = "00000003 000162 000161 000162"
    decoded = codecs.decode(cls, data, 0)
    assert [item.key for item in decoded.a] == ["b", "a", "b"]
    assert codecs.encode(decoded, 0) == bytes.fromhex(data)


def test_empty_structs(codecs: Codecs) -> None:
    nothing = struct_class("Nothing")
    cls = positional("[]Nothing", (), struct=nothing)
    assert codecs.encode(cls(a=(nothing(), nothing())), 1).hex() == "03000000"
    assert codecs.decode(cls, "03 00 00 00", 1) == cls(a=(nothing(), nothing()))
    assert codecs.decode(cls, "00000000", 0) == cls()
    with pytest.raises(InvalidLengthError, match="array of 2 elements needs at least 2 bytes, 0 left"):
        codecs.decode(cls, "00000002", 0)


def test_a_message_without_fields(codecs: Codecs) -> None:
    cls = message_class("Empty", "0-1", "1+")
    assert [codecs.encode(cls(), version).hex() for version in range(2)] == ["", "00"]
    assert [codecs.decode(cls, data, version) for version, data in enumerate(("", "00"))] == [cls(), cls()]
    assert codecs.decode(cls, "01 05 01 aa", 1) == cls(unknown_tagged_fields=((5, b"\xaa"),))
