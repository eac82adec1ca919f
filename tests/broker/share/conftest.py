"""Fixtures of the share partition tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.share.oracle import ShareOracle


@pytest.fixture(scope="session")
def kafka_share_partition() -> Iterator[ShareOracle]:
    """Yield Kafka's own share partition, shared by all tests of a process."""
    oracle = ShareOracle()
    yield oracle
    oracle.close()
