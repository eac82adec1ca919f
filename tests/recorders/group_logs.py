"""Record the log directory of a broker with groups: ``python -m tests.recorders.group_logs``.

Fills ``groups/``: ``log`` is the log directory of a real broker, each partition with Kafka's own dump in ``dump.txt``;
``answers.jsonl`` contains, in the format of :mod:`tests.support.recorded_frames`, the broker's responses about all
groups and partitions just before, after all activity had ended; ``end-offsets.txt`` is the output of Kafka's tool for
end offsets.

The story: ``orders`` and ``payments`` are read by ``billing`` (classic, two members, one of them static), ``shipping``
(consumer protocol, two members), ``watch`` (consumer protocol, by a regular expression), ``packing`` (share) and
``totals`` (streams: two instances, with standby tasks). ``audit`` (classic) and ``inspection`` (consumer protocol) are
empty and have offsets. ``ledger`` has only offsets, one of which was deleted; ``seasonal`` has one expired offset and
one with an expiry time; ``retired`` was deleted. ``settlement`` has offsets from three transactions: committed,
aborted, and still open. The offsets topic was compacted along the way.

Requires Java, Maven and a package index; takes about two minutes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from kafka_msgs import (
    ConsumerGroupDescribeRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    ListOffsetsRequest,
    ListTransactionsRequest,
    Message,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from kafka_msgs.log.log_directory import LogDirectory
from kafka_msgs.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kafka_msgs.messages.offset_delete_request import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequestGroup
from tests.recorders.broker import Broker, BrokerError, Jars, java_command, run_kafka_class
from tests.recorders.broker_configs import share_from_earliest
from tests.recorders.client_traffic import python_with_clients, write_recording
from tests.recorders.log_directory import take_directory
from tests.recorders.raw_client import Conversation
from tests.support.recorded_frames import Frame
from tests.support.recordings import ANSWERS, END_OFFSETS, GROUP_LOGS

__all__ = ["main"]

_CLIENTS: Final = {"confluent-kafka": "2.16.1"}
_GET_OFFSETS: Final = "org.apache.kafka.tools.GetOffsetShell"
_HERE: Final = Path(__file__).parent
_MEMBERS: Final = _HERE / "clients" / "group_members.py"
_SETTINGS: Final = {
    "offsets.topic.num.partitions": "3",
    "offsets.retention.check.interval.ms": "1000",
    "group.streams.num.standby.replicas": "1",
    "log.roll.ms": "3000",
    "log.index.size.max.bytes": "4096",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "metadata.max.idle.interval.ms": "5000",
}
_LIVE: Final = {"billing", "shipping", "watch", "packing", "totals"}
_STAYING: Final = _LIVE | {"audit", "inspection", "ledger", "seasonal", "settlement"}
_SETTLING_SECONDS: Final = 90
_QUIET_SECONDS: Final = 6
_LIFETIME_SECONDS: Final = 240
_ONE_DAY_MS: Final = 86_400_000
_LATEST: Final = -1


def main() -> None:
    """Run the session, query the broker, stop it, and copy its files."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-clients-") as directory:
        python = python_with_clients(Path(directory), _CLIENTS)
        with Broker(settings=_SETTINGS, lifetime=_LIFETIME_SECONDS) as broker:
            with _groups(broker, python):
                frames = _questions(broker)
                ends = run_kafka_class(_GET_OFFSETS, ["--bootstrap-server", broker.bootstrap])
            broker.stop()
            take_directory(broker, GROUP_LOGS, [each.path.name for each in LogDirectory(broker.log_dir).partitions])
    END_OFFSETS.write_text(ends)
    clients = {"kafka-tools": Jars.TOOLS.release, "kafka-streams": Jars.TOOLS.release, **_CLIENTS}
    lines = (frame.to_json() for frame in frames)
    write_recording(ANSWERS, "frames", lines, clients=clients, script="tests/recorders/group_logs.py")


@contextmanager
def _groups(broker: Broker, python: Path) -> Iterator[None]:
    """Run all groups. Within the block they are in the recorded state. After it, all running members are killed."""
    subprocess.run([python, _MEMBERS, "past", broker.bootstrap], check=True, timeout=120)
    share_from_earliest(broker.bootstrap, "packing")
    with ExitStack() as stack:
        stack.enter_context(_running(_share_consumer(broker)))
        stack.enter_context(_running(_streams_application(broker)))
        members = stack.enter_context(_running([str(python), str(_MEMBERS), "present", broker.bootstrap]))
        _commits_without_members(broker)
        if members.stdout is None or members.stdout.readline() != b"ready\n":
            raise BrokerError("the members did not settle")
        yield


