"""What the steps of shards share, and what a step that waits looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final

from attrs import define, field, frozen

from kafka_msgs.errors import GroupError, InternalError
from kafka_msgs.groups.api import Protocol
from kafka_msgs.groups.config import CoordinatorConfig, GroupConfig
from kafka_msgs.groups.group import Group
from kafka_msgs.groups.journal import Entry
from kafka_msgs.groups.metrics import Metrics
from kafka_msgs.groups.outcome import Batch, Marker, Outcome
from kafka_msgs.groups.profiles import Profile, Quirks
from kafka_msgs.groups.share_states import NoShareStates, ShareStates
from kafka_msgs.groups.state import Applier
from kafka_msgs.groups.timers import Clock
from kafka_msgs.groups.transaction import Transaction
from kafka_msgs.message import Message
from kafka_msgs.topics.replay import GroupKind

__all__ = ["MOVES", "Flight", "Setting", "Status", "Step"]


class Status(Enum):
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


MOVES: Final[Mapping[Status, frozenset[Status]]] = {
    Status.INITIAL: frozenset({Status.LOADING, Status.CLOSED}),
    Status.LOADING: frozenset({Status.ACTIVE, Status.FAILED, Status.CLOSED}),
    Status.ACTIVE: frozenset({Status.CLOSED}),
    Status.FAILED: frozenset({Status.LOADING, Status.CLOSED}),
    Status.CLOSED: frozenset(),
}
"""Where a shard may go from each status."""


@define(kw_only=True, eq=False)
class Setting:
    """What all shards of a coordinator share."""

    protocols: tuple[Protocol, ...]
    config: CoordinatorConfig
    profile: Profile
    quirks: Quirks
    new_id: Callable[[], str]
    append: Callable[[Batch | Marker], int]
    enqueue: Callable[[Callable[[], None]], None]
    postpone: Callable[[Callable[[], None]], None]
    clock: Clock
    outcome: Outcome = field(factory=Outcome)
    plugin: Any = None
    share_states: ShareStates = field(factory=NoShareStates)
    metrics: Metrics = field(factory=Metrics)
    group_configs: dict[str, GroupConfig] = field(factory=dict)
    default_group_config: GroupConfig = field(init=False)
    appliers: Mapping[type[Message], Applier] = field(init=False)
    simple_group: Callable[[str], Group] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.default_group_config = self.config.for_group({})
        makers = [each.simple_group for each in self.protocols if each.simple_group is not None]
        self.simple_group = makers[0] if makers else _no_group
        self.appliers = {cls: applier for each in self.protocols for cls, applier in each.appliers.items()}

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the settings of a group."""
        return self.group_configs.get(group_id, self.default_group_config)

    def hooks(self, name: str, kind: GroupKind) -> Iterable[Callable[[Transaction, Any], None]]:
        """Return what the protocols do for a group of a kind."""
        return [hook for each in self.protocols if (hook := getattr(each, name).get(kind)) is not None]


class Step:
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
class Flight:
    """A batch that is appended and not committed.

    It has the end of the log after it, the number of its changes, and who waits for it. ``returned`` has the entries
    that failed appends just before it gave back.
    """

    end: int
    changes: int
    waiting: list[Step]
    returned: list[Entry]


def _no_group(group_id: str) -> Group:
    raise InternalError(reason="no protocol makes groups for offsets alone")
