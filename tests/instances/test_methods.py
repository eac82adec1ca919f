"""The class methods ``encode``, ``decode`` and ``read``, with arguments in every form and every invalid argument."""

from __future__ import annotations

import gc
import inspect
import typing
from typing import Any

import pytest

from kafka_msgs import HeartbeatResponse as Typed
from kafka_msgs import Message, backend
from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions, DecodeBudget, codec_for
from kafka_msgs.errors import BudgetExceededError, DecodeError, EncodeError, UnsupportedVersionError
from kafka_msgs.schema import field
from tests.support.codecs import message_class
from tests.support.refcounts import counts

HeartbeatResponse: Any = Typed
"""As ``Any``, since type checkers would reject most calls here."""

MESSAGE = HeartbeatResponse(throttle_time_ms=5, error_code=3)
DATA = bytes.fromhex("00000005 0003 00")


def test_every_way_to_give_the_arguments() -> None:
    options: dict[str, Any]
    for options in ({}, {"options": DEFAULT_OPTIONS}, {"options": CodecOptions(memoryview_records=True)}):
        for _ in range(3):
            assert MESSAGE.encode(4, **options) == DATA
            assert MESSAGE.encode(version=4, **options) == DATA
            assert HeartbeatResponse.encode(MESSAGE, 4, **options) == DATA
            assert HeartbeatResponse.decode(DATA, 4, **options) == MESSAGE
            assert HeartbeatResponse.decode(DATA, version=4, **options) == MESSAGE
            assert HeartbeatResponse.decode(version=4, data=DATA, **options) == MESSAGE
            assert HeartbeatResponse.read(DATA, 4, **options) == (MESSAGE, 7)
            assert HeartbeatResponse.read(b"." + DATA, 4, 1, **options) == (MESSAGE, 8)
            assert HeartbeatResponse.read(offset=1, buffer=b"." + DATA, version=4, **options) == (MESSAGE, 8)
            assert MESSAGE.decode(DATA, 4, **options) == MESSAGE
    assert MESSAGE.encode(**{"".join(["ver", "sion"]): 4}) == DATA


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: MESSAGE.encode(), r"encode\(\) missing 1 required positional argument: 'version'"),
        (lambda: MESSAGE.encode(4, DEFAULT_OPTIONS), "takes 2 positional arguments but 3 were given"),
        (lambda: MESSAGE.encode(4, version=4), "multiple values for argument 'version'"),
        (lambda: MESSAGE.encode(4, other=1), "unexpected keyword argument 'other'"),
        (lambda: HeartbeatResponse.decode(DATA), "missing 1 required positional argument: 'version'"),
        (lambda: HeartbeatResponse.decode(version=4), "missing 1 required positional argument: 'data'"),
        (lambda: HeartbeatResponse.decode(DATA, 4, 0), "takes 3 positional arguments but 4 were given"),
        (lambda: HeartbeatResponse.encode(), "missing 2 required positional arguments"),
        (lambda: HeartbeatResponse.decode(5, 4), "memoryview: a bytes-like object is required"),
    ],
)
def test_wrong_arguments_are_those_of_the_method_in_python(call: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        call()


@pytest.mark.parametrize("version", [5, -1, True, 2.0, "4", None, 1 << 40, 1 << 70])
def test_versions_that_a_message_does_not_have(version: Any) -> None:
    for call in (MESSAGE.encode, lambda v: HeartbeatResponse.decode(DATA, v), lambda v: MESSAGE.read(DATA, v)):
        with pytest.raises(UnsupportedVersionError):
            call(version)


def test_versions_that_share_a_place_do_not_mix() -> None:
    cls = message_class("Many", "0-40", a=field("A", "int8", "0+", default=0), b=field("B", "int8", "8+", default=0))
    for _ in range(2):
        for version in range(41):
            assert cls(a=1).encode(version).hex() == ("01" if version < 8 else "0100")
            assert cls.decode(b"\1" + b"\2" * (version >= 8), version) == cls(a=1, b=2 * (version >= 8))


def test_options_count() -> None:
    cls = message_class("Counted", numbers=field("Numbers", "[]int32", default=()))
    data = cls(numbers=(1, 2)).encode(0)
    for _ in range(3):
        assert cls.decode(data, 0).numbers == (1, 2)
        with pytest.raises(BudgetExceededError):
            cls.decode(data, 0, options=CodecOptions(budget=DecodeBudget(elements=1)))
    with pytest.raises((AttributeError, TypeError)):
        cls.decode(data, 0, options=3)


def test_errors_of_values_and_bytes() -> None:
    with pytest.raises(EncodeError):
        HeartbeatResponse(error_code="x").encode(4)
    with pytest.raises(DecodeError):
        HeartbeatResponse.decode(DATA + b"0", 4)
    with pytest.raises(ValueError, match="offset 9 is outside a buffer of 7 bytes"):
        HeartbeatResponse.read(DATA, 4, 9)


def test_a_subclass_encodes_as_the_message() -> None:
    class Noted(Typed):
        pass

    assert Noted(throttle_time_ms=5, error_code=3).encode(4) == DATA


def test_they_describe_themselves() -> None:
    assert str(inspect.signature(MESSAGE.encode)) == (
        "(version: 'int', *, options: 'CodecOptions' = CodecOptions(budget=DecodeBudget(elements=4000000, "
        "bytes=268435456, depth=64), memoryview_records=False, utf8_errors='strict')) -> 'bytes'"
    )
    assert list(inspect.signature(HeartbeatResponse.decode).parameters) == ["data", "version", "options"]
    assert (Message.encode.__name__, Message.encode.__qualname__) == ("encode", "Message.encode")
    assert (Message.read.__doc__ or "").startswith("Decode the message at byte")
    assert typing.get_type_hints(Message.encode)["return"] is bytes
    assert inspect.isroutine(Message.encode)


@pytest.mark.skipif(backend() != "c", reason="the C core does not run")
def test_the_counts_stay_as_they_were() -> None:
    other = CodecOptions(memoryview_records=True)

    def calls() -> None:
        MESSAGE.encode(4)
        MESSAGE.encode(4, options=other)
        HeartbeatResponse.decode(DATA, version=4)
        HeartbeatResponse.read(DATA, 4, options=other)
        for call, arguments in ((MESSAGE.encode, (9,)), (MESSAGE.encode, ()), (HeartbeatResponse.decode, (b"", 4))):
            with pytest.raises((UnsupportedVersionError, DecodeError, TypeError)):
                call(*arguments)

    calls()
    kept = [HeartbeatResponse, MESSAGE, DATA, other, DEFAULT_OPTIONS, codec_for(HeartbeatResponse, 4).encode]
    before = counts(kept)[:-1]
    for _ in range(200):
        calls()
    assert counts(kept)[:-1] == before


def test_a_class_keeps_few_codecs_by_options() -> None:
    """The method's cache of codecs is bounded; the class keeps all codecs."""
    cls = message_class("Kept", a=field("A", "int8", default=0))
    for depth in range(2, 30):
        options = CodecOptions(budget=DecodeBudget(depth=depth))
        assert cls.decode(b"\1", 0, options=options).a == 1
        assert codec_for(cls, 0, options) is codec_for(cls, 0, options)
    gc.collect()
