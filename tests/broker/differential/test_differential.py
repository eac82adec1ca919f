"""Requests whose responses once differed; ``python -m tests.broker.differential`` runs random scripts.

Random scripts contain transactions, whose markers a real cluster writes in the background. On a busy machine this may
take very long, so random scripts are not part of the test suite.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.broker.differential.campaign import Campaign
from tests.broker.differential.clusters import embedded_side, kafka_side
from tests.broker.differential.scripts import opening
from tests.support.kafka_cluster import ClusterAddresses

FOUND: Final = Path(__file__).parent / "found.jsonl"
"""The requests, one per line."""


@pytest.fixture
def campaign(kafka_cluster: ClusterAddresses) -> Iterator[Campaign]:
    with kafka_side(kafka_cluster) as kafka, embedded_side(kafka) as (ours, broker):
        yield Campaign(kafka, ours, f"d{uuid4().hex[:8]}x")
        assert broker.problems == []


def test_requests_that_were_answered_differently_once_are_not_any_more(campaign: Campaign) -> None:
    commands = [json.loads(line) for line in FOUND.read_text(encoding="utf-8").splitlines()]

    assert list(campaign.differences([*opening(), *commands])) == []
