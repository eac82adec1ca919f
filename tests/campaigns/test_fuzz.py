"""A small part of the fuzzing campaign; ``make fuzz`` runs longer, guided by coverage."""

from __future__ import annotations

from random import Random

import pytest

from kafka_msgs._backend import BACKENDS
from tests.support.damage import mutated

if "c" not in BACKENDS:
    pytest.skip("the C core is not built", allow_module_level=True)

from tests.campaigns.fuzz.targets import TARGETS

SEEDS = 300


@pytest.mark.parametrize("name", TARGETS)
def test_the_property_holds_for_seeds_and_for_damage_to_them(name: str) -> None:
    target, rng = TARGETS[name], Random(name)
    seeds = [seed for seed in target.seeds() if len(seed) <= target.MAX_SIZE]
    assert len(seeds) >= SEEDS
    for seed in rng.sample(seeds, SEEDS):
        target.check(seed)
        target.check(mutated(rng, seed))


@pytest.mark.parametrize(
    ("name", "function"),
    [("headers", "kafka_msgs.log.native.count_batches"), ("records", "kafka_msgs.records.native.read")],
)
def test_a_core_that_differs_breaks_the_property(name: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next(iter(TARGETS[name].seeds()))
    TARGETS[name].check(seed)
    monkeypatch.setattr(function, lambda *_: (None,))
    with pytest.raises(AssertionError):
        TARGETS[name].check(seed)
