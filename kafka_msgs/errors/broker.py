"""Errors of the embedded broker: error responses, raised by request handlers, and startup failures."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.api import ApiError
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["BrokerStartError", "ClientMetricsError", "RefusedRecordsError", "RequestRefusedError"]


@define(slots=False, repr=False)
class RequestRefusedError(ApiError):
    """An embedded broker refuses a request, or a part of it, with an error code."""


@define(kw_only=True, slots=False, repr=False)
class RefusedRecordsError(RequestRefusedError):
    """An embedded broker refuses a batch because of some of its records (KIP-467).

    ``record_errors`` has the index of each of these records in the batch, and the reason.
    """

    record_errors: tuple[tuple[int, str], ...] = ()


@define(kw_only=True, slots=False, repr=False)
class BrokerStartError(KafkaMsgsError):
    """An embedded broker cannot listen. Attributes: ``address`` and ``reason``."""

    address: str
    reason: str

    def _text(self) -> str:
        return f"{self.address}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class ClientMetricsError(KafkaMsgsError, ValueError):
    """Metrics that a client has pushed and that cannot be decoded (KIP-714). Attribute: ``reason``."""

    reason: str

    def _text(self) -> str:
        return f"not metrics of OpenTelemetry: {self.reason}"
