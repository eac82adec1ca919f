"""Streams groups: heartbeats per second of a settled group, by the number of its members, and the memory of a group.

Each heartbeat changes nothing, like almost all heartbeats. The number of members must not matter. For comparison,
Kafka's own coordinator with groups that joined in the same way also handles heartbeats without a network. Both sides
measure CPU time. The comparison needs Java and Maven.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from uuid import UUID

from rich.console import Console

from benchmarks.kafka_coordinator import PROTOCOL, ask, is_there
from benchmarks.report import Figure, print_figures
from benchmarks.timing import fastest
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import GroupCoordinator
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.memory_log import MemoryLog
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, CoordinatorTopicImage
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Subtopology, Topology

__all__ = ["run"]

_SIZES: Final = (100, 1_000, 10_000)
_TASKS_PER_MEMBER: Final = 10
_HEARTBEATS: Final = 20_000
_MEMBERS_REPEATED: Final = 2_000_000
"""The number of heartbeats, lower for larger groups, because Kafka examines all members in each heartbeat."""
_TARGET: Final = 30_000
_MEMORY_TARGET_MB: Final = 100
_DELAY_MS: Final = 3_000
_ROUNDS: Final = 5
_CONTEXT: Final = RequestContext(version=1)
_TOPOLOGY: Final = Topology(subtopologies=(Subtopology(subtopology_id="0", source_topics=("in",)),))


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    groups = {size: _settled(size) for size in _SIZES}
    used = min(rounds, _ROUNDS)
    seconds = fastest({str(size): partial(_beat, *groups[size]) for size in _SIZES}, used)
    figures = [
        Figure(
            f"heartbeats of {size:,} streams members, a second",
            _HEARTBEATS / seconds[str(size)],
            unit="",
            target=_TARGET,
        )
        for size in _SIZES
    ]
    megabytes = _memory(groups[_SIZES[-1]][2])
    size, tasks = _SIZES[-1], _SIZES[-1] * _TASKS_PER_MEMBER
    what = f"memory of {size:,} streams members with {tasks:,} tasks"
    figures.append(Figure(what, megabytes, unit=" MB", target=_MEMORY_TARGET_MB, at_most=True))
    if is_there(console, "Kafka's coordinator"):
        for size in _SIZES:
            ratio = _HEARTBEATS / seconds[str(size)] / _kafka(size)
            figures.append(Figure(f"heartbeats of {size:,} streams members: over Kafka's", ratio))
    print_figures(console, "Streams groups", PROTOCOL.format(rounds=used), figures)
    return figures


def _kafka(size: int) -> float:
    """Return the heartbeats of a settled group that Kafka's coordinator handles per second."""
    *before, repeated = ask(_script(size))
    wrong = [each for each in before if "error" in each]
    last = before[-1]["answers"][0]["body"]
    if wrong or (last["errorCode"], last["memberEpoch"]) != (0, size + 1):
        raise AssertionError(f"the group of Kafka is not settled: {wrong[:1] or last}")
    per_second: float = repeated["answers"][0]["per_second"]
    return per_second


def _script(size: int) -> Iterator[dict[str, Any]]:
    """Members join, learn their tasks, and are settled; then one of them sends heartbeats."""
    names = _names(size)
    yield {"op": "start", "quiet": True, "config": {"offsets.topic.num.partitions": "1"}}
    yield {"op": "topics", "create": [{"name": "in", "partitions": size * _TASKS_PER_MEMBER}]}
    for name in names:
        yield _asked(_join(name))
    yield {"op": "advance", "ms": _DELAY_MS}
    for name in names:
        yield _asked(StreamsGroupHeartbeatRequest(group_id="g", member_id=name, member_epoch=1))
    steady = _asked(StreamsGroupHeartbeatRequest(group_id="g", member_id=names[-1], member_epoch=size + 1))
    yield {**steady, "op": "repeat", "times": _MEMBERS_REPEATED // size}


def _asked(request: StreamsGroupHeartbeatRequest) -> dict[str, Any]:
    body = request.to_json(_CONTEXT.version)
    return {"op": "request", "api": "StreamsGroupHeartbeat", "version": _CONTEXT.version, "body": body}


def _names(size: int) -> list[str]:
    return [f"member-{number:05}" for number in range(size)]


def _join(name: str) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id=name,
        rebalance_timeout_ms=60_000,
        topology=_TOPOLOGY,
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id=name,
        client_tags=(),
    )


def _coordinator(log: MemoryLog, size: int) -> GroupCoordinator:
    coordinator = GroupCoordinator(log.append, config=CoordinatorConfig(offsets_topic_num_partitions=1))
    log.on_commit = coordinator.committed
    topic = CoordinatorTopicImage(name="in", id=UUID(int=1), racks=((),) * (size * _TASKS_PER_MEMBER))
    image = EMPTY_IMAGE.changed(put=(topic,))
    coordinator.set_image(image, now=0)
    return coordinator


def _settled(size: int) -> tuple[GroupCoordinator, list[StreamsGroupHeartbeatRequest], MemoryLog]:
    """Return a coordinator with a group whose members all have their tasks, and a heartbeat of each member."""
    log = MemoryLog()
    coordinator = _coordinator(log, size)
    coordinator.elect(0, 1, now=0)
    coordinator.loaded(0, now=0)
    names = _names(size)
    for name in names:
        coordinator.handle(_join(name), _CONTEXT, now=0)
    coordinator.tick(_DELAY_MS)
    group = coordinator.shards[0].state.groups["g"]
    assert isinstance(group, StreamsGroup)
    for _ in range(2):
        for request in _heartbeats(group, names):
            coordinator.handle(request, _CONTEXT, now=_DELAY_MS)
    assert group.state_name() == "Stable"
    return coordinator, _heartbeats(group, names), log


def _heartbeats(group: StreamsGroup, names: list[str]) -> list[StreamsGroupHeartbeatRequest]:
    return [
        StreamsGroupHeartbeatRequest(group_id="g", member_id=name, member_epoch=group.members[name].epoch)
        for name in names
    ]


def _beat(coordinator: GroupCoordinator, requests: list[StreamsGroupHeartbeatRequest], log: MemoryLog) -> None:
    size = len(requests)
    for number in range(_HEARTBEATS):
        coordinator.handle(requests[number % size], _CONTEXT, now=_DELAY_MS)


def _memory(log: MemoryLog) -> float:
    """Load the log of a group into another coordinator; return its memory in megabytes."""
    coordinator = _coordinator(MemoryLog(), _SIZES[-1])
    coordinator.elect(0, 1, now=0)
    gc.collect()
    tracemalloc.start()
    coordinator.load(0, log.records(0))
    coordinator.loaded(0, now=0)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / 1e6
