"""Results of operations on many items: one outcome per item, so that one failure does not hide successes.

``Results`` is for operations on items that the caller names: groups, partitions, topics. ``PartialList`` is for lists
that are gathered from all brokers. Both are values: accessing a failed item raises its error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from attrs import frozen

from kafka_msgs.client import broker_errors
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError
from kafka_msgs.message import Request

__all__ = [
    "Outcome",
    "PartialList",
    "Results",
    "api_name",
    "broker_error",
    "item_as_value",
    "no_value",
    "outcomes",
    "raise_top_level",
]

K = TypeVar("K")
V = TypeVar("V")
H = TypeVar("H", bound="HasError")

Outcome: TypeAlias = V | Exception
"""The value of an item, or the error that replaces it."""


class HasError(Protocol):
    """An item of a response, or a whole response, that has an error code."""

    @property
    def error_code(self) -> int:
        """The error code; 0 is success."""
        ...


@frozen(repr=False)
class Results(Mapping[K, V]):
    """The outcome of each item. ``results[key]`` is the item's value, or raises the item's error.

    >>> results = Results({"a": 1, "b": TimeoutError("too late")})
    >>> results["a"], results.ok, list(results.errors)
    (1, {'a': 1}, ['b'])
    >>> results.all()
    Traceback (most recent call last):
    TimeoutError: too late

    Iteration and ``in`` see every item. ``instances()`` and ``items()`` raise at the first item that failed.
    """

    outcomes: Mapping[K, Outcome[V]]

    def __getitem__(self, key: K) -> V:
        return _value(self.outcomes[key])

    def __iter__(self) -> Iterator[K]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    def __contains__(self, key: object) -> bool:
        return key in self.outcomes

    def __repr__(self) -> str:
        return f"Results({dict(self.outcomes)!r})"

    def all(self) -> dict[K, V]:
        """Return the values of all items. Raises the error of the first item that failed."""
        return {key: _value(outcome) for key, outcome in self.outcomes.items()}

    @property
    def ok(self) -> dict[K, V]:
        """The values of the items that succeeded."""
        return {key: outcome for key, outcome in self.outcomes.items() if not isinstance(outcome, Exception)}

    @property
    def errors(self) -> dict[K, Exception]:
        """The errors of the items that failed."""
        return {key: outcome for key, outcome in self.outcomes.items() if isinstance(outcome, Exception)}


@frozen
class PartialList(Generic[V]):
    """A list that was gathered from all brokers.

    Iteration, ``len`` and ``all()`` need every broker: they raise the error of the first broker that failed. ``found``
    has the results of the other brokers, and ``errors`` the failures by broker id.
    """

    items: tuple[V, ...]
    errors: Mapping[int, Exception]

    def all(self) -> tuple[V, ...]:
        """Return the whole list. Raises the error of the first broker that failed."""
        for error in self.errors.values():
            raise error
        return self.items

    def __iter__(self) -> Iterator[V]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())


def _value(outcome: Outcome[V]) -> V:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def api_name(request: type[Request[Any]] | Request[Any]) -> str:
    """Return the name of the api of a request, such as ``OffsetFetch``."""
    return request.INFO.name.removesuffix("Request")


def broker_error(item: HasError, api: str, subject: object) -> BrokerError | None:
    """Return the error of an item of a response, or None if it succeeded."""
    if item.error_code == ErrorCode.NONE:
        return None
    return broker_errors.broker_error(
        item.error_code, api=api, subject=subject, message=getattr(item, "error_message", None)
    )


def raise_top_level(response: HasError, api: str, subject: object = None) -> None:
    """Raise ``BrokerError`` if a whole response failed."""
    if error := broker_error(response, api, subject):
        raise error


_SILENCE: Final = "the response of the broker does not mention it"


def outcomes(api: str, items: Iterable[tuple[K, H]], value: Callable[[H], V], asked: Iterable[K] = ()) -> Results[K, V]:
    """Return the outcome of each item of a response, by its key. Requested keys come first.

    Requested keys that are missing in the response have failed.
    """
    answered: dict[K, Outcome[V]] = {key: broker_error(item, api, key) or value(item) for key, item in items}
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    found = {
        key: answered[key]
        if key in answered
        else broker_errors.broker_error(code, api=api, subject=key, message=_SILENCE)
        for key in asked
    }
    return Results(found | answered)


def no_value(item: object) -> None:
    """Return None: the value of an item that only succeeds or fails."""


def item_as_value(item: H) -> H:
    """Return the response item as its value."""
    return item
