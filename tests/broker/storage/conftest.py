"""Fixtures of the partition log tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.storage.oracle import StorageOracle


@pytest.fixture(scope="session")
def kafka_log() -> Iterator[StorageOracle]:
    """Yield Kafka's own log, shared by all tests of a process."""
    oracle = StorageOracle()
    yield oracle
    oracle.close()
