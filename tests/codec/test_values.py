"""Single values, kinds of input, and codec options: copies, strictness of text, decoding within a buffer."""

from __future__ import annotations

from array import array
from typing import Any
from uuid import UUID

import pytest

from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import EncodeError, InvalidLengthError, InvalidUtf8Error, TrailingDataError
from kafka_msgs.schema import field
from tests.support.codecs import Codecs, message_class, struct_class


def one(type_: str, **facts: Any) -> type[Any]:
    """Return a message with one field, classic in version 0 and flexible in version 1."""
    return message_class("One", "0-1", "1+", a=field("A", type_, **{"default": None} | facts))


SCALARS: list[tuple[str, Any, str]] = [
    ("bool", True, "01"),
    ("bool", False, "00"),
    ("int8", -128, "80"),
    ("int8", 127, "7f"),
    ("int16", -32768, "8000"),
    ("int16", 32767, "7fff"),
    ("int32", -2147483648, "80000000"),
    ("int32", 2147483647, "7fffffff"),
    ("int64", -9223372036854775808, "8000000000000000"),
    ("int64", 9223372036854775807, "7fffffffffffffff"),
    ("uint16", 0, "0000"),
    ("uint16", 32768, "8000"),
    ("uint16", 65535, "ffff"),
    ("uint32", 2147483648, "80000000"),
    ("uint32", 4294967295, "ffffffff"),
    ("float64", 0.1, "3fb999999999999a"),
    ("float64", float("inf"), "7ff0000000000000"),
    ("float64", float("-inf"), "fff0000000000000"),
    ("float64", 5e-324, "0000000000000001"),
    ("uuid", UUID("00112233-4455-6677-8899-aabbccddeeff"), "00112233445566778899aabbccddeeff"),
]


@pytest.mark.parametrize(("type_", "value", "data"), SCALARS)
def test_values_of_fixed_size_are_the_same_in_both_forms(codecs: Codecs, type_: str, value: Any, data: str) -> None:
    cls = one(type_)
    for version, end in enumerate(("", "00")):
        assert codecs.encode(cls(a=value), version).hex() == data + end
        decoded = codecs.decode(cls, data + end, version).a
        assert decoded == value
        assert type(decoded) is type(value)


@pytest.mark.parametrize(("type_", "value", "data"), SCALARS)
def test_arrays_of_them_hold_them_back_to_back(codecs: Codecs, type_: str, value: Any, data: str) -> None:
    cls = one(f"[]{type_}")
    for count in (1, 2, 40, 130):
        message = cls(a=(value,) * count)
        classic = count.to_bytes(4, "big") + bytes.fromhex(data * count)
        assert codecs.encode(message, 0) == classic
        assert codecs.decode(cls, classic, 0) == message
        compact = (bytes([count + 1]) if count < 127 else b"\x83\x01") + bytes.fromhex(data * count) + b"\0"
        assert codecs.encode(message, 1) == compact
        assert codecs.decode(cls, compact, 1) == message


@pytest.mark.parametrize("byte", [1, 2, 7, 127, 128, 255])
def test_any_byte_but_zero_is_true(codecs: Codecs, byte: int) -> None:
    cls = one("bool")
    assert codecs.decode(cls, bytes([byte]), 0).a is True
    assert codecs.decode(one("[]bool"), bytes([0, 0, 0, 2, byte, 0]), 0).a == (True, False)
    assert codecs.encode(codecs.decode(cls, bytes([byte]), 0), 0) == b"\x01"


def test_int_enums_are_ints(codecs: Codecs) -> None:
    from kafka_msgs import ErrorCode

    assert codecs.encode(one("int16")(a=ErrorCode.NOT_COORDINATOR), 0).hex() == "0010"
    assert codecs.encode(one("int8")(a=True), 0).hex() == "01"


# Text

STRINGS = [("", "0000", "01"), ("abc", "0003 616263", "04 616263"), ("日", "0003 e697a5", "04 e697a5")]


@pytest.mark.parametrize(("text", "classic", "compact"), STRINGS)
def test_strings(codecs: Codecs, text: str, classic: str, compact: str) -> None:
    cls = one("string")
    for version, data in enumerate((classic, compact + "00")):
        assert codecs.encode(cls(a=text), version) == bytes.fromhex(data)
        assert codecs.decode(cls, data, version).a == text


