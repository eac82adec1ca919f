"""Members of the classic protocol in a group with epochs: the logic that consumer and streams groups share.

The group's own assignor assigns partitions or tasks to such a member. REBALANCE_IN_PROGRESS notifies the member of a
new target. It rejoins, and gets its assignment with SyncGroup. Its generation is its member epoch. The effects of
JoinGroup and the assignment format differ by kind of group: each kind has a ``ClassicMemberSupport``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from attrs import frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.consumer_protocol import CONSUMER_PROTOCOL
from kafka_msgs.groups.member_timers import Fence, join_timer_key, member_timer, schedule_session, sync_timer_key
from kafka_msgs.groups.modern_group import ModernGroup, ModernMember
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.heartbeat_response import HeartbeatResponse
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

__all__ = [
    "ClassicMemberSupport",
    "ClassicMetadata",
    "member_response",
    "refuse_unknown_member_id",
    "requires_known_member_id",
    "schedule_sync_timeout",
]

_FIRST_JOIN_IN_TWO_STEPS: Final = 4
"""The first version at which a dynamic member must rejoin with its assigned member id (KIP-394)."""


class NamedProtocol(Protocol):
    """An assignment protocol that a member offered, and its subscription for it."""

    @property
    def name(self) -> str: ...

    @property
    def metadata(self) -> bytes: ...


class ClassicMetadata(Protocol):
    """The report of a classic protocol member that members of the group's own protocol do not send. Times are in ms."""

    @property
    def session_timeout_ms(self) -> int: ...

    @property
    def supported_protocols(self) -> Sequence[NamedProtocol]: ...


class DualProtocolMember(ModernMember, Protocol):
    """A member of either protocol. ``classic`` is None for a member of the group's own protocol."""

    @property
    def member_id(self) -> str: ...

    @property
    def metadata(self) -> Any:
        """The value of the member's record."""

    @property
    def classic(self) -> ClassicMetadata | None: ...

    @property
    def rebalance_timeout_ms(self) -> int: ...

    @property
    def is_revoking(self) -> bool:
        """Return whether the member must revoke partitions or tasks before it continues."""


M = TypeVar("M", bound=DualProtocolMember)
G = TypeVar("G", bound=ModernGroup[Any, Any])


@frozen(kw_only=True)
class ClassicMemberSupport(Generic[G, M]):
    """The support of one kind of group for members of the classic protocol.

    ``join`` handles JoinGroup. ``assignment`` returns the assignment of a member as bytes. ``may_advance`` returns
    whether a waiting member would now get partitions or tasks of other members. ``remove`` removes members. All
    handlers raise ``GroupError``.
    """

    join: Callable[
        [OperationContext, RequestContext, G, JoinGroupRequest], JoinGroupResponse | Future[JoinGroupResponse]
    ]
    assignment: Callable[[OperationContext, G, M, ClassicMetadata], bytes]
    may_advance: Callable[[OperationContext, G, M], bool]
    remove: Fence

    def sync(self, op: OperationContext, group: G, request: SyncGroupRequest) -> SyncGroupResponse:
        """Return the assignment of a member."""
        member, classic = _known_member(group, request.member_id, request.group_instance_id, request.generation_id)
        name = classic.supported_protocols[0].name
        if request.protocol_type not in (None, CONSUMER_PROTOCOL) or request.protocol_name not in (None, name):
            message = f"The protocol of the request of member {member.member_id} is not the one of its group."
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
        if group.assignment_epoch > member.epoch and not member.is_revoking:
            self._schedule_join_timeout(op, group, member)
            message = (
                f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} should rejoin."
            )
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS, message)
        assignment = self.assignment(op, group, member, classic)

        def synced(error: ApiError | None) -> None:
            if error is None:
                op.timers.cancel(sync_timer_key(group.group_id, request.member_id))
                schedule_session(op, group, request.member_id, classic.session_timeout_ms, self.remove)

        op.on_committed(synced)
        return SyncGroupResponse(
            protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
        )

    def heartbeat(self, op: OperationContext, group: G, request: HeartbeatRequest) -> HeartbeatResponse:
        """Respond to a heartbeat: REBALANCE_IN_PROGRESS if the member must rejoin."""
        member, classic = _known_member(group, request.member_id, request.group_instance_id, request.generation_id)
        schedule_session(op, group, request.member_id, classic.session_timeout_ms, self.remove)
        if member.epoch < group.assignment_epoch or member.is_revoking or self.may_advance(op, group, member):
            self._schedule_join_timeout(op, group, member)
            return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return HeartbeatResponse()

    def _schedule_join_timeout(self, op: OperationContext, group: G, member: M) -> None:
        """Fence a member that does not rejoin within its rebalance timeout."""
        key = join_timer_key(group.group_id, member.member_id)
        if not op.timers.is_scheduled(key):
            operation = member_timer(group.kind, group.group_id, member.member_id, self.remove)
            op.timers.schedule(key, member.rebalance_timeout_ms, operation)

    def leave(self, op: OperationContext, group: G, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Remove members, including members of the group's own protocol."""
        leaving: dict[str, M] = {}
        responses = []
        for identity in request.members:
            error = ErrorCode.NONE
            try:
                instance_id = identity.group_instance_id
                member_id = identity.member_id or group.static_members.get(instance_id or "", "")
                member: M = group.sender(member_id, instance_id)
                leaving[member.member_id] = member
            except GroupError as refused:
                error = ErrorCode(refused.error)
            responses.append(member_response(identity, error))
        self.remove(op, group, list(leaving.values()))
        return LeaveGroupResponse(members=tuple(responses))


def _known_member(
    group: ModernGroup[M, Any], member_id: str, instance_id: str | None, generation: int
) -> tuple[M, ClassicMetadata]:
    """Return a classic protocol member at its generation, and its reported metadata. Raises ``GroupError``."""
    member = group.sender(member_id, instance_id)
    if member.classic is None:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
    if generation != member.epoch:
        message = f"The generation {generation} of the request is not the epoch {member.epoch} of member {member_id}."
        raise GroupError(ErrorCode.ILLEGAL_GENERATION, message)
    return member, member.classic


def member_response(identity: MemberIdentity, error: int) -> MemberResponse:
    """Return the result of LeaveGroup for one member."""
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)


def requires_known_member_id(context: RequestContext, request: JoinGroupRequest) -> bool:
    """Return whether a member must rejoin with its assigned id before it is in the group (KIP-394)."""
    is_new = not request.member_id and request.group_instance_id is None
    return is_new and context.version >= _FIRST_JOIN_IN_TWO_STEPS


def refuse_unknown_member_id(op: OperationContext, member_id: str) -> Future[JoinGroupResponse]:
    """Respond with a member's new id, with which it must rejoin."""
    promise: Future[JoinGroupResponse] = op.new_future()
    promise.resolve(JoinGroupResponse(member_id=member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED))
    return promise


def schedule_sync_timeout(
    op: OperationContext, group: ModernGroup[Any, Any], member_id: str, request: JoinGroupRequest, fence: Fence
) -> None:
    """Start the session timer of a member that joined, and its rebalance timer for SyncGroup."""
    schedule_session(op, group, member_id, request.session_timeout_ms, fence)
    operation = member_timer(group.kind, group.group_id, member_id, fence)
    op.timers.schedule(sync_timer_key(group.group_id, member_id), request.rebalance_timeout_ms, operation)
