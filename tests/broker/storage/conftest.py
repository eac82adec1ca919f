"""Fixtures of the tests of partitions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.storage.oracle import StorageOracle


@pytest.fixture(scope="session")
def kafka_log() -> Iterator[StorageOracle]:
    """Kafka's own log, which serves all tests of a process."""
    oracle = StorageOracle()
    yield oracle
    oracle.close()
