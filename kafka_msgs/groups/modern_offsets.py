"""Committed offsets of consumer groups and streams groups: which members may commit and fetch them."""

from __future__ import annotations

from typing import Any, Final, Protocol

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.group import Committer
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.modern_group import LEAVE_EPOCH, ModernGroup, unknown_member

__all__ = ["check_fetch", "committing_member", "epoch_name", "stale"]

_FIRST_COMMIT_BY_EPOCH: Final = 9


class _Member(Protocol):
    """A member: its epoch, and its classic protocol metadata, if any."""

    @property
    def epoch(self) -> int: ...
    @property
    def classic(self) -> object | None: ...


def committing_member(group: ModernGroup[Any, Any], committer: Committer) -> Any:
    """Return the member that commits with an epoch older than its own. None if the commit needs no more checks.

    Raises ``GroupError`` for a member that may not commit.
    """
    if committer.epoch < 0 and not group.members:
        return None
    if (
        committer.transactional
        and committer.epoch == LEAVE_EPOCH
        and not committer.member_id
        and committer.instance_id is None
    ):
        return None
    member = group.member(committer.member_id)
    if not committer.transactional and member.classic is None and committer.version < _FIRST_COMMIT_BY_EPOCH:
        message = f"OffsetCommit version 9 or above must be used by members using the {group.kind} group protocol"
        raise GroupError(error=ErrorCode.UNSUPPORTED_VERSION, message=message)
    if committer.epoch > member.epoch:
        known = f"newer than current member epoch {member.epoch}"
        raise stale(member, f"Received {epoch_name(member)} {committer.epoch} is {known}.")
    return None if committer.epoch == member.epoch else member


def check_fetch(op: GroupOperation, group: ModernGroup[Any, Any], member_id: str | None, epoch: int) -> None:
    """Check that a member may fetch offsets: at its own epoch. A request without a member may also fetch them.

    Raises ``GroupError``.
    """
    if member_id is None and epoch < 0:
        return
    if member_id is None and op.quirks.fetch_needs_member_id:
        raise GroupError(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    member = group.members.get(member_id or "")
    if member is None:
        raise unknown_member(member_id or "", group.group_id)
    if epoch != member.epoch:
        known = f"the expected member epoch {member.epoch}"
        raise stale(member, f"The received {epoch_name(member)} {epoch} does not match {known}.")


def epoch_name(member: _Member) -> str:
    """Return the name of a member's epoch in its protocol."""
    return "member epoch" if member.classic is None else "generation id"


def stale(member: _Member, message: str) -> GroupError:
    """Return the error of a member's protocol for a wrong epoch."""
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return GroupError(error=code, message=message)
