"""The fates of fields agree with ``encode``, for every message at every version."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from attrs import evolve

from kafka_msgs import MetadataRequest, OffsetFetchRequest
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.encodability import Fate, can_encode, versions_that_keep
from kafka_msgs.errors import EncodeError, UnsupportedVersionError
from kafka_msgs.message import Message
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequestGroup
from kafka_msgs.schema import FieldInfo, Struct, fields
from kafka_msgs.testing import random_message

CLASSES = list(iter_message_classes())
_WRONG: tuple[Any, ...] = (None, 2**70, -(2**70), "x" * 40_000, object(), ("a", 5), (None,), "\ud800", True, 1.5)


def encoded(message: Message, version: int) -> bytes | EncodeError:
    try:
        return message.encode(version)
    except EncodeError as error:
        return error


def check(message: Message, version: int) -> None:
    """Compare the fates with the outcome of encoding."""
    found, data = can_encode(message, version), encoded(message, version)
    if isinstance(data, EncodeError):
        assert found.refused[0].first == data.path
        return
    assert found, found.refused
    decoded = type(message).decode(data, version)
    assert (decoded == message) == (not found.dropped), found.dropped
    for fate in found.dropped:
        *parents, name = fate.path.split(".")
        assert all(getattr(each, name) == default_of(each, name) for each in structs_at(decoded, parents))


def structs_at(message: Struct, path: list[str]) -> list[Any]:
    found: list[Any] = [message]
    for name in path:
        inner = [getattr(each, name) for each in found]
        found = [each for value in inner for each in (value if isinstance(value, tuple) else (value,)) if each]
    return found


def default_of(struct: Any, name: str) -> Any:
    return next(info.default for info in fields(type(struct)) if info.attribute == name)


def has_nan(message: Message) -> bool:
    return message != message


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.INFO.name)
def test_a_message_made_at_any_version_at_every_version(cls: type[Message]) -> None:
    rng = Random(cls.INFO.name)
    for made_at in cls.INFO.versions:
        message = random_message(cls, made_at, rng)
        for version in cls.INFO.versions:
            if not has_nan(message):
                check(message, version)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.INFO.name)
def test_a_message_with_a_wrong_value_at_every_version(cls: type[Message]) -> None:
    rng = Random(cls.INFO.name)
    for version in cls.INFO.versions:
        message = random_message(cls, version, rng, unknown_tags=False)
        check_same_verdict(spoiled(message, rng), version)


def spoiled(message: Any, rng: Random) -> Any:
    """Return a copy with a wrong value in a random field, in a nested struct if there is one."""
    names: list[FieldInfo] = list(fields(type(message)))
    if not names:
        return evolve(message, unknown_tagged_fields=((1, b""), (0, b"")))
    info = rng.choice(names)
    value = getattr(message, info.attribute)
    if info.struct is not None and value:
        inner = value if isinstance(value, tuple) else (value,)
        made = tuple(spoiled(each, rng) for each in inner)
        return evolve(message, **{info.attribute: made if isinstance(value, tuple) else made[0]})
    return evolve(message, **{info.attribute: rng.choice(_WRONG)})


def check_same_verdict(message: Message, version: int) -> None:
    found, data = can_encode(message, version), encoded(message, version)
    assert bool(found) == isinstance(data, bytes)
    if isinstance(data, EncodeError):
        assert found.refused[0].first == data.path


def test_each_field_has_its_fate() -> None:
    group = OffsetFetchRequestGroup(group_id="g", topics=())
    found = can_encode(OffsetFetchRequest(groups=(group, group), require_stable=True), 7)
    assert [(each.path, each.fate, each.count) for each in found.fields][:2] == [
        ("groups", Fate.REFUSED, 1),
        ("group_id", Fate.KEPT, 1),
    ]
    assert found.refused[0].reason == "set, but this version lacks the field"
    found = can_encode(OffsetFetchRequest(groups=(group, group), require_stable=True), 8)
    assert found
    assert {each.path: each.count for each in found.fields}["groups.group_id"] == 2
    assert not can_encode(OffsetFetchRequest(group_id="g"), 8)


def test_an_ignorable_field_is_dropped() -> None:
    request = MetadataRequest(topics=None, include_topic_authorized_operations=True)
    assert [each.path for each in can_encode(request, 1).refused] == ["include_topic_authorized_operations"]
    assert versions_that_keep(request) == tuple(range(8, MetadataRequest.INFO.versions.highest + 1))


def test_the_versions_that_keep_a_message_lose_nothing() -> None:
    for cls in CLASSES:
        message = random_message(cls, cls.INFO.versions.highest, Random(1))
        for version in versions_that_keep(message):
            assert cls.decode(message.encode(version), version) == message or has_nan(message)


def test_an_unsupported_version_is_an_error() -> None:
    with pytest.raises(UnsupportedVersionError):
        can_encode(MetadataRequest(), 99)
