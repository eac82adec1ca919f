"""Random commands on two logs, Kafka's and this library's: equal responses, equal state, and byte-identical files.

``python -m tests.broker.storage.campaign FIRST LAST`` runs more seeds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.storage.campaign import play
from tests.broker.storage.oracle import StorageOracle
from tests.broker.storage.scripts import Script


@pytest.mark.parametrize("first", [0, 6])
def test_a_log_that_stays_open(first: int, kafka_log: StorageOracle, tmp_path: Path) -> None:
    for seed in range(first, first + 6):
        play(Script(seed, reopens=False), kafka_log, tmp_path / str(seed))


@pytest.mark.parametrize("first", [1000, 1006])
def test_a_log_that_is_opened_again(first: int, kafka_log: StorageOracle, tmp_path: Path) -> None:
    for seed in range(first, first + 6):
        play(Script(seed), kafka_log, tmp_path / str(seed))


@pytest.mark.parametrize("first", [2000, 2005])
def test_a_log_that_is_compacted(first: int, kafka_log: StorageOracle, tmp_path: Path) -> None:
    for seed in range(first, first + 5):
        play(Script(seed, compacts=True), kafka_log, tmp_path / str(seed))
