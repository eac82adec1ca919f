"""The release's messages as a whole: all are there, found by api key, and no draft is among them."""

from __future__ import annotations

import inspect
import json
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest

import kafka_msgs
from kafka_msgs import Message, drafts, messages
from kafka_msgs.catalog import MessageCatalog, iter_message_classes, message_by_name, message_class, release_catalog
from kafka_msgs.codec import codec_for
from kafka_msgs.drafts import kafka_0_9, kip_88, kip_1071
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import UnknownMessageError, UnknownNameError
from kafka_msgs.messages import API_KEYS, MODULES, ORIGINS, RELEASE
from kafka_msgs.schema import Kind, Struct, fields
from kafka_msgs.versions import VersionRange

DEFINITIONS = Path(__file__).parents[2] / "message_defs"
CLASSES = list(iter_message_classes())
DRAFTS: list[type[Message]] = [
    getattr(package, name) for package in (kafka_0_9, kip_88, kip_1071) for name in package.__all__
]


def structs(cls: type[Struct]) -> list[type[Struct]]:
    """A class and all that is nested in it."""
    found = [cls]
    for info in fields(cls):
        if info.struct is not None:
            found += structs(info.struct)
    return found


# Completeness


def test_there_is_a_class_for_every_definition_that_is_not_retired() -> None:
    assert tomllib.loads((DEFINITIONS / "SOURCE.toml").read_text())["release"] == RELEASE
    definitions = [json.loads(path.read_text()) for path in (DEFINITIONS / "kafka").glob("*/*.json")]
    living = {each["name"]: each for each in definitions if each["validVersions"] != "none"}
    assert len(living) > 250
    assert {cls.INFO.name: (cls.INFO.kind, str(cls.INFO.versions)) for cls in CLASSES} == {
        name: (each["type"], each["validVersions"]) for name, each in living.items()
    }


def test_every_message_is_an_attribute_of_the_library() -> None:
    names = [cls.__name__ for cls in CLASSES]
    assert names == sorted(names) == sorted(MODULES)
    for cls in CLASSES:
        assert cls is getattr(kafka_msgs, cls.__name__)
        assert cls is getattr(messages, cls.__name__)
        assert cls.INFO.name == cls.__name__
        assert issubclass(cls, Message)
        assert cls.__name__ in dir(messages)


def test_the_index_names_every_module_once() -> None:
    directory = Path(inspect.getfile(messages)).parent
    modules = {file.stem for file in directory.glob("*.py")} - {"__init__", "_history", "_index"}
    assert set(MODULES.values()) == modules
    assert len(set(MODULES.values())) == len(MODULES)
    assert set(ORIGINS) == set(MODULES)


