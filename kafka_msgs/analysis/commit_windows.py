"""The latest commits of each group and partition in ``__consumer_offsets``, as a reducer: windows for the status.

Commits in transactions count if their transaction was committed. The deletion of an offset ends its earlier history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field

from kafka_msgs.analysis.arrow_tables import group_rows_by
from kafka_msgs.analysis.lag_status import DISTANCE_MS, WINDOW, LagHistory, Observation
from kafka_msgs.analysis.live_records import COMMITS, EFFECTIVE, UNDECIDED
from kafka_msgs.analysis.record_classification import ClassifiedRecords
from kafka_msgs.columns.decode import decode_column
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue

__all__ = ["CommitWindows"]

_KEY: Final = ("group", "topic", "partition")
_VALUE: Final = ("offset", "commit_timestamp")

Place: TypeAlias = tuple[str, str, int]
_Waiting: TypeAlias = "list[tuple[Place, Observation]]"


@define
class CommitWindows:
    """The state of a range of a partition. ``size`` and ``distance_ms`` are the same as in ``LagHistory``."""

    size: int = WINDOW
    distance_ms: int = DISTANCE_MS
    _histories: dict[Place, LagHistory] = field(factory=dict)
    _deleted: dict[Place, int] = field(factory=dict)
    _open: dict[int, _Waiting] = field(factory=dict)
    _first_markers: dict[int, bool] = field(factory=dict)

    def add(self, batch: ClassifiedRecords) -> None:
        """Add the next records of the range."""
        markers = zip(*(batch.markers[name].to_pylist() for name in ("offset", "producer", "role")), strict=True)
        waiting = iter([*markers, (None, None, None)])
        end, producer, role = next(waiting)
        for position, by, undecided, place, value in _commits(self._needed(batch.commits)):
            while end is not None and end < position:
                self._end(producer, role == COMMITS)
                end, producer, role = next(waiting)
            if value is None:
                self._delete(place, position)
            elif undecided:
                self._open.setdefault(by, []).append((place, value))
            else:
                self._observe(place, value)
        while end is not None:
            self._end(producer, role == COMMITS)
            end, producer, role = next(waiting)

    def _needed(self, rows: pa.Table) -> pa.Table:
        """Return the rows without the commits that later ones of the same key push out of its window."""
        if rows.num_rows <= self.size:
            return rows
        values = decode_column(rows["value"].combine_chunks(), OffsetCommitValue, columns=("commit_timestamp",)).values
        plain = pc.and_(pc.equal(rows["role"], EFFECTIVE), rows["value"].is_valid())
        slots = pc.divide(pc.struct_field(values, "commit_timestamp"), self.distance_ms)
        keys = rows["key"].combine_chunks().dictionary_encode().indices
        places = pa.table({"key": keys, "slot": slots, "position": rows["offset"]}).filter(plain)
        last = group_rows_by(places, ["key", "slot"]).aggregate([("position", "max")])
        last = last.sort_by([("key", "ascending"), ("slot", "descending")])
        kept = last.filter(pc.less(_places_in_runs(last["key"]), self.size))["position_max"]
        return rows.filter(pc.or_(pc.invert(plain), pc.is_in(rows["offset"], kept.combine_chunks())))

    def merge(self, later: CommitWindows) -> CommitWindows:
        """Return the state of this range and of the range after it. Both operands become unusable."""
        for producer, committed in later._first_markers.items():
            self._end(producer, committed)
        for producer, commits in later._open.items():
            self._open.setdefault(producer, []).extend(commits)
        for place, history in later._histories.items():
            self._history(place).merge(history)
        for place, position in later._deleted.items():
            self._delete(place, position)
        return self

    def checkpoint(self) -> CommitWindows:
        """Return the complete state. It consists of plain values, so it can be pickled."""
        return self

    @property
    def histories(self) -> Mapping[Place, LagHistory]:
        """The windows by group, topic and partition. Open transactions do not count."""
        return {place: history for place, history in self._histories.items() if history.observations}

    def _history(self, place: Place) -> LagHistory:
        history = self._histories.get(place)
        if history is None:
            history = self._histories[place] = LagHistory(self.size, self.distance_ms)
        return history

    def _observe(self, place: Place, commit: Observation) -> None:
        if commit.position >= self._deleted.get(place, -1):
            self._history(place).add(commit)

    def _delete(self, place: Place, position: int) -> None:
        self._deleted[place] = max(position, self._deleted.get(place, -1))
        if place in self._histories:
            self._histories[place].drop_before(position)

    def _end(self, producer: int, committed: bool) -> None:
        self._first_markers.setdefault(producer, committed)
        for place, commit in self._open.pop(producer, ()):
            if committed:
                self._observe(place, commit)


def _places_in_runs(values: pa.ChunkedArray) -> pa.Array:
    """Return the distance of each value from the first one of its run of equal values."""
    runs = pc.run_end_encode(values.combine_chunks())
    starts = pa.array([0, *runs.run_ends.to_pylist()[:-1]][: len(runs.run_ends)], runs.run_ends.type)
    repeated = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(runs.run_ends, starts))
    return pc.subtract(pa.array(range(len(values)), repeated.type), repeated)


def _commits(rows: pa.Table) -> Iterator[tuple[int, int, bool, Place, Observation | None]]:
    """Yield position, producer, whether it is in an undecided transaction, place, and commit: None for a deletion."""
    for batch in rows.combine_chunks().to_batches():
        keys = decode_column(batch["key"], OffsetCommitKey, columns=_KEY, on_error="raise").values
        values = decode_column(batch["value"], OffsetCommitValue, columns=_VALUE, on_error="raise").values
        places = zip(*(keys.field(name).to_pylist() for name in _KEY), strict=True)
        offsets, times = (pc.struct_field(values, name).to_pylist() for name in _VALUE)
        plain = (batch[name].to_pylist() for name in ("offset", "producer", "role"))
        for position, producer, role, place, offset, time in zip(*plain, places, offsets, times, strict=True):
            commit = None if offset is None else Observation(position, time, offset)
            yield position, producer, role == UNDECIDED, place, commit
