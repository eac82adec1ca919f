"""The possible faults of a run, and the topics and groups of its clients."""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker.faults import (
    Delay,
    Disconnect,
    DropResponse,
    Effect,
    Fail,
    NeverRespond,
    SwapResponses,
    TrickleResponse,
    TruncateResponse,
    WrongCorrelationId,
    WrongFrameSize,
)
from kafka_msgs.error_codes import ErrorCode

__all__ = ["APIS", "BROKERS", "CONFIGS", "EFFECTS", "GROUPS", "PARTITIONS", "TOPICS", "Group"]

BROKERS: Final = 3
PARTITIONS: Final = 3


@frozen
class Group:
    """A group's protocol, the topic that it reads, and the topic into which it copies these records exactly once.

    Members of a classic group use ``assignor``.
    """

    protocol: Literal["classic", "consumer"]
    reads: str
    writes: str | None = None
    assignor: str = "range"


GROUPS: Final = {
    "classic": Group("classic", "plain"),
    "modern": Group("consumer", "plain"),
    "copiers": Group("classic", "committed", "copy", "cooperative-sticky"),
    "modern-copiers": Group("consumer", "committed", "modern-copy"),
    "lone-copier": Group("classic", "committed", "lone-copy"),
}
"""The groups. The last one has a single member, whose client does not send its group metadata (KIP-447)."""
TOPICS: Final = ("plain", "committed", *(each.writes for each in GROUPS.values() if each.writes is not None))

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
    DropResponse(),
    DropResponse(reset=True),
    TruncateResponse(3),
    TruncateResponse(17),
    TrickleResponse(11, 5),
    WrongCorrelationId(),
    WrongFrameSize(-3),
    SwapResponses(),
    NeverRespond(),
)
"""Possible effects on requests. Clients must tolerate each of them."""

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
"""The APIs whose requests are affected."""
