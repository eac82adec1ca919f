"""A coordinator with a log in memory, for black-box tests of classic groups, request by request."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, Final

from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import GroupCoordinator
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.memory_log import MemoryLog
from kafka_msgs.groups.runtime.output import CoordinatorOutput
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_msgs.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

__all__ = ["GROUP", "Desk"]

GROUP = "g"
NO_SHARES: Final[Mapping[str, bytes]] = MappingProxyType({})


class Desk:
    """Sends requests to a coordinator of one partition. ``answers`` contains the responses by request token."""

    def __init__(self, **config: int) -> None:
        self.now = 1000
        self.log = MemoryLog()
        ids = count(1)
        settings: dict[str, Any] = {"group_initial_rebalance_delay_ms": 0, **config}
        self.coordinator = GroupCoordinator(
            self.log.append,
            config=CoordinatorConfig(offsets_topic_num_partitions=1, **settings),
            new_id=lambda: f"{next(ids)}",
        )
        self.log.on_commit = self.coordinator.committed
        self.answers: dict[Any, Any] = {}
        self.expired: list[str] = []
        self.epoch = 0
        self.elect()

    def elect(self) -> None:
        """Become the leader of the partition and load it."""
        self.epoch += 1
        self.coordinator.elect(0, self.epoch, now=self.now)
        self.coordinator.load(0, self.log.records(0))
        self.take(self.coordinator.loaded(0, now=self.now))

    def resign(self) -> None:
        """Resign the leadership of the partition."""
        self.epoch += 1
        self.take(self.coordinator.resign(0, self.epoch, now=self.now))

    def take(self, outcome: CoordinatorOutput) -> None:
        """Store the responses and the expired timers of an output."""
        self.answers.update((answer.opaque, answer.response) for answer in outcome.answers)
        self.expired += [key for key, _ in outcome.expired]

    def ask(self, request: Request[Any], version: int, *, token: object = None, client: str = "c") -> Response | None:
        """Send a request. Return its response, or None if it is pending."""
        token = object() if token is None else token
        context = RequestContext(version=version, client_id=client)
        self.take(self.coordinator.handle(request, context, now=self.now, opaque=token))
        self.take(self.coordinator.tick(self.now))
        answer: Response | None = self.answers.get(token)
        return answer

    def advance(self, ms: int) -> None:
        """Advance the time."""
        self.now += ms
        self.take(self.coordinator.tick(self.now))

    def join(self, member_id: str = "", *, version: int = 3, token: object = None, **fields: Any) -> Any:
        """Join with the protocol ``range``. Version 3 is the latest one without the member id handshake."""
        given: dict[str, Any] = {
            "group_id": GROUP,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": (JoinGroupRequestProtocol(name="range"),),
        }
        return self.ask(JoinGroupRequest(member_id=member_id, **(given | fields)), version, token=token)

    def sync(
        self,
        member_id: str,
        generation: int,
        shares: Mapping[str, bytes] = NO_SHARES,
        *,
        token: object = None,
        named: bool = True,
    ) -> Any:
        """Request the assignment. The leader sends ``shares``, the assignments by member id."""
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer" if named else None,
            protocol_name="range" if named else None,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member, assignment=share) for member, share in shares.items()
            ),
        )
        return self.ask(request, 5, token=token)
