"""The offset metadata that Kafka Streams commits, compared with Kafka's own class."""

from __future__ import annotations

import struct
from base64 import b64encode
from random import Random

import pytest

from kafka_msgs.analysis.groups import read_groups
from kafka_msgs.analysis.record_classification import OFFSETS_TOPIC
from kafka_msgs.internal_topics.streams_metadata import StreamsMetadata, decode_streams_metadata
from kafka_msgs.log.log_directory import LogDirectory
from tests.oracle import Oracle
from tests.support.recordings import GROUP_LOGS

TIME = 1_767_225_600_123


def text_of(version: int, time: int, processors: dict[str, int] | None = None, extra: bytes = b"") -> str:
    data = struct.pack(">bq", version, time)
    if processors:
        data += struct.pack(">i", len(processors))
        for key, number in processors.items():
            data += struct.pack(">i", len(key.encode())) + key.encode() + struct.pack(">q", number)
    return b64encode(data + extra).decode()


KNOWN = {
    text_of(1, TIME): StreamsMetadata(version=1, partition_time=TIME),
    text_of(1, -1): StreamsMetadata(version=1, partition_time=None),
    text_of(2, TIME): StreamsMetadata(version=2, partition_time=TIME),
    text_of(2, -(2**63)): StreamsMetadata(version=2, partition_time=-(2**63)),
    text_of(2, TIME, {"wall": 5}): StreamsMetadata(version=2, partition_time=TIME, processors={"wall": 5}),
    text_of(2, 0, {"": -1, "café ☕": 2**63 - 1}): StreamsMetadata(
        version=2, partition_time=0, processors={"": -1, "café ☕": 2**63 - 1}
    ),
}
OTHERS = (
    None,
    "",
    "by hand",
    "AQ==",
    text_of(0, TIME),
    text_of(3, TIME),
    text_of(-1, TIME),
    text_of(1, TIME, extra=b"\0"),
    text_of(2, TIME, {"a": 1}, extra=b"\0"),
    text_of(2, TIME, extra=b"\0\0"),
    text_of(2, TIME, extra=b"\x7f\xff\xff\xff"),
    text_of(2, TIME, extra=b"\xff\xff\xff\xff"),
    text_of(2, TIME, extra=b"\0\0\0\1\xff\xff\xff\xf8" + bytes(20)),
    text_of(2, TIME, extra=b"\0\0\0\1\0\0\0\1\xff" + bytes(8)),
    text_of(2, TIME)[:-1],
    text_of(2, TIME) + "\n",
    "é" * 12,
)


@pytest.mark.parametrize("text", KNOWN)
def test_the_partition_time_and_the_numbers_of_processors_are_read(text: str) -> None:
    assert decode_streams_metadata(text) == KNOWN[text]


@pytest.mark.parametrize("text", OTHERS)
def test_another_text_is_not_taken_for_a_time(text: str | None) -> None:
    assert decode_streams_metadata(text) is None


def test_the_partition_time_of_a_recorded_application_is_that_of_the_records_it_had_read() -> None:
    logs = {(each.topic, each.partition): each for each in LogDirectory(GROUP_LOGS).partitions}
    groups = read_groups([each for (topic, _), each in logs.items() if topic == OFFSETS_TOPIC], {}).groups
    committed = {group.description.group_id: group.offsets for group in groups}
    totals = committed.pop("totals")
    assert len(totals) == 4
    for each in totals:
        found = decode_streams_metadata(each.metadata)
        assert found is not None
        records = [record for batch in logs[each.topic, each.partition].batches() for record in batch.records()]
        assert found.partition_time == max(record.timestamp for record in records if record.offset < each.offset)
    others = [each.metadata for offsets in committed.values() for each in offsets]
    assert any(others)
    assert {decode_streams_metadata(text) for text in others} == {None}


@pytest.mark.oracle
def test_kafka_reads_the_same(oracle: Oracle) -> None:
    rewritten = oracle.rewrite_streams_metadata(KNOWN)
    for (text, wanted), found in zip(KNOWN.items(), rewritten, strict=True):
        assert isinstance(found, bytes), text
        again = decode_streams_metadata(found.decode())
        assert again == StreamsMetadata(
            version=2, partition_time=wanted.partition_time, processors=wanted.processors
        ), text


@pytest.mark.oracle
def test_what_is_read_of_damaged_bytes_kafka_reads_alike(oracle: Oracle) -> None:
    rng = Random(1)
    texts = [text_of(2, rng.getrandbits(40), {str(n): n for n in range(rng.randrange(3))}) for _ in range(300)]
    damaged = ["".join(_changed(text, rng)) for text in texts]
    # Kafka allocates any size it reads, which may end its process, so it receives only valid data.
    read = {text: found for text in damaged if (found := decode_streams_metadata(text)) is not None}
    assert 20 < len(read) < len(damaged)
    for (text, here), rewritten in zip(read.items(), oracle.rewrite_streams_metadata(read), strict=True):
        assert isinstance(rewritten, bytes)
        theirs = decode_streams_metadata(rewritten.decode())
        assert theirs is not None
        assert (theirs.partition_time, theirs.processors) == (here.partition_time, here.processors), text


def _changed(text: str, rng: Random) -> list[str]:
    letters = list(text)
    letters[rng.randrange(len(letters))] = rng.choice("ABQgz/+=9")
    return letters
