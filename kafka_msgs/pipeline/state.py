"""What a run keeps of a partition, so that the next one reads only what is new.

Owns the files of ``_state`` and when what they hold still describes the log. The rows are those of ``Survivors``; the
facts beside them tell which log they are of. A state that does not fit is not used: the partition is read from its
first record then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import evolve, field, frozen

from kafka_msgs.pipeline.answers import PROBLEMS
from kafka_msgs.pipeline.counters import HOURS
from kafka_msgs.pipeline.logs import LogSegment, Tip
from kafka_msgs.pipeline.output import Place
from kafka_msgs.pipeline.survivors import ROWS

__all__ = ["STATE", "State", "earlier_problems", "load_state", "save_state"]

STATE: Final = "_state"
"""The directory of the states."""

_FORM: Final = 1
"""The number of this form. A state of another form is not used."""
_FACTS: Final = b"kafka-msgs"


@frozen(kw_only=True)
class State:
    """A partition at the end of a run.

    ``run`` names the run. ``tip`` is the last record that was read. ``segments`` has name, base offset and size of
    each. Of the ``problems``, which are in a file beside, the last ``tail`` are about what lies after the tip, which is
    read again. ``numbers`` are those of ``Counters``.
    """

    run: str
    topic_id: str | None
    tip: Tip
    segments: tuple[tuple[str, int, int], ...]
    problems: int
    tail: int
    numbers: dict[str, int] = field(factory=dict)
    rows: pa.Table = field(factory=ROWS.empty_table)
    hours: pa.Table = field(factory=HOURS.empty_table)

    def of_log(self, topic_id: str | None, segments: Sequence[LogSegment]) -> State | None:
        """Return the state without what was deleted from the log; None if the log is another, or has other damage."""
        if topic_id != self.topic_id or not segments:
            return None
        there = {each.name: each.size for each in segments}
        kept = [(name, size) for name, _, size in self.segments if name in there]
        changed = any(there[name] != size for name, size in kept[:-1]) or (kept and there[kept[-1][0]] < kept[-1][1])
        if self.problems > self.tail and (changed or len(kept) < len(self.segments)):
            return None
        first = segments[0].base_offset
        rows = self.rows
        if self.segments and first > self.segments[0][1]:
            rows = rows.filter(pc.greater_equal(rows["offset"], first))
        return evolve(self, rows=rows)


def save_state(state: State, place: Place, number: int) -> None:
    """Write the state of a partition."""
    facts = {
        "form": _FORM,
        "run": state.run,
        "topicId": state.topic_id,
        "tip": state.tip.facts(),
        "segments": state.segments,
        "problems": state.problems,
        "tail": state.tail,
        "numbers": state.numbers,
    }
    rows = state.rows.replace_schema_metadata({_FACTS: json.dumps(facts).encode()})
    for name, table in ((f"{number}", rows), (f"{number}-hours", state.hours)):
        with place.writer(table.schema, STATE, f"{name}.parquet") as writer:
            writer.write_table(table)


def load_state(place: Place, number: int) -> State | None:
    """Return the state that the last run left of a partition; None without one, and for one of another form."""
    try:
        rows, hours = _table(place, f"{number}"), _table(place, f"{number}-hours")
        facts: dict[str, Any] = json.loads((rows.schema.metadata or {})[_FACTS])
        if facts["form"] != _FORM:
            return None
        return State(
            run=facts["run"],
            topic_id=facts["topicId"],
            tip=Tip(**facts["tip"]),
            segments=tuple((name, base, size) for name, base, size in facts["segments"]),
            problems=facts["problems"],
            tail=facts["tail"],
            numbers=facts["numbers"],
            rows=rows.replace_schema_metadata(None).cast(ROWS),
            hours=hours.cast(HOURS),
        )
    except (FileNotFoundError, KeyError, TypeError, ValueError, pa.ArrowInvalid):
        return None


def _table(place: Place, name: str) -> pa.Table:
    with pq.ParquetFile(place.filesystem.open_input_file(place.at(STATE, f"{name}.parquet"))) as file:
        return file.read(use_threads=False)


def earlier_problems(place: Place, number: int, state: State) -> Iterator[pa.RecordBatch]:
    """Yield the problems that the earlier run found before its tip."""
    left = state.problems - state.tail
    if left:
        with pq.ParquetFile(place.filesystem.open_input_file(place.at(STATE, f"{number}-problems.parquet"))) as file:
            for batch in file.iter_batches():
                yield batch.slice(0, max(left, 0)).cast(PROBLEMS)
                left -= batch.num_rows