def test_a_name_that_no_message_has() -> None:
    with pytest.raises(AttributeError, match="module 'kafka_msgs' has no attribute 'OffsetFetch'"):
        kafka_msgs.OffsetFetch  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'kafka_msgs\.messages' has no attribute 'OffsetFetch'"):
        messages.OffsetFetch  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("cls", CLASSES + DRAFTS, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_a_class_is_whole(cls: type[Message]) -> None:
    assert not cls.INFO.versions.empty
    assert not cls.INFO.versions.open_ended
    for struct in structs(cls):
        assert struct.__doc__
        assert not hasattr(struct(), "__dict__")
        assert struct.__module__ == cls.__module__
        assert struct() == struct(), "every field has a default"
        for info in fields(struct):
            assert not info.versions.empty
            assert info.versions.contains(info.tagged)
            assert cls.INFO.flexible.contains(info.tagged)
            assert (info.tag is None) == info.tagged.empty


# Api keys


def test_requests_and_responses_come_in_pairs() -> None:
    requests = {cls.INFO.api_key: cls for cls in CLASSES if cls.INFO.kind == "request"}
    responses = {cls.INFO.api_key: cls for cls in CLASSES if cls.INFO.kind == "response"}
    assert requests.keys() == responses.keys()
    for api_key, request in requests.items():
        response = responses[api_key]
        assert request.__name__.removesuffix("Request") == response.__name__.removesuffix("Response")
        assert request.INFO.versions == response.INFO.versions


def test_keys_and_values_come_in_pairs() -> None:
    for origin in ("group-coordinator", "share-coordinator", "transaction-coordinator"):
        keys, values = (
            {number for where, kind, number in API_KEYS if (where, kind) == (origin, f"coordinator-{side}")}
            for side in ("key", "value")
        )
        assert keys
        assert keys == values


def test_every_api_key_is_unique_in_its_origin_and_kind() -> None:
    with_key = [cls for cls in CLASSES if cls.INFO.api_key is not None]
    assert len(API_KEYS) == len(with_key)
    for cls in with_key:
        assert cls.INFO.api_key is not None
        origin = ORIGINS[cls.__name__]
        assert message_class(cls.INFO.api_key, cls.INFO.kind, origin) is cls


@pytest.mark.parametrize(
    ("api_key", "kind", "origin", "name"),
    [
        (0, "request", "clients", "ProduceRequest"),
        (9, "request", "clients", "OffsetFetchRequest"),
        (9, "response", "clients", "OffsetFetchResponse"),
        (10, "request", "clients", "FindCoordinatorRequest"),
        (15, "response", "clients", "DescribeGroupsResponse"),
        (18, "request", "clients", "ApiVersionsRequest"),
        (88, "request", "clients", "StreamsGroupHeartbeatRequest"),
        (88, "response", "clients", "StreamsGroupHeartbeatResponse"),
        (89, "request", "clients", "StreamsGroupDescribeRequest"),
        (0, "coordinator-key", "group-coordinator", "LegacyOffsetCommitKey"),
        (1, "coordinator-key", "group-coordinator", "OffsetCommitKey"),
        (1, "coordinator-value", "group-coordinator", "OffsetCommitValue"),
        (2, "coordinator-key", "group-coordinator", "GroupMetadataKey"),
        (17, "coordinator-key", "group-coordinator", "StreamsGroupMetadataKey"),
        (19, "coordinator-key", "group-coordinator", "StreamsGroupMemberMetadataKey"),
        (20, "coordinator-key", "group-coordinator", "StreamsGroupTargetAssignmentMetadataKey"),
        (21, "coordinator-key", "group-coordinator", "StreamsGroupTargetAssignmentMemberKey"),
        (22, "coordinator-key", "group-coordinator", "StreamsGroupCurrentMemberAssignmentKey"),
        (23, "coordinator-key", "group-coordinator", "StreamsGroupTopologyKey"),
        (0, "coordinator-key", "transaction-coordinator", "TransactionLogKey"),
        (0, "coordinator-key", "share-coordinator", "ShareSnapshotKey"),
        (20, "metadata", "metadata", "NoOpRecord"),
        (0, "metadata", "storage", "RemoteLogSegmentMetadataRecord"),
    ],
)
def test_a_message_is_found_by_its_key(api_key: int, kind: Kind, origin: str, name: str) -> None:
    assert message_class(api_key, kind, origin) is getattr(kafka_msgs, name)


@pytest.mark.parametrize(
    ("api_key", "kind", "origin"),
    [(7, "request", "clients"), (999, "request", "clients"), (0, "metadata", "clients"), (0, "request", "metadata")],
)
def test_a_key_that_no_message_has(api_key: int, kind: Kind, origin: str) -> None:
    with pytest.raises(UnknownMessageError) as caught:
        message_class(api_key, kind, origin)
    assert (caught.value.api_key, caught.value.kind, caught.value.origin) == (api_key, kind, origin)


# Drafts


def test_no_draft_is_found_by_key_or_name() -> None:
    found = {message_class(key, cast("Kind", kind), origin) for origin, kind, key in API_KEYS}
    assert found.isdisjoint(DRAFTS)
    assert set(CLASSES).isdisjoint(DRAFTS)
    assert message_class(15, "response") is not kip_88.DescribeGroupsResponse
    assert message_class(88, "request") is not kip_1071.StreamsGroupHeartbeatRequest


def test_a_draft_says_that_it_is_one() -> None:
    assert drafts.DRAFTS.keys() == {"kafka_0_9", "kip_1071", "kip_1071_migration", "kip_88"}
    for cls in DRAFTS:
        package = cls.__module__.split(".")[2]
        assert cls.INFO.draft == drafts.DRAFTS[package]
        assert f"Draft: {cls.INFO.draft}" in (cls.__doc__ or "")
    assert all(cls.INFO.draft is None for cls in CLASSES)


def test_the_records_of_the_streams_draft_are_distinguished_by_the_versions_of_their_keys() -> None:
    keys = [cls for cls in DRAFTS if cls.__name__.endswith("Key")]
    versions = [version for cls in keys for version in cls.INFO.versions]
    assert sorted(versions) == [17, 18, 19, 20, 21, 22, 23]
    for cls in keys:
        member = "Member" in cls.__name__
        assert [info.name for info in fields(cls)] == ["GroupId", "MemberId"][: 1 + member]
        value = next(other for other in DRAFTS if other.__name__ == cls.__name__.removesuffix("Key") + "Value")
        assert str(value.INFO.flexible) == "0+"
        assert not any("Offset" in info.name for struct in structs(value) for info in fields(struct))


def test_the_errors_and_listeners_of_the_streams_draft() -> None:
    assert len(kip_1071.StreamsGroupHeartbeatResponse.INFO.errors) == 15
    assert len(kip_1071.StreamsGroupDescribeResponse.INFO.errors) == 7
    assert kip_1071.StreamsGroupHeartbeatRequest.INFO.listeners == ("broker",)
    assert kip_1071.StreamsGroupHeartbeatResponse.INFO.listeners == ()
    assert (kip_1071.StreamsGroupHeartbeatRequest.INFO.api_key, kip_1071.StreamsGroupDescribeRequest.INFO.api_key) == (
        88,
        89,
    )


def test_the_draft_and_the_release_have_codecs_of_their_own() -> None:
    draft: type[Message] = kip_88.DescribeGroupsResponse
    released: type[Message] = kafka_msgs.DescribeGroupsResponse
    assert draft.INFO.api_key == released.INFO.api_key == 15
    assert codec_for(draft, 1) is not codec_for(released, 1)
    assert codec_for(draft, 1).plan.cls is draft


# Error codes


@pytest.mark.parametrize(
    ("code", "name", "retriable"),
    [
        (-1, "UNKNOWN_SERVER_ERROR", False),
        (0, "NONE", False),
        (3, "UNKNOWN_TOPIC_OR_PARTITION", True),
        (14, "COORDINATOR_LOAD_IN_PROGRESS", True),
        (15, "COORDINATOR_NOT_AVAILABLE", True),
        (16, "NOT_COORDINATOR", True),
        (24, "INVALID_GROUP_ID", False),
        (25, "UNKNOWN_MEMBER_ID", False),
        (27, "REBALANCE_IN_PROGRESS", False),
        (29, "TOPIC_AUTHORIZATION_FAILED", False),
        (30, "GROUP_AUTHORIZATION_FAILED", False),
        (31, "CLUSTER_AUTHORIZATION_FAILED", False),
        (35, "UNSUPPORTED_VERSION", False),
        (42, "INVALID_REQUEST", False),
        (69, "GROUP_ID_NOT_FOUND", False),
        (81, "GROUP_MAX_SIZE_REACHED", False),
        (110, "FENCED_MEMBER_EPOCH", False),
        (111, "UNRELEASED_INSTANCE_ID", False),
        (130, "STREAMS_INVALID_TOPOLOGY", False),
        (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", False),
        (132, "STREAMS_TOPOLOGY_FENCED", False),
    ],
)
def test_an_error_code(code: int, name: str, retriable: bool) -> None:
    error = ErrorCode(code)
    assert (error.name, error.retriable) == (name, retriable)
    assert error == code
    assert ErrorCode.from_code(code) is error


def test_the_codes_run_without_a_gap() -> None:
    assert [error.value for error in ErrorCode] == list(range(-1, len(ErrorCode) - 1))


@pytest.mark.parametrize("code", [-2, len(ErrorCode) - 1, 9999, 32767])
def test_a_code_that_the_release_does_not_know_does_not_raise(code: int) -> None:
    assert ErrorCode.from_code(code) is None
    response = kafka_msgs.OffsetFetchResponse(error_code=code)
    assert kafka_msgs.OffsetFetchResponse.decode(response.encode(2), 2).error_code == code


def test_the_errors_that_a_response_documents_exist() -> None:
    documented: dict[str, Any] = {cls.__name__: cls.INFO.errors for cls in CLASSES if cls.INFO.errors}
    assert len(documented["StreamsGroupHeartbeatResponse"]) >= 15
    assert len(documented["StreamsGroupDescribeResponse"]) >= 7
    for name, errors in documented.items():
        for error, versions in errors.items():
            assert error in ErrorCode.__members__, name
            assert not VersionRange.parse(versions).empty


def test_a_message_is_found_by_its_name() -> None:
    assert message_by_name("OffsetFetchRequest") is kafka_msgs.OffsetFetchRequest
    with pytest.raises(UnknownNameError, match="similar: OffsetFetchRequest") as raised:
        message_by_name("OffsetFechRequest")
    assert raised.value.name == "OffsetFechRequest"


# Catalogs of other classes

OLD_KIP_88: list[type[Message]] = [kip_88.OffsetFetchRequest, kip_88.DescribeGroupsResponse]


def test_a_catalog_has_the_classes_that_it_was_given() -> None:
    catalog = MessageCatalog.of(OLD_KIP_88)
    assert catalog.message_class(9, "request") is kip_88.OffsetFetchRequest
    assert catalog.by_name("DescribeGroupsResponse") is kip_88.DescribeGroupsResponse
    assert list(catalog) == [kip_88.DescribeGroupsResponse, kip_88.OffsetFetchRequest]
    missing: list[tuple[int, Kind]] = [(9, "response"), (15, "request"), (3, "request")]
    for api_key, kind in missing:
        with pytest.raises(UnknownMessageError):
            catalog.message_class(api_key, kind)
    with pytest.raises(UnknownNameError, match="similar: OffsetFetchRequest"):
        catalog.by_name("OffsetFetchResponse")


def test_a_fallback_gives_the_versions_and_messages_that_a_catalog_lacks() -> None:
    catalog = MessageCatalog.of(OLD_KIP_88, fallback=release_catalog())
    old = kip_88.OffsetFetchRequest.INFO.versions
    assert old.lowest == 0 < kafka_msgs.OffsetFetchRequest.INFO.versions.lowest
    for version in (None, *old):
        assert catalog.message_class(9, "request", version) is kip_88.OffsetFetchRequest
    newest = kafka_msgs.OffsetFetchRequest.INFO.versions.highest
    assert catalog.message_class(9, "request", newest) is kafka_msgs.OffsetFetchRequest
    assert catalog.message_class(9, "request", 99) is kip_88.OffsetFetchRequest
    assert catalog.message_class(3, "request") is kafka_msgs.MetadataRequest
    assert catalog.by_name("MetadataRequest") is kafka_msgs.MetadataRequest
    assert len(list(catalog)) == len(CLASSES)
    with pytest.raises(UnknownMessageError):
        catalog.message_class(999, "request")
