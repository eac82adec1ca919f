"""A partition's whole log, remote and local, is what a consumer of its broker reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.support.recordings import REMOTE_TIER

TIER, LOG = REMOTE_TIER / "tier", REMOTE_TIER / "log"
WHOLE: Final = {"remoteMetadata": str(LOG), "localLog": str(LOG), "topics": "orders"}
ROWS: Final = {"columns": "partition,offset,timestampMs,leaderEpoch,key,value,headers"}

Row = tuple[Any, ...]


def rows(options: Mapping[str, str], tier: Path = TIER) -> list[Row]:
    """Return what the source yields, split by split, as Spark's tasks ask for it."""
    source = KafkaLogSource({"path": str(tier)} | ROWS | options)
    reader = source.reader(source.schema())
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    found = [row for batch in batches for row in batch.to_pylist()]
    assert [row["_error"] for row in found if row["_error"]] == []
    return sorted(map(row_of, found))


def row_of(row: dict[str, Any]) -> Row:
    headers = tuple((each["key"], each["value"].decode()) for each in row["headers"] or ())
    facts = (row["partition"], row["offset"], row["timestampMs"], row["leaderEpoch"])
    return *facts, row["key"].decode(), row["value"].decode(), headers


def consumed(isolation: str = "read_uncommitted") -> list[Row]:
    """Return what consumers got from the broker."""
    lines = map(json.loads, (REMOTE_TIER / "consumed.jsonl").read_text().splitlines())
    return sorted(
        (
            *(line[name] for name in ("partition", "offset", "timestamp", "leaderEpoch", "key", "value")),
            tuple(map(tuple, line["headers"])),
        )
        for line in lines
        if line["isolation"] == isolation
    )


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("size", ["100", "1500", "32m"])
def test_tier_and_log_directory_give_what_consumers_get(isolation: str, size: str) -> None:
    assert rows(WHOLE | {"isolation": isolation, "splitBytes": size}) == consumed(isolation)
