"""The cost of a heartbeat that changes nothing, from the bytes of the request to the bytes of the response."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Final
from unittest.mock import Mock

from kafka_msgs.broker.accepted_connection import AcceptedConnection
from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.faults import MoveGroupCoordinator
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Subtopology, Topology
from kafka_msgs.wire import SIZE_BYTES, encode_request
from tests.support.virtual_brokers import VirtualCluster

MEMBERS: Final = 50
MAX_CALLS: Final = 200
DELAY_MS: Final = 3_000
VERSION: Final = 1


def frame(request: StreamsGroupHeartbeatRequest) -> bytes:
    payload = bytes(encode_request(request, VERSION, correlation_id=1, client_id="test"))
    return len(payload).to_bytes(SIZE_BYTES, "big") + payload


def settled_group(virtual: VirtualCluster) -> StreamsGroup:
    """Return a group whose members all have their tasks."""
    topology = Topology(subtopologies=(Subtopology(subtopology_id="0", source_topics=("in",)),))
    names = [f"member-{number}" for number in range(MEMBERS)]
    for name in names:
        join = StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id=name,
            rebalance_timeout_ms=60_000,
            topology=topology,
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
            process_id=name,
            client_tags=(),
        )
        assert virtual.call(join, VERSION).error_code == 0
    virtual.advance(DELAY_MS)
    coordinator = GroupCoordinatorService.of_broker(virtual.cluster, 0).coordinator
    group = coordinator.shards[coordinator.partition_for("g")].state.groups["g"]
    assert isinstance(group, StreamsGroup)
    for _ in range(2):
        for name in names:
            beat = StreamsGroupHeartbeatRequest(group_id="g", member_id=name, member_epoch=group.members[name].epoch)
            virtual.call(beat, VERSION)
    assert group.state_name() == "Stable"
    return group


def python_calls(run: Callable[[], object]) -> Counter[str]:
    """Return the Python functions that a call runs, with their numbers of calls."""
    calls: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and "kafka_msgs" in frame.f_code.co_filename:
            calls[f"{frame.f_code.co_filename}:{frame.f_code.co_name}"] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return calls


def test_a_steady_heartbeat_takes_few_calls() -> None:
    virtual = VirtualCluster.start(configs={"group.streams.initial.rebalance.delay.ms": str(DELAY_MS)})
    virtual.create("in", partitions=MEMBERS)
    MoveGroupCoordinator("g", 0).apply(virtual.cluster)
    member = settled_group(virtual).members["member-7"]
    transport, server = Mock(), Mock(cluster=virtual.cluster, closing=False, connections=set())
    transport.get_extra_info = lambda name: ("127.0.0.1", 1) if name == "peername" else None
    transport.is_closing.return_value = False
    server.clock.now = lambda: virtual.cluster.now
    server.loop_time = lambda: 0.0
    connection = AcceptedConnection(server, 0, virtual.cluster.config.listeners[0])
    connection.connection_made(transport)
    beat = frame(
        StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id=member.member_id,
            member_epoch=member.epoch,
        )
    )
    connection.data_received(beat)

    calls = python_calls(lambda: connection.data_received(beat))

    assert calls.total() <= MAX_CALLS, calls.most_common(10)
    assert transport.write.call_count == 2
    assert virtual.cluster.errors == []
