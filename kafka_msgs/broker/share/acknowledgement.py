"""Acknowledgements of records: splitting by type, the resulting state changes, and ownership checks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple, NoReturn

from kafka_msgs.broker.share.in_flight import InFlightBatch, InFlightState
from kafka_msgs.broker.share.record_state import AcknowledgementBatch, PersisterStateBatch, RecordState
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError

__all__ = ["StateChange", "check_owner", "check_owner_of_offset", "refuse", "split_by_type", "undo"]


class StateChange(NamedTuple):
    """A state change of records in a batch: the member that had acquired them, and their new state."""

    batch: InFlightBatch
    member_id: str
    after: PersisterStateBatch


def undo(changes: list[StateChange]) -> None:
    """Return the records of reverted changes to their members."""
    for batch, member_id, after in changes:
        for run in batch.between(after.first, after.last):
            run.member_id = member_id


def split_by_type(acknowledgements: AcknowledgementBatch, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of an acknowledgement with the same type: the first and last offset, and the type."""
    if len(acknowledgements.types) == 1:
        yield first, last, acknowledgements.types[0]
        return
    for kind, group in groupby(
        acknowledgements.types[first - acknowledgements.first : last - acknowledgements.first + 1]
    ):
        end = first + sum(1 for _ in group)
        yield first, end - 1, kind
        first = end


def check_owner(run: InFlightState, member_id: str) -> None:
    """Check that a member has acquired a batch, with Kafka's error messages."""
    if run.state is not RecordState.ACQUIRED or not run.member_id:
        refuse("The batch cannot be acknowledged. The batch is not in the acquired state.")
    if run.member_id != member_id:
        refuse("Member is not the owner of batch record")


def check_owner_of_offset(run: InFlightState, member_id: str) -> None:
    """Check that a member has acquired an offset, with Kafka's error messages."""
    if run.state is not RecordState.ACQUIRED or not run.member_id:
        refuse("The offset cannot be acknowledged. The offset is not acquired.")
    if run.member_id != member_id:
        refuse("Member is not the owner of offset")


def refuse(message: str, error: ErrorCode = ErrorCode.INVALID_RECORD_STATE) -> NoReturn:
    """Raise ``RequestRefusedError``."""
    raise RequestRefusedError(error=error, message=message)
