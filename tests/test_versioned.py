"""Version-prefixed data: the consumer protocol, and the keys and values of internal topics."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
    StreamsGroupTopologyKey,
    TransactionLogKey,
    TransactionLogValue,
    iter_message_classes,
)
from kafka_msgs.drafts import kip_1071
from kafka_msgs.errors import (
    EncodeError,
    InvalidKeyTypeError,
    TrailingDataError,
    TruncatedError,
    UnsupportedVersionError,
)
from kafka_msgs.messages.consumer_protocol_subscription import TopicPartition
from kafka_msgs.versioned import Versioned, decode_versioned, encode_versioned

OWNED = (TopicPartition(topic="t", partitions=(1,)),)
VECTORS: list[tuple[Any, int, str]] = [
    (ConsumerProtocolSubscription(topics=("t",)), 0, "0000 00000001 000174 ffffffff"),
    (
        ConsumerProtocolSubscription(topics=("t",), user_data=b"u", owned_partitions=OWNED),
        1,
        "0001 00000001 000174 00000001 75 00000001 000174 00000001 00000001",
    ),
    (
        ConsumerProtocolSubscription(topics=("t",), generation_id=5, rack_id="r"),
        3,
        "0003 00000001 000174 ffffffff 00000000 00000005 000172",
    ),
    (ConsumerProtocolAssignment(user_data=b""), 2, "0002 00000000 00000000"),
    (LegacyOffsetCommitKey(group="g", topic="t", partition=1), 0, "0000 000167 000174 00000001"),
    (OffsetCommitKey(group="g", topic="t", partition=1), 0, "0001 000167 000174 00000001"),
    (GroupMetadataKey(group="g"), 0, "0002 000167"),
    (StreamsGroupTopologyKey(group_id="g"), 0, "0017 000167"),
    (OffsetCommitValue(offset=5, commit_timestamp=6), 0, "0000 0000000000000005 0000 0000000000000006"),
    (OffsetCommitValue(offset=5, commit_timestamp=6), 3, "0003 0000000000000005 ffffffff 0000 0000000000000006"),
    (OffsetCommitValue(offset=5, commit_timestamp=6), 4, "0004 0000000000000005 ffffffff 01 0000000000000006 00"),
    (TransactionLogKey(transactional_id="x"), 0, "0000 000178"),
    (kip_1071.StreamsGroupMetadataValue(epoch=5), 0, "0000 00000005 00"),
    (kip_1071.StreamsGroupTopologyKey(group_id="g"), 23, "0017 000167"),
]


@pytest.mark.parametrize(("message", "version", "data"), VECTORS)
def test_a_message_behind_its_version_or_record_type(message: Any, version: int, data: str) -> None:
    raw = bytes.fromhex(data)
    assert encode_versioned(message, version) == raw
    for buffer in (raw, bytearray(raw), memoryview(raw)):
        assert decode_versioned(type(message), buffer) == Versioned(version, message)


def test_the_prefix_of_every_key_is_its_record_type() -> None:
    keys = [cls for cls in iter_message_classes() if cls.INFO.kind == "coordinator-key"]
    assert len(keys) > 20
    for cls in keys:
        data = encode_versioned(cls(), 0)
        assert int.from_bytes(data[:2], "big") == cls.INFO.api_key
        assert decode_versioned(cls, data) == (0, cls())


def test_a_key_of_another_type_is_recognized() -> None:
    with pytest.raises(InvalidKeyTypeError) as caught:
        decode_versioned(GroupMetadataKey, bytes.fromhex("0001 000167 000174 00000001"))
    assert (caught.value.expected, caught.value.found) == (2, 1)
    assert str(caught.value) == "GroupMetadataKey has the record type 2, this key has 1"


@pytest.mark.parametrize("number", [-1, 5, 32767])
def test_a_version_that_the_value_lacks(number: int) -> None:
    data = number.to_bytes(2, "big", signed=True) + bytes(40)
    with pytest.raises(UnsupportedVersionError) as caught:
        decode_versioned(OffsetCommitValue, data)
    assert (caught.value.message, caught.value.version) == ("OffsetCommitValue", number)


@pytest.mark.parametrize("data", [b"", b"\0"])
def test_less_than_a_version(data: bytes) -> None:
    with pytest.raises(TruncatedError) as caught:
        decode_versioned(ConsumerProtocolSubscription, data)
    assert str(caught.value) == (f"ConsumerProtocolSubscription: at byte 0: a version needs 2 bytes, {len(data)} left")


@pytest.mark.parametrize(("message", "version", "data"), VECTORS)
def test_bytes_left_over_are_an_error(message: Any, version: int, data: str) -> None:
    raw = bytes.fromhex(data)
    with pytest.raises(TrailingDataError) as caught:
        decode_versioned(type(message), raw + b"\0")
    assert caught.value.offset == len(raw)


def test_offsets_of_errors_count_the_prefix() -> None:
    with pytest.raises(TruncatedError) as caught:
        decode_versioned(GroupMetadataKey, bytes.fromhex("0002 0005 67"))
    assert str(caught.value) == "GroupMetadataKey v0: group at byte 4: string needs 5 bytes, 1 left"
    with pytest.raises(TruncatedError) as caught:
        decode_versioned(ConsumerProtocolSubscription, bytes.fromhex("0009 0000"), newer="clamp")
    assert caught.value.offset == 2


# A member of the group may run a newer version


def test_a_newer_version_is_refused_unless_asked_otherwise() -> None:
    with pytest.raises(UnsupportedVersionError):
        decode_versioned(ConsumerProtocolSubscription, bytes.fromhex("0004 00000000 ffffffff"))


def test_a_newer_version_is_read_as_the_highest_known_and_the_rest_ignored() -> None:
    data = bytes.fromhex("0007 00000001 000174 ffffffff 00000000 00000005 000172 cafe")
    version, message = decode_versioned(ConsumerProtocolSubscription, data, newer="clamp")
    assert version == 7
    assert message == ConsumerProtocolSubscription(topics=("t",), generation_id=5, rack_id="r")


def test_clamping_changes_nothing_for_known_versions() -> None:
    data = encode_versioned(ConsumerProtocolAssignment(), 1)
    assert decode_versioned(ConsumerProtocolAssignment, data, newer="clamp").version == 1
    with pytest.raises(TrailingDataError):
        decode_versioned(ConsumerProtocolAssignment, data + b"\0", newer="clamp")
    with pytest.raises(UnsupportedVersionError):
        decode_versioned(ConsumerProtocolAssignment, b"\xff\xff" + data[2:], newer="clamp")


def test_what_cannot_be_encoded_gets_no_prefix() -> None:
    with pytest.raises(UnsupportedVersionError):
        encode_versioned(TransactionLogValue(), 2)
    with pytest.raises(EncodeError):
        encode_versioned(ConsumerProtocolSubscription(generation_id=2**31), 2)
