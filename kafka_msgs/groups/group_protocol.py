"""The definition of a protocol as table rows, which ``coordinator.PROTOCOLS`` collects.

A protocol package has one value ``PROTOCOL``: its apis, the appliers of its records, and its hooks for loaded and
unloaded partitions and for topic changes. ``SingleGroupApi`` defines an api about one group, and ``MultiGroupApi`` an
api about a list of groups, or about all groups.

Example of an api::

    SingleGroupApi(request=HeartbeatRequest, handle=heartbeat)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from attrs import field, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.group_operation import GroupServices
from kafka_msgs.groups.operation import OperationContext, ShardState
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch
from kafka_msgs.groups.runtime.undo_log import Applier, Changes
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.internal_topics.replay import GroupKind
from kafka_msgs.message import Message, Request, Response
from kafka_msgs.wire.error_responses import error_response

__all__ = [
    "Api",
    "GroupHooks",
    "GroupProtocol",
    "MultiGroupApi",
    "SingleGroupApi",
    "TopicChange",
    "accept_any",
    "check_group_id",
    "client_error_for",
    "describe_api",
]

Req = TypeVar("Req", bound=Request[Any])
Res = TypeVar("Res", bound=Response)
Item = TypeVar("Item")

GroupHook: TypeAlias = Callable[[OperationContext, Any], None]
"""A hook of a protocol for one group of its kind, called within an operation."""
GroupHooks: TypeAlias = Mapping[GroupKind, GroupHook]


def accept_any(services: GroupServices, context: RequestContext, request: Any) -> None:
    """Accept each request."""


def check_group_id(services: GroupServices, context: RequestContext, request: Any) -> None:
    """Refuse an empty group id with INVALID_GROUP_ID, as most apis do."""
    if not request.group_id:
        raise GroupError(ErrorCode.INVALID_GROUP_ID)


def _refuse(request: Any, error: GroupError, version: int) -> Any:
    return error_response(request, error.error, version, error_message=error.message)


@frozen(kw_only=True)
class SingleGroupApi(Generic[Req, Res]):
    """An api about one group, which the request names.

    ``check`` raises ``GroupError`` for an invalid request. ``handle`` is the handler. ``refuse`` builds the response
    for an error, at a version; by default it has the error wherever the response has one. ``producer`` returns the
    producer of the transaction that the records of the request belong to.
    """

    request: type[Req]
    handle: Callable[[OperationContext, RequestContext, Req], Res | Future[Res]]
    refuse: Callable[[Req, GroupError, int], Res] = _refuse
    check: Callable[[GroupServices, RequestContext, Req], None] = check_group_id
    producer: Callable[[Req], ProducerIdAndEpoch] | None = None


@frozen(kw_only=True)
class MultiGroupApi(Generic[Req, Res, Item]):
    """An api about several groups, which may be in several partitions.

    ``groups`` returns the items of the request, each with the name of its group. None means that the request goes to
    all partitions. ``handle`` returns the response items for the request items of one partition. A request that
    ``is_read_only`` reads the state as of the last committed record, and emits no records. ``refuse`` builds the
    response item for a request item and an error. An item with the group name None is refused with INVALID_GROUP_ID.
    ``respond`` builds the response from all response items. With ``one_operation_each``, each request item is a
    separate operation, in the order of the request; otherwise the items of a partition are one operation.
    """

    request: type[Req]
    groups: Callable[[Req, int], Iterable[tuple[str | None, Any]]] | None
    handle: Callable[[OperationContext, RequestContext, Req, Sequence[Any]], Sequence[Item] | Future[Sequence[Item]]]
    refuse: Callable[[Any, GroupError, int], Item]
    respond: Callable[[Req, Sequence[Item], int], Res]
    is_read_only: Callable[[Req], bool] = lambda request: True
    one_operation_each: bool = False


_OF_ONE_GROUP: Final = (
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
)
"""Errors of one group of a description request. Any other error applies to all groups of the request."""


def describe_api(
    request: type[Any],
    cls: type[Any],
    describe: Callable[[OperationContext, Any, str], Any],
    refuse: Callable[[str, GroupError, int], Any] | None = None,
) -> MultiGroupApi[Any, Any, Any]:
    """Return an api that describes groups of one kind.

    ``describe`` returns the description of a group, of the class ``cls``, or raises ``GroupError``. ``refuse`` returns
    the description for an error of all groups of a partition.
    """

    def with_error(group_id: str, error: GroupError, version: int) -> Any:
        return cls(group_id=group_id, error_code=error.error, error_message=error.message)

    def handle(op: OperationContext, context: RequestContext, asked: Any, group_ids: Sequence[str]) -> list[Any]:
        described = []
        for group_id in group_ids:
            try:
                described.append(describe(op, asked, group_id))
            except GroupError as error:
                if error.error not in _OF_ONE_GROUP:
                    raise
                described.append(with_error(group_id, error, context.version))
        return described

    return MultiGroupApi(
        request=request,
        groups=lambda request, version: ((group_id or None, group_id) for group_id in request.group_ids),
        handle=handle,
        refuse=refuse or with_error,
        respond=lambda request, groups, version: request.response_class()(groups=tuple(groups)),
    )


Api: TypeAlias = SingleGroupApi[Any, Any] | MultiGroupApi[Any, Any, Any]


class TopicChange(NamedTuple):
    """A change of the cluster's topics: the images, and the names of created, changed and deleted topics."""

    before: TopicsImage
    after: TopicsImage
    created: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]

    @classmethod
    def between(cls, before: TopicsImage, after: TopicsImage, names: Iterable[str] | None = None) -> TopicChange:
        """Return the change from one image to another. A topic with a new id counts as deleted and created.

        ``names`` are the topics that may differ. Without them all topics are compared.
        """
        compared = {**after.topics, **before.topics} if names is None else dict.fromkeys(names)
        old, new = ({name: each.topics[name] for name in compared if name in each.topics} for each in (before, after))
        kept = {name for name, topic in new.items() if name in old and old[name].id == topic.id}
        return cls(
            before,
            after,
            created=tuple(name for name in new if name not in kept),
            changed=tuple(name for name in new if name in kept and old[name] != new[name]),
            deleted=tuple(name for name in old if name not in kept),
        )


