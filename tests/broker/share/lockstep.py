"""The same commands on two share partitions, Kafka's and this library's, with comparison after each command.

Responses, writes and states must be equal. Kafka keeps single offsets where this library keeps runs of offsets, and
ends a lock for each offset. So states are compared as runs, and the writes of one command are compared by their final
state of each offset.

Kafka fails with a NullPointerException in two cases that this library handles. The first is an acknowledgement that
begins before the start offset when no batch has that offset (this library returns INVALID_RECORD_STATE). The second is
completed records while the start offset lies behind a batch with several states (Kafka then does not move the start
offset). After the second case a script continues with a new share partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from attrs import evolve

from kafka_msgs.broker.share import (
    AcknowledgementBatch,
    AcquireMode,
    PersisterStateBatch,
    RecordState,
    SharePartition,
    acquire,
)
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.config import CoordinatorConfig, GroupConfig
from kafka_msgs.groups.runtime.timer_queue import TimerQueue
from tests.broker.share.oracle import ShareOracle
from tests.broker.share.scripts import Script

__all__ = ["play"]

_DEFAULTS: Final = CoordinatorConfig().for_group({})


class _Batch(NamedTuple):
    base_offset: int
    last_offset: int


def play(script: Script, oracle: ShareOracle) -> Counter[tuple[str, str]]:
    """Run a script on both; return how often each command led to each error.

    Raises ``AssertionError`` with the seed if the results differ.
    """
    ours, tally = _Ours(), Counter[tuple[str, str]]()
    for command in script.commands():
        theirs = _canonical(command, oracle.run(**command))
        stuck = theirs.pop("stuck", False)
        mine = ours.run(command)
        if stuck:
            script.learn({})
        else:
            assert mine == theirs, f"{script}, command {tally.total()}: {command}"
            script.learn(theirs)
        tally[command["do"], theirs["error"]] += 1
    return tally


class _Ours:
    """Our share partition, with a persister and a clock."""

    def __init__(self) -> None:
        self._timers = TimerQueue()
        self._config: GroupConfig = _DEFAULTS
        self._fails = False
        self._writes: list[dict[str, Any]] = []
        self._share: SharePartition | None = None
        self._now = 0

    def run(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run one command, and return a response in the form of Kafka's."""
        self._writes, self._now = [], command["now"]
        while (due := self._timers.pop_due(command["now"])) is not None:
            due()
        answer: dict[str, Any] = {"error": "NONE"}
        try:
            answer |= _COMMANDS[command["do"]](self, command) or {}
        except RequestRefusedError as error:
            answer["error"] = ErrorCode(error.error).name
        answer["writes"] = self._writes
        return _canonical(command, answer | self._state())

    def open(self, command: dict[str, Any]) -> None:
        """Create a share partition."""
        self._fails = False
        self.configure(command)
        if self._share is not None:
            self._share.close()
            self._share = None
        states = [
            PersisterStateBatch(first, last, RecordState(state), count)
            for first, last, state, count in command["states"]
        ]
        self._share = SharePartition(
            command["start"], states, timers=self._timers, config=lambda: self._config, persist=self._persist
        )

    def configure(self, command: dict[str, Any]) -> None:
        """Change the configs of the group."""
        self._config = evolve(
            self._config,
            share_record_lock_duration_ms=command["lock_ms"],
            share_delivery_count_limit=command["deliveries"],
            share_partition_max_record_locks=command["locks"],
            share_renew_acknowledge_enable=command["renews"],
        )

    def _persist(self, start: int, complete: int, states: list[PersisterStateBatch]) -> None:
        self._writes.append({"start": start, "complete": complete, "states": states})
        if self._fails:
            raise RequestRefusedError(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def persister(self, command: dict[str, Any]) -> None:
        """Make writes fail or succeed from now on."""
        self._fails = command["fails"]

    def acquire(self, command: dict[str, Any]) -> dict[str, Any]:
        """Acquire records for a member."""
        acquired = acquire(
            self._opened,
            command["member"],
            [_Batch(*each) for each in command["batches"]],
            fetch_offset=command["fetch_offset"],
            max_records=command["max_records"],
            batch_size=command["batch_size"],
            mode=AcquireMode(command["mode"]),
            now=self._now,
        )
        return {"acquired": [list(each) for each in acquired]}

    def acknowledge(self, command: dict[str, Any]) -> None:
        """Apply a member's acknowledgements."""
        self._opened.acknowledge(
            command["member"], [AcknowledgementBatch(*each) for each in command["said"]], self._now
        )

    def release(self, command: dict[str, Any]) -> None:
        """Release all records of a member."""
        self._opened.release(command["member"])

    def log_starts(self, command: dict[str, Any]) -> None:
        """Move the start of the log."""
        self._opened.on_log_start_offset(command["offset"])

    def wait(self, command: dict[str, Any]) -> None:
        """Do nothing. Time passes before every command."""

    @property
    def _opened(self) -> SharePartition:
        assert self._share is not None
        return self._share

    def _state(self) -> dict[str, Any]:
        share = self._share
        if share is None:
            return {}
        return {
            "next": share.next_fetch_offset(),
            "start": share.start_offset,
            "end": share.end_offset,
            "complete": share.complete,
            "can_acquire": share.can_acquire(),
            "gap": share.gap,
            "batches": [
                [
                    batch.first, batch.last, batch.whole,
                    [(run.first, run.last, run.state, run.delivery_count, run.member_id) for run in batch.runs],
                ]
                for batch in share.batches
            ],
        }  # fmt: skip


_COMMANDS: Final = {
    "open": _Ours.open,
    "config": _Ours.configure,
    "persister": _Ours.persister,
    "acquire": _Ours.acquire,
    "acknowledge": _Ours.acknowledge,
    "release": _Ours.release,
    "log_starts": _Ours.log_starts,
    "wait": _Ours.wait,
}


def _canonical(command: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return a response in comparable form."""
    if answer["error"] == "CRASHED":
        answer = answer | {"error": ErrorCode.INVALID_RECORD_STATE.name}
    writes = answer["writes"]
    written = [(first, last, state, count) for write in writes for first, last, state, count in write["states"]]
    same: dict[str, Any] = {"writes": _runs(written)}
    if command["do"] != "wait":
        same["from"] = [[write["start"], write["complete"]] for write in writes]
    if "batches" in answer:
        same["batches"] = [[first, last, whole, _runs(states)] for first, last, whole, states in answer["batches"]]
    return answer | same


def _runs(states: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return states of offset ranges as maximal runs. The last state of an offset counts."""
    of_offset = {offset: rest for first, last, *rest in states for offset in range(first, last + 1)}
    runs: list[list[Any]] = []
    for offset, rest in sorted(of_offset.items()):
        if runs and runs[-1][1] == offset - 1 and runs[-1][2:] == rest:
            runs[-1][1] = offset
        else:
            runs.append([offset, offset, *rest])
    return runs
