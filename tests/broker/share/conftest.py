"""Fixtures of the tests of share partitions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.share.oracle import ShareOracle


@pytest.fixture(scope="session")
def kafka_share_partition() -> Iterator[ShareOracle]:
    """Kafka's own share partition, which serves all tests of a process."""
    oracle = ShareOracle()
    yield oracle
    oracle.close()
