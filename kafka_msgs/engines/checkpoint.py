"""Checkpoints: the saved states of partitions and of their ranges, which a later task or the next run continues.

The states of a task are in one Arrow file per table, listed in an index, so that the number of files does not depend on
the number of partitions. A checkpoint identifies its log by the topic id and by the last record with its leader epoch,
never by paths: after a change of leader, the next run reads another replica. If a checkpoint does not match, the
partition is read from its first record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from attrs import asdict, field, frozen

from kafka_msgs.analysis.job import SavedState
from kafka_msgs.engines.partition_reader import LogRewrittenError, ResumePoint
from kafka_msgs.engines.plan import SavedPlace, StateRef
from kafka_msgs.engines.replicas import offset_at
from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import Snapshot
from kafka_msgs.tables.task_output import TaskOutput

__all__ = ["STATE", "Checkpoint", "StateWriter", "load_checkpoint", "saved_places"]

STATE: Final = "_state"
"""The table of checkpoints."""

_FORM: Final = 4
"""The version of the checkpoint format. Checkpoints of another version are not used."""
_INDEX: Final = "index.json"
_WRITTEN: Final = pa.ipc.IpcWriteOptions(compression="zstd")

_UNREADABLE: Final = "what the earlier run has left is damaged, or of another version"
_ANOTHER: Final = "the topic was made anew"
_EMPTY: Final = "it has no segment any more"
_DAMAGED: Final = "segments were changed or deleted, and the earlier run had found damage in the partition"
_REWRITTEN: Final = "segments that were read were compacted, truncated or replaced"
_LINEAGE: Final = "the leader epoch of the last record is not in the history of the replica"


@frozen(kw_only=True)
class Checkpoint:
    """The state of a partition, or of a range of it, after its last record.

    ``tip`` is the last record that was read, None without records. ``segments`` lists the base offset and size of each
    segment. ``problems`` counts the problems up to the tip.
    """

    topic: str
    partition: int
    topic_id: str | None
    tip: ResumePoint | None
    segments: tuple[tuple[int, int], ...]
    problems: int = 0
    state: SavedState = field(factory=SavedState)

    def check(self, topic_id: str | None, segments: Sequence[tuple[int, int]], *, exact: bool) -> None:
        """Raise ``LogRewrittenError`` if the log was replaced, such as by one with another id, or its damage changed.

        With ``exact``, also raise it if any data already read was rewritten. Deleted segments at the start are always
        accepted.
        """
        if topic_id != self.topic_id:
            raise LogRewrittenError(_ANOTHER)
        if not segments:
            raise LogRewrittenError(_EMPTY)
        there = dict(segments)
        kept = [(base, size) for base, size in self.segments if base in there]
        changed = any(there[base] != size for base, size in kept[:-1]) or (kept and there[kept[-1][0]] < kept[-1][1])
        if self.problems and (changed or len(kept) < len(self.segments)):
            raise LogRewrittenError(_DAMAGED)
        # A continued log has the last segments that were read, in the same order, followed by new ones.
        bases = [base for base, _ in self.segments]
        goes_on = kept and [base for base, _ in kept] == bases[-len(kept) :] == list(there)[: len(kept)]
        if exact and (changed or not goes_on):
            raise LogRewrittenError(_REWRITTEN)

    def check_position(self, segments: Sequence[LogFile], *, exact: bool) -> None:
        """Raise ``LogRewrittenError`` if data before the tip was removed from its segment, which may have grown since.

        Such a compaction matters with ``exact``, and if there were problems. Raises ``OSError``.
        """
        if self.tip is None or not (exact or self.problems):
            return
        bases = [offset_at(each, self.tip.position) for each in segments if each.first == self.tip.segment]
        if not any(base is not None and base <= self.tip.offset for base in bases):
            raise LogRewrittenError(_REWRITTEN if exact else _DAMAGED)

    def check_lineage(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Raise ``LogRewrittenError`` if the tip's offset has another leader epoch in the history of a replica.

        ``epochs`` are the epochs and start offsets in its ``leader-epoch-checkpoint`` (KIP-101), none if unknown.
        """
        if self.tip is None or self.tip.epoch < 0:
            return
        held = [epoch for epoch, start in epochs if start <= self.tip.offset]
        if held and held[-1] != self.tip.epoch:
            raise LogRewrittenError(_LINEAGE)


