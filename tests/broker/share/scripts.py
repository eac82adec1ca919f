"""Random commands for a share partition: actions of members, the log, the group's configs and the coordinator.

A script learns from the responses which records are in flight, so that most of its commands refer to them. It does not
check the responses.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

__all__ = ["Script"]

_MEMBERS: Final = ("one", "two", "three")
_ACQUIRED: Final = 1
_WEIGHTS: Final = {
    "acquire": 10,
    "acknowledge": 9,
    "wait": 3,
    "release": 1,
    "log_starts": 0.5,
    "config": 0.4,
    "persister": 0.5,
    "open": 0.3,
}
_STATES: Final = (0, 0, 2, 4)
"""The coordinator's state of a record: available, acknowledged or archived."""


class Script:
    """The commands of a seed. ``commands`` yields them; ``learn`` processes each response."""

    def __init__(self, seed: int, length: int = 60) -> None:
        self.seed = seed
        self._length = length
        self._dice = Random(seed)
        self._now = 0
        self._end_of_log = 0
        self._log: list[tuple[int, int]] = []
        self._last: dict[str, Any] = {}
        self._fetch_offset = 0

    def __str__(self) -> str:
        return f"Script({self.seed})"

    def learn(self, answer: dict[str, Any]) -> None:
        """Process the response to the last command.

        Sometimes the fetch offset stays unchanged, as for a fetch that was already in flight.
        """
        if "next" in answer and self._dice.random() < 0.85:
            self._fetch_offset = answer["next"]
        self._last = answer

    def commands(self) -> Iterator[dict[str, Any]]:
        """Yield the commands."""
        yield self._stamped("open", self._open())
        kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        for _ in range(self._length):
            kind = self._dice.choices(kinds, weights)[0] if "next" in self._last else "open"
            details = getattr(self, f"_{kind}")()
            yield self._stamped(kind, details)

    def _stamped(self, kind: str, details: dict[str, Any]) -> dict[str, Any]:
        return {"do": kind, "now": self._now, **details}

    # Commands

    def _open(self) -> dict[str, Any]:
        """Start a new leader with state of the coordinator: often with gaps, rarely with invalid states."""
        dice, states = self._dice, []
        self._log, self._end_of_log, self._last = [], dice.choice((0, 5, 1000)), {}
        self._grow(3)
        offset = start = self._end_of_log - dice.randint(0, 20) if self._end_of_log > 20 else self._end_of_log
        for _ in range(dice.choice((0, 0, 1, 3, 6))):
            first = offset + dice.choice((0, 0, 1, 5))
            last = first + dice.choice((0, 2, 6))
            states.append([first, last, dice.choice(_STATES), dice.randint(1, 4)])
            offset = last + 1
        if states and dice.random() < 0.05:
            states[0][dice.randint(0, 1)] = start - dice.randint(1, 3)
        while self._end_of_log < offset:
            self._grow(1)
        self._fetch_offset = start
        return {"start": start, "states": states, **self._config()}

    def _config(self) -> dict[str, Any]:
        dice = self._dice
        return {
            "lock_ms": dice.choice((1000, 5000)),
            "deliveries": dice.choice((2, 3, 5, 7)),
            "locks": dice.choice((100, 150)),
            "renews": dice.random() < 0.8,
        }

    def _persister(self) -> dict[str, Any]:
        return {"fails": self._dice.random() < 0.4}

    def _acquire(self) -> dict[str, Any]:
        """Fetch some batches from the fetch offset on. Batches may be missing in the log."""
        dice = self._dice
        if dice.random() < 0.5:
            self._grow(dice.randint(1, 4))
        fetched = [batch for batch in self._log if batch[1] >= self._fetch_offset]
        return {
            "member": dice.choice(_MEMBERS),
            "mode": dice.randint(0, 1),
            "batch_size": dice.choice((1, 5, 100)),
            "max_records": dice.choice((0, 1, 3, 10, 500)),
            "fetch_offset": self._fetch_offset,
            "batches": fetched[: dice.choice((0, 1, 1, 2, 3, 8))],
        }

    def _grow(self, count: int) -> None:
        """Append batches, some after gaps in the offsets as after compaction. Sometimes an old batch disappears."""
        dice = self._dice
        for _ in range(count):
            first = self._end_of_log + dice.choice((0, 0, 0, 0, 1, 4))
            last = first + dice.choice((0, 1, 4, 9, 14))
            self._log.append((first, last))
            self._end_of_log = last + 1
        if self._log and dice.random() < 0.1:
            del self._log[dice.randrange(len(self._log))]

    def _acknowledge(self) -> dict[str, Any]:
        """Acknowledge records that the member has, and occasionally other records."""
        dice, member = self._dice, self._dice.choice(_MEMBERS)
        held = list(self._held(member))
        said, limit = [], self._last.get("end", 0) + 3
        for first, last in sorted(dice.sample(held, min(len(held), dice.choice((1, 1, 2, 4))))):
            if dice.random() < 0.5:
                first = dice.randint(first, last)
            if dice.random() < 0.5:
                last = dice.randint(first, last)
            said.append(self._piece(first, last))
        if not said or dice.random() < 0.15:
            first = dice.randint(max(0, self._last.get("start", 0) - 3), limit)
            said = [self._piece(first, first + dice.choice((0, 0, 2, 9, 25)))]
        return {"member": member, "said": said}

    def _piece(self, first: int, last: int) -> list[Any]:
        dice = self._dice
        kinds = dice.choice(((1,), (2,), (1, 2), (0, 1, 2, 3), (4,), (0, 1, 2, 3, 4)))
        count = 1 if dice.random() < 0.6 else last - first + 1
        return [first, last, [dice.choice(kinds) for _ in range(count)]]

    def _held(self, member: str) -> Iterator[tuple[int, int]]:
        """Yield the ranges of records that a member has acquired."""
        for _, _, _, runs in self._last.get("batches", ()):
            for first, last, state, _, owner in runs:
                if state == _ACQUIRED and owner == member:
                    yield first, last

    def _release(self) -> dict[str, Any]:
        return {"member": self._dice.choice(_MEMBERS)}

    def _log_starts(self) -> dict[str, Any]:
        """Advance the log start offset."""
        low, high = self._last.get("start", 0), self._last.get("end", 0)
        if self._dice.random() < 0.2:
            high += 3
        offset = self._dice.randint(max(0, low - 2), max(low, min(self._end_of_log, high)))
        self._log = [batch for batch in self._log if batch[1] >= offset]
        return {"offset": offset}

    def _wait(self) -> dict[str, Any]:
        self._now += self._dice.choice((250, 1000, 3000, 7000))
        return {}
