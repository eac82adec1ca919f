"""The answers of jobs and commands about a log directory, in forms that can be compared.

``differences`` compares them over a random directory that changes between runs: a run that goes on from an earlier one,
a run from the start, the commands, and optionally runs in Spark.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds
from click.testing import CliRunner

from kafka_msgs.analysis.group_offsets_job import group_offsets_job, lag_totals
from kafka_msgs.analysis.group_state_job import GROUP_STATE
from kafka_msgs.analysis.group_state_report import group_state_report
from kafka_msgs.analysis.groups import read_groups
from kafka_msgs.analysis.job import Job
from kafka_msgs.analysis.profile_job import TOPIC_PROFILE
from kafka_msgs.analysis.topic_profile import read_profile
from kafka_msgs.analysis.topic_profile_report import topic_profile_report
from kafka_msgs.cli.command_group import command
from kafka_msgs.cli.render.timestamps import iso_of_ms
from kafka_msgs.engines.job import Engine, RunResult, run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.plan import NO_SPLIT
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.log.partition_discovery import partitions_in
from tests.support.changing_logs import ChangingLogs

__all__ = ["JOBS", "comparable", "differences"]

Rows: TypeAlias = list[str]
Tables: TypeAlias = dict[str, Rows]

JOBS: Final[Mapping[str, Job[Any]]] = {
    "offsets": group_offsets_job(history=True),
    "groups": GROUP_STATE,
    "profile": TOPIC_PROFILE,
}
"""The jobs over log directories."""
_STEPS: Final = 3
_SPLITS: Final = (300, 2000, NO_SPLIT)
_LAGS: Final = (
    ("group", "group"), ("topic", "topic"), ("partition", "topicPartition"), ("committedOffset", "committedOffset"),
    ("leaderEpoch", "leaderEpoch"), ("metadata", "metadata"), ("commitTimestamp", "commitTimestampMs"),
    ("expireTimestamp", "expireTimestampMs"), ("endOffset", "endOffset"), ("lag", "lag"), ("ahead", "ahead"),
    ("stale", "stale"),
)  # fmt: skip
"""The columns of the command ``lag``, and the same columns of the table ``offsets``."""
_GROUPS: Final = (
    *((name, name) for name in ("group", "kind", "state", "epoch", "members", "partitions", "lag", "ahead")),
    ("lastCommitTimestamp", "lastCommitMs"),
)
_SUMS: Final = (
    "topic", "partition", "records", "batches", "bytes", "contentBytes", "withoutKey", "tombstones", "transactions",
    "abortedTransactions", "abortedRecords", "outOfOrder", "maxKeySize", "maxValueSize", "firstOffset", "lastOffset",
)  # fmt: skip


def table_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows with timestamps as numbers, as Python cannot represent all of them."""
    is_time = pa.types.is_timestamp
    types = [pa.field(each.name, pa.int64() if is_time(each.type) else each.type) for each in table.schema]
    found: list[dict[str, Any]] = table.cast(pa.schema(types)).to_pylist()
    return found


