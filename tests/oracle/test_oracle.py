"""The oracle itself: it finds every message, distinguishes Kafka's verdicts, and survives any request."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path

import pytest

from kafka_msgs.versions import VersionRange
from tests.oracle import Decoded, Oracle, OracleReject
from tests.oracle.driver import BATCH, OracleCrashError

pytestmark = pytest.mark.oracle

ROOT = Path(__file__).resolve().parents[2]
HEADER = {"requestApiKey": 9, "requestApiVersion": 2, "correlationId": 7, "clientId": None}


def _definitions() -> dict[str, dict[str, object]]:
    files = (ROOT / "message_defs" / "kafka").glob("*/*.json")
    return {definition["name"]: definition for definition in map(json.loads, (file.read_text() for file in files))}


def test_releases_are_those_that_the_definitions_were_imported_from(oracle: Oracle) -> None:
    source = tomllib.loads((ROOT / "message_defs" / "SOURCE.toml").read_text())
    imported = dict(facts["artifact"].split(":")[1:] for facts in source["origins"].values())
    found = {info.artifact: info.release for info in oracle.messages().values()}
    test_messages = found.pop("kafka-clients-test")
    assert found == imported
    assert f"<kafka.test.version>{test_messages}<" in (ROOT / "tests/oracle/pom.xml").read_text()


def test_every_definition_that_is_not_retired_has_a_class_of_the_same_versions(oracle: Oracle) -> None:
    wanted = {
        name: VersionRange.parse(str(definition["validVersions"]))
        for name, definition in _definitions().items()
        if definition["validVersions"] != "none"
    }
    found = {name: info.versions for name, info in oracle.messages().items() if info.artifact != "kafka-clients-test"}
    assert len(wanted) > 250
    assert found == wanted


def test_streams_alone_ships_no_json_converter(oracle: Oracle) -> None:
    without = {info.name: info.artifact for info in oracle.messages().values() if not info.has_json}
    assert without == {"SubscriptionInfoData": "kafka-streams"}
    data = bytes.fromhex("00000001 00112233445566778899aabbccddeeff 00000000 00000000")
    decoded = oracle.decode("SubscriptionInfoData", 1, data)
    assert decoded.reencoded == data
    assert isinstance(decoded.json_text, OracleReject)


def test_messages_of_kafkas_own_tests_come_with_their_definitions(oracle: Oracle) -> None:
    exotic = {name: info for name, info in oracle.messages().items() if info.artifact == "kafka-clients-test"}
    assert set(exotic) == {
        "AllTypeMessage",
        "NullableStructMessage",
        "SimpleArraysMessage",
        "SimpleExampleMessage",
        "SimpleRecordsMessage",
    }
    assert exotic["AllTypeMessage"].definition["validVersions"] == "0-1"


@pytest.mark.parametrize(
    ("name", "version", "value", "data"),
    [
        ("OffsetFetchRequest", 2, {"groupId": "g", "topics": None}, "000167 ffffffff"),
        ("OffsetFetchRequest", 2, {"groupId": "g", "topics": []}, "000167 00000000"),
        ("OffsetFetchRequest", 6, {"groupId": "g", "topics": None}, "0267 00 00"),
        ("ApiVersionsRequest", 0, {}, ""),
        ("ApiVersionsRequest", 3, {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}, "0261 0231 00"),
        (
            "ApiVersionsResponse",
            0,
            {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]},
            "0023 00000001 0012 0000 0004",
        ),
        ("RequestHeader", 1, HEADER, "0009 0002 00000007 ffff"),
        ("RequestHeader", 2, HEADER, "0009 0002 00000007 ffff 00"),
        ("OffsetCommitKey", 0, {"group": "g", "topic": "t", "partition": 1}, "000167 000174 00000001"),
        ("NoOpRecord", 0, {}, "00"),
    ],
)
def test_known_values_have_known_bytes(
    oracle: Oracle, name: str, version: int, value: dict[str, object], data: str
) -> None:
    expected = bytes.fromhex(data)
    assert oracle.encode(name, version, value) == expected
    decoded = oracle.decode(name, version, expected)
    assert (decoded.json, decoded.consumed, decoded.reencoded) == (value, len(expected), expected)


def test_bytes_after_the_message_are_left_and_counted(oracle: Oracle) -> None:
    decoded = oracle.decode("OffsetFetchRequest", 2, bytes.fromhex("000167 ffffffff 99"))
    assert decoded.consumed == 7


def test_unknown_tags_survive_in_the_bytes_written_back(oracle: Oracle) -> None:
    data = bytes.fromhex("0261 0231 02 05 01aa ac02 03bbccdd")
    decoded = oracle.decode("ApiVersionsRequest", 3, data)
    assert decoded.reencoded == data
    assert decoded.json == {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}


def test_unordered_unknown_tags_are_read_but_not_written(oracle: Oracle) -> None:
    decoded = oracle.decode("ApiVersionsRequest", 3, bytes.fromhex("0261 0231 02 09 01aa 05 01bb"))
    assert isinstance(decoded.reencoded, OracleReject)
    assert "comes after tag" in decoded.reencoded.reason


def test_records_are_taken_from_json_and_returned_in_the_bytes_only(oracle: Oracle) -> None:
    value = {"topic": "t", "recordSet": "3q2+7w=="}
    data = oracle.encode("SimpleRecordsMessage", 0, value)
    assert data == bytes.fromhex("000174 00000004 deadbeef")
    decoded = oracle.decode("SimpleRecordsMessage", 0, data)
    assert decoded.json == {"topic": "t", "recordSet": ""}
    assert decoded.reencoded == data


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308])
def test_every_float_crosses_the_json(oracle: Oracle, number: float) -> None:
    decoded = oracle.decode("AllTypeMessage", 0, oracle.encode("AllTypeMessage", 0, _all_types(myFloat64=number)))
    assert repr(decoded.json["myFloat64"]) == repr(number)


@pytest.mark.parametrize("text", ["grüße", "日本", "🦜", "\x00", "a" * 32767])
def test_every_string_crosses_the_json(oracle: Oracle, text: str) -> None:
    data = oracle.encode("OffsetFetchRequest", 2, {"groupId": text, "topics": None})
    assert data[2:-4] == text.encode()
    assert oracle.decode("OffsetFetchRequest", 2, data).json["groupId"] == text


def _all_types(**changed: object) -> dict[str, object]:
    """Return an ``AllTypeMessage`` as Kafka reads it from all zeros, with some fields changed."""
    (decoded,) = Oracle.shared().decode_many([("AllTypeMessage", 0, bytes(400))])
    assert isinstance(decoded, Decoded)
    return {**decoded.json, **changed}


@pytest.mark.parametrize(
    ("name", "version", "value", "kafka_class"),
    [
        ("OffsetFetchRequest", 2, {"groupId": "g" * 32768, "topics": None}, "java.lang.RuntimeException"),
        ("OffsetFetchRequest", 2, {"topics": None}, "java.lang.RuntimeException"),
        ("OffsetFetchRequest", 0, {}, "org.apache.kafka.common.errors.UnsupportedVersionException"),
        ("OffsetFetchRequest", 99, {}, "org.apache.kafka.common.errors.UnsupportedVersionException"),
    ],
)
def test_values_kafka_refuses_are_rejected(
    oracle: Oracle, name: str, version: int, value: dict[str, object], kafka_class: str
) -> None:
    with pytest.raises(OracleReject) as caught:
        oracle.encode(name, version, value)
    assert caught.value.kafka_class == kafka_class


def test_a_set_field_that_the_written_version_lacks_is_rejected(oracle: Oracle) -> None:
    with_flag = {"groupId": "g", "topics": [], "requireStable": True}
    without_flag = {"groupId": "g", "topics": [], "requireStable": False}
    assert oracle.encode("OffsetFetchRequest", 2, without_flag, json_version=7) == bytes.fromhex("000167 00000000")
    with pytest.raises(OracleReject, match="non-default requireStable at version 2"):
        oracle.encode("OffsetFetchRequest", 2, with_flag, json_version=7)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (2, ""),
        (2, "0001"),
        (2, "7fff 67"),
        (2, "ffff 00000000"),
        (2, "000167 7fffffff"),
        (6, "0267 ffffffff07 00"),
        (6, "0267 00 01 05 ffffffff07"),
        (6, "0267 00 01 05 ffffffff0f"),
        (6, "0267 00 ffffffff07"),
        (6, "ffffffffffff"),
    ],
)
def test_bytes_kafka_refuses_are_rejected_and_do_not_stop_it(oracle: Oracle, version: int, data: str) -> None:
    with pytest.raises(OracleReject):
        oracle.decode("OffsetFetchRequest", version, bytes.fromhex(data))
    assert oracle.decode("NoOpRecord", 0, b"\0").consumed == 1


def test_answers_of_a_long_batch_keep_its_order(oracle: Oracle) -> None:
    keys: list[tuple[str, int, object]] = []
    for number in range(2 * BATCH + 1):
        topic = None if number % 10 == 3 else f"topic-{number}"
        keys.append(("OffsetCommitKey", 0, {"group": "g", "topic": topic, "partition": number}))
    encoded = oracle.encode_many(keys)
    assert [isinstance(result, OracleReject) for result in encoded] == [n % 10 == 3 for n in range(len(keys))]
    accepted = [result for result in encoded if isinstance(result, bytes)]
    decoded = oracle.decode_many([("OffsetCommitKey", 0, data) for data in accepted])
    partitions = [result.json["partition"] for result in decoded if isinstance(result, Decoded)]
    assert partitions == [number for number in range(len(keys)) if number % 10 != 3]


def test_a_process_that_was_ended_is_started_again() -> None:
    available, reason = Oracle.available()
    assert available, reason
    oracle = Oracle(Oracle.shared()._command)
    first = oracle.messages()
    oracle.close()
    assert oracle.decode("NoOpRecord", 0, b"\0").consumed == 1
    assert oracle.messages() == first
    oracle.close()


def test_a_process_that_dies_is_reported_with_what_it_printed() -> None:
    java = Oracle.shared()._command[0]
    broken = Oracle([java, "-cp", "nowhere", "oracle.Oracle"])
    with pytest.raises(OracleCrashError, match=r"(?s)ended.*oracle\.Oracle"):
        broken.messages()
