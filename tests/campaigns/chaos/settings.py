"""What may go wrong in a run, and what the clients work on."""

from __future__ import annotations

from typing import Final

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker.faults import (
    Cut,
    Delay,
    Disconnect,
    Drip,
    Effect,
    Fail,
    Ignore,
    Lose,
    Renumber,
    Resize,
    Swap,
)
from kafka_msgs.error_codes import ErrorCode

__all__ = ["APIS", "BROKERS", "CONFIGS", "COPY", "EFFECTS", "GROUPS", "PARTITIONS", "TOPICS"]

BROKERS: Final = 3
PARTITIONS: Final = 3
COPY: Final = "copy"
"""The topic that loops write, which read ``committed``."""
TOPICS: Final = ("plain", "committed", COPY)
GROUPS: Final = {"classic": "classic", "modern": "consumer", "copiers": "classic", "modern-copiers": "consumer"}
"""The groups, and their protocols."""

CONFIGS: Final = {
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}

EFFECTS: Final[tuple[Effect, ...]] = (
    Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER),
    Fail(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    Fail(ErrorCode.NOT_COORDINATOR),
    Fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    Fail(ErrorCode.REQUEST_TIMED_OUT),
    Delay(30),
    Delay(700),
    Disconnect(),
    Disconnect(reset=False),
    Lose(),
    Lose(reset=True),
    Cut(3),
    Cut(17),
    Drip(11, 5),
    Renumber(),
    Resize(-3),
    Swap(),
    Ignore(),
)
"""What may happen to requests. Each is something that a client must be able to live with."""

APIS: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.METADATA,
    ApiKey.LIST_OFFSETS,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)
"""The apis whose requests are hit."""
