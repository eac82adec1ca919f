"""A bounded part of the differential campaign; ``python -m tests.coordinator.campaign`` runs any number of commands."""

from __future__ import annotations

from itertools import product

import pytest

from tests.coordinator.campaign import Campaign, Ours
from tests.coordinator.oracle import CoordinatorOracle
from tests.coordinator.scripts import KINDS, PROTOCOLS

_SCRIPTS = 4
"""Scripts of about 200 commands each, for every protocol and kind."""


@pytest.mark.parametrize(("protocol", "kind"), list(product(PROTOCOLS, KINDS)))
def test_random_scripts_do_the_same_with_kafka(kafka_coordinator: CoordinatorOracle, protocol: str, kind: str) -> None:
    campaign = Campaign(kafka_coordinator, Ours())

    differences = [campaign.run(protocol, kind, f"sample {number}") for number in range(_SCRIPTS)]

    assert differences == [None] * _SCRIPTS
