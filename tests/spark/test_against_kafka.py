"""Tests that ``kafka-log`` returns the rows that Kafka's own classes read, under every option and path form.

Kafka's ``MemoryRecords`` reads each segment completely; this module computes which records each option selects.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import fs

from kafka_msgs.columns.log_table import LogTable
from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.oracle import Oracle
from tests.support.kafka_batches import kafka_reads
from tests.support.recordings import GROUP_LOGS, LOGS, REMOTE_TIER, TIERED_LOGS
from tests.support.s3_server import S3Server, s3_server
from tests.support.spark_tables import read

pytestmark = pytest.mark.oracle

Row = dict[str, Any]

HOMES: Final[Mapping[str, Path]] = {
    "groups": GROUP_LOGS,
    "logs": LOGS,
    "tiered": TIERED_LOGS,
    "remote": REMOTE_TIER / "log",
}
COLUMNS: Final = (
    "topic", "partition", "offset", "timestampMs", "timestampType", "key", "value", "headers", "leaderEpoch",
    "producerId", "producerEpoch", "sequence", "transactional", "control", "codec", "magic", "batchOffset",
    "batchPosition", "batchSize",
)  # fmt: skip
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
END: Final = 2**31


@frozen
class Place:
    """A partition of a recording, with all records that Kafka reads from its segments."""

    topic: str
    number: int
    rows: tuple[Row, ...]

    @property
    def committed(self) -> set[int]:
        """The offsets that a read-committed consumer receives: committed records before the first open transaction."""
        ended: dict[int, list[tuple[int, str]]] = {}
        for row in self.rows:
            if row["control"]:
                ended.setdefault(row["producerId"], []).append((row["offset"], row["_type"]))
        ends = {
            row["offset"]: next((how for at, how in ended.get(row["producerId"], ()) if at > row["offset"]), "OPEN")
            for row in self.rows
            if row["transactional"] and not row["control"]
        }
        stable = min((offset for offset, how in ends.items() if how == "OPEN"), default=END)
        return {
            row["offset"]
            for row in self.rows
            if row["offset"] < stable and ends.get(row["offset"], "COMMIT") == "COMMIT"
        }

    def first_at(self, timestamp: int, absent: int) -> int:
        """Return the offset of the first record with this timestamp or a later one."""
        return next((row["offset"] for row in self.rows if row["timestampMs"] >= timestamp), absent)


@frozen
class Asked:
    """A request for part of a recording."""

    topics: tuple[str, ...] | None
    partitions: tuple[int, ...] | None
    starts: Mapping[tuple[str, int], int]
    ends: Mapping[tuple[str, int], int]
    start_ms: int | None
    end_ms: int | None
    committed: bool
    control: bool
    split: int
    columns: tuple[str, ...]

    def options(self) -> dict[str, str]:
        """Return the request as data source options."""
        found = {"columns": ",".join(self.columns), "splitBytes": str(self.split), "control": str(self.control)}
        found |= {"isolation": "read_committed"} if self.committed else {}
        found |= {} if self.topics is None else {"topics": ",".join(self.topics)}
        found |= {} if self.partitions is None else {"partitions": ",".join(map(str, self.partitions))}
        found |= {"startingOffsets": in_json(self.starts)} if self.starts else {}
        found |= {"endingOffsets": in_json(self.ends)} if self.ends else {}
        found |= {} if self.start_ms is None else {"startingTimestamp": str(self.start_ms)}
        found |= {} if self.end_ms is None else {"endingTimestamp": str(self.end_ms)}
        return found

    def rows(self, place: Place) -> Iterator[Row]:
        """Return the expected rows of a partition."""
        if self.topics is not None and place.topic not in self.topics:
            return
        if self.partitions is not None and place.number not in self.partitions:
            return
        start = self.starts.get((place.topic, place.number), 0)
        end = self.ends.get((place.topic, place.number), END)
        start = start if self.start_ms is None else place.first_at(self.start_ms, END)
        end = end if self.end_ms is None else place.first_at(self.end_ms, END)
        seen = place.committed if self.committed else {row["offset"] for row in place.rows}
        for row in place.rows:
            if start <= row["offset"] < end and (self.control or not row["control"]) and row["offset"] in seen:
                yield {name: row[name] for name in self.columns}


def in_json(offsets: Mapping[tuple[str, int], int]) -> str:
    found: dict[str, dict[str, int]] = {}
    for (topic, number), offset in offsets.items():
        found.setdefault(topic, {})[str(number)] = offset
    return json.dumps(found)


@cache
def places(home: str) -> list[Place]:
    """Return the partitions of a recording, by topic and number."""
    oracle, found = Oracle.shared(), []
    for directory in HOMES[home].iterdir():
        topic, _, number = directory.name.rpartition("-")
        if segments := sorted(directory.glob("*.log")):
            rows = [row for path in segments for row in rows_of(oracle, path)]
            found.append(Place(topic, int(number), tuple({"topic": topic, "partition": int(number)} | r for r in rows)))
    return sorted(found, key=lambda place: (place.topic, place.number))


def rows_of(oracle: Oracle, path: Path) -> Iterator[Row]:
    position = 0
    for batch in kafka_reads(oracle, path.read_bytes()):
        for record in batch["records"]:
            yield row_of(batch, record) | {"batchPosition": position, "_type": record.get("type")}
        position += batch["size"]


def row_of(batch: Row, record: Row) -> Row:
    first = batch["base_sequence"]
    return {
        "offset": record["offset"],
        "timestampMs": record["timestamp"],
        "timestampType": batch["timestamp_type"],
        "key": in_bytes(record["key"]),
        "value": in_bytes(record["value"]),
        "headers": [{"key": name, "value": in_bytes(value)} for name, value in record["headers"]],
        "leaderEpoch": batch["partition_leader_epoch"],
        "producerId": batch["producer_id"],
        "producerEpoch": batch["producer_epoch"],
        "sequence": -1 if first < 0 else first + record["offset"] - batch["base_offset"],
        "transactional": batch["is_transactional"],
        "control": batch["is_control"],
        "codec": CODECS[batch["codec"]],
        "magic": batch["magic"],
        "batchOffset": batch["base_offset"],
        "batchSize": batch["size"],
    }


def in_bytes(text: str | bytes | None) -> bytes | None:
    return b64decode(text) if isinstance(text, str) else text


def numbers(found: list[int], absent: st.SearchStrategy[int]) -> st.SearchStrategy[int]:
    """Draw a record's number, its successor, or another number."""
    return st.sampled_from(sorted({near for number in found for near in (number, number + 1)})) | absent


