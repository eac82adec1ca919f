"""Fourteen faults of brokers, connections and client processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from tests.campaigns.soak.clients import Client
from tests.campaigns.soak.clusters import SoakCluster
from tests.campaigns.soak.proxy import Proxy

__all__ = ["BRIEF", "FAULTS", "Fault", "Scene"]


@frozen(eq=False)
class Scene:
    """The cluster, the clients, and the broker that the next fault affects."""

    cluster: SoakCluster
    clients: Sequence[Client]
    node: int

    @property
    def topics(self) -> list[str]:
        """The topics of all clients."""
        return [each.topic for each in self.clients]

    @property
    def proxy(self) -> Proxy:
        """The proxy of the broker."""
        return self.cluster.proxy_of(self.node)


Action = Callable[[Scene], object]


@frozen
class Fault:
    """A fault that begins, lasts some seconds, and ends. Recovery times are measured from its begin."""

    name: str
    begin: Action
    seconds: float = 0.0
    end: Action = lambda _: None


def _kill_all(scene: Scene) -> None:
    for node in scene.cluster.nodes:
        scene.cluster.kill(node)


def _start_all(scene: Scene) -> None:
    for node in scene.cluster.nodes:
        scene.cluster.launch(node)
    scene.cluster.await_all()


def _restart_each(scene: Scene) -> None:
    for node in scene.cluster.nodes:
        scene.cluster.stop(node)
        time.sleep(1)
        scene.cluster.start(node)
        time.sleep(2)


def _kill(scene: Scene) -> None:
    scene.cluster.kill(scene.node)


def _stop(scene: Scene) -> None:
    scene.cluster.stop(scene.node)


def _start(scene: Scene) -> None:
    scene.cluster.start(scene.node)


def _pause(scene: Scene) -> None:
    scene.cluster.pause(scene.node)


def _resume(scene: Scene) -> None:
    scene.cluster.resume(scene.node)


def _delayed(seconds: float) -> Action:
    return lambda scene: scene.cluster.proxies.all(lambda each: each.delay(seconds))


def _cut_after(size: int) -> Action:
    return lambda scene: scene.cluster.proxies.all(lambda each: each.cut_after(size))


def _refusing(refusing: bool) -> Action:
    return lambda scene: scene.proxy.refuse(refusing)


def _silent(silent: bool) -> Action:
    return lambda scene: scene.proxy.swallow(silent)


def _freeze_clients(scene: Scene) -> None:
    for client in scene.clients:
        client.freeze()


def _thaw_clients(scene: Scene) -> None:
    for client in scene.clients:
        client.thaw()


def _reset(scene: Scene) -> None:
    scene.cluster.proxies.all(Proxy.reset)


def _reset_often(scene: Scene) -> None:
    for _ in range(10):
        _reset(scene)
        time.sleep(0.3)


FAULTS: Final = (
    Fault("broker killed", _kill, 3, _start),
    Fault("broker stopped", _stop, 3, _start),
    Fault("all brokers killed", _kill_all, 2, _start_all),
    Fault("rolling restart", _restart_each),
    Fault("broker frozen for 2 s", _pause, 2, _resume),
    Fault("broker frozen for 8 s", _pause, 8, _resume),
    Fault("leaders moved", lambda scene: scene.cluster.move_leaders(scene.topics, 1)),
    Fault("connections reset once", _reset),
    Fault("connections reset for 3 s", _reset_often),
    Fault("broker refuses for 3 s", _refusing(True), 3, _refusing(False)),
    Fault("broker silent for 8 s", _silent(True), 8, _silent(False)),
    Fault("delay of 300 ms", _delayed(0.3), 4, _delayed(0)),
    Fault("cut after 4 kB", _cut_after(4096), 4, _cut_after(0)),
    Fault("clients frozen for 12 s", _freeze_clients, 12, _thaw_clients),
)
_BRIEF: Final = {"broker killed", "connections reset once", "leaders moved", "cut after 4 kB"}
BRIEF: Final = tuple(each for each in FAULTS if each.name in _BRIEF)
"""The faults of the short form."""
