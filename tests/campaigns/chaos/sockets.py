"""A run of real clients, under a fault script or while the broker process is killed repeatedly."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Thread
from typing import Final

from attrs import evolve

from kafka_msgs.admin import Admin, GroupDescription
from kafka_msgs.broker import EmbeddedBroker, ListenerConfig
from kafka_msgs.broker.faults import Disconnect, DropResponse
from kafka_msgs.testing import new_topic, topic_records
from tests.campaigns.chaos.checker import judge, undecided, unread
from tests.campaigns.chaos.clients import CLIENTS, TRANSACTIONAL_IDS, live
from tests.campaigns.chaos.ownership_checker import Owners
from tests.campaigns.chaos.run import Run
from tests.campaigns.chaos.settings import BROKERS, CONFIGS, GROUPS, PARTITIONS, TOPICS
from tests.campaigns.chaos.simulation import Report, chaos_of
from tests.support.free_ports import consecutive_free_ports

__all__ = ["run_killed", "run_with_faults"]

_PATIENCE: Final = 120.0


def run_with_faults(seed: int, seconds: float) -> Report:
    """Run all clients under the script of a seed, without damaged bytes and clock jumps, and return the verdict."""
    effects = DropResponse(), Disconnect(), DropResponse(reset=True)
    chaos = evolve(chaos_of(seconds, TRANSACTIONAL_IDS), effects=effects, jump_ms=0, full_disk=False)
    first = consecutive_free_ports(BROKERS)
    begun = time.monotonic()
    with EmbeddedBroker(brokers=BROKERS, configs=CONFIGS, listeners=(ListenerConfig(port=first),)) as broker:
        for topic in TOPICS:
            new_topic(broker, topic, partitions=PARTITIONS, replicas=BROKERS, min_insync_replicas="1")
        run = Run(broker.bootstrap_servers)
        owners = broker.run(lambda cluster: Owners(cluster, run.ledger.broken))
        with _clients(run) as threads:
            broker.run_fault_script(chaos.script(seed))
            time.sleep(seconds)
            _come_to_rest(broker, run, threads)
        return _report(broker, run, begun, owners.answers)


def run_killed(seed: int, seconds: float, directory: Path) -> Report:
    """Run all clients while the process of a broker with a directory is killed and restarted; return the verdict."""
    port, dice, begun = consecutive_free_ports(1), Random(seed), time.monotonic()
    with EmbeddedBroker(directory=directory, configs=CONFIGS) as broker:
        for topic in TOPICS:
            new_topic(broker, topic, partitions=PARTITIONS)
    run = Run(f"127.0.0.1:{port}")
    with _clients(run) as threads:
        while time.monotonic() < begun + seconds:
            with _process(port, directory):
                time.sleep(dice.uniform(1, 3))
        listeners = (ListenerConfig(port=port),)
        with EmbeddedBroker(directory=directory, configs=CONFIGS, listeners=listeners) as broker:
            _come_to_rest(broker, run, threads)
            return _report(broker, run, begun, None)


@contextmanager
def _process(port: int, directory: Path) -> Iterator[None]:
    """Run the broker command, and kill it at the end."""
    settings = [part for name, value in CONFIGS.items() for part in ("--config", f"{name}={value}")]
    command = [sys.executable, "-m", "kafka_msgs", "broker", "--port", str(port), "--dir", str(directory)]
    with subprocess.Popen([*command, *settings], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "the broker did not start"
            yield
        finally:
            process.kill()


@contextmanager
def _clients(run: Run) -> Iterator[list[Thread]]:
    threads = [Thread(target=live, args=(run, kind), name=kind, daemon=True) for kind in CLIENTS]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        _end(run, threads)


def _end(run: Run, threads: list[Thread]) -> None:
    run.writers_end.set()
    run.readers_end.set()
    for thread in threads:
        thread.join(_PATIENCE)
        if thread.is_alive():
            run.ledger.broken.append(f"{thread.name} does not end: {_place_of(thread)}")


def _place_of(thread: Thread) -> str:
    """Return the stack of a thread, which shows where it waits."""
    frame = sys._current_frames().get(thread.ident or 0)
    return " > ".join(f"{each.name}:{each.lineno}" for each in traceback.extract_stack(frame)[-5:])


def _come_to_rest(broker: EmbeddedBroker, run: Run, threads: list[Thread]) -> None:
    """End the writers, wait until the readers have read everything, and end the readers."""
    run.writers_end.set()
    limit = time.monotonic() + _PATIENCE
    while (behind := unread(broker, GROUPS) + undecided(broker)) and time.monotonic() < limit:
        time.sleep(0.5)
    if behind:
        run.ledger.broken += [*behind, *_described(broker)]
    _end(run, threads)


def _described(broker: EmbeddedBroker) -> list[str]:
    """Describe the members of each group with their assignments."""
    with Admin(broker.bootstrap_servers) as admin:
        found = admin.describe_groups(list(GROUPS)).outcomes.values()
    return [
        f"{group.group_id} is {group.state}: "
        + ", ".join(f"{member.client_id} has {sorted(member.assignment)}" for member in group.members)
        for group in found
        if isinstance(group, GroupDescription)
    ]


def _report(broker: EmbeddedBroker, run: Run, begun: float, requests: int | None) -> Report:
    judge(broker, run.ledger, GROUPS)
    records = sum(len(topic_records(broker, topic)) for topic in TOPICS)
    return Report(run.ledger.broken, records, requests, len(run.lives), time.monotonic() - begun)
