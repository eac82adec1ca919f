"""Generated classes as values: immutable, compared by content, and a description of their definition."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import attrs
import pytest

from kafka_msgs import FetchResponse, MetadataRequest, OffsetFetchRequest, OffsetFetchResponse, RequestHeader
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.fetch_response import PartitionData
from kafka_msgs.messages.offset_fetch_request import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka_msgs.schema import ZERO_UUID, FieldInfo, attribute_names, fields
from kafka_msgs.versions import NONE, VersionRange

REQUEST = OffsetFetchRequest(group_id="billing", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1)),))


def same_content() -> OffsetFetchRequest:
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1))
    return OffsetFetchRequest(group_id="billing", topics=(topic,))


# Values


def test_attributes_cannot_be_changed_deleted_or_added() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        REQUEST.group_id = "other"  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del REQUEST.group_id
    with pytest.raises(AttributeError):
        REQUEST.comment = "none"  # type: ignore[attr-defined]
    assert not hasattr(REQUEST, "__dict__")


def test_a_decoded_message_is_as_immutable_as_a_constructed_one() -> None:
    decoded = OffsetFetchRequest.decode(REQUEST.encode(2), 2)
    assert type(decoded) is OffsetFetchRequest
    assert decoded == REQUEST
    assert hash(decoded) == hash(REQUEST)
    assert decoded.topics is not None
    for value in (decoded, decoded.topics[0]):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            value.unknown_tagged_fields = ()  # type: ignore[misc]
        with pytest.raises(AttributeError):
            value.comment = "none"  # type: ignore[union-attr]


def test_fields_are_given_by_keyword_only() -> None:
    with pytest.raises(TypeError):
        OffsetFetchRequest("billing")  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="unexpected keyword"):
        OffsetFetchRequest(group="billing")  # type: ignore[call-arg]


def test_equal_content_makes_equal_messages() -> None:
    assert same_content() == REQUEST
    assert hash(same_content()) == hash(REQUEST)
    assert len({same_content(), REQUEST}) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"group_id": "other"},
        {"topics": None},
        {"topics": ()},
        {"topics": (OffsetFetchRequestTopic(name="t", partition_indexes=(0, 2)),)},
        {"require_stable": True},
        {"unknown_tagged_fields": ((9, b""),)},
    ],
)
def test_any_difference_makes_messages_unequal(change: dict[str, Any]) -> None:
    assert attrs.evolve(REQUEST, **change) != REQUEST


def test_unknown_tags_of_a_nested_struct_count_in_equality() -> None:
    plain = OffsetFetchRequestGroup(group_id="g")
    assert attrs.evolve(plain, unknown_tagged_fields=((5, b"x"),)) != plain
    assert OffsetFetchRequest(groups=(plain,)) != OffsetFetchRequest(
        groups=(attrs.evolve(plain, unknown_tagged_fields=((5, b"x"),)),)
    )


def test_messages_of_different_classes_are_never_equal() -> None:
    from kafka_msgs.drafts import kip_88

    assert OffsetFetchRequest(topics=()) != kip_88.OffsetFetchRequest(topics=())
    assert MetadataRequest() != "MetadataRequest"


def test_evolve_changes_a_copy() -> None:
    changed = attrs.evolve(REQUEST, topics=None)
    assert (changed.group_id, changed.topics) == ("billing", None)
    assert REQUEST.topics is not None


@pytest.mark.parametrize("version", [2, 7])
def test_messages_survive_copying_and_pickling(version: int) -> None:
    for message in (REQUEST, OffsetFetchRequest.decode(REQUEST.encode(version), version)):
        assert pickle.loads(pickle.dumps(message)) == message
        assert copy.deepcopy(message) == message
        assert copy.copy(message) == message


def test_repr_shows_unknown_tags_only_where_there_are_some() -> None:
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=(0,))
    assert repr(topic) == "OffsetFetchRequestTopic(name='t', partition_indexes=(0,))"
    tagged = attrs.evolve(topic, unknown_tagged_fields=((7, b"\x01"),))
    assert repr(tagged) == (
        "OffsetFetchRequestTopic(name='t', partition_indexes=(0,), unknown_tagged_fields=((7, b'\\x01'),))"
    )


def test_the_defaults_are_those_of_the_definition() -> None:
    request = OffsetFetchRequest()
    assert (request.group_id, request.topics, request.groups, request.require_stable) == ("", (), (), False)
    group = OffsetFetchRequestGroup()
    assert (group.member_id, group.member_epoch, group.topics) == (None, -1, ())
    assert request.unknown_tagged_fields == ()


# Descriptions


def field_of(cls: type[Any], attribute: str) -> FieldInfo:
    return next(info for info in fields(cls) if info.attribute == attribute)


def test_a_class_describes_its_message() -> None:
    info = OffsetFetchRequest.INFO
    assert (info.name, info.kind, info.api_key) == ("OffsetFetchRequest", "request", 9)
    assert (str(info.versions), str(info.flexible), str(info.deprecated)) == ("1-10", "6+", "none")
    assert info.listeners == ("broker",)
    assert info.draft is None


def test_fields_come_in_the_order_of_the_definition() -> None:
    assert [info.name for info in fields(OffsetFetchRequest)] == ["GroupId", "Topics", "Groups", "RequireStable"]
    assert attribute_names(OffsetFetchRequest) == (
        "unknown_tagged_fields", "group_id", "topics", "groups", "require_stable",
    )  # fmt: skip


def test_a_nullable_array_of_structs_describes_itself() -> None:
    topics = field_of(OffsetFetchRequest, "topics")
    assert (topics.type, topics.element_type) == ("[]OffsetFetchRequestTopic", "OffsetFetchRequestTopic")
    assert topics.is_array
    assert topics.struct is OffsetFetchRequestTopic
    assert (str(topics.versions), str(topics.nullable), topics.tagged) == ("0-7", "2-7", NONE)
    assert (topics.json_name, topics.default, topics.ignorable, topics.tag) == ("topics", (), False, None)


def test_tagged_nested_ignorable_and_overriding_fields_say_so() -> None:
    assert field_of(OffsetFetchRequest, "group_id").entity_type == "groupId"
    endpoints = field_of(FetchResponse, "node_endpoints")
    assert (endpoints.tag, str(endpoints.tagged), endpoints.ignorable) == (0, "16+", False)
    assert field_of(RequestHeader, "client_id").flexible == NONE
    assert field_of(OffsetFetchRequest, "require_stable").flexible is None


def test_a_struct_default_is_a_shared_immutable_value() -> None:
    current = field_of(PartitionData, "current_leader").default
    assert (current.leader_id, current.leader_epoch) == (-1, -1)
    assert PartitionData().current_leader is PartitionData().current_leader


def test_a_response_names_the_errors_it_may_carry() -> None:
    errors = OffsetFetchResponse.INFO.errors
    assert errors, "the definition lists supported errors"
    assert set(errors) <= {code.name for code in ErrorCode}
    assert "GROUP_AUTHORIZATION_FAILED" in errors
    for versions in errors.values():
        assert not VersionRange.parse(versions).empty


def test_the_absent_id_is_the_default_of_uuids() -> None:
    assert OffsetFetchRequestTopics().topic_id == ZERO_UUID
