"""Invariants of groups with epochs, derived from the records that their coordinator writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from attrs import Factory, define

from tests.coordinator.oracle import Result

__all__ = ["Part", "Watch"]

Part: TypeAlias = tuple[str, int]
"""A partition of a topic, or a task. Only one member at a time may own it."""


def _partitions(value: Mapping[str, Any]) -> Iterator[Part]:
    for field in ("assignedPartitions", "partitionsPendingRevocation"):
        for entry in value[field]:
            yield from ((entry["topicId"], number) for number in entry["partitions"])


def _active_tasks(value: Mapping[str, Any]) -> Iterator[Part]:
    for field in ("activeTasks", "activeTasksPendingRevocation"):
        for entry in value[field]:
            yield from ((entry["subtopologyId"], number) for number in entry["partitions"])


_OWNED: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterable[Part]]]] = {
    "ConsumerGroupCurrentMemberAssignment": _partitions,
    "StreamsGroupCurrentMemberAssignment": _active_tasks,
}
_EPOCHS: Final = {
    "ConsumerGroupMetadata": "epoch",
    "StreamsGroupMetadata": "epoch",
    "ConsumerGroupTargetAssignmentMetadata": "assignmentEpoch",
    "StreamsGroupTargetAssignmentMetadata": "assignmentEpoch",
}


@define
class Watch:
    """Follows records and raises ``AssertionError`` if they break an invariant."""

    owned: dict[tuple[str, str], frozenset[Part]] = Factory(dict)
    """The partitions or tasks that each member owns or still has to revoke, by group and member."""
    epochs: dict[tuple[str, str], int] = Factory(dict)
    """Epochs by record type and group."""

    def see(self, result: Result) -> None:
        """Process the records of one command, then check the invariants."""
        for record in result.get("records", ()):
            if record.get("type") in _OWNED:
                self._see_owned(record)
            elif record.get("type") in _EPOCHS:
                self._see_epoch(record)
        self._check_owners()

    def _see_owned(self, record: Mapping[str, Any]) -> None:
        member = (record["key"]["groupId"], record["key"]["memberId"])
        if record["value"] is None:
            self.owned.pop(member, None)
        else:
            self.owned[member] = frozenset(_OWNED[record["type"]](record["value"]))

    def _see_epoch(self, record: Mapping[str, Any]) -> None:
        key = (record["type"], record["key"]["groupId"])
        if record["value"] is None:
            self.epochs.pop(key, None)
            return
        epoch = record["value"][_EPOCHS[record["type"]]]
        assert epoch >= self.epochs.get(key, 0), f"{key} fell from {self.epochs[key]} to {epoch}"
        self.epochs[key] = epoch

    def _check_owners(self) -> None:
        owners: dict[tuple[str, Part], str] = {}
        for (group, member), parts in self.owned.items():
            for part in parts:
                other = owners.setdefault((group, part), member)
                assert other == member, f"{part} of {group} belongs to {other} and to {member}"
