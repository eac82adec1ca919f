"""Coordinator side of a classic group, in memory: joins, generations, assignments, session timeouts."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from kafka_msgs.client.flow import Future
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Response
from kafka_msgs.messages import heartbeat_response, join_group_response, leave_group_response, sync_group_response
from tests.support.simulated_network import Reply

if TYPE_CHECKING:
    from tests.support.simulated_groups import GroupCluster

__all__ = ["SimulatedGroup"]


class SimulatedGroup:
    """A classic group in its coordinator. Members that stop sending heartbeats are removed after the timeout."""

    def __init__(self, cluster: GroupCluster) -> None:
        self.cluster = cluster
        self.generation = 0
        self.state = "Empty"
        self.members: dict[str, Any] = {}
        self.seen: dict[str, float] = {}
        self.joining: dict[str, Future[Response]] = {}
        self.syncing: dict[str, Future[Response]] = {}
        self.assignments: dict[str, bytes] = {}
        self.protocol = ""
        self._numbers = count(1)

    def join(self, request: Any) -> Reply:
        """Add a member to the next generation; respond when all members have joined."""
        name = request.member_id
        if not name:
            name = f"member-{next(self._numbers)}"
            return join_group_response.JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=name)
        self.members[name] = request
        self.seen[name] = self.cluster.network.time
        pending: Future[Response] = Future()
        self.joining[name] = pending
        self.state = "PreparingRebalance"
        self.cluster.network.later(request.session_timeout_ms / 1000, lambda: self._expire(name))
        self._complete_join()
        return pending

    def _complete_join(self) -> None:
        if self.state != "PreparingRebalance" or set(self.joining) != set(self.members) or not self.members:
            return
        self.generation += 1
        self.state = "CompletingRebalance"
        leader = min(self.members)
        common = set.intersection(*({each.name for each in m.protocols} for m in self.members.values()))
        self.protocol = next(each.name for each in self.members[leader].protocols if each.name in common)
        for name, pending in self.joining.items():
            pending.resolve(self._joined(name, leader))
        self.joining = {}

    def _joined(self, name: str, leader: str) -> Response:
        members = [
            join_group_response.JoinGroupResponseMember(
                member_id=each,
                metadata=next(p.metadata for p in request.protocols if p.name == self.protocol),
            )
            for each, request in self.members.items()
        ]
        return join_group_response.JoinGroupResponse(
            generation_id=self.generation, protocol_type="consumer", protocol_name=self.protocol, leader=leader,
            member_id=name, members=tuple(members) if name == leader else (),
        )  # fmt: skip

    def sync(self, request: Any) -> Reply:
        """Respond with the assignment once the leader has sent it."""
        if code := self._refusal(request):
            return sync_group_response.SyncGroupResponse(error_code=code)
        if self.state == "PreparingRebalance":
            return sync_group_response.SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        if request.assignments:
            self.assignments = {each.member_id: each.assignment for each in request.assignments}
            self.state = "Stable"
        self.syncing[request.member_id] = pending = Future[Response]()
        if self.state == "Stable":
            for name, waiting in self.syncing.items():
                waiting.resolve(sync_group_response.SyncGroupResponse(assignment=self.assignments.get(name, b"")))
            self.syncing = {}
        return pending

    def heartbeat(self, request: Any) -> Reply:
        """Record a member's heartbeat; return whether it must rejoin."""
        code = self._refusal(request)
        if not code:
            self.seen[request.member_id] = self.cluster.network.time
            code = ErrorCode.REBALANCE_IN_PROGRESS if self.state == "PreparingRebalance" else ErrorCode.NONE
        return heartbeat_response.HeartbeatResponse(error_code=code)

    def leave(self, request: Any) -> Reply:
        """Remove members that leave."""
        for name in [each.member_id for each in request.members] or [request.member_id]:
            self.remove(name)
        return leave_group_response.LeaveGroupResponse()

    def remove(self, name: str) -> None:
        """Remove a member, and make the other members rejoin."""
        if self.members.pop(name, None) is not None:
            self.joining.pop(name, None)
            self.state = "PreparingRebalance" if self.members else "Empty"
            self._complete_join()

    def _expire(self, name: str) -> None:
        request = self.members.get(name)
        if request is None:
            return
        left = self.seen[name] + request.session_timeout_ms / 1000 - self.cluster.network.time
        if name in self.joining or name in self.syncing:
            left = request.session_timeout_ms / 1000
        if left > 0:
            self.cluster.network.later(left, lambda: self._expire(name))
        else:
            self.remove(name)

    def _refusal(self, request: Any) -> ErrorCode:
        if request.member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if request.generation_id == self.generation else ErrorCode.ILLEGAL_GENERATION

    def may_commit(self, request: Any) -> ErrorCode:
        """Return the error for a commit, or NONE."""
        if not self.members and not request.member_id:
            return ErrorCode.NONE
        if request.member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        fits = request.generation_id_or_member_epoch == self.generation
        return ErrorCode.NONE if fits else ErrorCode.ILLEGAL_GENERATION
