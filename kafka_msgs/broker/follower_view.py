"""The offsets of a follower that lags behind the leader, or has lost its oldest records, as its consumers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError

if TYPE_CHECKING:
    from kafka_msgs.broker.storage import PartitionLog

__all__ = ["LEADER_VIEW", "FollowerView"]


@frozen
class FollowerView:
    """The first offset of a follower, and the offset after its last one. None is the offset of the leader."""

    start: int | None = None
    end: int | None = None

    def start_of(self, log: PartitionLog) -> int:
        """Return the log start offset."""
        return log.log_start_offset if self.start is None else max(self.start, log.log_start_offset)

    def limit(self, offset: int) -> int:
        """Return the high watermark or the last stable offset of the follower, from the offset of the leader."""
        return offset if self.end is None else min(self.end, offset)

    def check(self, log: PartitionLog, offset: int) -> None:
        """Raise ``RequestRefusedError`` with OFFSET_OUT_OF_RANGE for an offset that the follower does not have."""
        if not self.start_of(log) <= offset <= self.limit(log.log_end_offset):
            raise RequestRefusedError(error=ErrorCode.OFFSET_OUT_OF_RANGE)


LEADER_VIEW = FollowerView()
"""The view of the leader, and of a follower without faults."""
