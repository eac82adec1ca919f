"""Routing of a request to the shards of its groups, and of the results into one response.

This module maps the errors of shards to client errors. A request about one group is one operation of one shard. A
request about several groups is one operation, or one read, in each of their shards. Its response is sent when all
shards have responded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from attrs import define

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.group_operation import GroupServices
from kafka_msgs.groups.group_protocol import MultiGroupApi, SingleGroupApi, client_error_for
from kafka_msgs.groups.operation import OperationContext, ShardState
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.shard import NO_TRANSACTION, Shard

__all__ = ["ReplyCallback", "handle_multi", "handle_single"]


class ShardLocator(Protocol):
    """Finds the shards of groups."""

    services: GroupServices
    shards: dict[int, Shard[ShardState, OperationContext]]

    def partition_for(self, group_id: str) -> int: ...


class ReplyCallback(Protocol):
    """Receives the response to a request, and the topics that the broker must create."""

    def __call__(self, response: Any, creates: Sequence[Any] = (), /) -> None: ...


def handle_single(
    shards: ShardLocator, api: SingleGroupApi[Any, Any], request: Any, context: RequestContext, answer: ReplyCallback
) -> None:
    """Handle a request about one group."""
    try:
        api.check(shards.services, context, request)
        shard = _shard(shards, shards.partition_for(request.group_id))
    except GroupError as error:
        answer(api.refuse(request, error, context.version))
        return
    step = _OneStep(api, request, context, answer)
    producer = NO_TRANSACTION if api.producer is None else api.producer(request)
    shard.write(step.run, step.done, producer, step.settled)


@define(eq=False)
class _OneStep:
    """The operation of a request about one group."""

    api: SingleGroupApi[Any, Any]
    request: Any
    context: RequestContext
    answer: ReplyCallback
    creates: Sequence[Any] = ()

    def run(self, op: OperationContext) -> Any:
        self.creates = op.topics_to_create
        return self.api.handle(op, self.context, self.request)

    def done(self, value: Any, error: ApiError | None) -> None:
        """Handle the result: the records are committed, or the operation failed."""
        if not isinstance(value, Future):
            self._give(value, error)
        elif error is not None:
            value.fail(error)

    def settled(self, promise: Future[Any]) -> None:
        """Respond with the result of the operation's settled future."""
        self._give(promise.value, promise.error)

    def _give(self, value: Any, error: ApiError | None) -> None:
        if error is None:
            self.answer(value, self.creates)
        else:
            self.answer(self.api.refuse(self.request, client_error_for(error), self.context.version))


def handle_multi(
    shards: ShardLocator,
    api: MultiGroupApi[Any, Any, Any],
    request: Any,
    context: RequestContext,
    answer: ReplyCallback,
) -> None:
    """Handle a request about several groups, or about all groups."""
    parts = _parts(shards, api, request, context)
    items: dict[int, Sequence[Any]] = {}

    def give(index: int, part: Sequence[Any]) -> None:
        items[index] = part
        if len(items) == len(parts):
            answer(api.respond(request, [item for each in range(len(parts)) for item in items[each]], context.version))

    if not parts:
        answer(api.respond(request, (), context.version))
    for index, (partition, questions) in enumerate(parts):
        _Part(api, request, context, questions, partial(give, index)).ask(shards, partition)


def _parts(
    shards: ShardLocator, api: MultiGroupApi[Any, Any, Any], request: Any, context: RequestContext
) -> list[tuple[int | None, list[Any]]]:
    """The items of the request, grouped by the partition that handles them. It is None for items without a group."""
    if api.groups is None:
        return [(partition, [request]) for partition in shards.shards]
    if api.one_operation_each:
        asked = api.groups(request, context.version)
        return [(None if name is None else shards.partition_for(name), [question]) for name, question in asked]
    nameless: list[tuple[int | None, list[Any]]] = []
    by_partition: dict[int | None, list[Any]] = {}
    for group_id, question in api.groups(request, context.version):
        if group_id is None:
            nameless.append((None, [question]))
        else:
            by_partition.setdefault(shards.partition_for(group_id), []).append(question)
    return [*nameless, *by_partition.items()]


@define(eq=False)
class _Part:
    """The request items for one partition."""

    api: MultiGroupApi[Any, Any, Any]
    request: Any
    context: RequestContext
    questions: list[Any]
    give: Callable[[Sequence[Any]], None]

    def ask(self, shards: ShardLocator, partition: int | None) -> None:
        """Run the items in a shard. ``give`` is called with the response items, now or later."""
        try:
            if partition is None:
                raise GroupError(ErrorCode.INVALID_GROUP_ID)
            shard = _shard(shards, partition)
            if not self.api.is_read_only(self.request):
                shard.write(self._run, self._done)
                return
            value = shard.read(self._run)
        except ApiError as error:
            self._done(None, error)
        else:
            self._done(value, None)

    def _run(self, op: OperationContext) -> Any:
        return self.api.handle(op, self.context, self.request, self.questions)

    def _done(self, value: Any, error: ApiError | None) -> None:
        if error is not None:
            self.give(list(self._refusals(error)))
        elif isinstance(value, Future):
            value.add_done_callback(lambda promise: self._done(promise.value, promise.error))
        else:
            self.give(value)

    def _refusals(self, error: ApiError) -> Iterator[Any]:
        for question in self.questions:
            yield self.api.refuse(question, client_error_for(error), self.context.version)


def _shard(shards: ShardLocator, partition: int) -> Shard[ShardState, OperationContext]:
    shard = shards.shards.get(partition)
    if shard is None:
        raise GroupError(ErrorCode.NOT_COORDINATOR)
    return shard
