"""The group coordinator of a broker: it routes requests to shards, collects their responses, and runs timers.

``GroupCoordinator`` has no socket, clock or thread. Its caller passes requests, the current time, and changes of its
partitions, and receives a ``CoordinatorOutput`` from each call. The ``append`` callback writes records. This module
corresponds to Kafka's ``GroupCoordinatorService``; ``shard`` implements the operations on one partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from random import random
from typing import Any, Final
from uuid import uuid4

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError, InternalError
from kafka_msgs.groups.config import CoordinatorConfig, ForcedTarget, GroupConfig
from kafka_msgs.groups.coordinator_timer import Timer, TimerClock
from kafka_msgs.groups.group_protocol import (
    Api,
    GroupProtocol,
    ProducerIdAndEpoch,
    RequestValidation,
    SingleGroupApi,
    TopicChange,
)
from kafka_msgs.groups.metrics import Metrics
from kafka_msgs.groups.output import BackgroundTask, CoordinatorOutput, MarkerAppend, RecordAppend, Reply
from kafka_msgs.groups.profiles import SHIPPED, Profile, Quirks
from kafka_msgs.groups.protocols import PROTOCOLS
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.request_routing import ReplyCallback, handle_multi, handle_single
from kafka_msgs.groups.shard import Shard
from kafka_msgs.groups.shard_runtime import CoordinatorState, DeferredWrite, ShardRuntime
from kafka_msgs.groups.share_persister import NoOpSharePersister, SharePersister
from kafka_msgs.groups.streams.description_plugin import DescriptionRequests, TopologyDescriptionPlugin
from kafka_msgs.groups.timeline_map import java_hash_code
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, TopicsImage
from kafka_msgs.internal_topics.records import InternalRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.message import Message, Request

__all__ = ["GroupCoordinator"]

_INT32_MIN: Final = -(2**31)


class GroupCoordinator:
    """The coordinator of the groups in its partitions.

    ``append`` appends a batch or a marker to its partition, and returns the offset after it. It raises ``GroupError``
    if the append fails. The caller reports committed records with ``committed``, which ``append`` may call itself.
    ``new_id`` generates the ids of new members. ``plugin`` stores topology descriptions (KIP-1331), and ``random``
    returns numbers from 0 to 1 for its back-off. ``share_states`` stores the state of share partitions. Without it,
    requests of share groups to it always succeed. ``forced_targets`` has the consumer groups whose target assignment a
    test chooses; the mapping may change at any time.

    Each method that takes ``now``, the time in milliseconds, returns its output.
    """

    def __init__(
        self,
        append: Callable[[RecordAppend | MarkerAppend], int],
        *,
        config: CoordinatorConfig | None = None,
        profile: Profile = SHIPPED,
        quirks: Quirks | None = None,
        new_id: Callable[[], str] = lambda: str(uuid4()),
        plugin: TopologyDescriptionPlugin | None = None,
        share_states: SharePersister | None = None,
        forced_targets: Mapping[str, ForcedTarget] | None = None,
        random: Callable[[], float] = random,
        protocols: tuple[GroupProtocol, ...] = PROTOCOLS,
    ) -> None:
        self.config = config or CoordinatorConfig()
        self.metrics = Metrics()
        self.image = EMPTY_IMAGE
        self.shards: dict[int, Shard] = {}
        self._resigned_shards: list[Shard] = []
        self._events: deque[Callable[[], None]] = deque()
        self._next_tick_events: deque[tuple[int, int, Callable[[], None]]] = deque()
        self._clock = TimerClock()
        self._cleanup: tuple[int, int] | None = None
        descriptions = None if plugin is None else DescriptionRequests(plugin, random)
        self.validation = RequestValidation(config=self.config, profile=profile, plugin=descriptions)
        self._runtime = ShardRuntime(
            protocols=protocols,
            config=self.config,
            profile=profile,
            quirks=quirks or Quirks(),
            new_id=new_id,
            append=append,
            enqueue=self._events.append,
            postpone=self._postpone,
            clock=self._clock,
            plugin=descriptions,
            share_states=share_states or NoOpSharePersister(),
            forced_targets={} if forced_targets is None else forced_targets,
            metrics=self.metrics,
        )
        self._apis: Mapping[type[Message], Api] = {api.request: api for each in protocols for api in each.apis}

    @property
    def requests(self) -> frozenset[type[Message]]:
        """The classes of the requests that ``handle`` supports."""
        return frozenset(self._apis)

    def partition_for(self, group_id: str) -> int:
        """Return the partition of ``__consumer_offsets`` that stores a group."""
        code = java_hash_code(group_id)
        return (0 if code == _INT32_MIN else abs(code)) % self.config.offsets_topic_num_partitions

    # Requests

    def handle(
        self, request: Request[Any], context: RequestContext, *, now: int, opaque: Any = None
    ) -> CoordinatorOutput:
        """Handle a request. The reply, which may come later, carries ``opaque``.

        Raises ``InternalError`` for a request that group coordinators do not handle.
        """
        api = self._apis.get(type(request))
        if api is None:
            raise InternalError(reason=f"{request.INFO.name} is not a request to a group coordinator")
        self._clock.now = now
        if isinstance(api, SingleGroupApi):
            handle_single(self, api, request, context, self._reply_callback(opaque))
        else:
            handle_multi(self, api, request, context, self._reply_callback(opaque))
        return self._take_output()

    def _reply_callback(self, opaque: Any) -> ReplyCallback:
        runtime = self._runtime

        def answer(response: Any, creates: Sequence[Any] = ()) -> None:
            runtime.outcome.answers.append(Reply(opaque=opaque, response=response, topics_to_create=tuple(creates)))

        return answer

    # Time, and background tasks

    @property
    def next_timer(self) -> int | None:
        """The time, in milliseconds, at which the next ``tick`` is due, or None if no timer is scheduled."""
        due = self._next_due()
        return None if due is None else due[0]

    def pending_timers(self) -> list[tuple[str, int]]:
        """Return the key and the deadline in ms of each scheduled timer, in the order of the deadlines."""
        timers = sorted(timer for shard in self._timed() for timer in shard.timers.pending())
        return [(key, deadline) for deadline, _, key in timers]

    def _timed(self) -> Iterator[Shard]:
        """The shards that may have timers, including resigned shards with the quirk ``timers_outlive_leadership``."""
        self._resigned_shards = [shard for shard in self._resigned_shards if shard.next_deadline() is not None]
        yield from self.shards.values()
        yield from self._resigned_shards

    def tick(self, now: int) -> CoordinatorOutput:
        """Run all timers that are due at ``now``, each with its own deadline as the time."""
        while (due := self._next_due()) is not None and due[0] <= now:
            deadline, _, run = due
            self._clock.now = max(self._clock.now, deadline)
            run()
            self._run()
        self._clock.now = max(self._clock.now, now)
        return self._take_output()

    def _next_due(self) -> tuple[int, int, Callable[[], None]] | None:
        """The next due event: its time, its order among events of the same time, and its callback."""
        due: list[tuple[int, int, Callable[[], None]]] = []
        if self._cleanup is not None:
            due.append((*self._cleanup, self._clean_up))
        if self._next_tick_events:
            due.append((*self._next_tick_events[0][:2], self._run_later))
        for shard in self._timed():
            if (first := shard.next_deadline()) is not None:
                due.append((*first[:2], partial(self._fire, shard, first[2])))
        return min(due, key=lambda each: each[:2], default=None)

    def _fire(self, shard: Shard, due: Timer | DeferredWrite) -> None:
        serving = self.shards.get(shard.partition, shard)
        shard.fire(due, replaced=serving is not shard and serving.status is CoordinatorState.ACTIVE)

    def _postpone(self, event: Callable[[], None]) -> None:
        """Run an event as Kafka's timer without a delay: after all current work, even if the leader has changed."""
        self._next_tick_events.append((self._clock.now, self._clock.arrive(), event))

    def _run_later(self) -> None:
        self._next_tick_events.popleft()[2]()

    def _clean_up(self) -> None:
        """Run the cleanup of all protocols in all partitions, and schedule the next one."""
        for shard in self.shards.values():
            shard.clean_up()
        self._plan_cleanup()

    def _plan_cleanup(self) -> None:
        moment = self._clock.now + self.config.offsets_retention_check_interval_ms
        self._cleanup = (moment, self._clock.arrive())

    def shift_timers(self, ms: int) -> None:
        """Follow a clock that jumps by ``ms``. Timers keep their remaining time; only ages change."""
        self._clock.now += ms
        self._next_tick_events = deque((moment + ms, order, event) for moment, order, event in self._next_tick_events)
        if self._cleanup is not None:
            self._cleanup = self._cleanup[0] + ms, self._cleanup[1]
        for shard in self._timed():
            shard.shift(ms)

    def complete_background_task(
        self, work: BackgroundTask, value: Any, error: Exception | None, *, now: int
    ) -> CoordinatorOutput:
        """Accept the result of a background task: its value, or the exception that it raised."""
        self._clock.now = now
        shard = self.shards.get(work.partition)
        if shard is not None:
            shard.finish_work(work, value, error)
        return self._take_output()

    # Partitions

    def elect(self, partition: int, epoch: int, *, now: int) -> bool:
        """Become the leader of a partition at a leader epoch. Return whether the partition must be loaded.

        Until ``loaded`` is called, requests to the partition fail with COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._clock.now = now
        if self._cleanup is None and self.validation.plugin is not None:
            self._plan_cleanup()
        shard = self.shards.get(partition)
        if shard is None:
            shard = self.shards[partition] = Shard(partition, self._runtime, self.image)
        return shard.elect(epoch)

    def load(self, partition: int, records: Iterable[InternalRecord | TransactionEnd]) -> None:
        """Load records of a partition, in order. The caller may split them over any number of calls."""
        self.shards[partition].load(records)

    def loaded(self, partition: int, end: int = 0, *, now: int) -> CoordinatorOutput:
        """Finish loading a partition. ``end`` is the offset after the last record of the log."""
        self._clock.now = now
        shard = self.shards[partition]
        shard.image = self.image
        shard.loaded(end)
        return self._take_output()

    def load_failed(self, partition: int, *, now: int) -> CoordinatorOutput:
        """Record that the log of a partition could not be read. Its requests fail with NOT_COORDINATOR."""
        self._clock.now = now
        self.shards[partition].load_failed()
        return self._take_output()

    def resign(self, partition: int, epoch: int | None, *, now: int) -> CoordinatorOutput:
        """Resign from a partition whose leadership moved at an epoch. None means at any epoch."""
        self._clock.now = now
        shard = self.shards.get(partition)
        if shard is not None and shard.resign(epoch):
            self._resigned_shards.append(self.shards.pop(partition))
        return self._take_output()

    def committed(self, partition: int, offset: int, *, now: int | None = None) -> CoordinatorOutput:
        """Record that the records of a partition before ``offset`` are committed.

        ``append`` may call this without ``now``. The output is then part of the current call's output.
        """
        shard = self.shards.get(partition)
        if shard is not None:
            self._events.appendleft(lambda: shard.commit(offset))
        if now is None:
            return CoordinatorOutput()
        self._clock.now = now
        return self._take_output()

    def end_transaction(
        self, partition: int, producer: ProducerIdAndEpoch, committed: bool, *, now: int, opaque: Any
    ) -> CoordinatorOutput:
        """End a transaction in a partition, by commit or by abort.

        The reply has ``opaque``, and the error code as its response.
        """
        self._clock.now = now

        answer = self._reply_callback(opaque)

        def done(value: Any, error: GroupError | None) -> None:
            answer(ErrorCode.NONE if error is None else error.error)

        shard = self.shards.get(partition)
        if shard is None:
            done(None, GroupError(error=ErrorCode.NOT_COORDINATOR))
        else:
            shard.end_transaction(producer, committed, done)
        return self._take_output()

    # The cluster

    def set_image(self, image: TopicsImage, *, now: int, names: Iterable[str] | None = None) -> CoordinatorOutput:
        """Set the topics of the cluster. ``names`` are the topics that may have changed; None compares all topics."""
        return self.change_image(TopicChange.between(self.image, image, names), now=now)

    def change_image(self, change: TopicChange, *, now: int) -> CoordinatorOutput:
        """Apply a change of the cluster's topics, whose names are in an order of the caller's choice."""
        self._clock.now = now
        self.image = change.after
        for shard in self.shards.values():
            shard.change_image(change)
        if change.deleted:
            for shard in self.shards.values():
                shard.delete_topics(change)
        return self._take_output()

    def creation_failed(self, group_id: str, reason: str, *, now: int) -> CoordinatorOutput:
        """Record why the broker could not create requested topics. The page profile reports it to the members."""
        self._clock.now = now
        shard = self.shards.get(self.partition_for(group_id))
        if shard is not None:
            shard.creation_failed(group_id, reason)
        return self._take_output()

    def update_group_config(self, group_id: str, own: Mapping[str, str]) -> None:
        """Set the configs of a group, by Kafka's names. An empty mapping restores the defaults.

        Raises ``OptionError`` for an unknown name and for a value that cannot be parsed.
        """
        if own:
            self._runtime.group_configs[group_id] = self.config.for_group(own)
        else:
            self._runtime.group_configs.pop(group_id, None)

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the config of a group."""
        return self._runtime.group_config(group_id)

    # Operations

    def _run(self) -> None:
        events = self._events
        while events:
            events.popleft()()

    def _take_output(self) -> CoordinatorOutput:
        """Run pending events, and return the output."""
        self._run()
        outcome, self._runtime.outcome = self._runtime.outcome, CoordinatorOutput()
        outcome.scheduled, self._clock.scheduled = self._clock.scheduled, outcome.scheduled
        return outcome
