"""Errors of clients: no answer in time, no connection, no authentication, and error codes that brokers answer."""

from __future__ import annotations

from enum import IntEnum

from kafka_msgs.errors.base import KafkaMsgsError
from kafka_msgs.lazy_attrs import define

__all__ = [
    "AuthenticationError",
    "BrokerError",
    "ClientError",
    "ClusterSizeError",
    "ConnectionFailedError",
    "DeadlineError",
    "PositionError",
    "RequestLimitError",
]


class ClientError(KafkaMsgsError):
    """Base of the errors of a client. It is abstract."""


@define(kw_only=True, slots=False, repr=False)
class DeadlineError(ClientError, TimeoutError):
    """An operation that was not complete at its deadline.

    Attributes: ``waiting_for`` (what the client waited for), and ``cause`` (the last failure that was tried again, or
    None).
    """

    waiting_for: str
    cause: Exception | None = None

    def _text(self) -> str:
        last = "" if self.cause is None else f"; the last failure was: {self.cause}"
        return f"the time is over while waiting for {self.waiting_for}{last}"


@define(kw_only=True, slots=False, repr=False)
class ConnectionFailedError(ClientError, ConnectionError):
    """A connection that could not be made, or that ended.

    Attributes: ``address`` (``host:port``), ``step`` (``resolve``, ``connect``, ``tls``, ``negotiate``,
    ``authenticate`` or ``request``), ``reason``, and ``retriable`` (whether another attempt may succeed). An unknown
    host name, a refused certificate, no common version, and bytes that are not Kafka's are final.
    """

    address: str
    step: str
    reason: str
    retriable: bool = True

    def _text(self) -> str:
        return f"{self.address}: {self.step}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class AuthenticationError(ClientError):
    """A broker that refused the credentials of the client, or could not prove that it knows them.

    Attributes: ``address`` (``host:port``), ``mechanism`` (the SASL mechanism) and ``reason``. No attribute holds a
    secret.
    """

    address: str
    mechanism: str
    reason: str

    def _text(self) -> str:
        return f"{self.address}: authenticate ({self.mechanism}): {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class BrokerError(ClientError):
    """An error code that a broker answered.

    Attributes: ``error`` (the ``ErrorCode``), ``retriable`` (whether Kafka says that the same request may succeed
    later), ``api`` (the name of the api), ``subject`` (what the error is about, such as a group or a partition, or
    None) and ``message`` (the text of the broker, or None).
    """

    error: IntEnum
    retriable: bool
    api: str
    subject: object = None
    message: str | None = None

    def _text(self) -> str:
        about = "" if self.subject is None else f" for {self.subject}"
        words = f": {self.message}" if self.message else ""
        return f"{self.api}: {self.error.name} ({int(self.error)}){about}{words}"


@define(kw_only=True, slots=False, repr=False)
class ClusterSizeError(ClientError):
    """Metadata that name more brokers than the client may connect to.

    Attributes: ``brokers`` (how many there are) and ``limit`` (``ClientConfig.max_brokers``).
    """

    brokers: int
    limit: int

    def _text(self) -> str:
        return f"the metadata name {self.brokers} brokers, more than max_brokers ({self.limit})"


@define(kw_only=True, slots=False, repr=False)
class PositionError(ClientError):
    """A position of a consumer that does not exist, or that is not known.

    Attributes: ``topic``, ``partition`` and ``reason``.
    """

    topic: str
    partition: int
    reason: str

    def _text(self) -> str:
        return f"{self.topic}-{self.partition}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class RequestLimitError(ClientError):
    """A request that was sent while as many wait for their answers as may wait. Nothing was sent.

    Attributes: ``address`` (``host:port``) and ``limit`` (``ClientConfig.max_in_flight``).
    """

    address: str
    limit: int

    def _text(self) -> str:
        return f"{self.address}: {self.limit} requests wait for their answers, which is the limit (max_in_flight)"
