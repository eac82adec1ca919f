"""The interface and state that all groups share: ``org.apache.kafka.coordinator.group.Group``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeAlias
from uuid import UUID

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.internal_topics.replay import GroupKind
from kafka_msgs.messages.list_groups_response import ListedGroup
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue

__all__ = ["CommitCheck", "Committer", "ExpiryCondition", "Group", "OffsetAndPosition", "group_not_found", "is_expired"]


class OffsetAndPosition(NamedTuple):
    """A committed offset: its value, and the offset of its record in the log."""

    value: OffsetCommitValue
    position: int


class Committer(NamedTuple):
    """The sender of an offset commit: a member, or a client outside the group.

    ``epoch`` is the generation or the member epoch, and -1 without either. ``version`` is the request version.
    """

    member_id: str
    instance_id: str | None
    epoch: int
    transactional: bool
    version: int


CommitCheck: TypeAlias = Callable[[str, UUID, int], None]
"""Checks a commit for a topic name, topic id and partition. Raises ``GroupError``."""

ExpiryCondition: TypeAlias = Callable[[OffsetAndPosition, int, int], bool]
"""Returns whether an offset is expired, from the offset, the current time, and the retention, both in ms."""


class Group(ABC):
    """A group of one of the four kinds.

    Appliers set the attributes of the hard state. ``soft`` is the soft state of the group, with a class for each kind.
    The validating methods raise ``GroupError``.
    """

    __slots__ = ("group_id", "soft")

    kind: ClassVar[GroupKind]
    protocol_type: ClassVar[str]

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.soft: Any = None

    @abstractmethod
    def state_name(self) -> str:
        """The name of the state as Kafka writes it, such as ``Stable``."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    def state_filter(self, op: GroupOperation) -> str:
        """Return the lower-case name of the state, which ListGroups filters are compared with."""
        return self.state_name().lower()

    @abstractmethod
    def validate_offset_commit(self, op: GroupOperation, committer: Committer) -> CommitCheck | None:
        """Check that the committer may commit offsets.

        Return a check of each partition, or None if the partitions need no check.
        """

    @abstractmethod
    def validate_offset_fetch(self, op: GroupOperation, *, member_id: str | None, epoch: int) -> None:
        """Check that a member may fetch offsets. If unknown, ``member_id`` is None and ``epoch`` is -1."""

    @abstractmethod
    def validate_offset_delete(self, op: GroupOperation) -> None:
        """Check that offsets may be deleted."""

    @abstractmethod
    def validate_delete(self, op: GroupOperation) -> None:
        """Check that the group may be deleted."""

    @abstractmethod
    def emit_tombstones(self, op: GroupOperation) -> None:
        """Emit the tombstones of all records of the group, except offsets."""

    @abstractmethod
    def cancel_timers(self, op: GroupOperation) -> None:
        """Cancel the timers of the group before it is deleted."""

    @abstractmethod
    def subscribes_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, as far as offsets are concerned."""

    @abstractmethod
    def offset_expiration(self) -> ExpiryCondition | None:
        """Return the condition for an offset to be expired. None means that no offset is currently expired."""

    @property
    def is_simple(self) -> bool:
        """Whether the group only has offsets. A group of another kind may then replace it."""
        return False

    def expires(self, op: GroupOperation) -> bool:
        """Return whether an empty group without offsets is deleted after a time."""
        return True

    def listed(self) -> ListedGroup:
        """Return the group's entry in a ListGroups response."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            group_state=self.state_name(),
            group_type=self.kind,
        )


def is_expired(offset: OffsetAndPosition, now: int, retention_ms: int, since: int | None = None) -> bool:
    """Return whether an offset is expired: ``retention_ms`` after ``since``, or at the time that its commit set.

    ``since`` is in ms. None is the time of the commit.
    """
    own = offset.value.expire_timestamp
    if own != -1:
        return now >= own
    return now - (offset.value.commit_timestamp if since is None else since) >= retention_ms


def group_not_found(group_id: str) -> GroupError:
    """Return the error for a group that does not exist."""
    return GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
