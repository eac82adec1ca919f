"""The bytes of messages on the wire, encoded and decoded."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kafka_msgs.drafts import kip_88, kip_1071
from kafka_msgs.drafts.kip_88.describe_groups_response import Group, Offset
from kafka_msgs.errors import DecodeError, EncodeError, TrailingDataError, UnexpectedNullError
from kafka_msgs.schema import fields
from tests.codec.vectors import DRAFTS, OFFSETS, ONE_OFFSET, RELEASED, TWO_PARTITIONS, Vector
from tests.support.codecs import Codecs

VECTORS = OFFSETS + DRAFTS + RELEASED


def names(vectors: list[Vector]) -> list[str]:
    """Name each vector. Names of drafts are marked, because drafts share names and versions with released messages."""
    return [
        f"{'draft ' if message.INFO.draft else ''}{message.INFO.name} v{version} {data[:40]}"
        for message, version, data in vectors
    ]


@pytest.mark.parametrize(("message", "version", "data"), VECTORS, ids=names(VECTORS))
def test_a_message_and_its_bytes(codecs: Codecs, message: Any, version: int, data: str) -> None:
    assert codecs.encode(message, version).hex() == bytes.fromhex(data).hex()
    assert codecs.decode(type(message), data, version) == message


@pytest.mark.parametrize(("message", "version", "data"), VECTORS, ids=names(VECTORS))
def test_the_bytes_of_a_message_and_one_more(codecs: Codecs, message: Any, version: int, data: str) -> None:
    size = len(bytes.fromhex(data))
    with pytest.raises(TrailingDataError) as caught:
        codecs.decode(type(message), data + "00", version)
    assert caught.value.offset == size
    assert caught.value.reason == "1 bytes left over"


@pytest.mark.parametrize(("message", "version", "data"), VECTORS, ids=names(VECTORS))
def test_every_prefix_of_a_message_is_too_short(codecs: Codecs, message: Any, version: int, data: str) -> None:
    raw = bytes.fromhex(data)
    for size in range(len(raw)):
        with pytest.raises(DecodeError) as caught:
            codecs.decode(type(message), raw[:size], version)
        assert caught.value.offset <= size


# KIP-88


@pytest.mark.parametrize("version", [1])
def test_a5_null_topics_need_version_2(codecs: Codecs, version: int) -> None:
    with pytest.raises(EncodeError) as refused:
        codecs.encode(OffsetFetchRequest(group_id="g", topics=None), version)
    assert refused.value.path == "topics"
    with pytest.raises(UnexpectedNullError) as caught:
        codecs.decode(OffsetFetchRequest, "000167 ffffffff", version)
    assert (caught.value.path, caught.value.offset) == ("topics", 3)


@pytest.mark.parametrize("version", [0, 1])
def test_a5_null_topics_need_version_2_of_the_draft_too(codecs: Codecs, version: int) -> None:
    with pytest.raises(EncodeError):
        codecs.encode(kip_88.OffsetFetchRequest(group_id="g", topics=None), version)
    with pytest.raises(UnexpectedNullError):
        codecs.decode(kip_88.OffsetFetchRequest, "000167 ffffffff", version)


def test_a4_null_and_empty_topics_stay_apart(codecs: Codecs) -> None:
    assert codecs.decode(OffsetFetchRequest, "000167 ffffffff", 2).topics is None
    assert codecs.decode(OffsetFetchRequest, "000167 00000000", 2).topics == ()


def test_a18_the_topics_of_a_response_are_never_null(codecs: Codecs) -> None:
    for version in range(1, 8):
        null = "00 00000000 00" if version >= 6 else "ffffffff"
        throttle = "00000000" if version >= 3 else ""
        with pytest.raises(DecodeError):
            codecs.decode(OffsetFetchResponse, throttle + null, version)
        with pytest.raises(EncodeError):
            codecs.encode(OffsetFetchResponse(topics=None), version)  # type: ignore[arg-type]


def test_a7_y1_a_top_level_error_is_dropped_below_version_2(codecs: Codecs) -> None:
    failed = OffsetFetchResponse(error_code=16)
    assert codecs.encode(failed, 1).hex() == "00000000"
    assert codecs.encode(failed, 2).hex() == "000000000010"


def test_a2_a6_version_2_of_a_response_appends_the_error(codecs: Codecs) -> None:
    assert codecs.encode(ONE_OFFSET, 2) == codecs.encode(ONE_OFFSET, 1) + b"\0\0"
    with pytest.raises(TrailingDataError):
        codecs.decode(OffsetFetchResponse, codecs.encode(ONE_OFFSET, 2), 1)


def test_a1_a3_versions_0_and_1_of_a_request_are_the_same_bytes(codecs: Codecs) -> None:
    assert codecs.encode(TWO_PARTITIONS, 1).hex() == "00016700000001000174000000020000000000000001"
    draft = codecs.decode(kip_88.OffsetFetchRequest, codecs.encode(TWO_PARTITIONS, 1), 0)
    assert codecs.encode(draft, 0) == codecs.encode(draft, 1) == codecs.encode(TWO_PARTITIONS, 1)


# Drafts


def test_c6_the_rejected_describe_groups_refuses_null_metadata(codecs: Codecs) -> None:
    group = Group(offsets=(Offset(topic="t", metadata=None),))  # type: ignore[arg-type]
    with pytest.raises(EncodeError) as refused:
        codecs.encode(kip_88.DescribeGroupsResponse(groups=(group,)), 1)
    assert refused.value.path == "groups[0].offsets[0].metadata"


def test_c9_the_rejected_describe_groups_leaves_version_0_as_it_was(codecs: Codecs) -> None:
    offsets = (Offset(topic="t", partition=1, offset=2, metadata="m"),)
    with_offsets = kip_88.DescribeGroupsResponse(groups=(Group(group_id="g", offsets=offsets),))
    without = kip_88.DescribeGroupsResponse(groups=(Group(group_id="g"),))
    assert codecs.encode(with_offsets, 0) == codecs.encode(without, 0)
    assert codecs.encode(with_offsets, 1).startswith(codecs.encode(without, 0))


@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_c3_member_metadata_has_an_int32_length(codecs: Codecs, size: int) -> None:
    _, version, data = DRAFTS[2]
    message = codecs.decode(kip_88.DescribeGroupsResponse, data, version)
    member = message.groups[0].members[0]
    changed = type(member)(member_id="m", member_metadata=bytes(size))
    group = Group(members=(changed,))
    encoded = codecs.encode(kip_88.DescribeGroupsResponse(groups=(group,)), 0)
    assert encoded.endswith(size.to_bytes(4, "big") + bytes(size) + bytes(4))
    assert codecs.decode(kip_88.DescribeGroupsResponse, encoded, 0).groups[0].members[0] == changed


def test_the_drafted_and_the_released_heartbeat_request_differ_on_the_wire(codecs: Codecs) -> None:
    draft = codecs.encode(kip_1071.StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1), 0)
    released = codecs.encode(StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1), 0)
    assert draft.hex() == "0267026dffffffff0000ffffffffff00000000ff0000000000"
    assert released.hex() == "0267026dffffffff000000000000ffffffffff00000000ff0000000000"
    with pytest.raises(DecodeError):
        codecs.decode(StreamsGroupHeartbeatRequest, draft, 0)


def test_the_drafted_and_the_released_heartbeat_response_differ_on_the_wire(codecs: Codecs) -> None:
    draft = codecs.encode(kip_1071.StreamsGroupHeartbeatResponse(), 0)
    assert len(draft) == 30
    assert len(codecs.encode(StreamsGroupHeartbeatResponse(), 0)) == 34
    with pytest.raises(DecodeError):
        codecs.decode(StreamsGroupHeartbeatResponse, draft, 0)
    released, drafted = (
        {info.name for info in fields(cls) if 0 in info.versions and info.tag is None}
        for cls in (StreamsGroupHeartbeatResponse, kip_1071.StreamsGroupHeartbeatResponse)
    )
    # 4.4.0 reused the name of the draft's int32 for an int64 of version 1.
    assert released - drafted == {"EndpointInformationEpoch", "AcceptableRecoveryLagLegacy"}
    assert drafted - released == {"AcceptableRecoveryLag"}


def test_the_heartbeat_port_is_unsigned(codecs: Codecs) -> None:
    from kafka_msgs.messages.streams_group_heartbeat_request import Endpoint

    request = StreamsGroupHeartbeatRequest(user_endpoint=Endpoint(host="h", port=65535))
    assert codecs.decode(StreamsGroupHeartbeatRequest, codecs.encode(request, 0), 0) == request
    for port in (65536, -1):
        with pytest.raises(EncodeError) as refused:
            codecs.encode(StreamsGroupHeartbeatRequest(user_endpoint=Endpoint(host="h", port=port)), 0)
        assert refused.value.path == "user_endpoint.port"
