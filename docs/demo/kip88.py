"""Section: one request and its response end to end, as introduced by KIP-88: all offsets of a group at once."""

from __future__ import annotations

from docs.demo.presenter import Stage, columns
from kafka_msgs import ErrorCode

__all__ = ["show"]


def show(stage: Stage) -> None:
    """Build the request, compare it with the recorded one, read the recorded response, and send invalid requests."""
    stage.section(
        "Ask for all offsets of a group (KIP-88)",
        "Since version 2 of OffsetFetch a client need not know the topics: None asks for all. The recorded request "
        "went to the broker over a plain socket.",
    )
    stage.run(
        """
        from kafka_msgs import OffsetFetchRequest
        from kafka_msgs.wire import decode_response, encode_request
        question = OffsetFetchRequest(group_id="billing", topics=None)
        ours = encode_request(question, version=2, correlation_id=1, client_id="kip88")
        (recorded,) = read_exchanges(recordings / "kip88.jsonl")
        answer = decode_response(recorded.response.payload, api_key=9, version=2).message
        """
    )
    _frames(stage)
    _answer(stage)
    stage.say("What a version cannot say is refused, with the field that it is about:")
    stage.refused("question.encode(version=1)")
    stage.refused("question.encode(version=8)")
    stage.refused("question.encode(version=11)")


def _frames(stage: Stage) -> None:
    ours, recorded = stage.names["ours"], stage.names["recorded"].request.payload
    rows = columns("request", "bytes", "hex", numbers=("bytes",))
    rows.add_row("ours", str(len(ours)), ours.hex())
    rows.add_row("recorded", str(len(recorded)), recorded.hex())
    rows.caption = "the same bytes" if ours == recorded else "NOT the same bytes"
    rows.caption_justify = "left"
    stage.table(rows)


def _answer(stage: Stage) -> None:
    stage.say("The broker's answer:")
    rows = columns("topic", "partition", "offset", "metadata", "error", numbers=("partition", "offset"))
    for topic in stage.names["answer"].topics:
        for each in topic.partitions:
            error = ErrorCode(each.error_code).name
            rows.add_row(topic.name, str(each.partition_index), str(each.committed_offset), repr(each.metadata), error)
    stage.table(rows)
