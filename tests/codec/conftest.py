"""Runs every codec test with every executor."""

from __future__ import annotations

import pytest

from kafka_msgs.codec.executors import EXECUTORS
from tests.support.codecs import Codecs


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> str:
    """Return the name of an executor."""
    return str(request.param)


@pytest.fixture
def codecs(executor: str) -> Codecs:
    """Return the codecs of one executor."""
    return Codecs(executor)
