"""The response to a failed request, for any API and version.

In Kafka each request class builds this response in code
(``org.apache.kafka.common.requests.AbstractRequest.getErrorResponse``). Here it is derived from the definitions. A
top-level error code is sufficient. In versions without one, the response repeats the elements of the request, each with
its identifying fields and the error code. The tables below contain the facts that are missing in the definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.message import Request, Response
from kafka_msgs.schema import FieldInfo, Struct, fields
from kafka_msgs.versions import NONE, VersionRange

__all__ = ["error_response"]

R = TypeVar("R", bound=Response)

_ERROR_CODES: Final = frozenset({"ErrorCode", "PartitionErrorCode"})
_ERROR_MESSAGE: Final = "ErrorMessage"
_THROTTLE_TIME: Final = "ThrottleTimeMs"

_SOURCES: Final[Mapping[tuple[int, str], tuple[str, ...]]] = {
    (ApiKey.ADD_PARTITIONS_TO_TXN, "ResultsByTransaction"): ("Transactions",),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "ResultsByTopicV3AndBelow"): ("V3AndBelowTopics",),
    (ApiKey.FETCH, "Responses"): ("Topics",),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "Results"): ("Dirs.Topics",),
    (ApiKey.DESCRIBE_LOG_DIRS, "Results"): (),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "Results"): ("Deletions", "Upsertions"),
}
"""The request arrays that a response array repeats, if the names differ."""

_ELEMENTS_TOO: Final[Mapping[int, VersionRange]] = {
    ApiKey.FETCH: VersionRange.parse("0-12"),
    ApiKey.METADATA: VersionRange.parse("0+"),
    ApiKey.ELECT_LEADERS: VersionRange.parse("0+"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: VersionRange.parse("0+"),
}
"""The versions in which both the elements and the top level contain the error code."""

_ARRAYS_THAT_NAME: Final = frozenset({(ApiKey.ALTER_CLIENT_QUOTAS, "Entity")})
"""Arrays within an element that identify the element."""

_COPIED: Final = frozenset({(ApiKey.FETCH, "SessionId")})
"""Top-level fields that are copied from the request."""

_NOT_NAMES: Final = frozenset({"NumPartitions", "ReplicationFactor", "Timestamp", "LeaderEpoch", "LogStartOffset"})
"""Fields that occur in the elements of both request and response, but do not identify the element."""

_NAMED_BY: Final[Mapping[str, str]] = {
    "User": "Name",
    "TopicName": "Name",
    "PartitionIndex": "Partition",
}
"""Element fields that have another name in the request."""

_NO_VALUE: Final[Mapping[tuple[int, str], Any]] = {
    (ApiKey.PRODUCE, "BaseOffset"): -1,
    (ApiKey.FETCH, "HighWatermark"): -1,
    (ApiKey.FETCH, "Records"): b"",
    (ApiKey.OFFSET_FETCH, "CommittedOffset"): -1,
    (ApiKey.FIND_COORDINATOR, "NodeId"): -1,
    (ApiKey.FIND_COORDINATOR, "Port"): -1,
    (ApiKey.JOIN_GROUP, "ProtocolName"): None,
    (ApiKey.DELETE_RECORDS, "LowWatermark"): -1,
    (ApiKey.INIT_PRODUCER_ID, "ProducerEpoch"): -1,
    (ApiKey.CREATE_DELEGATION_TOKEN, "PrincipalType"): "User",
    (ApiKey.CREATE_DELEGATION_TOKEN, "PrincipalName"): "ANONYMOUS",
    (ApiKey.CREATE_DELEGATION_TOKEN, "TokenRequesterPrincipalType"): "User",
    (ApiKey.CREATE_DELEGATION_TOKEN, "TokenRequesterPrincipalName"): "ANONYMOUS",
    (ApiKey.CREATE_DELEGATION_TOKEN, "IssueTimestampMs"): -1,
    (ApiKey.CREATE_DELEGATION_TOKEN, "ExpiryTimestampMs"): -1,
    (ApiKey.CREATE_DELEGATION_TOKEN, "MaxTimestampMs"): -1,
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "Entries"): None,
}
"""The value that means "no value" next to an error code, if it differs from the field's default."""


def error_response(
    request: Request[R],
    error_code: int,
    version: int,
    *,
    error_message: str | None = None,
    throttle_time_ms: int = 0,
    catalog: MessageCatalog | None = None,
) -> R:
    """Return the response that reports the failure of the whole request with an error code.

    ``error_code`` is, for example, ``ErrorCode.X``. ``version`` is the version of the request, and the response must be
    written at the same version. ``error_message`` and ``throttle_time_ms`` (milliseconds) are set if the response has
    fields for them. The response class belongs to the request class, or comes from ``catalog``.
    """
    api_key = request.INFO.api_key
    cls: Any = catalog.message_class(api_key, "response", version) if catalog else request.response_class()
    failure = _Failure(api_key, version, int(error_code), error_message)
    values = failure.top(cls, request)
    if any(field.name == _THROTTLE_TIME for field in _present(cls, version)):
        values["throttle_time_ms"] = throttle_time_ms
    response: R = cls(**values)
    return response


