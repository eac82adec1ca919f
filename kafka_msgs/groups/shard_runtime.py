"""What the steps of shards share, and what a step that waits looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from attrs import define, field, frozen

from kafka_msgs.errors import GroupError, InternalError
from kafka_msgs.groups.config import CoordinatorConfig, GroupConfig
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
    """What a shard is doing."""

    INITIAL = "Initial"
    """The shard exists, and nobody has elected it."""
    LOADING = "Loading"
    """The records of the partition are being read."""
    ACTIVE = "Active"
    """Requests are served."""
    FAILED = "Failed"
    """The records could not be read. A later election tries again."""
    CLOSED = "Closed"
    """The partition was given up."""


VALID_TRANSITIONS: Final[Mapping[CoordinatorState, frozenset[CoordinatorState]]] = {
    CoordinatorState.INITIAL: frozenset({CoordinatorState.LOADING, CoordinatorState.CLOSED}),
    CoordinatorState.LOADING: frozenset({CoordinatorState.ACTIVE, CoordinatorState.FAILED, CoordinatorState.CLOSED}),
    CoordinatorState.ACTIVE: frozenset({CoordinatorState.CLOSED}),
    CoordinatorState.FAILED: frozenset({CoordinatorState.LOADING, CoordinatorState.CLOSED}),
    CoordinatorState.CLOSED: frozenset(),
}
"""Where a shard may go from each status."""


@define(kw_only=True, eq=False)
class ShardRuntime:
    """What all shards of a coordinator share."""

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
    default_group_config: GroupConfig = field(init=False)
    appliers: Mapping[type[Message], Applier] = field(init=False)
    simple_group: Callable[[str], Group] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.default_group_config = self.config.for_group({})
        makers = [each.new_simple_group for each in self.protocols if each.new_simple_group is not None]
        self.simple_group = makers[0] if makers else _no_group
        self.appliers = {cls: applier for each in self.protocols for cls, applier in each.appliers.items()}

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the settings of a group."""
        return self.group_configs.get(group_id, self.default_group_config)

    def hooks_of(self, hooks: Callable[[GroupProtocol], GroupHooks], kind: GroupKind) -> list[GroupHook]:
        """Return the hooks that the protocols have for a kind of group."""
        return [hook for each in self.protocols if (hook := hooks(each).get(kind)) is not None]


class DeferredWrite:
    """A step whose records are not committed yet, or that waits for the records of earlier steps."""

    __slots__ = ("_done", "arrival", "callbacks", "completed", "deadline", "value")

    def __init__(self, done: Callable[[Any, GroupError | None], None]) -> None:
        self._done = done
        self.value: Any = None
        self.callbacks: list[Callable[[GroupError | None], None]] = []
        self.completed = False
        self.deadline = 0
        self.arrival = 0

    def complete(self, error: GroupError | None) -> None:
        """Call what waits for the step, once."""
        if not self.completed:
            self.completed = True
            for callback in self.callbacks:
                callback(error)
            self._done(self.value, error)


@frozen
class UncommittedBatch:
    """A batch that is appended and not committed.

    It has the end of the log after it, the number of its changes, and who waits for it. ``reverted_entries`` has the
    entries that failed appends just before it gave back.
    """

    end: int
    changes: int
    waiting: list[DeferredWrite]
    reverted_entries: list[TableEntry]


def _no_group(group_id: str) -> Group:
    raise InternalError(reason="no protocol makes groups for offsets alone")
