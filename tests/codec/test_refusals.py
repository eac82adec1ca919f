"""Messages that cannot be encoded, and bytes that cannot be decoded: all executors raise the same error."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs import MetadataRequest, OffsetFetchRequest, OffsetFetchResponse, ProduceRequest, RequestHeader
from kafka_msgs.codec import CodecOptions, DecodeBudget
from kafka_msgs.errors import (
    BudgetExceededError,
    DecodeError,
    EncodeError,
    InvalidLengthError,
    InvalidTagError,
    InvalidUtf8Error,
    InvalidVarintError,
    TrailingDataError,
    TruncatedError,
    UnexpectedNullError,
    UnsupportedFieldError,
    UnsupportedVersionError,
)
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafka_msgs.schema import ZERO_UUID, field
from tests.support.codecs import Codecs, message_class, struct_class

Leaf = struct_class("Leaf", number=field("Number", "int32", default=0))
Other = struct_class("Other", number=field("Number", "int32", default=0))
DEFAULTS: dict[str, Any] = {
    "bool": False, "int8": 0, "int16": 0, "int32": 0, "int64": 0, "uint16": 0, "uint32": 0, "float64": 0.0,
    "uuid": ZERO_UUID, "string": "", "bytes": b"", "records": b"", "[]int32": (), "[]Leaf": (), "Leaf": Leaf(),
}  # fmt: skip


def holding(type_: str) -> type[Any]:
    """Return a message with fields of a type in three positions: directly, in an array of structs, and tagged."""
    facts: dict[str, Any] = {"struct": Leaf} if "Leaf" in type_ else {}
    default = DEFAULTS[type_]
    inner = struct_class("Inner", value=field("Value", type_, default=default, **facts))
    tagged = {} if type_ == "records" else {"t": field("T", type_, tag=0, tagged="1+", default=default, **facts)}
    return message_class(
        "Holding",
        "0-1",
        "1+",
        plain=field("Plain", type_, default=default, **facts),
        items=field("Items", "[]Inner", default=(), struct=inner),
        inner=field("Inner", "Inner", default=inner(), struct=inner),
        **tagged,
    )


HOLDING = {type_: holding(type_) for type_ in DEFAULTS}


def inner_class(type_: str) -> type[Any]:
    return type(HOLDING[type_]().inner)


WRONG: list[tuple[str, Any, str]] = [
    *[("bool", value, f"expected bool, got {type(value).__name__}") for value in (0, 1, 1.0, "x", b"", (), Leaf())],
    *[
        (type_, value, f"expected int, got {type(value).__name__}")
        for type_ in ("int8", "int16", "int32", "int64", "uint16", "uint32")
        for value in (1.0, "1", b"1", (1,), Leaf())
    ],
    ("int8", 128, "128 is out of range for int8"),
    ("int8", -129, "-129 is out of range for int8"),
    ("int16", 32768, "32768 is out of range for int16"),
    ("int16", -32769, "-32769 is out of range for int16"),
    ("int32", 2**31, "2147483648 is out of range for int32"),
    ("int32", -(2**31) - 1, "-2147483649 is out of range for int32"),
    ("int64", 2**63, "9223372036854775808 is out of range for int64"),
    ("uint16", -1, "-1 is out of range for uint16"),
    ("uint16", 65536, "65536 is out of range for uint16"),
    ("uint32", -1, "-1 is out of range for uint32"),
    ("uint32", 2**32, "4294967296 is out of range for uint32"),
    ("float64", "1.0", "expected float, got str"),
    ("float64", b"1", "expected float, got bytes"),
    ("float64", (), "expected float, got tuple"),
    ("uuid", "00000000-0000-0000-0000-000000000000", "expected UUID, got str"),
    ("uuid", bytes(16), "expected UUID, got bytes"),
    ("uuid", 1, "expected UUID, got int"),
    ("string", b"bytes", "expected str, got bytes"),
    ("string", 7, "expected str, got int"),
    ("string", ("a",), "expected str, got tuple"),
    ("string", "\ud800", "cannot be written as UTF-8: surrogates not allowed"),
    ("string", "a" * 32768, "string of 32768 bytes; the limit is 32767"),
    ("string", "é" * 16384, "string of 32768 bytes; the limit is 32767"),
    ("bytes", "text", "expected bytes, got str"),
    ("bytes", 7, "expected bytes, got int"),
    ("bytes", (1, 2), "expected bytes, got tuple"),
    ("records", "text", "expected bytes, got str"),
    ("[]int32", 7, "expected tuple, got int"),
    ("[]int32", "12", "expected tuple, got str"),
    ("[]int32", {1: 2}, "expected tuple, got dict"),
    ("[]int32", range(2), "expected tuple, got range"),
    ("[]Leaf", Leaf(), "expected tuple, got Leaf"),
    ("Leaf", 7, "expected Leaf, got int"),
    ("Leaf", {"number": 1}, "expected Leaf, got dict"),
    ("Leaf", Other(), "expected Leaf, got Other"),
    *[(type_, None, "None, which this version does not allow") for type_ in DEFAULTS],
]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(("type_", "value", "reason"), WRONG)
def test_a_value_that_does_not_fit_its_field(codecs: Codecs, version: int, type_: str, value: Any, reason: str) -> None:
    cls, inner = HOLDING[type_], inner_class(type_)
    cases = {
        "plain": cls(plain=value),
        "items[1].value": cls(items=(inner(), inner(value=value))),
        "inner.value": cls(inner=inner(value=value)),
    }
    if type_ != "records" and version == 1 and value != DEFAULTS[type_]:
        cases["t"] = cls(t=value)
    for path, message in cases.items():
        with pytest.raises(EncodeError) as refused:
            codecs.encode(message, version)
        assert str(refused.value) == f"Holding v{version}: {path}: {reason}"
        assert type(refused.value) is EncodeError
        assert refused.value.value is value


@pytest.mark.parametrize(
    ("items", "path", "reason"),
    [
        ((1, 2.0), "plain[1]", "expected int, got float"),
        ((1, None, 3), "plain[1]", "None, which this version does not allow"),
        ((0, 0, 2**31), "plain[2]", "2147483648 is out of range for int32"),
        ((0,) * 200 + ("x",), "plain[200]", "expected int, got str"),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_an_element_that_does_not_fit(codecs: Codecs, version: int, items: Any, path: str, reason: str) -> None:
    with pytest.raises(EncodeError) as refused:
        codecs.encode(HOLDING["[]int32"](plain=items), version)
    assert str(refused.value) == f"Holding v{version}: {path}: {reason}"


@pytest.mark.parametrize("element", [None, 7, Other(), "x"])
def test_an_element_of_the_wrong_class(codecs: Codecs, element: Any) -> None:
    with pytest.raises(EncodeError) as refused:
        codecs.encode(HOLDING["[]Leaf"](plain=(Leaf(), element)), 0)
    assert refused.value.path == "plain[1]"


@pytest.mark.parametrize("message", [None, 7, Leaf(), OffsetFetchRequest()])
def test_a_message_of_the_wrong_class(executor: str, message: Any) -> None:
    from tests.support.codecs import codec

    with pytest.raises(EncodeError) as refused:
        codec(executor, MetadataRequest, 1).encode(message)
    assert str(refused.value) == f"MetadataRequest v1: expected MetadataRequest, got {type(message).__name__}"


@pytest.mark.parametrize("type_", ["int32", "float64"])
def test_a_number_too_long_to_print(codecs: Codecs, type_: str) -> None:
    with pytest.raises(EncodeError) as refused:
        codecs.encode(HOLDING[type_](plain=10**5000), 0)
    assert refused.value.path == "plain"
    assert "out of range" in refused.value.reason
    assert len(refused.value.reason) < 200


def test_an_unsupported_field_shows_little_of_a_large_value(codecs: Codecs) -> None:
    with pytest.raises(UnsupportedFieldError) as refused:
        codecs.encode(OffsetFetchRequest(group_id="g" * 10_000), 8)
    assert len(str(refused.value)) < 300
    assert refused.value.value == "g" * 10_000


# Unknown tags

UNKNOWN: list[tuple[Any, str]] = [
    (((0, b""),), "tag 0 is a declared field"),
    (((3, b""), (3, b"")), "tag 3 after tag 3: tags must ascend"),
    (((5, b""), (4, b"")), "tag 4 after tag 5: tags must ascend"),
    (((-1, b""),), "tag -1 after tag -1: tags must ascend"),
    (((2**31, b""),), "tag 2147483648 after tag -1: tags must ascend"),
    (((5, "text"),), "tag 5 holds str, not bytes"),
    (((5, None),), "tag 5 holds NoneType, not bytes"),
    ((("5", b""),), "expected pairs of (tag, bytes)"),
    (((5,),), "expected pairs of (tag, bytes)"),
    (((5, b"", 1),), "expected pairs of (tag, bytes)"),
    ((5,), "expected pairs of (tag, bytes)"),
    (([5, b""],), "expected pairs of (tag, bytes)"),
    ({5: b""}, "expected a tuple of (tag, bytes)"),
    (7, "expected a tuple of (tag, bytes)"),
    (None, "expected a tuple of (tag, bytes)"),
]


@pytest.mark.parametrize(("unknown", "reason"), UNKNOWN)
def test_unknown_tags_that_cannot_be_written(codecs: Codecs, unknown: Any, reason: str) -> None:
    message = HOLDING["int32"](unknown_tagged_fields=unknown)
    with pytest.raises(UnsupportedFieldError) as refused:
        codecs.encode(message, 1)
    assert str(refused.value) == f"Holding v1: unknown_tagged_fields: {reason}"


def test_a_version_without_tags_cannot_carry_unknown_ones(codecs: Codecs) -> None:
    inner = inner_class("int32")
    tagged = inner(unknown_tagged_fields=((9, b"x"),))
    for path, message in {
        "unknown_tagged_fields": HOLDING["int32"](unknown_tagged_fields=((9, b"x"),)),
        "items[0].unknown_tagged_fields": HOLDING["int32"](items=(tagged,)),
        "inner.unknown_tagged_fields": HOLDING["int32"](inner=tagged),
    }.items():
        with pytest.raises(UnsupportedFieldError) as refused:
            codecs.encode(message, 0)
        assert str(refused.value) == f"Holding v0: {path}: this version has no tagged fields"
        assert codecs.encode(message, 1)


def test_a_tag_declared_for_other_versions_only(codecs: Codecs) -> None:
    cls = message_class("Later", "0-1", "0+", a=field("A", "int32", "1+", tag=0, tagged="1+", default=0))
    with pytest.raises(UnsupportedFieldError, match="tag 0 is a declared field"):
        codecs.encode(cls(unknown_tagged_fields=((0, b"x"),)), 0)


# Released messages: exact texts


@pytest.mark.parametrize(
    ("message", "version", "error", "text"),
    [
        (
            OffsetFetchRequest(group_id="g", topics=None),
            1,
            EncodeError,
            "OffsetFetchRequest v1: topics: None, which this version does not allow",
        ),
        (
            OffsetFetchRequest(group_id="g"),
            8,
            UnsupportedFieldError,
            "OffsetFetchRequest v8: group_id: set to 'g', but this version lacks the field",
        ),
        (
            OffsetFetchRequest(
                groups=(
                    OffsetFetchRequestGroup(),
                    OffsetFetchRequestGroup(topics=(OffsetFetchRequestTopics(partition_indexes=(0, 2**31)),)),
                )
            ),
            8,
            EncodeError,
            "OffsetFetchRequest v8: groups[1].topics[0].partition_indexes[1]: 2147483648 is out of range for int32",
        ),
        (
            RequestHeader(request_api_key=40000),
            1,
            EncodeError,
            "RequestHeader v1: request_api_key: 40000 is out of range for int16",
        ),
        (
            ProduceRequest(transactional_id=7),  # type: ignore[arg-type]
            9,
            EncodeError,
            "ProduceRequest v9: transactional_id: expected str, got int",
        ),
    ],
)
def test_the_text_of_a_refusal(codecs: Codecs, message: Any, version: int, error: type[EncodeError], text: str) -> None:
    with pytest.raises(error) as refused:
        codecs.encode(message, version)
    assert str(refused.value) == text


@pytest.mark.parametrize("version", [-1, 0, 11, 32768])
def test_a_version_that_the_message_lacks(version: int) -> None:
    text = f"OffsetFetchRequest has no version {version}; it has 1-10"
    with pytest.raises(UnsupportedVersionError) as encoding:
        OffsetFetchRequest().encode(version)
    with pytest.raises(UnsupportedVersionError) as decoding:
        OffsetFetchRequest.decode(b"", version)
    assert str(encoding.value) == str(decoding.value) == text


# Bytes: every error class with its text and offset

SMALL = CodecOptions(budget=DecodeBudget(elements=1, bytes=3, depth=9))
MALFORMED: list[tuple[type[Any], int, str, CodecOptions, type[DecodeError], str]] = [
    (OffsetFetchRequest, 1, "0004 6162", CodecOptions(), TruncatedError,
     "OffsetFetchRequest v1: group_id at byte 2: string needs 4 bytes, 2 left"),
    (OffsetFetchRequest, 1, "0001 61 0000", CodecOptions(), TruncatedError,
     "OffsetFetchRequest v1: topics at byte 3: int32 needs 4 bytes, 2 left"),
    (OffsetFetchRequest, 8, "02 0261 02 0262 02 0000", CodecOptions(), InvalidLengthError,
     "OffsetFetchRequest v8: groups[0].topics[0].partition_indexes at byte 6: "
     "array of 1 elements needs at least 4 bytes, 2 left"),
    (OffsetFetchRequest, 8, "02 0261 02 0262 01 00 00 00", CodecOptions(), TruncatedError,
     "OffsetFetchRequest v8: at byte 10: varint needs 1 bytes, 0 left"),
    (OffsetFetchRequest, 1, "fffe", CodecOptions(), InvalidLengthError,
     "OffsetFetchRequest v1: group_id at byte 0: negative length -2"),
    (OffsetFetchRequest, 2, "0000 fffffff9", CodecOptions(), InvalidLengthError,
     "OffsetFetchRequest v2: topics at byte 2: negative length -7"),
    (OffsetFetchRequest, 1, "0000 7fffffff", CodecOptions(), InvalidLengthError,
     "OffsetFetchRequest v1: topics at byte 2: array of 2147483647 elements needs at least 12884901882 bytes, 0 left"),
    (OffsetFetchRequest, 6, "8180808008 00", CodecOptions(), InvalidLengthError,
     "OffsetFetchRequest v6: group_id at byte 0: string of 2147483648 bytes; the limit is 32767"),
    (OffsetFetchRequest, 1, "ffff 00000000", CodecOptions(), UnexpectedNullError,
     "OffsetFetchRequest v1: group_id at byte 0: null, which this version does not allow"),
    (OffsetFetchRequest, 8, "00 00 00", CodecOptions(), UnexpectedNullError,
     "OffsetFetchRequest v8: groups at byte 0: null, which this version does not allow"),
    (OffsetFetchRequest, 6, "ffffffffff01", CodecOptions(), InvalidVarintError,
     "OffsetFetchRequest v6: group_id at byte 0: varint of more than five bytes"),
    (OffsetFetchRequest, 6, "01 ffffffff1f", CodecOptions(), InvalidVarintError,
     "OffsetFetchRequest v6: topics at byte 1: varint of more than 32 bits"),
    (OffsetFetchRequest, 1, "0003 61ff62 00000000", CodecOptions(), InvalidUtf8Error,
     "OffsetFetchRequest v1: group_id at byte 3: not UTF-8: invalid start byte"),
    (OffsetFetchRequest, 6, "01 01 02 03 00 02 00", CodecOptions(), InvalidTagError,
     "OffsetFetchRequest v6: at byte 5: tag 2 after tag 3: tags must ascend"),
    (OffsetFetchRequest, 6, "01 01 01 03 05 aa", CodecOptions(), TruncatedError,
     "OffsetFetchRequest v6: at byte 5: tag 3 needs 5 bytes, 1 left"),
    (OffsetFetchRequest, 1, "0000 00000000 cafe", CodecOptions(), TrailingDataError,
     "OffsetFetchRequest v1: at byte 6: 2 bytes left over"),
    (OffsetFetchRequest, 1, "0000 00000001 0000 00000002 00000000 00000001", SMALL, BudgetExceededError,
     "OffsetFetchRequest v1: topics[0].partition_indexes at byte 12: more than the budget of 1 elements"),
    (OffsetFetchRequest, 1, "0004 61626364 00000000", SMALL, BudgetExceededError,
     "OffsetFetchRequest v1: group_id at byte 6: more than the budget of 3 bytes"),
    (OffsetFetchResponse, 1, "00000001 0000 00000000",
     CodecOptions(budget=DecodeBudget(depth=2)), BudgetExceededError,
     "OffsetFetchResponse v1: at byte 0: 3 levels deep, more than the budget of 2"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "version", "data", "options", "error", "text"), MALFORMED)
def test_the_text_of_a_decode_error(
    codecs: Codecs,
    cls: type[Any],
    version: int,
    data: str,
    options: CodecOptions,
    error: type[DecodeError],
    text: str,
) -> None:
    with pytest.raises(DecodeError) as caught:
        codecs.decode(cls, data, version, options)
    assert str(caught.value) == text
    assert type(caught.value) is error
    assert caught.value.__cause__ is None


def test_every_class_of_decode_error_is_met_here() -> None:
    assert {error for *_, error, _ in MALFORMED} == set(DecodeError.__subclasses__())


@pytest.mark.parametrize(("cls", "version", "data", "options", "error", "text"), MALFORMED)
def test_offsets_count_from_the_start_of_the_buffer(
    codecs: Codecs, cls: type[Any], version: int, data: str, options: CodecOptions, error: type[DecodeError], text: str
) -> None:
    raw = bytes.fromhex(data)
    with pytest.raises(DecodeError) as alone:
        codecs.decode(cls, raw, version, options)
    if error is TrailingDataError:
        assert codecs.read(cls, bytes(9) + raw, version, 9, options)[1] == 9 + alone.value.offset
        return
    with pytest.raises(error) as within:
        codecs.read(cls, bytes(9) + raw, version, 9, options)
    assert within.value.offset == alone.value.offset + 9
    assert (within.value.path, within.value.reason) == (alone.value.path, alone.value.reason)