@frozen
class _Failure:
    """The failure of a request of one API and version. It builds the fields of the response, struct by struct."""

    api_key: int
    version: int
    code: int
    message: str | None

    def top(self, cls: type[Struct], request: Struct) -> dict[str, Any]:
        """Return the top-level fields of the response."""
        present = tuple(_present(cls, self.version))
        values = self._codes(present)
        repeats = not values or self.version in _ELEMENTS_TOO.get(self.api_key, NONE)
        for field in present:
            if (self.api_key, field.name) in _COPIED:
                values[field.attribute] = getattr(request, field.attribute)
            elif repeats and field.struct is not None and field.is_array and self._has_code(field.struct):
                values[field.attribute] = self._elements(field, field.struct, request, at_top=True)
        return values

    def _element(self, cls: type[Struct], source: Any) -> Struct:
        """Return the element for an element of the request, or for a simple value in it."""
        present = tuple(_present(cls, self.version))
        values = self._codes(present)
        if not isinstance(source, Struct):
            name = next(field for field in present if field.name != _ERROR_MESSAGE and _holds(field, source))
            return cls(**{**values, name.attribute: source})
        coded = bool(values)
        for field in present:
            if field.struct is None:
                values.update(self._copied(field, source))
            elif field.is_array and (not coded or (self.api_key, field.name) in _ARRAYS_THAT_NAME):
                values[field.attribute] = self._elements(field, field.struct, source, at_top=False)
        return cls(**values)

    def _copied(self, field: FieldInfo, source: Struct) -> Iterator[tuple[str, Any]]:
        """Yield the attribute and value of an identifying field, if the request has the field."""
        name = _NAMED_BY.get(field.name, field.name)
        for each in _present(type(source), self.version):
            if each.name in (name, field.name) and each.type == field.type and name not in _NOT_NAMES:
                yield field.attribute, self._fitting(field, getattr(source, each.attribute))

    def _elements(self, field: FieldInfo, cls: type[Struct], source: Struct, *, at_top: bool) -> tuple[Struct, ...]:
        """Return the elements of an array that repeats an array of the request. Other arrays are empty."""
        return tuple(self._element(cls, each) for each in self._repeated(field, source, at_top=at_top))

    def _repeated(self, field: FieldInfo, source: Struct, *, at_top: bool) -> Iterator[Any]:
        arrays = [each for each in _present(type(source), self.version) if each.is_array]
        paths = _SOURCES.get((self.api_key, field.name)) if at_top else None
        if paths is None:
            same = [each for each in arrays if each.name == field.name]
            paths = tuple(each.name for each in same or (arrays if len(arrays) == 1 else ()))
        for path in paths:
            yield from _values_at(source, path.split("."))

    def _codes(self, present: Iterable[FieldInfo]) -> dict[str, Any]:
        """Return the fields of a struct that report the failure, and the fields that mean "no value"."""
        values: dict[str, Any] = {}
        for field in present:
            if field.name in _ERROR_CODES:
                values[field.attribute] = self.code
            elif field.name == _ERROR_MESSAGE:
                values[field.attribute] = self.message
        for field in present if values else ():
            if (self.api_key, field.name) in _NO_VALUE:
                values[field.attribute] = self._fitting(field, _NO_VALUE[self.api_key, field.name])
        return values

    def _fitting(self, field: FieldInfo, value: Any) -> Any:
        """Return the value, or the field's default if this version does not allow null."""
        return field.default if value is None and self.version not in field.nullable else value

    def _has_code(self, cls: type[Struct]) -> bool:
        return any(
            field.name in _ERROR_CODES or (field.struct is not None and self._has_code(field.struct))
            for field in _present(cls, self.version)
        )


def _present(cls: type[Struct], version: int) -> Iterator[FieldInfo]:
    return (field for field in fields(cls) if version in field.versions)


def _holds(field: FieldInfo, value: object) -> bool:
    return field.type == ("string" if isinstance(value, str) else "int32")


def _values_at(source: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield the elements of an array of a struct, or of the arrays nested within another."""
    name, *rest = path
    attribute = next(field.attribute for field in fields(type(source)) if field.name == name)
    for each in getattr(source, attribute) or ():
        if rest:
            yield from _values_at(each, rest)
        else:
            yield each
