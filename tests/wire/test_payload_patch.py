"""Single fields of a payload are replaced; every other byte stays, including unusual and undecodable ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest
from attrs import evolve

from kafka_msgs import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    Message,
    MetadataResponse,
    ProduceResponse,
    Request,
    Response,
    iter_message_classes,
)
from kafka_msgs.errors import (
    DecodeError,
    EncodeError,
    OptionError,
    TruncatedError,
    UnknownColumnError,
    UnknownMessageError,
    UnsupportedVersionError,
)
from kafka_msgs.messages.find_coordinator_response import Coordinator
from kafka_msgs.messages.metadata_response import MetadataResponseBroker, MetadataResponseTopic
from kafka_msgs.messages.produce_response import NodeEndpoint
from kafka_msgs.schema import FieldInfo, Struct, fields
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.wire import (
    Edit,
    encode_request,
    encode_response,
    patch_request,
    patch_response,
    read_request_header,
    renumber_response,
    replace_client_id,
    replace_correlation_id,
)
from tests.support.line_counter import lines_run

HEARTBEAT: Final = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
CLASSES: Final = [cls for cls in iter_message_classes() if issubclass(cls, Request | Response)]
NEW: Final = {"string": "a spliced text of some length", "int32": 7_700_077, "int16": 7_707, "bytes": b"spliced" * 30}
"""Values that are no field's default."""


# Headers


@pytest.mark.parametrize("version", [0, 4])
def test_ids_of_a_request(version: int) -> None:
    payload = encode_request(HEARTBEAT, version, correlation_id=1, client_id="me")
    assert replace_correlation_id(payload, -2) == encode_request(HEARTBEAT, version, correlation_id=-2, client_id="me")
    for name in ("", None, "grüße", "c" * 1000):
        expected = encode_request(HEARTBEAT, version, correlation_id=1, client_id=name)
        assert replace_client_id(payload, name) == expected
        assert replace_client_id(expected, "me") == payload


def test_the_id_of_a_response() -> None:
    payload = encode_response(HeartbeatResponse(), 4, correlation_id=1)
    assert renumber_response(payload, 9) == encode_response(HeartbeatResponse(), 4, correlation_id=9)


def test_headers_of_unknown_requests() -> None:
    payload = bytes.fromhex("03e7 0000 00000001 0001 61 ff ff")
    assert replace_client_id(payload, None).hex() == "03e7000000000001ffffffff"
    assert read_request_header(replace_correlation_id(payload, 5)).correlation_id == 5
    without = bytes.fromhex("0007 0000 00000001 00000002")
    assert replace_client_id(without, "name") == without


def test_headers_that_are_too_short_or_names_that_are_too_long() -> None:
    with pytest.raises(TruncatedError):
        replace_correlation_id(bytes(7), 1)
    with pytest.raises(TruncatedError):
        renumber_response(bytes(3), 1)
    with pytest.raises(DecodeError):
        replace_client_id(bytes.fromhex("000c 0000 00000001 0005 61"), "a")
    with pytest.raises(EncodeError, match="client_id: 32768 bytes of UTF-8, at most 32767 are allowed"):
        replace_client_id(encode_request(HEARTBEAT, 0, correlation_id=1), "a" * 32768)


# Messages


