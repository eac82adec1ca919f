"""What each class of the release is: its base and its partner."""

from __future__ import annotations

import pytest

from kafka_msgs import iter_message_classes
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.drafts import kip_88
from kafka_msgs.errors import UnknownNameError
from kafka_msgs.message import (
    KIND_BASES,
    CoordinatorKey,
    CoordinatorValue,
    DataMessage,
    HeaderMessage,
    Message,
    MetadataRecord,
    Request,
    Response,
)
from kafka_msgs.messages import OffsetCommitKey, OffsetCommitValue, OffsetFetchRequest, OffsetFetchResponse
from kafka_msgs.schema import KeyedMessageInfo
from kafka_msgs_generator.emit import KIND_BASES as EMITTED
from kafka_msgs_generator.runtime_compiler import compile_schema

CLASSES = sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)
REQUESTS = [cls for cls in CLASSES if issubclass(cls, Request)]
KEYS = [cls for cls in CLASSES if issubclass(cls, CoordinatorKey)]


def name(cls: type[Message]) -> str:
    return cls.INFO.name


def test_the_compiler_and_the_library_name_the_same_bases() -> None:
    assert {kind: base.__name__ for kind, base in KIND_BASES.items()} == EMITTED


@pytest.mark.parametrize("cls", CLASSES, ids=name)
def test_a_class_has_the_base_of_its_kind_and_no_other(cls: type[Message]) -> None:
    bases = {Request, Response, HeaderMessage, DataMessage, MetadataRecord, CoordinatorKey, CoordinatorValue}
    assert {base for base in bases if issubclass(cls, base)} == {KIND_BASES[cls.INFO.kind]}
    assert isinstance(cls.INFO, KeyedMessageInfo) == (cls.INFO.kind not in {"header", "data"})
    assert not hasattr(cls(), "__dict__")


@pytest.mark.parametrize("cls", REQUESTS, ids=name)
def test_a_request_knows_its_response(cls: type[Request[Response]]) -> None:
    response = cls.response_class()
    assert issubclass(response, Response)
    assert (response.INFO.api_key, response.INFO.versions) == (cls.INFO.api_key, cls.INFO.versions)
    assert response.INFO.partner is None


@pytest.mark.parametrize("cls", KEYS, ids=name)
def test_a_key_knows_its_value(cls: type[CoordinatorKey[CoordinatorValue]]) -> None:
    value = cls.value_class()
    assert issubclass(value, CoordinatorValue)
    assert value.INFO.api_key == cls.INFO.api_key


def test_partners_are_found_in_their_own_package() -> None:
    assert OffsetFetchRequest.response_class() is OffsetFetchResponse
    assert kip_88.OffsetFetchRequest.response_class() is kip_88.OffsetFetchResponse
    assert OffsetCommitKey.value_class() is OffsetCommitValue


def test_a_request_compiled_alone_has_no_response() -> None:
    text = (
        '{"name": "PingRequest", "type": "request", "apiKey": 500, "validVersions": "0", "flexibleVersions": "none",'
        ' "fields": []}'
    )
    cls = compile_schema(text)
    assert issubclass(cls, Request)
    with pytest.raises(UnknownNameError, match="the partner of PingRequest"):
        cls.response_class()


def test_header_versions_of_a_definition_reach_its_class() -> None:
    text = (
        '{"name": "PingResponse", "type": "response", "apiKey": 500, "validVersions": "0-3", "flexibleVersions": "2+",'
        ' "headerVersions": {"0-1": "0", "2+": "1"}, "fields": []}'
    )
    info = compile_schema(text).INFO
    assert isinstance(info, KeyedMessageInfo)
    assert [(str(versions), header) for versions, header in info.header_versions] == [("0-1", 0), ("2+", 1)]


def test_api_keys_are_those_of_the_requests() -> None:
    assert {each.value for each in ApiKey} == {cls.INFO.api_key for cls in REQUESTS}
    assert all(
        each.name.replace("_", "") == name(cls).removesuffix("Request").upper()
        for each in ApiKey
        for cls in REQUESTS
        if cls.INFO.api_key == each
    )
    assert ApiKey.OFFSET_FETCH == OffsetFetchRequest.INFO.api_key == 9
