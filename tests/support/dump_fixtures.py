"""Recorded log directories, with the output of Kafka's own dump tool."""

from __future__ import annotations

from pathlib import Path

from tests.support.kafka_dump import sections
from tests.support.recordings import LOG_PARTITIONS as PARTITIONS
from tests.support.recordings import LOGS, TIERED_LOGS, TIERED_PARTITIONS

RECORDED = [LOGS / name for name in PARTITIONS] + [TIERED_LOGS / name for name in TIERED_PARTITIONS]


DUMPED = {path / file: lines for path in RECORDED for file, lines in sections(path).items()}


def files(suffix: str) -> list[Path]:
    return [path for path in DUMPED if path.suffix == suffix]


def named(paths: list[Path]) -> list[str]:
    return [f"{path.parent.name}/{path.name}" for path in paths]


BATCHES = files(".log") + files(".checkpoint")
