"""Client errors: timeouts, failed connections, failed authentication, misuse, and error codes of brokers."""

from __future__ import annotations

from enum import IntEnum

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = [
    "AuthenticationError",
    "BrokerError",
    "ClientBrokenError",
    "ClientClosedError",
    "ClientError",
    "CommitFailedError",
    "ConnectionFailedError",
    "DeadlineError",
    "DeserializationError",
    "FencedError",
    "ForkedError",
    "OffsetPositionError",
    "RequestLimitError",
    "TooManyBrokersError",
    "UndeliveredError",
    "UnknownTopicError",
    "WakeupError",
]


class ClientError(KafkaMsgsError):
    """Base of all client errors. It is abstract."""


@define(kw_only=True, slots=False, repr=False)
class DeadlineError(ClientError, TimeoutError):
    """An operation that was not complete at its deadline.

    Attributes: ``waiting_for`` (the pending operation), and ``cause`` (the last failure that the client retried, or
    None).
    """

    waiting_for: str
    cause: Exception | None = None

    def _text(self) -> str:
        last = "" if self.cause is None else f"; the last failure was: {self.cause}"
        return f"the time is over while waiting for {self.waiting_for}{last}"


@define(kw_only=True, slots=False, repr=False)
class ConnectionFailedError(ClientError, ConnectionError):
    """A connection attempt that failed, or a connection that ended.

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
    """A broker that refused the client's credentials, or failed to authenticate itself.

    Attributes: ``address`` (``host:port``), ``mechanism`` (the SASL mechanism) and ``reason``. The attributes do not
    contain secrets.
    """

    address: str
    mechanism: str
    reason: str

    def _text(self) -> str:
        return f"{self.address}: authenticate ({self.mechanism}): {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class BrokerError(ClientError):
    """An error code in a broker's response.

    Attributes: ``error`` (the ``ErrorCode``), ``retriable`` (whether the same request may succeed later, according to
    Kafka), ``api`` (the API name), ``subject`` (the affected group, partition or other object, or None) and
    ``message`` (the broker's text, or None).
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
class TooManyBrokersError(ClientError):
    """Metadata with more brokers than the client may connect to.

    Attributes: ``brokers`` (their number) and ``limit`` (``ClientConfig.max_brokers``).
    """

    brokers: int
    limit: int

    def _text(self) -> str:
        return f"the metadata name {self.brokers} brokers, more than max_brokers ({self.limit})"


@define(kw_only=True, slots=False, repr=False)
class OffsetPositionError(ClientError):
    """A consumer position that does not exist or is unknown.

    Attributes: ``topic``, ``partition`` and ``reason``.
    """

    topic: str
    partition: int
    reason: str

    def _text(self) -> str:
        return f"{self.topic}-{self.partition}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class RequestLimitError(ClientError):
    """A request that exceeds the limit of in-flight requests. The client did not send it.

    Attributes: ``address`` (``host:port``) and ``limit`` (``ClientConfig.max_in_flight``).
    """

    address: str
    limit: int

    def _text(self) -> str:
        return f"{self.address}: {self.limit} requests wait for their answers, which is the limit (max_in_flight)"


@define(kw_only=True, slots=False, repr=False)
class ClientClosedError(ClientError, RuntimeError):
    """A call on a closed client, or a pending call when another thread closed the client. It has no attributes."""

    def _text(self) -> str:
        return "the client is closed"


@define(kw_only=True, slots=False, repr=False)
class DeserializationError(ClientError):
    """A record whose key or value failed to deserialize in a user function. Seek past the offset to continue.

    Attributes: ``topic``, ``partition``, ``offset`` and ``cause`` (the function's exception).
    """

    topic: str
    partition: int
    offset: int
    cause: Exception

    def _text(self) -> str:
        error = f"{type(self.cause).__name__}: {self.cause}"
        return f"{self.topic}-{self.partition} at offset {self.offset} cannot be deserialized: {error}"


@define(kw_only=True, slots=False, repr=False)
class ForkedError(ClientError, RuntimeError):
    """A call in a child process on a client that was created before the fork. It has no attributes.

    The connections belong to the parent process. Create another client in the child process.
    """

    def _text(self) -> str:
        return "the client was created before a fork; create another one in the child process"


@define(kw_only=True, slots=False, repr=False)
class ClientBrokenError(ClientError, RuntimeError):
    """A client whose I/O ended unexpectedly. Create another one. Attribute: ``cause`` (the exception that ended it)."""

    cause: BaseException

    def _text(self) -> str:
        return f"the I/O of the client ended with {type(self.cause).__name__}: {self.cause}"


@define(kw_only=True, slots=False, repr=False)
class UnknownTopicError(BrokerError):
    """A topic or partition that does not exist. Clients of this library never create topics.

    It has the attributes of ``BrokerError``.
    """

    def _text(self) -> str:
        return f"{super()._text()}; clients do not create topics"


@define(kw_only=True, slots=False, repr=False)
class CommitFailedError(BrokerError):
    """Offsets that the coordinator refused because the consumer lost its membership.

    Other members may own its partitions, and read the records again. It has the attributes of ``BrokerError``. Kafka's
    class is ``CommitFailedException``.
    """


@define(kw_only=True, slots=False, repr=False)
class FencedError(BrokerError):
    """A static member, group member or producer that was replaced by another one with the same identity.

    It has the attributes of ``BrokerError``.
    """


@define(kw_only=True, slots=False, repr=False)
class UndeliveredError(ClientError):
    """Undelivered records of a producer whose failure has not been reported yet.

    Attributes: ``count`` (number of records) and ``cause`` (the error of the first record).
    """

    count: int
    cause: Exception

    def _text(self) -> str:
        records = "1 record was" if self.count == 1 else f"{self.count} records were"
        return f"{records} not delivered; the first failure: {self.cause}"


@define(kw_only=True, slots=False, repr=False)
class WakeupError(ClientError):
    """A consumer call that ``wakeup`` interrupted. It has no attributes, and nothing is lost."""

    def _text(self) -> str:
        return "wakeup() interrupted the call"
