"""Rejected messages compared with valid ones: the cost of an error when decoding bytes and when encoding values.

Each input is rejected at its end, so all of it is processed first: the last byte is missing, or the last struct has
None in a field that is not nullable. The generated Python rejects some input before the timing, so that its traced
form is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import attrs
from rich.console import Console

from benchmarks import message_cases
from benchmarks.report import Figure, print_figures, rows_table
from benchmarks.timing import PROTOCOL, fastest
from kafka_msgs import FetchResponse, JoinGroupResponse, Message, OffsetFetchResponse
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.messages.fetch_response import FetchableTopicResponse, PartitionData
from kafka_msgs.messages.join_group_response import JoinGroupResponseMember
from kafka_msgs.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafka_msgs.schema import Struct, fields

__all__ = ["run"]

_AT_MOST: Final = {"c": 1.2, "python": 3.0}
"""The maximum ratio of rejected to valid decoding for messages of 3 KB and more."""


def _fetch() -> FetchResponse:
    partitions = tuple(
        PartitionData(partition_index=n, high_watermark=10**9 + n, last_stable_offset=10**9 + n, records=bytes(500))
        for n in range(10)
    )
    return FetchResponse(
        responses=tuple(FetchableTopicResponse(topic=f"topic-{n}", partitions=partitions) for n in range(100))
    )


def _offset_fetch() -> OffsetFetchResponse:
    topics = tuple(
        OffsetFetchResponseTopics(
            name=f"topic-{n}",
            partitions=tuple(
                OffsetFetchResponsePartitions(partition_index=p, committed_offset=10**9 * n + p) for p in range(10)
            ),
        )
        for n in range(90)
    )
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="billing", topics=topics),))


def _join_group() -> JoinGroupResponse:
    members = tuple(JoinGroupResponseMember(member_id=f"member-{n:036}", metadata=bytes(60)) for n in range(30))
    return JoinGroupResponse(generation_id=3, leader=members[0].member_id, members=members)


INPUTS: Final[tuple[tuple[Message, int], ...]] = (
    (message_cases.metadata("varied"), 12),
    (_fetch(), 12),
    (_offset_fetch(), 9),
    (_join_group(), 9),
)
"""Messages and the versions at which they are encoded."""


def with_wrong_value(value: Struct) -> Struct:
    """Return a message whose last struct has None in a field that is not nullable."""
    for field in reversed(fields(type(value))):
        current = getattr(value, field.attribute)
        if field.struct and field.is_array and current:
            return attrs.evolve(value, **{field.attribute: (*current[:-1], with_wrong_value(current[-1]))})
    wrong = next(field for field in reversed(fields(type(value))) if field.type in ("int32", "bytes"))
    changes: dict[str, Any] = {wrong.attribute: None}
    return attrs.evolve(value, **changes)


def refused(action: Callable[[], Any]) -> None:
    """Call a function that must raise an error of the library."""
    try:
        action()
    except KafkaMsgsError:
        return
    raise AssertionError("accepted")


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    columns = ("message", "bytes", "executor", "decode us", "refused", "encode us", "refused")
    table = rows_table("Refused over valid, with a fault at the end", *columns)
    figures = []
    for message, version in INPUTS:
        for name in _AT_MOST.keys() & EXECUTORS.keys():
            codec: Codec[Any] = Codec(compile_plan(type(message), version), executor=EXECUTORS[name])
            data = codec.encode(message)
            seconds = fastest(_cases(codec, message, data), rounds)
            ratios = {verb: seconds[f"refused {verb}"] / seconds[verb] for verb in ("decode", "encode")}
            cells = [f"{1e6 * seconds[verb]:.1f} {ratio:.2f}x" for verb, ratio in ratios.items()]
            table.add_row(codec.plan.name, f"{len(data):,}", name, *" ".join(cells).split())
            what = f"{name}, {codec.plan.name}: refused over valid"
            figures += [
                Figure(f"{what}, decode", ratios["decode"], target=_AT_MOST[name], at_most=True),
                Figure(
                    f"{what}, encode", ratios["encode"], target=_AT_MOST[name] if name == "c" else None, at_most=True
                ),
            ]
    console.print(table)
    print_figures(console, "Refusals", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _cases(codec: Codec[Any], message: Message, data: bytes) -> dict[str, Callable[[], Any]]:
    truncated, wrong = data[:-1], with_wrong_value(message)
    for _ in range(5000 // len(data) + 1):
        refused(partial(codec.decode, truncated))
    return {
        "decode": partial(codec.decode, data),
        "refused decode": partial(refused, partial(codec.decode, truncated)),
        "encode": partial(codec.encode, message),
        "refused encode": partial(refused, partial(codec.encode, wrong)),
    }
