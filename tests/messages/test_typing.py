"""What a type checker knows of the generated classes: run mypy over a small program and read what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

ROOT = Path(__file__).parents[2]
REVEALED = [
    ("OffsetFetchRequest().topics", "tuple[OffsetFetchRequestTopic, ...] | None"),
    ("OffsetFetchRequest().groups", "tuple[OffsetFetchRequestGroup, ...]"),
    ("OffsetFetchRequest().groups[0].topics", "tuple[OffsetFetchRequestTopics, ...] | None"),
    ("OffsetFetchRequest().groups[0].member_id", "str | None"),
    ("OffsetFetchRequest().require_stable", "bool"),
    ("OffsetFetchRequest().unknown_tagged_fields", "tuple[tuple[int, bytes], ...]"),
    ("OffsetFetchRequest.decode(b'', 2)", "OffsetFetchRequest"),
    ("OffsetFetchRequest.read(b'', 2)", "tuple[OffsetFetchRequest, int]"),
    ("OffsetFetchRequest.from_json({}, 2)", "OffsetFetchRequest"),
    ("OffsetFetchRequest().encode(2)", "bytes"),
    ("OffsetFetchRequest().to_json(2)", "dict[str, Any]"),
    ("OffsetFetchRequest.INFO", "KeyedMessageInfo"),
    ("MetadataResponse().topics[0].topic_id", "UUID"),
    ("MetadataResponse().topics[0].partitions[0].replica_nodes", "tuple[int, ...]"),
    ("DescribeTopicPartitionsRequest().cursor", "Cursor | None"),
    ("JoinGroupRequest().protocols[0].metadata", "bytes"),
    ("ProduceRequest().topic_data[0].partition_data[0].records", "bytes | memoryview[int] | None"),
    ("FetchSnapshotResponse().topics[0].partitions[0].unaligned_records", "bytes | memoryview[int] | None"),
    ("AlterClientQuotasRequest().entries[0].ops[0].value", "float"),
    ("codec_for(OffsetFetchRequest, 2)", "Codec[OffsetFetchRequest]"),
    ("codec_for(OffsetFetchRequest, 2).decode(b'')", "OffsetFetchRequest"),
    ("message_class(9, 'request')", "type[Request[Response]]"),
    ("decode_versioned(ConsumerProtocolAssignment, b'').message", "ConsumerProtocolAssignment"),
    ("ErrorCode.from_code(3)", "ErrorCode | None"),
    ("attrs.evolve(OffsetFetchRequest(), topics=None)", "OffsetFetchRequest"),
]
REJECTED = [
    ("OffsetFetchRequest(group_id=5)", "arg-type"),
    ("OffsetFetchRequest(group_id=None)", "arg-type"),
    ("OffsetFetchRequest(topics=('t',))", "arg-type"),
    ("OffsetFetchRequest(groups=None)", "arg-type"),
    ("OffsetFetchRequest(groups=[])", "arg-type"),
    ("OffsetFetchRequest(nothing=1)", "call-arg"),
    ("OffsetFetchRequest(unknown_tagged_fields={5: b''})", "arg-type"),
    ("OffsetFetchRequest().encode('2')", "arg-type"),
    ("OffsetFetchRequest.decode('text', 2)", "arg-type"),
    ("OffsetFetchRequest().offsets", "attr-defined"),
    ("OffsetFetchRequest().to_json(2, records='hex')", "arg-type"),
    ("message_class('9', 'request')", "call-overload"),
    ("decode_versioned(ConsumerProtocolAssignment, b'', newer='maybe')", "arg-type"),
    ("kafka_msgs.OffsetFetch", "attr-defined"),
]
PROGRAM = """\
import attrs

import kafka_msgs
from kafka_msgs import (
    AlterClientQuotasRequest, ConsumerProtocolAssignment, DescribeTopicPartitionsRequest, ErrorCode,
    FetchSnapshotResponse, JoinGroupRequest, MetadataResponse, OffsetFetchRequest, ProduceRequest, codec_for,
    decode_versioned, message_class,
)
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What mypy says of each line."""
    lines = [f"reveal_type({expression})" for expression, _ in REVEALED] + [expression for expression, _ in REJECTED]
    program = tmp_path_factory.mktemp("typing") / "program.py"
    program.write_text(PROGRAM + "\n".join(lines) + "\n")
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--hide-error-context", str(program)],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    said: dict[int, str] = {}
    for line in result.stdout.splitlines():
        match = re.search(r"program\.py:(\d+): (.*)", line)
        if match is not None:
            number = int(match[1])
            said[number] = f"{said.get(number, '')}{match[2]}\n"
    assert said, result.stdout + result.stderr
    return said


FIRST = PROGRAM.count("\n") + 1


@pytest.mark.parametrize("number", range(len(REVEALED)), ids=[expression for expression, _ in REVEALED])
def test_the_type_of_an_expression(output: dict[int, str], number: int) -> None:
    match = re.search(r'Revealed type is "(.*)"', output[FIRST + number])
    assert match is not None, output[FIRST + number]
    unqualified = re.sub(r"\b[a-z_0-9]+(?:\.[a-z_0-9]+)*\.(?=[A-Za-z])", "", match[1])
    assert unqualified == REVEALED[number][1]


@pytest.mark.parametrize("number", range(len(REJECTED)), ids=[expression for expression, _ in REJECTED])
def test_a_mistake_that_a_type_checker_finds(output: dict[int, str], number: int) -> None:
    said = output[FIRST + len(REVEALED) + number]
    assert f"[{REJECTED[number][1]}]" in said
    assert "error: " in said


def test_nothing_else_is_wrong(output: dict[int, str]) -> None:
    assert set(output) == set(range(FIRST, FIRST + len(REVEALED) + len(REJECTED)))