@st.composite
def asked(draw: st.DrawFn, known: list[Place]) -> Asked:
    topics = draw(
        st.none() | st.lists(st.sampled_from(sorted({each.topic for each in known})), min_size=1, unique=True)
    )
    read = [each for each in known if topics is None or each.topic in topics]
    several = sorted({each.number for each in read})
    partitions = draw(st.none() | st.lists(st.sampled_from(several), min_size=1, unique=True))
    read = [each for each in read if partitions is None or each.number in partitions]
    bounds: list[dict[tuple[str, int], int]] = [{}, {}]
    for bound in bounds:
        for place in draw(st.lists(st.sampled_from(read), max_size=3, unique_by=id)):
            there = [row["offset"] for row in place.rows]
            bound[place.topic, place.number] = draw(numbers(there or [0], st.integers(0, 1000)))
    stamps = [row["timestampMs"] for place in read for row in place.rows if row["timestampMs"] >= 0]
    times = st.none() | numbers(stamps or [0], st.integers(0, 2**42))
    return Asked(
        topics=None if topics is None else tuple(topics),
        partitions=None if partitions is None else tuple(partitions),
        starts=bounds[0],
        ends=bounds[1],
        # A time and offsets exclude each other.
        start_ms=None if bounds[0] else draw(times),
        end_ms=None if bounds[1] else draw(times),
        committed=draw(st.booleans()),
        control=draw(st.booleans()),
        split=draw(st.sampled_from([1, 300, 5000, 2**25])),
        columns=tuple(draw(st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True) | st.just(COLUMNS))),
    )


def found(path: object, options: Mapping[str, str]) -> list[Row]:
    """Return the rows of the source, which must be undamaged, without the damage column."""
    rows = read(KafkaLogSource, path, **options)
    assert not [row["_error"] for row in rows if row["_error"]]
    return [{name: value for name, value in row.items() if name != "_error"} for row in rows]


EXAMPLES: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("home", HOMES)
def test_every_option_means_what_kafka_reads(home: str) -> None:
    known = places(home)

    @EXAMPLES
    @given(asked(known))
    def check(case: Asked) -> None:
        assert found(HOMES[home], case.options()) == [row for place in known for row in case.rows(place)]

    check()


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """Run a server with each recording in a separate bucket."""
    with s3_server() as made:
        for home, directory in HOMES.items():
            made.store().create_dir(home)
            fs.copy_files(str(directory), home, fs.LocalFileSystem(), made.store())
        yield made


@pytest.mark.parametrize("home", HOMES)
def test_options_mean_the_same_elsewhere(home: str, server: S3Server) -> None:
    known = places(home)

    @settings(EXAMPLES, max_examples=10)
    @given(asked(known))
    def check(case: Asked) -> None:
        expected = [row for place in known for row in case.rows(place)]
        assert found(f"s3a://{home}", case.options() | server.settings) == expected

    check()


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize(
    "form", ["{}", "{}/", "{}/*-?", "{}/*/*.log", "file://{}", "file:{}/*-[0-9]", "{}/{{*-0,*-[1-9]}}"]
)
def test_every_form_of_path_gives_all_rows(home: str, form: str) -> None:
    rows = found(form.format(HOMES[home]), {"columns": ",".join(COLUMNS), "control": "true"})
    in_order = sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))
    assert in_order == [{name: row[name] for name in COLUMNS} for place in places(home) for row in place.rows]


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("control", [False, True])
def test_tables_without_spark_have_the_same_rows(home: str, control: bool) -> None:
    table = LogTable(HOMES[home], columns=COLUMNS, control=control).reader().read_all()
    expected = [row for place in places(home) for row in place.rows if control or not row["control"]]
    assert table.select(COLUMNS).to_pylist() == [{name: row[name] for name in COLUMNS} for row in expected]