@pytest.mark.parametrize("text", ["a" * 32767, "é" * 16383 + "a", "語" * 10922 + "a"])
@pytest.mark.parametrize("version", [0, 1])
def test_the_longest_string_has_32767_bytes(codecs: Codecs, text: str, version: int) -> None:
    cls = one("string")
    raw = text.encode()
    data = (b"\x7f\xff" if version == 0 else b"\x80\x80\x02") + raw + b"\0" * version
    assert codecs.encode(cls(a=text), version) == data
    assert codecs.decode(cls, data, version).a == text
    with pytest.raises(EncodeError, match="string of 32768 bytes; the limit is 32767"):
        codecs.encode(cls(a=text + "a"), version)


def test_a_longer_compact_string_is_refused(codecs: Codecs) -> None:
    with pytest.raises(InvalidLengthError, match="string of 32768 bytes; the limit is 32767"):
        codecs.decode(one("string"), b"\x81\x80\x02" + b"a" * 32768 + b"\0", 1)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 16382, 16383, 40000])
def test_bytes_of_any_length(codecs: Codecs, size: int) -> None:
    from kafka_msgs.primitives import write_uvarint

    for type_ in ("bytes", "records"):
        cls = one(type_)
        content = b"\xfe" * size
        for version, data in enumerate((size.to_bytes(4, "big") + content, write_uvarint(size + 1) + content + b"\0")):
            assert codecs.encode(cls(a=content), version) == data
            assert codecs.decode(cls, data, version).a == content


def test_a_length_may_be_longer_than_needed(codecs: Codecs) -> None:
    assert codecs.decode(one("string"), "848000 616263 00", 1).a == "abc"


@pytest.mark.parametrize(("raw", "offset"), [("ff", 2), ("61c3", 3), ("eda080", 2), ("c080", 2), ("f4908080", 2)])
def test_what_is_not_utf8(codecs: Codecs, raw: str, offset: int) -> None:
    cls, size = one("string"), len(raw) // 2
    data = size.to_bytes(2, "big") + bytes.fromhex(raw)
    with pytest.raises(InvalidUtf8Error) as caught:
        codecs.decode(cls, data, 0)
    assert (caught.value.path, caught.value.offset) == ("a", offset)
    escaped = codecs.decode(cls, data, 0, CodecOptions(utf8_errors="surrogateescape"))
    assert codecs.encode(escaped, 0, CodecOptions(utf8_errors="surrogateescape")) == data
    replaced = codecs.decode(cls, data, 0, CodecOptions(utf8_errors="replace")).a
    assert replaced == bytes.fromhex(raw).decode("utf-8", "replace")


def test_lone_surrogates_are_written_only_by_choice(codecs: Codecs) -> None:
    message = one("string")(a="\udcff")
    with pytest.raises(EncodeError, match="cannot be written as UTF-8: surrogates not allowed"):
        codecs.encode(message, 0)
    assert codecs.encode(message, 0, CodecOptions(utf8_errors="surrogateescape")).hex() == "0001ff"
    assert codecs.encode(message, 0, CodecOptions(utf8_errors="replace")).hex() == "00013f"


# A field may keep the classic form in a flexible version

Override = message_class(
    "Override",
    "0-2",
    "1+",
    always=field("Always", "string", flexible="none", nullable="0+", default=""),
    later=field("Later", "bytes", flexible="2+", default=b""),
    never=field("Never", "string", default=""),
)


@pytest.mark.parametrize(
    ("version", "data"),
    [(0, "0001 61 00000001 62 0001 63"), (1, "0001 61 00000001 62 02 63 00"), (2, "0001 61 02 62 02 63 00")],
)
def test_a_field_with_flexible_versions_of_its_own(codecs: Codecs, version: int, data: str) -> None:
    message = Override(always="a", later=b"b", never="c")
    assert codecs.encode(message, version) == bytes.fromhex(data)
    assert codecs.decode(Override, data, version) == message


def test_null_in_the_classic_form_of_a_flexible_version(codecs: Codecs) -> None:
    message = Override(always=None)
    assert codecs.encode(message, 2).hex() == "ffff010100"
    assert codecs.decode(Override, "ffff 01 01 00", 2) == message


# Inputs and copies

Holder = message_class(
    "Holder",
    "0-1",
    "1+",
    batches=field("Batches", "records", nullable="0+", default=None),
    shared=field("Shared", "bytes", default=b"", zero_copy=True),
    plain=field("Plain", "bytes", default=b""),
)
HOLDER = ("00000003 aabbcc 00000002 ddee 00000001 ff", "04 aabbcc 03 ddee 02 ff 00")
VIEWS = CodecOptions(memoryview_records=True)


