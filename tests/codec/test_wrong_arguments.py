"""Invalid arguments: one clear error, and no trace of them in caches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka_msgs import CodecOptions, KafkaMsgsError, ProduceRequest, codec_for, compile_schema
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.errors import OptionError, UnsupportedVersionError
from kafka_msgs.message import Message

TEXT = """{"name": "Numbers", "type": "data", "validVersions": "0-3", "flexibleVersions": "none", "fields": [
  {"name": "Small", "type": "int32", "versions": "0+"}, {"name": "Many", "type": "[]int64", "versions": "0+"},
  {"name": "Share", "type": "float64", "versions": "0+"}, {"name": "Sure", "type": "bool", "versions": "0+"}]}"""


class Index:
    """An integer type of another library, such as NumPy."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


@pytest.fixture
def numbers() -> type[Message]:
    """Return a class that no other test has used, so nothing is cached for it."""
    return compile_schema(TEXT)


@pytest.mark.parametrize("version", [2.5, 2.0, True, False, "2", None, -1, 4, 10**30])
def test_a_version_is_a_whole_number_that_the_message_has(numbers: type[Message], version: Any) -> None:
    with pytest.raises(UnsupportedVersionError, match=r"Numbers has no version .*; it has 0-3"):
        numbers().encode(version)
    with pytest.raises(UnsupportedVersionError):
        numbers().to_json(version)
    with pytest.raises(UnsupportedVersionError):
        codec_for(numbers, version, CodecOptions(memoryview_records=True))


@pytest.mark.parametrize("version", [True, False, 2.0, [2]])
def test_a_version_that_equals_one_in_use_is_refused_as_well(numbers: type[Message], version: Any) -> None:
    for known in range(3):
        numbers().encode(known)
    with pytest.raises(UnsupportedVersionError):
        numbers().encode(version)


def test_an_integer_of_another_library_is_a_version_and_kept_as_a_plain_one(numbers: type[Message]) -> None:
    codec = codec_for(numbers, Index(2))  # type: ignore[arg-type]
    assert type(codec.plan.version) is int
    assert codec_for(numbers, 2) is codec
    assert "v2" in str(codec.plan)


@pytest.mark.parametrize("records", ["nope", "", None, 1])
def test_a_form_of_records_that_does_not_exist(records: Any) -> None:
    with pytest.raises(OptionError, match=r"to_json: option records.*it is one of base64, empty, size"):
        ProduceRequest().to_json(9, records=records)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("offset", [10**30, -(10**30), 31, -1])
def test_an_offset_outside_the_buffer_is_a_value_error(numbers: type[Message], executor: str, offset: int) -> None:
    codec: Codec[Any] = Codec(compile_plan(numbers, 0), executor=EXECUTORS[executor])
    data = bytes(30)
    with pytest.raises(ValueError, match=r"offset|index-sized") as caught:
        codec.read(data, offset)
    assert not isinstance(caught.value, KafkaMsgsError)
    with pytest.raises(ValueError, match=r"offset|index-sized"):
        codec.decode(data, offset)


def test_integers_of_other_libraries_become_plain_ones_in_json(numbers: type[Message]) -> None:
    message = numbers(small=Index(5), many=(Index(2**40), True), share=Index(3), sure=True)  # type: ignore[call-arg]
    form = message.to_json(0)
    assert form == {"small": 5, "many": [2**40, 1], "share": 3.0, "sure": True}
    assert [type(form[name]) for name in form] == [int, list, float, bool]
    assert json.loads(json.dumps(form)) == form
    assert numbers.from_json(form, 0).encode(0) == message.encode(0)
