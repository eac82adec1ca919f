"""Producer errors: fenced, used in the wrong state, or closed."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.client import ClientError, FencedError

__all__ = ["ProducerClosedError", "ProducerFencedError", "RecordsPurgedError", "TransactionStateError"]


@define(kw_only=True, slots=False, repr=False)
class ProducerFencedError(FencedError):
    """A producer whose transactional id another producer has taken over (KIP-98). It is no longer usable.

    It has the attributes of ``BrokerError``.
    """


@define(kw_only=True, slots=False, repr=False)
class TransactionStateError(ClientError, RuntimeError):
    """A call that the transaction does not allow now. Attributes: ``action`` and ``state``, both as words."""

    action: str
    state: str

    def _text(self) -> str:
        return f"cannot {self.action}: the producer {self.state}"


@define(kw_only=True, slots=False, repr=False)
class ProducerClosedError(ClientError, RuntimeError):
    """A record passed to a closed producer, or not sent before the producer was closed. It has no attributes."""

    def _text(self) -> str:
        return "the producer is closed"


@define(kw_only=True, slots=False, repr=False)
class RecordsPurgedError(ClientError):
    """A record that ``purge`` dropped before it was sent. It has no attributes."""

    def _text(self) -> str:
        return "purge() dropped the record"
