"""Turn error codes of responses into exceptions."""

from __future__ import annotations

from typing import Final

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, CommitFailedError, FencedError, UnknownTopicError

__all__ = ["broker_error", "missing_error", "raise_for"]

_CLASSES: Final[dict[ErrorCode, type[BrokerError]]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicError,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopicError,
    ErrorCode.FENCED_INSTANCE_ID: FencedError,
    ErrorCode.FENCED_MEMBER_EPOCH: FencedError,
    ErrorCode.PRODUCER_FENCED: FencedError,
}
"""The error codes with a specific exception class. All other codes raise ``BrokerError``."""

_COMMIT_APIS: Final = frozenset({"OffsetCommit", "TxnOffsetCommit"})
_LOST_MEMBERSHIP: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)  # fmt: skip
"""Error codes of an offset commit by a consumer that has lost its membership."""


def broker_error(code: int, *, api: str, subject: object = None, message: str | None = None) -> BrokerError:
    """Return the exception for an error code. ``subject`` is the affected item, ``message`` the broker's text."""
    error = ErrorCode(code)
    lost = api in _COMMIT_APIS and error in _LOST_MEMBERSHIP
    cls = CommitFailedError if lost else _CLASSES.get(error, BrokerError)
    return cls(error=error, retriable=error.retriable, api=api, subject=subject, message=message)


def missing_error(api: str, subject: object) -> BrokerError:
    """Return the exception for a response that does not mention a requested item."""
    return broker_error(ErrorCode.UNKNOWN_SERVER_ERROR, api=api, subject=subject, message=_MISSING)


_MISSING: Final = "the response of the broker does not mention it"


def raise_for(code: int, *, api: str, subject: object = None, message: str | None = None) -> None:
    """Raise ``BrokerError`` unless the error code is 0."""
    if code:
        raise broker_error(code, api=api, subject=subject, message=message)