def _share_consumer(broker: Broker) -> list[str]:
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", "orders", "--group", "packing"]
    return java_command("org.apache.kafka.tools.consumer.ConsoleShareConsumer", arguments, heap_mb=128)


def _streams_application(broker: Broker) -> list[str]:
    arguments = [broker.bootstrap, "totals", str(broker.home / "streams"), "2", str(_LIFETIME_SECONDS)]
    return java_command(str(_HERE / "clients" / "ItemTotals.java"), arguments, heap_mb=128)


@contextmanager
def _running(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that is killed at the end: a member that shuts down normally leaves its group."""
    bounded = ["timeout", "--signal=KILL", str(_LIFETIME_SECONDS), *command]
    process = subprocess.Popen(bounded, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _commits_without_members(broker: Broker) -> None:
    with Conversation(broker.port, client_id="clerk") as clerk:
        for offset in (1, 2):
            clerk.ask(_commit("ledger", offset), 8)
        clerk.ask(_commit("retired", 1), 8)
        clerk.ask(_commit("seasonal", 1, retention_ms=_ONE_DAY_MS), 4)
        clerk.ask(_commit("seasonal", 2, partitions=(0,), retention_ms=1), 4)
        gone = OffsetDeleteRequestTopic(name="orders", partitions=(OffsetDeleteRequestPartition(partition_index=1),))
        clerk.ask(OffsetDeleteRequest(group_id="ledger", topics=(gone,)), 0)
        clerk.ask(DeleteGroupsRequest(groups_names=("retired",)), 2)


def _commit(
    group: str, offset: int, *, partitions: Sequence[int] = (0, 1), retention_ms: int = -1
) -> OffsetCommitRequest:
    committed = tuple(
        OffsetCommitRequestPartition(
            partition_index=number, committed_offset=offset, committed_leader_epoch=0, committed_metadata="by hand"
        )
        for number in partitions
    )
    topic = OffsetCommitRequestTopic(name="orders", partitions=committed)
    return OffsetCommitRequest(group_id=group, member_id="", retention_time_ms=retention_ms, topics=(topic,))


def _questions(broker: Broker) -> list[Frame]:
    """Send all requests once activity has ended, and repeat them if the state changed meanwhile."""
    deadline = time.monotonic() + _SETTLING_SECONDS
    while time.monotonic() < deadline:
        with Conversation(broker.port, client_id="recorder") as recorder:
            before = _ask_for_all(recorder)
            frames = list(recorder.frames)
            time.sleep(_QUIET_SECONDS)
            if _are_settled(recorder) and before == _end_offsets(recorder):
                return frames
    raise BrokerError(f"the groups did not settle in {_SETTLING_SECONDS} seconds")


def _are_settled(recorder: Conversation) -> bool:
    listed = recorder.ask(ListGroupsRequest(), 5)
    assert isinstance(listed, ListGroupsResponse)
    states = {group.group_id: group.group_state for group in listed.groups}
    return states.keys() == _STAYING and all(
        states[group] == ("Stable" if group in _LIVE else "Empty") for group in _STAYING
    )


def _ask_for_all(recorder: Conversation) -> list[Message]:
    groups = tuple(sorted(_STAYING))
    recorder.ask(ListGroupsRequest(), 5)
    recorder.ask(ListTransactionsRequest(), 2)
    recorder.ask(DescribeGroupsRequest(groups=groups), 6)
    recorder.ask(ConsumerGroupDescribeRequest(group_ids=groups), 1)
    recorder.ask(ShareGroupDescribeRequest(group_ids=groups), 1)
    recorder.ask(StreamsGroupDescribeRequest(group_ids=groups), 0)
    every = tuple(OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups)
    recorder.ask(OffsetFetchRequest(groups=every), 9)
    return _end_offsets(recorder)


def _end_offsets(recorder: Conversation) -> list[Message]:
    """Return the end offsets of all partitions: log end and last stable offset."""
    metadata = recorder.ask(MetadataRequest(topics=None), 13)
    assert isinstance(metadata, MetadataResponse)
    topics = tuple(
        ListOffsetsTopic(
            name=topic.name or "",
            partitions=tuple(
                ListOffsetsPartition(partition_index=each.partition_index, timestamp=_LATEST)
                for each in topic.partitions
            ),
        )
        for topic in metadata.topics
    )
    return [
        recorder.ask(ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics), 7)
        for isolation in (0, 1)
    ]


if __name__ == "__main__":
    main()
