"""Runs every codec test over every executor."""

from __future__ import annotations

import pytest

from kafka_msgs.codec.executors import EXECUTORS
from tests.support.codecs import Codecs


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> str:
    """The name of an executor."""
    return str(request.param)


@pytest.fixture
def codecs(executor: str) -> Codecs:
    """The codecs of one executor."""
    return Codecs(executor)
