"""The job ``group-offsets``, independent of the engine: all committed offsets and the lag of all groups, in Parquet.

Handles the inputs and the result of the job, and combines the groups of all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs.analysis.offset_tables import GROUPS, HISTORY, OFFSETS, PENDING, PROBLEMS, to_timestamps
from kafka_msgs.analysis.offset_tables import EndOffsets as Ends
from kafka_msgs.offline.groups import OFFSETS_TOPIC
from kafka_msgs.offline.partition_discovery import EndOffsets
from kafka_msgs.pipeline.commit_history import HISTORY_TABLE, is_replaced
from kafka_msgs.pipeline.group_offsets_task import OWN_GROUPS, GroupOffsetsSummary, reading_of, summed_lags
from kafka_msgs.pipeline.job import Job, JobInputs, JobRun
from kafka_msgs.tables.task_output import TableSpec, TaskOutput, write_partitioned

__all__ = ["NAME", "GroupOffsetsResult", "OffsetsRun", "group_offsets_run"]

NAME: Final = "group-offsets"
_TABLES: Final = {
    # A group may have commits in two partitions, if the number of partitions was raised.
    "offsets": TableSpec(OFFSETS, keys=("logPartition", "group", "topic", "topicPartition")),
    "pending": TableSpec(PENDING),
    "groups": TableSpec(GROUPS, keys=("group",)),
    "problems": TableSpec(PROBLEMS),
}
_HISTORY: Final = {HISTORY_TABLE: TableSpec(HISTORY.append(pa.field("logPartition", pa.int32())), time="logTimestamp")}

_JOINED: Final = ("group", "kind", "state", "epoch", "members", "partitions", "lag", "ahead")
_ALONE: Final = {"kind": "classic", "state": "Empty", "members": 0, "partitions": 0}
"""A coordinator loads a group that has only offsets as an empty classic group."""


@frozen
class GroupOffsetsResult:
    """The result of a run: the summaries of partitions by number, and the table of groups."""

    summaries: tuple[GroupOffsetsSummary, ...]
    groups: pa.Table


OffsetsRun: TypeAlias = JobRun[GroupOffsetsSummary, GroupOffsetsResult]


def group_offsets_run(inputs: JobInputs, ends: EndOffsets | None = None, *, history: bool = False) -> OffsetsRun:
    """Return the run over the partitions of ``__consumer_offsets`` in the inputs.

    ``ends`` defaults to the end offsets in the inputs. Raises the errors of ``JobInputs``.
    """
    logs = inputs.logs(OFFSETS_TOPIC)
    job = Job(
        name=NAME,
        options={"history": history},
        reading=reading_of(Ends.of(inputs.ends() if ends is None else ends), history=history),
        tables={**_TABLES, **(_HISTORY if history else {})},
        appended_tables={HISTORY_TABLE: _replaced} if history else {},
        combine=_found,
    )
    return JobRun(job=job, inputs=inputs.paths, logs=logs)


def _found(summaries: Sequence[GroupOffsetsSummary], output: TaskOutput) -> GroupOffsetsResult:
    groups = _groups(summaries)
    write_partitioned("kind", "groups", groups, output, "0")
    return GroupOffsetsResult(tuple(summaries), groups)


def _groups(summaries: Sequence[GroupOffsetsSummary]) -> pa.Table:
    """Return all groups, including groups that have only offsets."""
    own = _one_per_group(summaries)
    lags = summed_lags(pa.concat_tables([each.lags for each in summaries]), "group")
    found = own.join(lags, "group", join_type="full outer")
    columns = {name: pc.fill_null(found[name], _ALONE[name]) if name in _ALONE else found[name] for name in _JOINED}
    columns["lastCommitMs"] = found["commitTimestampMs"].combine_chunks()
    columns["lastCommit"] = to_timestamps(columns["lastCommitMs"])
    groups = pa.Table.from_arrays([columns[name] for name in GROUPS.names], names=GROUPS.names)
    return groups.cast(GROUPS).sort_by("group")


def _one_per_group(summaries: Sequence[GroupOffsetsSummary]) -> pa.Table:
    """Return one description per group. Of several, the one in the partition with the group's latest commit counts."""
    own = pa.concat_tables([OWN_GROUPS.empty_table(), *(each.groups for each in summaries)])
    if pc.count_distinct(own["group"]).as_py() == own.num_rows:
        return own
    dated = pa.concat_tables(map(_with_last_commits, summaries))
    order = [("group", "ascending"), ("commitTimestampMs", "descending"), ("logPartition", "descending")]
    rows = dated.sort_by(order)
    names = [name for name in OWN_GROUPS.names if name != "group"]
    first = rows.group_by("group", use_threads=False).aggregate([(name, "first") for name in names])
    columns = [first["group" if name == "group" else f"{name}_first"] for name in OWN_GROUPS.names]
    return pa.Table.from_arrays(columns, schema=OWN_GROUPS)


def _with_last_commits(summary: GroupOffsetsSummary) -> pa.Table:
    """Return the descriptions in a partition with the times of the groups' last commits in it."""
    times = summed_lags(summary.lags, "group").select(["group", "commitTimestampMs"])
    found = summary.groups.join(times, "group", join_type="left outer")
    return found.append_column("logPartition", pa.repeat(pa.scalar(summary.number, pa.int32()), found.num_rows))


def _replaced(names: Iterable[str], summaries: Sequence[GroupOffsetsSummary]) -> Iterator[str]:
    """Yield the replaced history files. For a partition that was reread from its start, these are all files."""
    for name in names:
        if any(is_replaced(name, each.number, from_start=each.from_start) for each in summaries):
            yield name