@pytest.mark.parametrize("version", [0, 1])
def test_records_and_zero_copy_bytes_share_the_memory_of_the_input(codecs: Codecs, version: int) -> None:
    data = bytes.fromhex(HOLDER[version])
    message = codecs.decode(Holder, data, version, VIEWS)
    for view in (message.batches, message.shared):
        assert isinstance(view, memoryview)
        assert view.obj is data
        assert view.readonly
    assert type(message.plain) is bytes
    assert (bytes(message.batches), bytes(message.shared), message.plain) == (b"\xaa\xbb\xcc", b"\xdd\xee", b"\xff")
    assert codecs.encode(message, version) == data
    assert message == codecs.decode(Holder, data, version)


@pytest.mark.parametrize("version", [0, 1])
def test_bytes_are_copied_unless_asked_otherwise(codecs: Codecs, version: int) -> None:
    message = codecs.decode(Holder, HOLDER[version], version)
    assert [type(value) for value in (message.batches, message.shared, message.plain)] == [bytes] * 3


def test_null_records_are_none_with_views_too(codecs: Codecs) -> None:
    assert codecs.decode(Holder, "ffffffff 00000000 00000000", 0, VIEWS).batches is None


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data))])
def test_input_of_every_kind_of_buffer(codecs: Codecs, make: Any) -> None:
    data = bytes.fromhex(HOLDER[1])
    assert codecs.decode(Holder, make(data), 1) == codecs.decode(Holder, data, 1)
    assert codecs.read(Holder, make(b"\0" + data + b"\0"), 1, 1) == (codecs.decode(Holder, data, 1), len(data) + 1)


def test_a_view_of_larger_items_is_so_many_bytes(codecs: Codecs) -> None:
    numbers = memoryview(array("I", [0, 0]))
    assert codecs.decode(one("int64"), numbers, 0).a == 0
    assert codecs.decode(one("int64"), memoryview(bytes(16))[::2], 0).a == 0


@pytest.mark.parametrize("data", [8, None, [0] * 8])
def test_what_is_not_a_buffer_is_a_type_error(codecs: Codecs, data: Any) -> None:
    with pytest.raises(TypeError):
        codecs.decode(one("int64"), data, 0)
    with pytest.raises(TypeError):
        codecs.read(one("int64"), data, 0, 0)


def test_a_decoded_message_does_not_change_with_its_input(codecs: Codecs) -> None:
    buffer = bytearray.fromhex(HOLDER[1])
    message = codecs.decode(Holder, buffer, 1, VIEWS)
    buffer[:] = bytes(len(buffer))
    assert bytes(message.batches) == b"\xaa\xbb\xcc"


@pytest.mark.parametrize("value", [b"\1\2\3", bytearray(b"\1\2\3"), memoryview(b"\0\1\2\3\4")[1:4]])
def test_every_kind_of_buffer_can_be_written(codecs: Codecs, value: Any) -> None:
    assert codecs.encode(one("bytes")(a=value), 0).hex() == "00000003010203"
    assert codecs.encode(one("bytes")(a=value), 1).hex() == "0401020300"


def test_a_view_of_larger_items_is_written_whole(codecs: Codecs) -> None:
    assert codecs.encode(one("records")(a=memoryview(array("H", [0x0101, 0x0202]))), 0).hex() == "0000000401010202"
    assert codecs.encode(one("bytes")(a=memoryview(b"\1\2\3\4")[::2]), 1).hex() == "03010300"


def test_reading_starts_at_an_offset_and_tells_where_it_ends(codecs: Codecs) -> None:
    leaf = struct_class("Leaf", number=field("Number", "int16", default=0))
    cls = one("[]Leaf", struct=leaf)
    buffer = bytes.fromhex("ffff 00000002 0001 0002 00000000 99")
    first, end = codecs.read(cls, buffer, 0, 2)
    assert (first, end) == (cls(a=(leaf(number=1), leaf(number=2))), 10)
    assert codecs.read(cls, buffer, 0, end) == (cls(a=()), 14)
    with pytest.raises(TrailingDataError, match="at byte 8: 5 bytes left over"):
        codecs.decode(cls, buffer[2:], 0)


@pytest.mark.parametrize("offset", [-1, 3, 100])
def test_an_offset_outside_the_buffer(codecs: Codecs, offset: int) -> None:
    with pytest.raises(ValueError, match=f"offset {offset} is outside a buffer of 2 bytes"):
        codecs.read(one("int8"), b"\1\2", 0, offset)


def test_an_offset_at_the_end_of_the_buffer(codecs: Codecs) -> None:
    empty = message_class("Empty")
    assert codecs.read(empty, b"\1\2", 0, 2) == (empty(), 2)
    with pytest.raises(Exception, match="a at byte 2: int8 needs 1 bytes, 0 left"):
        codecs.read(one("int8"), b"\1\2", 0, 2)
