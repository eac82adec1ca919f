"""The JSON form: its rules, its errors, and lossless round trips."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kafka_msgs import (
    ApiVersionsResponse,
    ConsumerGroupMemberMetadataValue,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProduceRequest,
    iter_message_classes,
)
from kafka_msgs.codec.json_form import from_json
from kafka_msgs.errors import EncodeError, JsonFormError, UnsupportedFieldError, UnsupportedVersionError
from kafka_msgs.messages.consumer_group_member_metadata_value import ClassicMemberMetadata
from kafka_msgs.messages.describe_topic_partitions_request import Cursor
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequestTopic
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.schema import ZERO_UUID, field
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import message_class, struct_class

ID = UUID("fbff0000-0000-0000-0000-0000000000fe")
Leaf = struct_class("Leaf", number=field("Number", "int32", default=0))
Every = message_class(
    "Every",
    "0-1",
    "1+",
    yes=field("Yes", "bool", default=False),
    small=field("Small", "int8", default=0),
    port=field("Port", "uint16", default=0),
    crc=field("Crc", "uint32", default=0),
    long=field("Long", "int64", default=0),
    load=field("Load", "float64", default=0.0),
    id=field("Id", "uuid", default=ZERO_UUID),
    text=field("Text", "string", nullable="0+", default=""),
    raw=field("Raw", "bytes", nullable="0+", default=b""),
    numbers=field("Numbers", "[]int32", nullable="0+", default=()),
    leaf=field("Leaf", "Leaf", nullable="0+", default=None, struct=Leaf),
    leaves=field("Leaves", "[]Leaf", default=(), struct=Leaf),
    extra=field("Extra", "int32", "1+", tag=0, tagged="1+", default=-1, ignorable=True),
)
FULL = Every(
    yes=True, small=-128, port=65535, crc=4294967295, long=-(2**63), load=0.5, id=ID, text="日", raw=b"\xfb\xff",
    numbers=(1, -1), leaf=Leaf(number=5), leaves=(Leaf(), Leaf(number=6)), extra=7,
)  # fmt: skip
FULL_JSON: dict[str, Any] = {
    "yes": True, "small": -128, "port": 65535, "crc": 4294967295, "long": -9223372036854775808, "load": 0.5,
    "id": "-_8AAAAAAAAAAAAAAAAA_g", "text": "日", "raw": "+/8=", "numbers": [1, -1], "leaf": {"number": 5},
    "leaves": [{"number": 0}, {"number": 6}], "extra": 7,
}  # fmt: skip
PLAIN_JSON: dict[str, Any] = {
    "yes": False, "small": 0, "port": 0, "crc": 0, "long": 0, "load": 0.0, "id": "AAAAAAAAAAAAAAAAAAAAAA", "text": "",
    "raw": "", "numbers": [], "leaf": None, "leaves": [],
}  # fmt: skip

FORMS: list[tuple[Any, int, dict[str, Any]]] = [
    (FULL, 1, FULL_JSON),
    (Every(), 1, PLAIN_JSON),
    (Every(), 0, PLAIN_JSON),
    (Every(text=None, raw=None, numbers=None), 1, PLAIN_JSON | {"text": None, "raw": None, "numbers": None}),
    (OffsetFetchRequest(group_id="g", topics=None), 2, {"groupId": "g", "topics": None}),
    (
        OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1)),)),
        1,
        {"groupId": "g", "topics": [{"name": "t", "partitionIndexes": [0, 1]}]},
    ),
    (OffsetFetchResponse(error_code=16), 1, {"topics": []}),
    (OffsetFetchResponse(error_code=16), 2, {"topics": [], "errorCode": 16}),
    (
        MetadataRequest(topics=(MetadataRequestTopic(topic_id=ID, name=None),)),
        12,
        {
            "topics": [{"topicId": "-_8AAAAAAAAAAAAAAAAA_g", "name": None}],
            "allowAutoTopicCreation": True,
            "includeTopicAuthorizedOperations": False,
        },
    ),
    (ApiVersionsResponse(), 3, {"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0}),
    (
        ApiVersionsResponse(zk_migration_ready=True, finalized_features_epoch=0),
        3,
        {"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0, "finalizedFeaturesEpoch": 0, "zkMigrationReady": True},
    ),
    (
        DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="t", partition_index=1)),
        0,
        {"topics": [], "responsePartitionLimit": 2000, "cursor": {"topicName": "t", "partitionIndex": 1}},
    ),
]


@pytest.mark.parametrize(("message", "version", "form"), FORMS)
def test_a_message_and_its_json_form(message: Any, version: int, form: dict[str, Any]) -> None:
    written = message.to_json(version)
    assert written == form
    assert list(written) == list(form), "fields come in the definition's order"
    assert json.loads(json.dumps(written)) == written
    again = type(message).from_json(form, version)
    assert again.encode(version) == message.encode(version)


def test_a_tagged_null_is_shown_where_it_is_not_the_default() -> None:
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert value.to_json(0)["classicMemberMetadata"] is None
    assert "classicMemberMetadata" not in ConsumerGroupMemberMetadataValue().to_json(0)
    form = value.to_json(0)
    assert ConsumerGroupMemberMetadataValue.from_json(form, 0) == value
    del form["classicMemberMetadata"]
    assert ConsumerGroupMemberMetadataValue.from_json(form, 0).classic_member_metadata == ClassicMemberMetadata()


def test_unknown_tags_have_no_json_form() -> None:
    message = Every(unknown_tagged_fields=((9, b"x"),))
    assert message.to_json(1) == PLAIN_JSON
    assert Every.from_json(message.to_json(1), 1) == Every()


def test_records_have_three_forms() -> None:
    parts = tuple(PartitionProduceData(index=number, records=raw) for number, raw in enumerate((b"\xca\xfe", None)))
    message = ProduceRequest(topic_data=(TopicProduceData(name="t", partition_data=parts),))

    def shown(records: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = message.to_json(9, records=records)["topicData"][0]["partitionData"]
        return found

    assert shown("base64") == [{"index": 0, "records": "yv4="}, {"index": 1, "records": None}]
    assert shown("empty") == [{"index": 0, "records": ""}, {"index": 1, "records": None}]
    assert shown("size") == [{"index": 0, "recordsSizeInBytes": 2}, {"index": 1, "recordsSizeInBytes": -1}]
    assert ProduceRequest.from_json(message.to_json(9), 9) == message


@pytest.mark.parametrize("raw", [bytearray(b"\xfb\xff"), memoryview(b"\xfb\xff"), memoryview(b"\xfb\0\xff")[::2]])
def test_any_buffer_has_the_json_form_of_its_bytes(raw: Any) -> None:
    assert Every(raw=raw).to_json(0)["raw"] == "+/8="


def test_not_a_number_and_the_infinities_are_floats() -> None:
    for value in (math.inf, -math.inf):
        assert Every.from_json(Every(load=value).to_json(0), 0).load == value
    assert math.isnan(Every.from_json(Every(load=math.nan).to_json(0), 0).load)


# Values that cannot be written as JSON are values that cannot be encoded at all


@pytest.mark.parametrize(
    ("message", "version", "error", "text"),
    [
        (
            OffsetFetchRequest(topics=None),
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
        (Every(id="x"), 1, EncodeError, "Every v1: id: expected UUID, got str"),
        (Every(raw="x"), 1, EncodeError, "Every v1: raw: expected bytes, got str"),
        (Every(numbers=5), 1, EncodeError, "Every v1: numbers: expected tuple, got int"),
        (Every(small=128), 1, EncodeError, "Every v1: small: 128 is out of range for int8"),
        (Every(leaves=(Leaf(number="1"),)), 1, EncodeError, "Every v1: leaves[0].number: expected int, got str"),
    ],
)
def test_a_message_that_the_version_cannot_carry(
    message: Any, version: int, error: type[EncodeError], text: str
) -> None:
    with pytest.raises(error) as refused:
        message.to_json(version)
    assert str(refused.value) == text


def test_a_version_that_the_message_lacks() -> None:
    with pytest.raises(UnsupportedVersionError):
        OffsetFetchRequest().to_json(11)
    with pytest.raises(UnsupportedVersionError):
        OffsetFetchRequest.from_json({}, 0)


def test_text_that_is_not_utf8_can_be_looked_at() -> None:
    assert Every(text="\udcff").to_json(0)["text"] == "\udcff"


# Reading


def test_keys_that_are_not_fields_are_ignored() -> None:
    assert Every.from_json(FULL_JSON | {"comment": "x", "unknownTaggedFields": []}, 1) == FULL


def test_a_field_that_the_version_lacks_is_ignored() -> None:
    assert Every.from_json(PLAIN_JSON | {"extra": 5}, 0) == Every()


def test_a_tagged_field_may_be_missing() -> None:
    assert Every.from_json(PLAIN_JSON, 1).extra == -1


def test_an_integer_is_read_as_a_float_where_a_float_belongs() -> None:
    load = Every.from_json(PLAIN_JSON | {"load": 2}, 1).load
    assert load == 2.0
    assert type(load) is float


def test_padded_and_unpadded_ids_are_read() -> None:
    assert Every.from_json(PLAIN_JSON | {"id": "-_8AAAAAAAAAAAAAAAAA_g"}, 1).id == ID
    assert Every.from_json(PLAIN_JSON | {"id": "-_8AAAAAAAAAAAAAAAAA_g=="}, 1).id == ID


@pytest.mark.parametrize("name", PLAIN_JSON)
def test_a_missing_field(name: str) -> None:
    form = {key: value for key, value in PLAIN_JSON.items() if key != name}
    with pytest.raises(JsonFormError) as caught:
        Every.from_json(form, 1)
    assert str(caught.value) == f"Every v1: Every.{name}: missing"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"yes": 1}, "yes: expected bool, got int"),
        ({"yes": None}, "yes: null, which this version does not allow"),
        ({"small": "1"}, "small: expected int8, got str"),
        ({"small": True}, "small: expected int8, got bool"),
        ({"small": 1.0}, "small: expected int8, got float"),
        ({"small": 128}, "small: 128 is out of range for int8"),
        ({"small": -129}, "small: -129 is out of range for int8"),
        ({"port": -1}, "port: -1 is out of range for uint16"),
        ({"port": 65536}, "port: 65536 is out of range for uint16"),
        ({"crc": 2**32}, "crc: 4294967296 is out of range for uint32"),
        ({"long": 2**63}, "long: 9223372036854775808 is out of range for int64"),
        ({"load": "0.5"}, "load: expected float64, got str"),
        ({"load": True}, "load: expected float64, got bool"),
        ({"load": 10**400}, "load: 1" + "0" * 99 + "... is out of range for float64"),
        ({"id": 5}, "id: expected uuid, got int"),
        ({"id": None}, "id: null, which this version does not allow"),
        ({"id": "AAAA"}, "id: a uuid has 16 bytes, not 3"),
        ({"text": 5}, "text: expected string, got int"),
        ({"raw": [1]}, "raw: expected bytes, got list"),
        ({"numbers": {}}, "numbers: expected an array, got dict"),
        ({"numbers": [1, "2"]}, "numbers[1]: expected int32, got str"),
        ({"numbers": [1, None]}, "numbers[1]: null, which this version does not allow"),
        ({"numbers": [2**31]}, "numbers[0]: 2147483648 is out of range for int32"),
        ({"leaf": []}, "leaf: expected an object, got list"),
        ({"leaf": {}}, "leaf.number: missing"),
        ({"leaves": None}, "leaves: null, which this version does not allow"),
        ({"leaves": [{"number": 1}, 7]}, "leaves[1]: expected an object, got int"),
        ({"leaves": [{"number": 1}, {"number": None}]}, "leaves[1].number: null, which this version does not allow"),
        ({"extra": "7"}, "extra: expected int32, got str"),
    ],
)
def test_a_value_of_the_wrong_kind(change: dict[str, Any], text: str) -> None:
    with pytest.raises(JsonFormError) as caught:
        Every.from_json(PLAIN_JSON | change, 1)
    assert str(caught.value) == f"Every v1: Every.{text}"
    assert caught.value.path == f"Every.{text.partition(':')[0]}"


@pytest.mark.parametrize("raw", ["é", "a", "ab!=", "====", "YQ", "Y Q=="])
def test_what_is_not_base64(raw: str) -> None:
    with pytest.raises(JsonFormError, match=r"Every v1: Every\.raw: not base64: "):
        Every.from_json(PLAIN_JSON | {"raw": raw}, 1)


@pytest.mark.parametrize("form", [None, [], "text", 5])
def test_a_form_that_is_not_an_object(form: Any) -> None:
    with pytest.raises(JsonFormError, match="Every v1: Every: expected an object, got "):
        Every.from_json(form, 1)


def test_a_partial_form_has_defaults_at_every_depth() -> None:
    assert from_json(Every, {}, 1, partial=True) == Every()
    form = {"numbers": [1], "leaves": [{}, {"number": 2}]}
    assert from_json(Every, form, 1, partial=True) == Every(numbers=(1,), leaves=(Leaf(), Leaf(number=2)))


@pytest.mark.parametrize(
    ("form", "path"),
    [({"numbr": 1}, "Every.numbr"), ({"leaves": [{"number": 1, "Number": 2}]}, "Every.leaves[0].Number")],
)
def test_a_partial_form_has_no_other_keys(form: dict[str, Any], path: str) -> None:
    with pytest.raises(JsonFormError, match="not a field of this version, which has ") as caught:
        from_json(Every, form, 1, partial=True)
    assert caught.value.path == path
    assert from_json(Every, PLAIN_JSON | {"numbr": 1}, 1) == from_json(Every, PLAIN_JSON, 1), "ignored, as in Kafka"


# All messages

PAIRS = [
    pytest.param(cls, version, id=f"{cls.INFO.name}-v{version}")
    for cls in sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)
    for version in cls.INFO.versions
]


@pytest.mark.parametrize(("cls", "version"), PAIRS)
def test_every_version_of_every_message_survives_json(cls: Any, version: int) -> None:
    rng = Random(f"json of {cls.__name__} {version}")
    for _ in range(3):
        message = random_message(cls, version, rng, unknown_tags=False)
        assert cls.from_json(json.loads(json.dumps(message.to_json(version))), version) == message