def committed(out: Path, job: Job[Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the tables of the latest commit."""
    homes = {name: out / "current" / name for name in job.tables}
    tables = {name: table_rows(ds.dataset(each, partitioning="hive").to_table()) for name, each in homes.items()}
    # The first segment of a random topic has another name after compaction.
    for row in tables.get("history", ()):
        del row["file"]
    return tables


def comparable(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Tables:
    """Return rows as sorted text, whatever the order of their columns."""
    return {name: sorted(repr(sorted(row.items())) for row in rows) for name, rows in tables.items()}


def run(name: str, logs: Path, out: Path, engine: Engine, split_bytes: int = NO_SPLIT) -> RunResult[Any]:
    """Run a job over a log directory."""
    return run_job(JOBS[name], JobInputs.at([logs]), str(out), engine, split_bytes=split_bytes)


def report_of(name: str, found: RunResult[Any]) -> Any:
    """Return the report data that do not depend on earlier runs."""
    if name == "offsets":
        return [sorted(map(repr, lag_totals(found.report, *by).to_pylist())) for by in (("group",), ("group", "topic"))]
    shown = found.first_problems.to_pylist()
    if name == "groups":
        return group_state_report(found.report, shown, found.problems)
    return topic_profile_report(found.report, shown, found.problems, found.cluster.metadata)


def differences(home: Path, seed: int, engines: Sequence[Engine] = (local_engine(),)) -> Iterator[str]:
    """Yield a sentence about each difference between answers about a random directory, by one of the jobs.

    Each run that goes on uses one of the ``engines``, and cuts partitions into ranges of random size.
    """
    dice, name = Random(seed), sorted(JOBS)[seed % len(JOBS)]
    logs, job = ChangingLogs(home / "logs", dice), JOBS[name]
    for step in range(_STEPS):
        logs.step()
        shutil.rmtree(home / "fresh", ignore_errors=True)
        fresh = run(name, logs.home, home / "fresh", local_engine())
        continued = run(name, logs.home, home / "out", dice.choice(engines), dice.choice(_SPLITS))
        tables = committed(home / "fresh", job)
        found, wanted = comparable(committed(home / "out", job)), comparable(tables)
        _leave_out_compacted(found, wanted)
        place = f"seed {seed}, step {step}, {name}"
        yield from _differing(place, found, wanted)
        yield from _differing(place, {"report": report_of(name, continued)}, {"report": report_of(name, fresh)})
        yield from _differing(f"{place}, command", *_COMMANDS[name](logs.home, tables))


def _leave_out_compacted(found: Tables, wanted: Tables) -> None:
    """Remove the commits that only a continued history has, because they were compacted or deleted since."""
    if "history" in wanted:
        known = set(wanted["history"])
        found["history"] = [row for row in found["history"] if row in known]


def _differing(place: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(found.keys() | wanted.keys()):
        one, other = found.get(name), wanted.get(name)
        if one != other:
            yield f"{place}: {name} differs: {_first_difference(one, other)}"


def _first_difference(one: Any, other: Any) -> str:
    if isinstance(one, list) and isinstance(other, list):
        return f"only here {[each for each in one if each not in other][:3]}, only there " + str(
            [each for each in other if each not in one][:3]
        )
    pairs = zip(repr(one), repr(other), strict=False)
    start = next((at for at, (here, there) in enumerate(pairs) if here != there), 0)
    return " instead of ".join(repr(each)[max(0, start - 200) : start + 200] for each in (one, other))


def _listing(name: str, logs: Path, *arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(
        command, [name, "--log-dirs", str(logs), *arguments, "--output", "json"], catch_exceptions=False
    )
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def _columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Rows:
    return sorted(repr(tuple(row[name] for name in names)) for row in rows)


def _offsets_of_commands(logs: Path, tables: Mapping[str, list[dict[str, Any]]]) -> tuple[Tables, Tables]:
    lags, groups = _listing("lag", logs), _listing("groups", logs)
    mine, own = zip(*_LAGS, strict=True), zip(*_GROUPS, strict=True)
    (here, there), (of_groups, in_table) = mine, own
    # The command lists the start offsets of the described share groups only.
    named = {row["group"] for row in tables["groups"]}
    offsets = [row for row in tables["offsets"] if row["group"] in named]
    problems = read_groups(partitions_in([logs])).problems
    found = {
        "lag": _columns(lags, here),
        "groups": _columns(groups, of_groups),
        "problems": sorted(repr((each.partition, each.offset, each.file, each.reason)) for each in problems),
    }
    wanted = {
        "lag": _columns(offsets, there),
        "groups": _columns(tables["groups"], in_table),
        "problems": _columns(tables["problems"], ("logPartition", "logOffset", "file", "problem")),
    }
    return found, wanted


def _groups_of_commands(logs: Path, tables: Mapping[str, list[dict[str, Any]]]) -> tuple[Tables, Tables]:
    problems = [each for each in read_groups(partitions_in([logs])).problems if each.topic == "__consumer_offsets"]
    found = sorted(repr((each.partition, each.offset, each.file, each.reason)) for each in problems)
    wanted = _columns(tables["problems"], ("logPartition", "logOffset", "file", "problem"))
    return {"problems": found}, {"problems": wanted}


def _profile_of_command(logs: Path, tables: Mapping[str, list[dict[str, Any]]]) -> tuple[Tables, Tables]:
    hours = [{**row, "hour": iso_of_ms(row["hourMs"])} for row in tables["profile"]]
    problems = read_profile(partitions_in([logs])).problems
    found = {
        "profile": _columns(_listing("profile", logs, "--by", "hour"), (*_SUMS, "hour")),
        "problems": sorted(repr((each.topic, each.partition, each.file, each.reason)) for each in problems),
    }
    wanted = {
        "profile": _columns(hours, (*_SUMS, "hour")),
        "problems": _columns(tables["problems"], ("topic", "partition", "file", "problem")),
    }
    return found, wanted


_COMMANDS: Final = {
    "offsets": _offsets_of_commands,
    "groups": _groups_of_commands,
    "profile": _profile_of_command,
}
"""For each job, the function that returns the answers of commands and the same answers from its tables."""
