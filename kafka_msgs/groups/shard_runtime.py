"""The state that shards share, and the deferred writes of a shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from attrs import define, field, frozen

from kafka_msgs.errors import GroupError, InternalError
from kafka_msgs.groups.config import CoordinatorConfig, ForcedTarget, GroupConfig
from kafka_msgs.groups.coordinator_timer import TimerClock
from kafka_msgs.groups.group import Group
from kafka_msgs.groups.group_protocol import GroupHook, GroupHooks, GroupProtocol
from kafka_msgs.groups.metrics import Metrics
from kafka_msgs.groups.output import CoordinatorOutput, MarkerAppend, RecordAppend
from kafka_msgs.groups.profiles import Profile, Quirks
from kafka_msgs.groups.shard_state import Applier
from kafka_msgs.groups.share_persister import NoOpSharePersister, SharePersister
from kafka_msgs.groups.undo_log import TableEntry
from kafka_msgs.internal_topics.replay import GroupKind
from kafka_msgs.message import Message

__all__ = ["VALID_TRANSITIONS", "CoordinatorState", "DeferredWrite", "ShardRuntime", "UncommittedBatch"]


class CoordinatorState(Enum):
    """The state of a shard."""

    INITIAL = "Initial"
    """The shard exists, but has not been elected."""
    LOADING = "Loading"
    """The shard is loading the records of the partition."""
    ACTIVE = "Active"
    """The shard serves requests."""
    FAILED = "Failed"
    """The records could not be loaded. A later election tries again."""
    CLOSED = "Closed"
    """The shard has resigned from the partition."""


VALID_TRANSITIONS: Final[Mapping[CoordinatorState, frozenset[CoordinatorState]]] = {
    CoordinatorState.INITIAL: frozenset({CoordinatorState.LOADING, CoordinatorState.CLOSED}),
    CoordinatorState.LOADING: frozenset({CoordinatorState.ACTIVE, CoordinatorState.FAILED, CoordinatorState.CLOSED}),
    CoordinatorState.ACTIVE: frozenset({CoordinatorState.CLOSED}),
    CoordinatorState.FAILED: frozenset({CoordinatorState.LOADING, CoordinatorState.CLOSED}),
    CoordinatorState.CLOSED: frozenset(),
}
"""The valid transitions from each state of a shard."""


@define(kw_only=True, eq=False)
class ShardRuntime:
    """The runtime that all shards of a coordinator share."""

    protocols: tuple[GroupProtocol, ...]
    config: CoordinatorConfig
    profile: Profile
    quirks: Quirks
    new_id: Callable[[], str]
    append: Callable[[RecordAppend | MarkerAppend], int]
    enqueue: Callable[[Callable[[], None]], None]
    postpone: Callable[[Callable[[], None]], None]
    clock: TimerClock
    outcome: CoordinatorOutput = field(factory=CoordinatorOutput)
    plugin: Any = None
    share_states: SharePersister = field(factory=NoOpSharePersister)
    metrics: Metrics = field(factory=Metrics)
    group_configs: dict[str, GroupConfig] = field(factory=dict)
    forced_targets: Mapping[str, ForcedTarget] = field(factory=dict)
    default_group_config: GroupConfig = field(init=False)
    appliers: Mapping[type[Message], Applier] = field(init=False)
    simple_group: Callable[[str], Group] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.default_group_config = self.config.for_group({})
        makers = [each.new_simple_group for each in self.protocols if each.new_simple_group is not None]
        self.simple_group = makers[0] if makers else _no_group
        self.appliers = {cls: applier for each in self.protocols for cls, applier in each.appliers.items()}

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the config of a group."""
        return self.group_configs.get(group_id, self.default_group_config)

    def hooks_of(self, hooks: Callable[[GroupProtocol], GroupHooks], kind: GroupKind) -> list[GroupHook]:
        """Return the hooks of all protocols for a kind of group."""
        return [hook for each in self.protocols if (hook := hooks(each).get(kind)) is not None]


class DeferredWrite:
    """An operation whose records are not committed yet, or that waits for the records of earlier operations."""

    __slots__ = ("_done", "arrival", "callbacks", "completed", "deadline", "value")

    def __init__(self, done: Callable[[Any, GroupError | None], None]) -> None:
        self._done = done
        self.value: Any = None
        self.callbacks: list[Callable[[GroupError | None], None]] = []
        self.completed = False
        self.deadline = 0
        self.arrival = 0

    def complete(self, error: GroupError | None) -> None:
        """Complete the operation and call its callbacks, once."""
        if not self.completed:
            self.completed = True
            for callback in self.callbacks:
                callback(error)
            self._done(self.value, error)


@frozen
class UncommittedBatch:
    """A batch that is appended and not committed.

    ``end`` is the end of the log after it, ``changes`` is the number of its changes, and ``waiting`` has the operations
    that wait for it. ``reverted_entries`` has the entries that immediately preceding failed appends restored.
    """

    end: int
    changes: int
    waiting: list[DeferredWrite]
    reverted_entries: list[TableEntry]


def _no_group(group_id: str) -> Group:
    raise InternalError(reason="no protocol makes groups for offsets alone")
