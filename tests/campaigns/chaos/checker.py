"""The verdict on a run: compares the logs of the broker with the promises to its clients."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.testing import committed_offsets, topic_records
from tests.campaigns.chaos.history import Ledger, Log
from tests.campaigns.chaos.settings import GROUPS, PARTITIONS, TOPICS

__all__ = ["judge", "log_of", "undecided", "unread"]


def log_of(broker: EmbeddedBroker, topics: Iterable[str], *, committed: bool) -> Log:
    """Return all records of topics, or only the records visible to a read_committed consumer."""
    log: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
    for topic in topics:
        log |= {(topic, partition): [] for partition in range(PARTITIONS)}
        for each in topic_records(broker, topic, committed=committed):
            log[topic, each.partition].append((each.offset, bytes(each.value or b"")))
    return log


def unread(broker: EmbeddedBroker, groups: Iterable[str]) -> list[str]:
    """Describe the partitions whose ends the groups have yet to reach."""
    found = []
    for group in groups:
        done = committed_offsets(broker, group)
        for place, records in log_of(broker, [GROUPS[group].reads], committed=True).items():
            if records and done.get(place, 0) <= records[-1][0]:
                found.append(f"{group} is at {done.get(place)} in {place}, and not behind {records[-1][0]}")
    return found


def undecided(broker: EmbeddedBroker) -> list[str]:
    """Describe the partitions with open transactions, which hide later records."""

    def find(cluster: Cluster) -> list[str]:
        logs = [log for log in cluster.log_manager if log.topic in TOPICS]
        return [f"{log.topic}-{log.partition} is open" for log in logs if log.last_stable_offset < log.log_end_offset]

    return broker.run(find)


def judge(broker: EmbeddedBroker, ledger: Ledger, groups: Iterable[str]) -> None:
    """Compare all promises with the logs, after all clients have come to rest."""
    everything, visible = (log_of(broker, TOPICS, committed=committed) for committed in (False, True))
    ledger.judge(everything, visible)
    for name in groups:
        group = GROUPS[name]
        ledger.judge_group(name, _of(visible, group.reads), committed_offsets(broker, name))
        if group.writes is not None:
            ledger.judge_copy(_of(visible, group.reads), _of(visible, group.writes))
    ledger.broken += [f"problem of the broker: {each!r}" for each in broker.problems]


def _of(log: Log, topic: str) -> Log:
    return {place: records for place, records in log.items() if place[0] == topic}
