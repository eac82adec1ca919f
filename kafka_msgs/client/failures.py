"""Turn error codes of responses into exceptions."""

from __future__ import annotations

from typing import Final

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError

__all__ = ["broker_error", "missing_error", "raise_for"]


def broker_error(code: int, *, api: str, subject: object = None, message: str | None = None) -> BrokerError:
    """Return the exception for an error code. ``subject`` is what it is about, ``message`` is the broker's text."""
    error = ErrorCode(code)
    return BrokerError(error=error, retriable=error.retriable, api=api, subject=subject, message=message)


def missing_error(api: str, subject: object) -> BrokerError:
    """Return the exception for a response that does not mention a requested item."""
    return broker_error(ErrorCode.UNKNOWN_SERVER_ERROR, api=api, subject=subject, message=_MISSING)


_MISSING: Final = "the response of the broker does not mention it"


def raise_for(code: int, *, api: str, subject: object = None, message: str | None = None) -> None:
    """Raise ``BrokerError`` unless the error code is 0."""
    if code:
        raise broker_error(code, api=api, subject=subject, message=message)
