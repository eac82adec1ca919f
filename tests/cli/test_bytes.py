"""Bytes to text and back: decode, encode, frame, and the annotated dumps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kafka_msgs import Message, OffsetCommitValue, OffsetFetchRequest, OffsetFetchResponse, iter_message_classes
from kafka_msgs.cli.render.hex_dump import annotate
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponsePartition, OffsetFetchResponseTopic
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.wire import encode_request, encode_response
from tests.support.command_line import Run, squeezed
from tests.support.recorded_frames import exchanges, read_frames
from tests.support.recordings import KIP88

ALL_OFFSETS_OF_BILLING = "000762696c6c696e67ffffffff"
FENCED = OffsetFetchResponse(
    topics=(
        OffsetFetchResponseTopic(
            name="orders", partitions=(OffsetFetchResponsePartition(partition_index=3, error_code=9999),)
        ),
    ),
    error_code=82,
)


def test_decode_prints_the_fields_of_the_version(run: Run) -> None:
    result = run("decode", "OffsetFetchRequest", "2", ALL_OFFSETS_OF_BILLING)
    assert result.stdout.splitlines() == ["OffsetFetchRequest v2", "├── group_id: 'billing'", "└── topics: null"]


def test_decode_names_error_codes_and_leaves_unknown_ones_alone(run: Run) -> None:
    shown = run("decode", "OffsetFetchResponse", "2", FENCED.encode(2).hex()).stdout
    assert "error_code: 82 FENCED_INSTANCE_ID\n" in shown
    assert "error_code: 9999\n" in shown


def test_decode_prints_unknown_tagged_fields(run: Run) -> None:
    data = OffsetFetchResponse(unknown_tagged_fields=((7, b"\x01\x02"),)).encode(8)
    assert "unknown tag 7: 0102" in run("decode", "OffsetFetchResponse", "8", data.hex()).stdout


@pytest.mark.parametrize("text", ["0007 6269 6c6c 696e 67\nffff ffff\n", ALL_OFFSETS_OF_BILLING.upper()])
def test_decode_reads_hexadecimal_from_standard_input(run: Run, text: str) -> None:
    assert "group_id: 'billing'" in run("decode", "OffsetFetchRequest", "2", stdin=text).stdout
    assert "group_id: 'billing'" in run("decode", "OffsetFetchRequest", "2", "-", stdin=text).stdout


def test_decode_reads_raw_bytes_from_files_and_standard_input(run: Run, tmp_path: Path) -> None:
    raw = bytes.fromhex(ALL_OFFSETS_OF_BILLING)
    (tmp_path / "request").write_bytes(raw)
    assert "group_id: 'billing'" in run("decode", "OffsetFetchRequest", "2", f"@{tmp_path / 'request'}").stdout
    assert "group_id: 'billing'" in run("decode", "OffsetFetchRequest", "2", "@-", stdin=raw).stdout


def test_json_form_goes_out_and_comes_back(run: Run) -> None:
    text = run("decode", "OffsetFetchRequest", "2", "--json", ALL_OFFSETS_OF_BILLING).stdout
    assert json.loads(text) == {"groupId": "billing", "topics": None}
    assert run("encode", "OffsetFetchRequest", "2", text).stdout == f"{ALL_OFFSETS_OF_BILLING}\n"
    assert run("encode", "OffsetFetchRequest", "2", stdin=text).stdout == f"{ALL_OFFSETS_OF_BILLING}\n"
    assert run("encode", "OffsetFetchRequest", "2", "--binary", text).stdout_bytes.hex() == ALL_OFFSETS_OF_BILLING


def test_drafts_decode_differently_from_what_shipped(run: Run) -> None:
    draft, shipped = (run("plan", f"{prefix}StreamsGroupHeartbeatRequest", "0").stdout for prefix in ("kip_1071.", ""))
    assert draft != shipped
    encoded = run("encode", "kip_88.OffsetFetchRequest", "2", '{"groupId": "billing", "topics": null}')
    assert encoded.stdout == f"{ALL_OFFSETS_OF_BILLING}\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("decode", "OffsetFetchRequest", "2", "0040"), "OffsetFetchRequest v2: group_id at byte 2: string needs 64"),
        (("decode", "OffsetFetchRequest", "20", "00"), "OffsetFetchRequest has no version 20; it has 1-10"),
        (("decode", "OffsetFetchRequest", "2", "0q"), "not hexadecimal: "),
        (("decode", "OffsetFetchRequest", "2", "@no/such/file"), "no/such/file: No such file or directory"),
        (("encode", "OffsetFetchRequest", "2", '{"groupId":'), "not JSON: "),
        (("encode", "OffsetFetchRequest", "2", '{"groupId": "a"}'), "OffsetFetchRequest v2: OffsetFetchRequest.topics"),
        (("frame", "00"), "RequestHeader: at byte 0: api key, version and correlation id need 8 bytes"),
        (("frame", "--explain", "00"), "RequestHeader: at byte 0: api key, version and correlation id need 8 bytes"),
        (("frame", "7fff000000000007"), "no request of clients has the api key 32767"),
        (("frame", "--size-prefix", "00000005aa"), "the frame states 5 bytes, but 1 follow"),
        (("frame", "--response-to", "9/77", "0000000000"), "OffsetFetchResponse has no version 77; it has 1-10"),
    ],
)
def test_failures_are_one_line(fails: Callable[..., str], arguments: tuple[str, ...], text: str) -> None:
    assert fails(*arguments).startswith(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", "OffsetFetchRequest"),
        ("decode", "OffsetFetchRequest", "two", "00"),
        ("plan", "OffsetFetchRequest", "2", "--json", "--source"),
        ("frame", "--response-to", "OffsetFetch", "00"),
        ("frame", "--response-to", "NoSuchApi/2", "00"),
    ],
)
def test_wrong_calls_exit_with_two(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_a_recorded_exchange_reads_as_what_was_said(run: Run) -> None:
    exchange = next(iter(exchanges(read_frames(KIP88))))
    request = run("frame", "--size-prefix", exchange.request.data.hex())
    assert "client_id: 'kip88'" in request.stdout
    assert "topics: null" in request.stdout
    for api in ("9/2", "OffsetFetch/2", "OffsetFetchRequest/2"):
        response = run("frame", "--response-to", api, "--json", exchange.response.payload.hex())
        shown = json.loads(response.stdout)
        assert shown["header"] == {"correlationId": exchange.response.correlation_id}
        assert shown["message"]["topics"][0]["name"] == "orders"


def test_explain_shows_what_each_byte_is(run: Run) -> None:
    lines = squeezed(run("decode", "OffsetFetchRequest", "2", "--explain", ALL_OFFSETS_OF_BILLING).stdout)
    assert "0 00 07 62 69 6c 6c 69 6e group_id string 'billing'" in lines
    assert "67" in lines
    assert "9 ff ff ff ff topics nullable array null" in lines


def test_explain_ends_with_the_error_at_its_place(run: Run) -> None:
    result = run("decode", "OffsetFetchRequest", "2", "--explain", "000161 00000001 0040 61626364")
    assert result.exit_code == 1
    assert [line for line in squeezed(result.stdout) if line][-2:] == [
        "7 00 40 topics[0].name",
        "9 61 62 63 64 topics[0].name TruncatedError string needs 64 bytes, 4 left",
    ]
    assert result.stderr == "Error: OffsetFetchRequest v2: topics[0].name at byte 9: string needs 64 bytes, 4 left\n"


def test_explain_shows_left_over_bytes(run: Run) -> None:
    result = run("decode", "OffsetFetchRequest", "2", "--explain", f"{ALL_OFFSETS_OF_BILLING}abcd")
    assert result.exit_code == 1
    assert "13 ab cd TrailingDataError 2 bytes left over" in squeezed(result.stdout)


def test_explain_as_json_has_every_byte_and_the_error(run: Run) -> None:
    (whole,) = json.loads(
        run("decode", "OffsetFetchRequest", "2", "--explain", "--json", ALL_OFFSETS_OF_BILLING).stdout
    )
    assert "".join(span["bytes"] for span in whole["spans"]) == ALL_OFFSETS_OF_BILLING
    assert whole["spans"][0] == {
        "offset": 0, "bytes": "000762696c6c696e67", "field": "group_id", "type": "string", "value": "billing",
    }  # fmt: skip
    assert whole["error"] is None
    result = run("decode", "OffsetFetchRequest", "2", "--explain", "--json", "0040")
    assert result.exit_code == 1
    assert json.loads(result.stdout)[0]["error"].endswith("string needs 64 bytes, 0 left")
    request = encode_request(OffsetFetchRequest(), 8, correlation_id=5, client_id="c")
    header, message = json.loads(run("frame", "--explain", "--json", request.hex()).stdout)
    assert (header["message"], message["message"]) == ("RequestHeader v2", "OffsetFetchRequest v8")


def test_explain_shortens_long_bytes(run: Run) -> None:
    data = OffsetCommitValue(metadata="m" * 300).encode(0)
    shown = run("decode", "OffsetCommitValue", "0", "--explain", data.hex()).stdout
    assert f"… {2 + 300 - 32} more" in shown
    assert max(map(len, shown.splitlines())) < 150


def test_explain_covers_header_and_message_of_a_frame(run: Run) -> None:
    request = encode_request(OffsetFetchRequest(), 8, correlation_id=5, client_id="c")
    lines = squeezed(run("frame", "--explain", request.hex()).stdout)
    assert "RequestHeader v2" in lines
    assert "OffsetFetchRequest v8" in lines
    response = encode_response(FENCED, 7, correlation_id=5)
    lines = squeezed(run("frame", "--response-to", "9/7", "--explain", response.hex()).stdout)
    assert "ResponseHeader v1" in lines
    assert "5 00 00 00 00 throttle_time_ms int32 0" in lines


def test_explain_shows_the_bytes_after_the_message_of_a_frame_which_brokers_accept(run: Run) -> None:
    request = encode_request(OffsetFetchRequest(), 8, correlation_id=5, client_id="c") + b"\xab\xcd"
    size = len(request) - 2
    for arguments in ((request.hex(),), ("--size-prefix", len(request).to_bytes(4, "big").hex() + request.hex())):
        result = run("frame", "--explain", *arguments)
        assert (result.exit_code, result.stderr) == (0, "")
        assert [line for line in squeezed(result.stdout) if line][-1] == f"{size} ab cd (trailing bytes) bytes abcd"
    _, message = json.loads(run("frame", "--explain", "--json", request.hex()).stdout)
    assert message["error"] is None
    assert message["spans"][-1] == {
        "offset": size, "bytes": "abcd", "field": "(trailing bytes)", "type": "bytes", "value": "abcd",
    }  # fmt: skip


def test_explain_stops_at_a_malformed_header(run: Run) -> None:
    result = run("frame", "--explain", "0009000200000001 0009 61")
    assert result.exit_code == 1
    assert "OffsetFetchRequest v2" not in result.stdout
    assert "client_id at byte 10: string needs 9 bytes, 1 left" in result.stderr


@pytest.mark.parametrize("cls", list(iter_message_classes()), ids=lambda cls: cls.INFO.name)
def test_annotations_cover_every_byte_of_every_message_once(cls: type[Message]) -> None:
    version = cls.INFO.versions.highest
    data = random_message(cls, version, Random(7)).encode(version)
    annotation = annotate(cls, version, b"\0" + data, 1)
    assert annotation.error is None
    ends = [1, *(span.end for span in annotation.spans)]
    assert [span.start for span in annotation.spans] == ends[:-1]
    assert ends[-1] == annotation.end == 1 + len(data)
