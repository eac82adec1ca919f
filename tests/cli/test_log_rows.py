"""Rows of files with arbitrary content."""

from __future__ import annotations

import json
from pathlib import Path

from crc32c import crc32c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_msgs.binary_layouts import CRC_START
from kafka_msgs.cli.render.log_files import LogDumpOptions, rows
from kafka_msgs.internal_topics.records import TOPICS
from kafka_msgs.log.file_scan import read_log
from kafka_msgs.log.summary import LogSummary
from tests.support.recordings import LOGS, TIERED_LOGS

FOLDERS = (LOGS, TIERED_LOGS)
FILES = sorted(
    path
    for folder in FOLDERS
    for path in folder.rglob("*")
    if path.is_file() and path.suffix != ".txt" and path.stat().st_size
)
BATCHES = [path for path in FILES if path.suffix in (".log", ".checkpoint")]
ALL_KINDS = frozenset({"batch", "record", "entry"})
ANY_TOPIC = st.sampled_from((None, *TOPICS))
FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)


def change(data: st.DataObject, content: bytearray, start: int, end: int) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(start, end - 1))] = data.draw(st.integers(0, 255))


def end_in_rows(path: Path, topic: str | None) -> None:
    summary = LogSummary()
    found = list(rows(path, LogDumpOptions(kinds=ALL_KINDS, topic=topic), summary, lambda position: None))
    json.dumps([row.facts for row in found])
    assert summary.errors == sum(row.kind == "error" for row in found)
    assert summary.batches <= sum(row.kind == "batch" for row in found)


@FUZZ
@given(data=st.data(), topic=ANY_TOPIC)
def test_any_damage_ends_in_rows(tmp_path: Path, data: st.DataObject, topic: str | None) -> None:
    source = data.draw(st.sampled_from(FILES))
    content = bytearray(source.read_bytes())
    change(data, content, 0, len(content))
    path = tmp_path / source.name
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    end_in_rows(path, topic)


@FUZZ
@given(data=st.data(), topic=ANY_TOPIC)
def test_batches_that_were_wrong_from_the_start_end_in_rows(
    tmp_path: Path, data: st.DataObject, topic: str | None
) -> None:
    """Their checksums are right, so the commands read their contents."""
    source = data.draw(st.sampled_from(BATCHES))
    content = bytearray(source.read_bytes())
    batch = data.draw(st.sampled_from(list(read_log(source))))
    end = batch.position + batch.size
    change(data, content, batch.position + CRC_START, end)
    covered = content[batch.position + CRC_START : end]
    content[batch.position + CRC_START - 4 : batch.position + CRC_START] = crc32c(covered).to_bytes(4, "big")
    path = tmp_path / source.name
    path.write_bytes(content)
    end_in_rows(path, topic)
