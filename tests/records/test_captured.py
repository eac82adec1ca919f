"""Record batches exchanged by real producers and a real broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kafka_msgs import FetchResponse, ProduceRequest
from kafka_msgs.records import RecordBatch, read_batches
from kafka_msgs.wire import decode_request, decode_response
from tests.support.recorded_frames import exchanges, read_frames
from tests.support.recordings import TRAFFIC


def payloads() -> Iterator[tuple[str, bytes]]:
    """Return the contents of the records fields, and their sender."""
    for pair in exchanges(read_frames(TRAFFIC)):
        if pair.api_key == 0:
            request = decode_request(pair.request.payload).message
            assert isinstance(request, ProduceRequest)
            for topic in request.topic_data:
                yield from (("produce", bytes(part.records)) for part in topic.partition_data if part.records)
        elif pair.api_key == 1:
            response = decode_response(pair.response.payload, 1, pair.api_version).message
            assert isinstance(response, FetchResponse)
            for answer in response.responses:
                yield from (("fetch", bytes(part.records)) for part in answer.partitions if part.records)


def test_every_batch_is_whole_and_its_records_are_read() -> None:
    codecs: Counter[tuple[str, int]] = Counter()
    records = 0
    for side, data in payloads():
        reader = read_batches(data)
        for batch in reader:
            assert isinstance(batch, RecordBatch)
            found = batch.records()
            assert len(found) == batch.count > 0
            assert found[0].offset == batch.base_offset
            assert found[-1].offset == batch.last_offset
            codecs[side, batch.codec] += 1
            records += len(found)
        assert reader.left == 0
    assert {side for side, _ in codecs} == {"produce", "fetch"}
    assert len({codec for _, codec in codecs}) > 1
    assert records > 10
