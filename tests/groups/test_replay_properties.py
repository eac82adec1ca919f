"""The state of a coordinator always equals the replay of its log.

Random scripts run on this library's coordinator alone. Simulated clients steer half of the scripts. Appends fail and
are held, partitions move, transactions are open, and topics are created and deleted. Quirks of the release are off.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from kafka_msgs.groups.compat.quirks import Quirks
from tests.coordinator.oracle import Command
from tests.coordinator.player import Player
from tests.coordinator.scripts import KINDS, PROTOCOLS, random_script
from tests.support.group_facts import compacted, facts, replayed

_SCRIPTS = 3
_EVERY = 7


def _players(protocol: str, kind: str) -> Iterator[tuple[Player, Command, int]]:
    """Yield the player after each command of some scripts."""
    for seed in range(_SCRIPTS):
        player = Player(Quirks())
        script = random_script(protocol, kind, f"replay {seed}")
        commands = next(script)
        number = 0
        while True:
            results = []
            for command in commands:
                results.append(player.do(command))
                number += 1
                yield player, command, number
            try:
                commands = script.send(results)
            except StopIteration:
                break


@pytest.mark.parametrize(("protocol", "kind"), list(product(PROTOCOLS, KINDS)))
def test_the_state_is_the_replay_of_the_log_and_of_the_compacted_log(protocol: str, kind: str) -> None:
    compared = 0
    for player, command, number in _players(protocol, kind):
        if number % _EVERY:
            continue
        for partition, shard in player.coordinator.shards.items():
            log = player.log.records(partition)
            state = facts(shard.state)
            assert facts(replayed(log)) == state, command
            assert facts(replayed(compacted(log))) == state, command
            compared += 1
    assert compared > 5