@frozen(kw_only=True)
class GroupProtocol:
    """The definition of a protocol for the coordinator.

    ``appliers`` has the applier of each key class. ``apply_end_transaction`` applies the end of a transaction to the
    state: it gets the state, the changes, the producer id, and whether the transaction committed.

    ``on_loaded`` and ``on_unloaded`` are called for each group of the kind when a partition was loaded, and when the
    coordinator resigns from it. ``on_started`` is called when all groups of the partition are loaded.

    ``on_image_changed`` is called in each partition after the topics changed, and after it was loaded. Then
    ``on_topics_changed`` is called for each group of the kind that subscribes to a changed or deleted topic.
    ``on_topics_deleted`` runs as a separate operation after topics were deleted. ``on_topic_creation_failed`` runs as
    an operation with a group id and a reason, if the broker could not create the topics that a reply requested.
    ``cleanup`` runs periodically, as a separate operation in each partition, if the coordinator has a plugin.
    """

    apis: tuple[Api, ...] = ()
    appliers: Mapping[type[Message], Applier] = field(factory=dict)
    apply_end_transaction: Callable[[ShardState, Changes, int, bool], None] | None = None
    on_loaded: GroupHooks = field(factory=dict)
    on_unloaded: GroupHooks = field(factory=dict)
    on_started: tuple[Callable[[OperationContext], None], ...] = ()
    on_image_changed: tuple[Callable[[OperationContext, TopicChange], None], ...] = ()
    on_topics_changed: GroupHooks = field(factory=dict)
    on_topics_deleted: tuple[Callable[[OperationContext, TopicChange], None], ...] = ()
    on_topic_creation_failed: Callable[[OperationContext, str, str], None] | None = None
    cleanup: Callable[[OperationContext], None] | None = None


_OPERATION_ERRORS: Final[Mapping[int, ErrorCode]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Errors of the log, mapped to errors for clients (Kafka's ``CoordinatorOperationExceptionHelper``)."""


def client_error_for(error: ApiError) -> GroupError:
    """Return the client error for an error of an operation."""
    mapped = _OPERATION_ERRORS.get(error.error)
    if mapped is not None:
        return GroupError(mapped)
    return error if isinstance(error, GroupError) else GroupError(error.error, error.message)
