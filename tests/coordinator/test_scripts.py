"""Random scripts are valid and repeatable, and reach many kinds of responses."""

from __future__ import annotations

from itertools import product

import pytest

from tests.coordinator.coverage_counts import Tally
from tests.coordinator.history import record
from tests.coordinator.oracle import Command, CoordinatorOracle
from tests.coordinator.scripts import KINDS, PROTOCOLS, random_script
from tests.coordinator.shrinking import shrink

_SCRIPTS = 4


@pytest.mark.parametrize(("protocol", "kind"), list(product(PROTOCOLS, KINDS)))
def test_scripts_are_sound_and_reach_answers_of_many_kinds(
    kafka_coordinator: CoordinatorOracle, protocol: str, kind: str
) -> None:
    tally = Tally()
    for number in range(_SCRIPTS):
        history = record(random_script(protocol, kind, f"sound {number}"), kafka_coordinator)
        assert [result["error"] for result in history.results if "error" in result] == []
        tally.add(history)

    errors = {error for _, error in tally.answers}
    assert {"NONE", "NOT_COORDINATOR"} < errors
    assert len(errors) > 5
    assert sum(tally.records.values()) > 20


def test_a_script_is_the_same_every_time(kafka_coordinator: CoordinatorOracle) -> None:
    first, second = (record(random_script("streams", "steered", "same"), kafka_coordinator) for _ in range(2))

    assert first == second


def test_shrinking_keeps_what_matters_in_order() -> None:
    commands: list[Command] = [{"op": "start"}, *({"op": "advance", "ms": number} for number in range(100))]

    def differs(candidate: list[Command]) -> bool:
        numbers = [command["ms"] for command in candidate[1:]]
        return 17 in numbers and 60 in numbers

    assert shrink(commands, differs) == [{"op": "start"}, {"op": "advance", "ms": 17}, {"op": "advance", "ms": 60}]
