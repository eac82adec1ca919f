"""A run of the campaign on one cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from attrs import Factory, define, frozen

from tests.campaigns.soak.clients import CLIENTS, Client, running, topic_of
from tests.campaigns.soak.clusters import CLUSTERS
from tests.campaigns.soak.faults import Fault, Scene
from tests.campaigns.soak.history import Totals
from tests.campaigns.soak.worker import PATIENCE

__all__ = ["Outcome", "Stall", "soak"]

_START_SECONDS: Final = 240.0
_READ_SECONDS: Final = 60.0


@frozen
class Stall:
    """The longest pause of a client around a fault, in seconds: of its acknowledgements, and of its reads."""

    fault: str
    client: str
    writes: float
    reads: float


@define
class Outcome:
    """The result of a run. ``broken`` lists the broken promises of each client, ``errors`` what ended its parts."""

    cluster: str
    seconds: float = 0.0
    stalls: list[Stall] = Factory(list)
    totals: dict[str, Totals] = Factory(dict)
    broken: dict[str, list[str]] = Factory(dict)
    errors: dict[str, list[str]] = Factory(dict)


def soak(
    kind: str,
    names: Sequence[str],
    faults: Sequence[Fault],
    seconds: float,
    *,
    seed: int = 1,
    settle: float = 6.0,
    note: Callable[[str], object] = print,
) -> Outcome:
    """Run clients on a cluster, with one fault after another for some seconds, and judge them.

    After each fault the clients have ``settle`` seconds to recover. ``note`` takes lines of progress. Every wait has
    a limit, so a run ends at most a few minutes after its time.
    """
    outcome = Outcome(kind)
    commands = {name: CLIENTS[name]() for name in names}
    topics = [topic_of(name) for name in names]
    with CLUSTERS[kind]() as cluster, TemporaryDirectory() as home:
        cluster.create(topics)
        cluster.restore(topics)
        with running(commands, cluster.servers, Path(home)) as clients:
            _await(lambda: not _idle(clients), _START_SECONDS)
            assert not _idle(clients), f"after {_START_SECONDS:.0f} s, {_idle(clients)} have read nothing"
            begun = time.monotonic()
            note(f"{kind}: {len(clients)} clients are reading and writing")
            dice = Random(seed)
            for fault, node in zip(_shuffled(faults, dice), cycle(cluster.nodes), strict=False):
                if time.monotonic() > begun + seconds:
                    break
                stalls = _suffer(fault, Scene(cluster, clients, node), settle)
                outcome.stalls += stalls
                shown = ", ".join(f"{each.client} {each.writes:.1f}/{each.reads:.1f}" for each in stalls)
                note(f"{kind} {time.monotonic() - begun:4.0f} s, {fault.name}: {shown}")
            outcome.seconds = time.monotonic() - begun
            _drain(clients, note)
    for client in clients:
        outcome.totals[client.name] = client.history.totals
        outcome.broken[client.name] = client.history.broken
        outcome.errors[client.name] = client.history.errors
    return outcome


def _shuffled(faults: Sequence[Fault], dice: Random) -> Iterator[Fault]:
    """Yield all faults in a random order, again and again."""
    while True:
        yield from dice.sample(faults, len(faults))


def _suffer(fault: Fault, scene: Scene, settle: float) -> list[Stall]:
    """Apply a fault, measure all clients, and restore the cluster."""
    begun = _now()
    fault.begin(scene)
    time.sleep(fault.seconds)
    fault.end(scene)
    time.sleep(settle)
    ended = _now()
    scene.cluster.restore(scene.topics)
    time.sleep(settle / 4)
    return [
        Stall(
            fault.name,
            each.name,
            each.history.stall(begun, ended),
            each.history.stall(begun, ended, reads=True),
        )
        for each in scene.clients
    ]


def _drain(clients: Sequence[Client], note: Callable[[str], object]) -> None:
    """End the writers, let the readers read everything, and end the clients."""
    note("draining")
    for client in clients:
        client.drain()
    _await(lambda: all(each.history.drained for each in clients), PATIENCE + 20)
    _await(lambda: not any(each.history.unread for each in clients), _READ_SECONDS)
    for client in clients:
        client.end()


def _idle(clients: Sequence[Client]) -> list[str]:
    """Return the clients without a single read record, with their errors."""
    return [f"{each.name} {each.history.errors}" for each in clients if not each.history.totals.read]


def _await(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds, for a limited time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)


def _now() -> int:
    return int(time.time() * 1000)