class StateWriter:
    """Writes the states of one task attempt to a table: ``STATE``, or another one, which the run does not commit."""

    def __init__(self, output: TaskOutput, table: str) -> None:
        self._output = output
        self._table = table
        self._rows: list[dict[str, Any]] = []
        self._sinks: dict[str, tuple[Any, Any, int]] = {}

    def add(self, saved: Checkpoint) -> StateRef:
        """Write a state, and return the reference to it."""
        tables = {name: self._write(name, rows) for name, rows in saved.state.tables.items()}
        row = asdict(saved, filter=lambda attribute, _: attribute.name != "state")
        self._rows.append(row | {"form": _FORM, "numbers": dict(saved.state.numbers), "tables": tables})
        return StateRef(self._path(_INDEX), len(self._rows) - 1)

    def close(self) -> None:
        """Complete the files."""
        for name, (sink, writer, rows) in self._sinks.items():
            writer.close()
            size = sink.tell()
            sink.close()
            self._output.add(self._table, self._name(name), size, rows)
        if self._rows:
            self._output.write(json.dumps(self._rows).encode(), self._table, self._name(_INDEX))

    def _write(self, name: str, rows: pa.Table) -> list[int]:
        """Write a table; return the number of its first batch, and the number of its batches."""
        file = f"{name}.arrow"
        if file not in self._sinks:
            sink = self._output.storage.output(self._path(file))
            self._sinks[file] = sink, pa.ipc.new_file(sink, rows.schema, options=_WRITTEN), 0
        sink, writer, first = self._sinks[file]
        batches = rows.combine_chunks().to_batches()
        for batch in batches:
            writer.write_batch(batch)
        self._sinks[file] = sink, writer, first + len(batches)
        return [first, len(batches)]

    def _name(self, file: str) -> str:
        return f"{self._output.attempt}/{file}"

    def _path(self, file: str) -> str:
        return self._output.path_of(self._table, self._name(file))


def saved_places(
    storage: Storage, snapshot: Snapshot | None, say: Callable[[str], None]
) -> dict[tuple[str, int], SavedPlace]:
    """Return the checkpoints of a commit by topic and partition. Checkpoints of another version are omitted.

    ``say`` receives a sentence about each damaged index, whose partitions are omitted.
    """
    found: dict[tuple[str, int], SavedPlace] = {}
    for file in snapshot.tables.get(STATE, {}).values() if snapshot is not None else ():
        if file.path.endswith(_INDEX):
            try:
                found |= dict(_places_in(storage, file.path))
            except (ValueError, TypeError, KeyError, AttributeError):
                say(f"{storage}/{file.path}: its partitions are read from their start again: {_UNREADABLE}")
    return found


def _places_in(storage: Storage, path: str) -> Iterator[tuple[tuple[str, int], SavedPlace]]:
    for number, row in enumerate(_rows(storage, path)):
        if row.get("form") == _FORM and row["tip"] is not None:
            place = SavedPlace(StateRef(path, number), row["tip"]["segment"], row["tip"]["position"])
            yield (row["topic"], row["partition"]), place


def load_checkpoint(storage: Storage, ref: StateRef, schemas: Mapping[str, pa.Schema]) -> Checkpoint:
    """Return a saved state, with tables of these schemas.

    Raises ``LogRewrittenError`` for a checkpoint of another format version, and for a damaged one.
    """
    try:
        row = _index(storage, ref.path)[ref.row]
        if row["form"] != _FORM:
            raise LogRewrittenError(_UNREADABLE)
        home = ref.path.rpartition("/")[0]
        tables = {
            name: _table(storage, f"{home}/{name}.arrow", row["tables"][name], schema)
            for name, schema in schemas.items()
        }
        return Checkpoint(
            topic=row["topic"],
            partition=row["partition"],
            topic_id=row["topic_id"],
            tip=None if row["tip"] is None else ResumePoint(**row["tip"]),
            segments=tuple((base, size) for base, size in row["segments"]),
            problems=row["problems"],
            state=SavedState(row["numbers"], tables),
        )
    except (FileNotFoundError, KeyError, IndexError, TypeError, ValueError, pa.ArrowInvalid, OSError) as error:
        raise LogRewrittenError(_UNREADABLE) from error


def _table(storage: Storage, path: str, batches: tuple[int, int], schema: pa.Schema) -> pa.Table:
    """Return a table from the number of its first batch, and the number of its batches."""
    first, count = batches
    with storage.open(path) as file:
        reader = pa.ipc.open_file(file)
        return pa.Table.from_batches([reader.get_batch(first + number) for number in range(count)], schema)


@lru_cache(maxsize=16)
def _index(storage: Storage, path: str) -> list[dict[str, Any]]:
    """Return the rows of an index file, read once in each process."""
    return _rows(storage, path)


def _rows(storage: Storage, path: str) -> list[dict[str, Any]]:
    """Return the rows of an index file. Raises ``ValueError`` for a damaged one, including one without content."""
    found: list[dict[str, Any]] = json.loads(storage.read(path) or b"")
    return found
