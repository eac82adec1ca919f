"""Frequent operations on values: creating, changing, comparing, hashing and pickling a value, and calls of its class.

The value is a partition of a MetadataResponse with seven fields. The time of an empty call is subtracted.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import attrs
import msgspec
from kio.schema.metadata.v12 import response as kio_metadata
from rich.console import Console

from benchmarks import peers
from benchmarks.report import Figure, Times, print_figures, rows_table
from benchmarks.timing import PROTOCOL, fastest
from kafka_msgs import FetchResponse, HeartbeatResponse, evolve
from kafka_msgs.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from kafka_msgs.messages.metadata_response import MetadataResponsePartition

__all__ = ["run"]

NODES: Final = (1001, 1002, 1003)
FIELDS: Final[dict[str, Any]] = {
    "error_code": 0,
    "partition_index": 3,
    "leader_id": 1001,
    "leader_epoch": 7,
    "replica_nodes": NODES,
    "isr_nodes": NODES,
    "offline_replicas": (),
}
_CALLS: Final = 10_000
_LOOP: Final = """def loop(cls, one, two, evolve, data, encode, decode):
    for _ in range({calls}):
        {call}
"""
CALLS: Final = {
    "nothing": "pass",
    "construct": "cls(error_code=0, partition_index=3, leader_id=1001, leader_epoch=7, replica_nodes=data, "
    "isr_nodes=data, offline_replicas=())",
    "==": "one == two",
    "hash": "hash(one)",
    "evolve": "evolve(one, leader_id=5)",
}
BEATS: Final = {
    "nothing": "pass",
    "decode": "decode(data, 4)",
    "encode": "encode(4)",
}
BEST_OF_MSGSPEC: Final = 1 / 1.3


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    figures = [*_values(console, rounds), *_calls(console, rounds), *_encoding(rounds)]
    print_figures(console, "Values", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _loop(call: str, **names: Any) -> Callable[[], None]:
    """Return a function that repeats a call, with the names it uses as local variables."""
    space: dict[str, Any] = {}
    exec(_LOOP.format(call=call, calls=_CALLS), space)
    return partial(space["loop"], **dict.fromkeys(("cls", "one", "two", "evolve", "data", "encode", "decode")) | names)


def _net(cases: dict[str, dict[str, Callable[[], None]]], rounds: int) -> dict[str, Times]:
    """Return the net seconds of one call, by call and library."""
    flat = {f"{call}, {name}": case for call, named in cases.items() for name, case in named.items()}
    taken = fastest(flat, rounds)
    return {
        call: Times({name: (taken[f"{call}, {name}"] - taken[f"nothing, {name}"]) / _CALLS for name in named})
        for call, named in cases.items()
        if call != "nothing"
    }


def _values(console: Console, rounds: int) -> list[Figure]:
    struct = msgspec.defstruct("Partition", list(FIELDS), frozen=True, kw_only=True)
    classes: dict[str, tuple[Any, Any]] = {
        peers.OURS[0]: (MetadataResponsePartition, evolve),
        peers.KIO: (kio_metadata.MetadataResponsePartition, dataclasses.replace),
        peers.MSGSPEC: (struct, msgspec.structs.replace),
    }
    cases = {
        call: {
            name: _loop(source, cls=cls, one=cls(**FIELDS), two=cls(**FIELDS), evolve=change, data=NODES)
            for name, (cls, change) in classes.items()
        }
        for call, source in CALLS.items()
    }
    times = _net(cases, rounds)
    _show(console, "A value of seven fields", times)
    ours = peers.OURS[0]
    return [
        Figure(f"{call}: {peer} takes", each.ratio(peer, ours), target=2.0 if peer == peers.KIO else BEST_OF_MSGSPEC)
        for call, each in times.items()
        for peer in (peers.KIO, peers.MSGSPEC)
    ]


def _calls(console: Console, rounds: int) -> list[Figure]:
    beat, data = HeartbeatResponse(), HeartbeatResponse().encode(4)
    kio = peers.kio(HeartbeatResponse, 4, data)
    assert kio is not None, "kio has this message"
    cases = {
        call: {
            peers.OURS[0]: _loop(source, data=data, decode=HeartbeatResponse.decode, encode=beat.encode),
            peers.KIO: _loop(source, data=data, decode=lambda _, __: kio.decode(), encode=lambda _: kio.encode()),
        }
        for call, source in BEATS.items()
    }
    times = _net(cases, rounds)
    _show(console, "Methods of HeartbeatResponse v4, 7 bytes", times)
    return [Figure(f"{call}, method: kio takes", each.ratio(peers.KIO, peers.OURS[0])) for call, each in times.items()]


def _encoding(rounds: int) -> list[Figure]:
    """Measure the slowdown of encoding a value that was pickled, or was created with explicit defaults."""
    plain = _fetch(PartitionData)
    given = partial(
        PartitionData,
        diverging_epoch=EpochEndOffset(),
        current_leader=LeaderIdAndEpoch(),
        snapshot_id=SnapshotId(),
    )
    messages = {
        "plain": plain,
        "pickled": pickle.loads(pickle.dumps(plain)),
        "by field": attrs.evolve(plain, responses=pickle.loads(pickle.dumps(plain.responses))),
        "with defaults given": _fetch(given),
    }
    times = Times(fastest({name: partial(message.encode, 17) for name, message in messages.items()}, rounds))
    return [
        Figure(
            f"encode of FetchResponse, 1000 partitions, {name}", times.ratio(name, "plain"), target=1.2, at_most=True
        )
        for name in messages
        if name != "plain"
    ]


def _fetch(partition: Callable[..., PartitionData]) -> FetchResponse:
    partitions = tuple(partition(partition_index=n, high_watermark=n * 1000, records=b"") for n in range(1000))
    return FetchResponse(responses=(FetchableTopicResponse(partitions=partitions),))


def _show(console: Console, title: str, times: dict[str, Times]) -> None:
    table = rows_table(title, "nanoseconds, net", *next(iter(times.values())).seconds)
    for call, each in times.items():
        table.add_row(call, *(f"{seconds * 1e9:.0f}" for seconds in each.seconds.values()))
    console.print(table)
