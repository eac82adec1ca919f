"""The routing table, and functions that split a request for several brokers and merge the responses.

For each API, the table lists the kind of broker, and the places of the items in the request and the response. Generic
code interprets it. The routes follow Kafka's own clients: ``org.apache.kafka.clients.admin`` (classes
``KafkaAdminClient`` and ``internals.*Strategy``), and the protocol guide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

import attrs
from attrs import frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Request, Response
from kafka_msgs.schema import Struct, fields

__all__ = [
    "ANY_BROKER",
    "CONTROLLER",
    "EVERY_BROKER",
    "ROUTES",
    "BrokerRoute",
    "CoordinatorKind",
    "CoordinatorRoute",
    "Item",
    "ItemPaths",
    "LeaderRoute",
    "Route",
    "max_version_with_topic_names",
    "merge_responses",
    "route_of",
]

E = ErrorCode
R = TypeVar("R", bound=Response)

Item: TypeAlias = str | tuple[str | UUID, int]
"""The subject of a request: a group or transaction name, or a topic (its name or its id) and a partition."""

_NO_ID: Final = UUID(int=0)


class CoordinatorKind(IntEnum):
    """The kind of a coordinator: the key type of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@frozen
class BrokerRoute:
    """A route to one broker of a kind: any broker, the controller, or each broker."""

    name: str
    retriable: frozenset[int] = frozenset()
    """The error codes after which the client looks up the broker again."""


@frozen
class ItemPaths:
    """The paths of the items in a request, and of their results in the response.

    A path is an attribute of the message. If ``partitions`` is set, the elements at the path are topics, and the items
    are pairs of topic and partition. ``key`` is the attribute with the name of an element, or empty if the element
    itself is the name. The name of a topic is in any of ``_TOPIC_NAMES``.
    """

    request: str
    response: str
    key: str = ""
    partitions: str = ""
    answered_partitions: str = ""


@frozen
class CoordinatorRoute:
    """A route to the coordinators of groups or transactions.

    ``one`` is the attribute with a single key. ``many`` contains the paths of several keys. It takes precedence if the
    request has such keys.
    """

    kind: CoordinatorKind
    one: str = ""
    many: ItemPaths | None = None
    retriable: frozenset[int] = frozenset(
        {E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR}
    )


@frozen
class LeaderRoute:
    """A route to the leaders of partitions."""

    many: ItemPaths
    retriable: frozenset[int] = frozenset(
        {
            E.LEADER_NOT_AVAILABLE, E.NOT_LEADER_OR_FOLLOWER, E.REPLICA_NOT_AVAILABLE, E.KAFKA_STORAGE_ERROR,
            E.FENCED_LEADER_EPOCH, E.UNKNOWN_LEADER_EPOCH, E.OFFSET_NOT_AVAILABLE,
        }
    )  # fmt: skip


Route: TypeAlias = BrokerRoute | CoordinatorRoute | LeaderRoute

ANY_BROKER: Final = BrokerRoute("any")
CONTROLLER: Final = BrokerRoute("controller", frozenset({E.NOT_CONTROLLER}))
EVERY_BROKER: Final = BrokerRoute("each", frozenset({E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE}))

_GROUP: Final = CoordinatorRoute(CoordinatorKind.GROUP, one="group_id")
_TRANSACTION: Final = CoordinatorRoute(CoordinatorKind.TRANSACTION, one="transactional_id")
_GROUP_IDS: Final = CoordinatorRoute(CoordinatorKind.GROUP, many=ItemPaths("group_ids", "groups", "group_id"))

