"""Random commands on two share partitions, Kafka's and this library's: equal responses, writes and states.

``python -m tests.broker.share.campaign FIRST LAST`` runs more seeds.
"""

from __future__ import annotations

import pytest

from kafka_msgs.broker.share import acquisition
from tests.broker.share.lockstep import play
from tests.broker.share.oracle import ShareOracle
from tests.broker.share.scripts import Script


def play_all(oracle: ShareOracle) -> None:
    for seed in range(25):
        play(Script(seed), oracle)


def test_a_share_partition(kafka_share_partition: ShareOracle) -> None:
    play_all(kafka_share_partition)


def test_a_difference_is_noticed(kafka_share_partition: ShareOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acquisition, "_FEW_DELIVERIES", 3)
    with pytest.raises(AssertionError, match="Script"):
        play_all(kafka_share_partition)
