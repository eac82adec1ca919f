"""Checkpoints: the saved state of a partition, so that the next run reads only new records.

Handles the files of ``_state`` and the check that a checkpoint still matches the log. The tables belong to the job; the
facts stored next to them identify the log. If a checkpoint does not match, the partition is read from its first record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import field, frozen

from kafka_msgs.engines.partition_reader import LogRewrittenError, PartitionInput, ResumePoint
from kafka_msgs.tables.task_output import TaskOutput

__all__ = ["STATE", "Checkpoint", "earlier_problems", "load_checkpoint", "problems_file", "save_checkpoint"]

STATE: Final = "_state"
"""The directory of the checkpoints."""

_FORM: Final = 3
"""The version of the checkpoint format. Checkpoints of another version are not used."""
_FACTS: Final = ("run", "topic_id", "problems", "tail", "numbers")

_UNREADABLE: Final = "what the earlier run has left is damaged, or of another version"
_ANOTHER: Final = "the topic was made anew"
_EMPTY: Final = "it has no segment any more"
_DAMAGED: Final = "segments were changed or deleted, and the earlier run had found damage in the partition"
_REWRITTEN: Final = "segments that were read were compacted, truncated or replaced"


@frozen(kw_only=True)
class Checkpoint:
    """The state of a partition at the end of a run.

    ``run`` names the run. ``tip`` is the last record that was read. ``segments`` lists the name, base offset and size
    of each segment. ``problems`` counts the problems, which are stored in a separate file; the last ``tail`` of them
    are located after the tip, in data that the next run reads again. ``numbers`` and ``tables`` are the job's data.
    """

    run: str
    topic_id: str | None
    tip: ResumePoint
    segments: tuple[tuple[str, int, int], ...]
    problems: int
    tail: int
    numbers: Mapping[str, int] = field(factory=dict)
    tables: Mapping[str, pa.Table] = field(factory=dict)

    def check(self, log: PartitionInput, topic_id: str | None, *, exact: bool) -> None:
        """Raise ``LogRewrittenError`` if the log was replaced, such as by one with another id, or its damage changed.

        With ``exact``, also raise it if any data already read was rewritten. Deleted segments at the start are always
        accepted.
        """
        if topic_id != self.topic_id:
            raise LogRewrittenError(_ANOTHER)
        if not log.segments:
            raise LogRewrittenError(_EMPTY)
        there = {each.name: each.size for each in log.segments}
        kept = [(name, size) for name, _, size in self.segments if name in there]
        changed = any(there[name] != size for name, size in kept[:-1]) or (kept and there[kept[-1][0]] < kept[-1][1])
        if self.problems > self.tail and (changed or len(kept) < len(self.segments)):
            raise LogRewrittenError(_DAMAGED)
        # A continued log has the last segments that were read, in the same order, followed by new ones.
        names = [name for name, _, _ in self.segments]
        goes_on = kept and [name for name, _ in kept] == names[-len(kept) :] == list(there)[: len(kept)]
        if exact and (changed or not goes_on):
            raise LogRewrittenError(_REWRITTEN)


def save_checkpoint(state: Checkpoint, output: TaskOutput, name: str) -> None:
    """Write the checkpoint of the partition called ``name``."""
    facts = {each: getattr(state, each) for each in _FACTS}
    facts |= {"form": _FORM, "tip": state.tip.facts(), "segments": state.segments}
    output.write(json.dumps(facts).encode(), STATE, f"{name}.json")
    for table, rows in state.tables.items():
        with output.writer(rows.schema, STATE, f"{name}-{table}.parquet") as writer:
            writer.write(rows)


def load_checkpoint(output: TaskOutput, name: str, schemas: Mapping[str, pa.Schema]) -> Checkpoint | None:
    """Return the earlier run's checkpoint of a partition, with tables of these schemas; None if there is none.

    Raises ``LogRewrittenError`` for a checkpoint of another format version, and for a damaged one.
    """
    content = output.read_earlier(STATE, f"{name}.json")
    if content is None:
        return None
    try:
        facts: dict[str, Any] = json.loads(content)
        if facts["form"] != _FORM:
            raise LogRewrittenError(_UNREADABLE)
        return Checkpoint(
            tip=ResumePoint(**facts["tip"]),
            segments=tuple((segment, base, size) for segment, base, size in facts["segments"]),
            tables={each: _table(output, f"{name}-{each}").cast(schema) for each, schema in schemas.items()},
            **{each: facts[each] for each in _FACTS},
        )
    except (FileNotFoundError, KeyError, TypeError, ValueError, pa.ArrowInvalid) as error:
        raise LogRewrittenError(_UNREADABLE) from error


def _table(output: TaskOutput, name: str) -> pa.Table:
    with pq.ParquetFile(output.open_earlier(STATE, f"{name}.parquet")) as file:
        return file.read(use_threads=False)


def problems_file(name: str) -> tuple[str, str]:
    """Return the path of the file with the problems of a partition."""
    return STATE, f"{name}-problems.parquet"


def earlier_problems(output: TaskOutput, name: str, state: Checkpoint, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the problems that the earlier run found before its tip."""
    left = state.problems - state.tail
    if left:
        with pq.ParquetFile(output.open_earlier(*problems_file(name))) as file:
            for batch in file.iter_batches():
                yield pa.Table.from_batches([batch.slice(0, max(left, 0))]).cast(schema)
                left -= batch.num_rows