ROUTES: Final[Mapping[int, Route]] = {
    ApiKey.PRODUCE: LeaderRoute(ItemPaths("topic_data", "responses", "", "partition_data", "partition_responses")),
    ApiKey.FETCH: LeaderRoute(ItemPaths("topics", "responses", "", "partitions", "partitions")),
    ApiKey.LIST_OFFSETS: LeaderRoute(ItemPaths("topics", "topics", "", "partitions", "partitions")),
    ApiKey.DELETE_RECORDS: LeaderRoute(ItemPaths("topics", "topics", "", "partitions", "partitions")),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: LeaderRoute(ItemPaths("topics", "topics", "", "partitions", "partitions")),
    ApiKey.DESCRIBE_PRODUCERS: LeaderRoute(ItemPaths("topics", "topics", "", "partition_indexes", "partitions")),
    ApiKey.SHARE_FETCH: LeaderRoute(ItemPaths("topics", "responses", "", "partitions", "partitions")),
    ApiKey.SHARE_ACKNOWLEDGE: LeaderRoute(ItemPaths("topics", "responses", "", "partitions", "partitions")),
    ApiKey.OFFSET_COMMIT: _GROUP,
    ApiKey.OFFSET_FETCH: CoordinatorRoute(CoordinatorKind.GROUP, "group_id", ItemPaths("groups", "groups", "group_id")),
    ApiKey.JOIN_GROUP: _GROUP,
    ApiKey.HEARTBEAT: _GROUP,
    ApiKey.LEAVE_GROUP: _GROUP,
    ApiKey.SYNC_GROUP: _GROUP,
    ApiKey.DESCRIBE_GROUPS: CoordinatorRoute(CoordinatorKind.GROUP, many=ItemPaths("groups", "groups", "group_id")),
    ApiKey.DELETE_GROUPS: CoordinatorRoute(
        CoordinatorKind.GROUP, many=ItemPaths("groups_names", "results", "group_id")
    ),
    ApiKey.OFFSET_DELETE: _GROUP,
    ApiKey.TXN_OFFSET_COMMIT: _GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _GROUP,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _GROUP_IDS,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _GROUP,
    ApiKey.STREAMS_GROUP_DESCRIBE: _GROUP_IDS,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: _GROUP,
    ApiKey.SHARE_GROUP_HEARTBEAT: _GROUP,
    ApiKey.SHARE_GROUP_DESCRIBE: _GROUP_IDS,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: CoordinatorRoute(
        CoordinatorKind.GROUP, many=ItemPaths("groups", "groups", "group_id")
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _GROUP,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _GROUP,
    ApiKey.INIT_PRODUCER_ID: _TRANSACTION,
    ApiKey.ADD_PARTITIONS_TO_TXN: CoordinatorRoute(
        CoordinatorKind.TRANSACTION,
        "v3_and_below_transactional_id",
        ItemPaths("transactions", "results_by_transaction", "transactional_id"),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: _TRANSACTION,
    ApiKey.END_TXN: _TRANSACTION,
    ApiKey.DESCRIBE_TRANSACTIONS: CoordinatorRoute(
        CoordinatorKind.TRANSACTION, many=ItemPaths("transactional_ids", "transaction_states", "transactional_id")
    ),
    ApiKey.LIST_GROUPS: EVERY_BROKER,
    ApiKey.LIST_TRANSACTIONS: EVERY_BROKER,
    ApiKey.DESCRIBE_LOG_DIRS: EVERY_BROKER,
    ApiKey.CREATE_TOPICS: CONTROLLER,
    ApiKey.DELETE_TOPICS: CONTROLLER,
    ApiKey.CREATE_PARTITIONS: CONTROLLER,
    ApiKey.ELECT_LEADERS: CONTROLLER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: CONTROLLER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: CONTROLLER,
    ApiKey.CREATE_DELEGATION_TOKEN: CONTROLLER,
    ApiKey.RENEW_DELEGATION_TOKEN: CONTROLLER,
    ApiKey.EXPIRE_DELEGATION_TOKEN: CONTROLLER,
    ApiKey.ALTER_CLIENT_QUOTAS: CONTROLLER,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: CONTROLLER,
    ApiKey.UPDATE_FEATURES: CONTROLLER,
    ApiKey.UNREGISTER_BROKER: CONTROLLER,
    ApiKey.UNREGISTER_CONTROLLER: CONTROLLER,
    ApiKey.ADD_RAFT_VOTER: CONTROLLER,
    ApiKey.REMOVE_RAFT_VOTER: CONTROLLER,
}
"""The routes of all APIs that only some brokers serve. ``ANY_BROKER`` is the route of all other APIs."""

NOT_RETRIABLE_APIS: Final = frozenset({ApiKey.PRODUCE, ApiKey.JOIN_GROUP, ApiKey.CREATE_DELEGATION_TOKEN})
"""Requests that are not retried after a connection ended before the response: the broker may have executed them."""

_NAMES_UNTIL: Final[Mapping[int, int]] = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.TXN_OFFSET_COMMIT: 5,
}
"""The last version with topic names. Later versions use topic ids."""

_TOPIC_NAMES: Final = ("name", "topic", "topic_id")
_PARTITION_NUMBERS: Final = ("partition_index", "index", "partition")
_IDENTITIES: Final = (*_TOPIC_NAMES, "node_id")


def route_of(request: Request[Any]) -> Route:
    """Return the route of a request."""
    return ROUTES.get(request.INFO.api_key, ANY_BROKER)


def max_version_with_topic_names(request: Request[Any]) -> int | None:
    """Return the highest version for a request whose topics have names and no ids. None means no limit."""
    limit = _NAMES_UNTIL.get(request.INFO.api_key)
    if limit is None or not any(_named_only(topic) for topic in _topics(request)):
        return None
    return limit


def items_of(request: Request[Any], items: ItemPaths) -> list[Item]:
    """Return the items of a request, in order."""
    return [item for element in getattr(request, items.request) or () for item in _items_of(element, items)]


def keep_items(request: Request[R], items: ItemPaths, keep: Collection[Item]) -> Request[R]:
    """Return a request with only some of its items."""
    kept: Request[R] = _filtered(request, items.request, items, items.partitions, keep)
    return kept


def drop_items(response: R, items: ItemPaths, drop: Collection[Item]) -> R:
    """Return a response without the results of some items."""
    kept = {item for item, _ in iter_item_errors(response, items)}.difference(drop)
    rest: R = _filtered(response, items.response, items, items.answered_partitions, kept)
    return rest


def iter_item_errors(response: Response, items: ItemPaths) -> Iterator[tuple[Item, int]]:
    """Yield each item of a response and its error code."""
    for element in getattr(response, items.response) or ():
        if not items.partitions:
            yield getattr(element, items.key), getattr(element, "error_code", 0)
            continue
        topic = _topic(element)
        for partition in getattr(element, items.answered_partitions):
            yield (topic, _partition(partition)), partition.error_code


def split_request(request: Request[R], items: ItemPaths, place_of: Callable[[Item], int]) -> dict[int, Request[R]]:
    """Return the request for each broker, in one pass over the items. ``place_of`` returns the broker of an item."""
    places: dict[int, list[Any]] = {}
    for element in getattr(request, items.request) or ():
        for place, part in _parts(element, items, place_of):
            places.setdefault(place, []).append(part)
    if len(places) == 1:
        return dict.fromkeys(places, request)
    return {place: attrs.evolve(request, **{items.request: tuple(parts)}) for place, parts in places.items()}


def _parts(element: Any, items: ItemPaths, place_of: Callable[[Item], int]) -> Iterator[tuple[int, Any]]:
    """Yield the brokers of one request element, each with its part of the element."""
    if not items.partitions:
        yield place_of(_name(element, items)), element
        return
    topic = _topic(element)
    places: dict[int, list[Any]] = {}
    for partition in getattr(element, items.partitions):
        places.setdefault(place_of((topic, _partition(partition))), []).append(partition)
    for place, partitions in places.items():
        yield place, attrs.evolve(element, **{items.partitions: tuple(partitions)})


def error_codes(response: object) -> Iterator[int]:
    """Yield every error code of a response, at every depth."""
    if isinstance(response, tuple):
        for element in response:
            yield from error_codes(element)
    elif isinstance(response, Struct):
        for field in fields(type(response)):
            if field.name == "ErrorCode":
                yield getattr(response, field.attribute)
            elif field.struct is not None:
                yield from error_codes(getattr(response, field.attribute))


def merge_responses(responses: Sequence[R]) -> R:
    """Merge the responses of several brokers.

    Arrays are concatenated; elements with the same topic or node are merged. The result has the longest throttle time
    (ms) and the first error.
    """
    first, *rest = responses
    return _merged(first, rest) if rest else first


def _merged(first: Any, rest: Sequence[Any]) -> Any:
    changes = {}
    for field in fields(type(first)):
        values = [getattr(each, field.attribute) for each in (first, *rest)]
        if field.is_array:
            arrays = [value for value in values if value is not None]
            changes[field.attribute] = _joined(arrays) if arrays else None
        elif field.name == "ThrottleTimeMs":
            changes[field.attribute] = max(values)
        elif field.name in ("ErrorCode", "ErrorMessage"):
            failed = next((each for each in (first, *rest) if each.error_code), first)
            changes[field.attribute] = getattr(failed, field.attribute)
    return attrs.evolve(first, **changes)


def _joined(arrays: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    together: dict[Hashable, list[Any]] = {}
    for number, element in enumerate(element for array in arrays for element in array):
        together.setdefault(_identity(element) or number, []).append(element)
    return tuple(
        _merged(first, rest) if rest and isinstance(first, Struct) else first for first, *rest in together.values()
    )


def _identity(element: object) -> Hashable:
    """Return the identity by which elements are merged, or None for an element that is never merged."""
    if not isinstance(element, Struct):
        return ("value", element)
    named = tuple(getattr(element, name) for name in _IDENTITIES if hasattr(element, name))
    return ("element", *named) if named else None


def _items_of(element: Any, items: ItemPaths) -> Iterable[Item]:
    if not items.partitions:
        return (_name(element, items),)
    topic = _topic(element)
    return [(topic, _partition(each)) for each in getattr(element, items.partitions)]


def _name(element: Any, items: ItemPaths) -> Any:
    """Return the name of a group or a transaction: an attribute of the element, or the element itself."""
    return getattr(element, items.key) if items.key and isinstance(element, Struct) else element


def _filtered(message: Any, path: str, items: ItemPaths, partitions: str, keep: Collection[Item]) -> Any:
    """Return a message whose array at ``path`` contains only the items of ``keep``."""
    elements: list[Any] = []
    for element in getattr(message, path) or ():
        if not items.partitions:
            elements += [element] if _name(element, items) in keep else []
            continue
        topic = _topic(element)
        kept = tuple(each for each in getattr(element, partitions) if (topic, _partition(each)) in keep)
        elements += [attrs.evolve(element, **{partitions: kept})] if kept else []
    return attrs.evolve(message, **{path: tuple(elements)})


def _topic(element: Any) -> str | UUID:
    """Return the name of a topic, or its id if it has no name."""
    found: str | UUID = next((value for name in _TOPIC_NAMES if (value := getattr(element, name, None))), "")
    return found


def _partition(element: Any) -> int:
    if isinstance(element, int):
        return element
    number: int = next(getattr(element, name) for name in _PARTITION_NUMBERS if hasattr(element, name))
    return number


def _topics(request: Any) -> Iterator[Any]:
    for name in ("topics", "topic_data"):
        yield from getattr(request, name, None) or ()
    for group in getattr(request, "groups", None) or ():
        yield from getattr(group, "topics", None) or ()


def _named_only(topic: Any) -> bool:
    name = getattr(topic, "name", None) or getattr(topic, "topic", None)
    return bool(name) and getattr(topic, "topic_id", None) == _NO_ID