def paths(cls: type[Struct], version: int, above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield the paths to strings, bytes and numbers of a class."""
    for field in fields(cls):
        if version in field.versions:
            path = f"{above}{field.attribute}{'[]' * field.is_array}"
            if field.struct is not None:
                yield from paths(field.struct, version, f"{path}.")
            elif field.element_type in NEW:
                yield path, field


def edited(value: Any, names: list[str], field: FieldInfo) -> Any:
    """Return a decoded message after the edit of a path."""
    if isinstance(value, tuple):
        return tuple(edited(each, names, field) for each in value)
    if names and isinstance(value, Struct):
        return evolve(value, **{names[0]: edited(getattr(value, names[0]), names[1:], field)})
    return value if names else replacement(field)(value)


def replacement(field: FieldInfo) -> Edit:
    """Return an edit that keeps defaults: the bytes contain no tagged field with its default, so edits skip it."""
    return lambda old: old if old is None or old == field.default else NEW[field.element_type]


def spliced(cls: type[Message], payload: bytes, version: int, edits: dict[str, Edit]) -> bytes:
    if cls.INFO.kind == "request":
        return patch_request(payload, edits)
    assert cls.INFO.api_key is not None
    return patch_response(payload, cls.INFO.api_key, version, edits)


def written(message: Any, version: int) -> bytes:
    encode: Any = encode_request if message.INFO.kind == "request" else encode_response
    payload: bytes = encode(message, version, correlation_id=7)
    return payload


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_spliced_payload_is_that_of_the_changed_message(cls: Any) -> None:
    """Covers every text, number and bytes field of every message, at its versions, in arrays and tagged fields."""
    rng = Random(cls.__name__)
    for version in {cls.INFO.versions.lowest, cls.INFO.versions.highest}:
        message = random_message(cls, version, rng)
        payload = written(message, version)
        for path, field in paths(cls, version):
            changed = edited(message, path.replace("[]", "").split("."), field)
            assert spliced(cls, payload, version, {path: replacement(field)}) == written(changed, version), path


def test_nothing_changed_is_the_same_object() -> None:
    payload = encode_response(FindCoordinatorResponse(host="a", port=1), 3, correlation_id=1)
    assert patch_response(payload, 10, 3, {"host": lambda host: host}) is payload
    assert patch_response(payload, 10, 3, {"coordinators[]": lambda each: each}) is payload
    assert patch_response(payload, 10, 3, {}) is payload


def test_structs_and_the_whole_message() -> None:
    """An edit of a struct receives all its fields."""
    brokers = tuple(MetadataResponseBroker(node_id=number, host=f"b{number}", port=9092) for number in range(3))
    message = MetadataResponse(brokers=brokers, topics=(MetadataResponseTopic(name="t"),))

    def local(broker: MetadataResponseBroker) -> MetadataResponseBroker:
        return evolve(broker, host="localhost", port=19000 + broker.node_id) if broker.node_id else broker

    expected = evolve(message, brokers=tuple(local(each) for each in brokers))
    payload = encode_response(message, 12, correlation_id=1)
    assert patch_response(payload, 3, 12, {"brokers[]": local}) == encode_response(expected, 12, correlation_id=1)
    single = FindCoordinatorResponse(node_id=1, host="b1", port=9092)
    found = patch_response(
        encode_response(single, 3, correlation_id=1), 10, 3, {"": lambda whole: evolve(whole, host="x", port=1)}
    )
    assert found == encode_response(evolve(single, host="x", port=1), 3, correlation_id=1)


def test_several_paths_and_versions_without_them() -> None:
    edits: dict[str, Edit] = {
        "host": lambda _: "localhost", "port": lambda port: port + 1, "coordinators[].host": lambda _: "localhost",
        "coordinators[].port": lambda port: port + 1,
    }  # fmt: skip
    old = FindCoordinatorResponse(node_id=1, host="b1", port=9092)
    new = FindCoordinatorResponse(coordinators=(Coordinator(key="g", node_id=1, host="b1", port=9092),))
    assert patch_response(encode_response(old, 0, correlation_id=1), 10, 0, edits) == encode_response(
        evolve(old, host="localhost", port=9093), 0, correlation_id=1
    )
    moved = evolve(new.coordinators[0], host="localhost", port=9093)
    assert patch_response(encode_response(new, 6, correlation_id=1), 10, 6, edits) == encode_response(
        evolve(new, coordinators=(moved,)), 6, correlation_id=1
    )


def test_a_request() -> None:
    request = FindCoordinatorRequest(key="", key_type=0, coordinator_keys=("a", "b"))
    payload = encode_request(request, 6, correlation_id=1, client_id="c")
    found = patch_request(payload, {"coordinator_keys[]": lambda key: f"prefix-{key}"})
    expected = evolve(request, coordinator_keys=("prefix-a", "prefix-b"))
    assert found == encode_request(expected, 6, correlation_id=1, client_id="c")


def test_a_tagged_field_gets_its_new_size_and_its_neighbours_stay() -> None:
    endpoint = NodeEndpoint(node_id=1, host="b1", port=9092, unknown_tagged_fields=((5, b"kept"),))
    message = ProduceResponse(node_endpoints=(endpoint,), unknown_tagged_fields=((9, b"also"),))
    payload = encode_response(message, 10, correlation_id=1)
    long = "h" * 200
    expected = evolve(message, node_endpoints=(evolve(endpoint, host=long),))
    found = patch_response(payload, 0, 10, {"node_endpoints[].host": lambda _: long})
    assert found == encode_response(expected, 10, correlation_id=1)


def test_unusual_bytes_stay_as_they_are() -> None:
    """Overlong lengths, text that is not UTF-8, and the bytes after the last changed field."""
    header, throttle = bytes.fromhex("00000001 00"), bytes.fromhex("00000000")
    broker = bytes.fromhex("00000001 83 00 6231 00002384 82 80 00 ff 00")
    rest = b"this is not the rest of a response"
    payload = header + throttle + b"\x82\x00" + broker + rest
    found = patch_response(payload, 3, 12, {"brokers[].host": lambda _: "abc"})
    assert found == header + throttle + b"\x82\x00" + broker.replace(b"\x83\x00b1", b"\x04abc") + rest


def test_only_what_is_before_the_last_change_is_read() -> None:
    def work(topics: int) -> int:
        message = MetadataResponse(
            brokers=(MetadataResponseBroker(node_id=1, host="b", port=1),),
            topics=tuple(MetadataResponseTopic(name="t") for _ in range(topics)),
        )
        payload = encode_response(message, 12, correlation_id=1)
        return lines_run(lambda: patch_response(payload, 3, 12, {"brokers[].host": lambda _: "abc"}))

    work(1)
    assert work(1) == work(1000)


def test_twice_the_elements_are_twice_the_work() -> None:
    def work(brokers: int) -> int:
        message = MetadataResponse(brokers=(MetadataResponseBroker(node_id=1, host="b", port=1),) * brokers)
        payload = encode_response(message, 12, correlation_id=1)
        return lines_run(lambda: patch_response(payload, 3, 12, {"brokers[].host": lambda _: "abc"}))

    work(1)
    assert work(400) < 2.1 * work(200)


def test_wrong_paths_values_and_payloads() -> None:
    payload = encode_response(MetadataResponse(brokers=(MetadataResponseBroker(node_id=1, host="b", port=1),)), 12,
                              correlation_id=1)  # fmt: skip
    with pytest.raises(
        UnknownColumnError, match=r"MetadataResponse v12 has no column 'brokers\[\].hots'; similar: host"
    ):
        patch_response(payload, 3, 12, {"brokers[].hots": str})
    with pytest.raises(UnknownColumnError):
        patch_response(payload, 3, 12, {"brokers[].host.name": str})
    with pytest.raises(OptionError, match="overlaps with another path"):
        patch_response(payload, 3, 12, {"brokers[].host": str, "brokers": lambda each: each})
    with pytest.raises(EncodeError, match=r"brokers\[0\].port: 4294967296 is out of range for int32"):
        patch_response(payload, 3, 12, {"brokers[].port": lambda _: 2**32})
    with pytest.raises(EncodeError, match=r"brokers\[0\].host: None, which this version does not allow"):
        patch_response(payload, 3, 12, {"brokers[].host": lambda _: None})
    with pytest.raises(DecodeError):
        patch_response(payload[:12], 3, 12, {"brokers[].host": lambda _: "a"})
    with pytest.raises(UnsupportedVersionError):
        patch_response(payload, 3, 99, {"brokers[].host": lambda _: "a"})
    with pytest.raises(UnknownMessageError):
        patch_response(payload, 999, 0, {"brokers[].host": lambda _: "a"})
