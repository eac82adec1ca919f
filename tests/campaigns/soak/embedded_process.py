"""An embedded cluster in a separate process: ``PORT ADVERTISED_PORT BROKERS``.

Each line on the standard input is a command: ``kill 0``, ``stop 0``, ``start 0``, or ``lead SHIFT TOPIC ...``, which
makes broker (partition + shift) the leader of each partition. The process answers ``done``, and ends with its input.
"""

from __future__ import annotations

import sys
from functools import partial

from kafka_msgs.broker import EmbeddedBroker, ListenerConfig
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.faults import MoveLeader
from tests.campaigns.chaos.settings import CONFIGS
from tests.campaigns.soak.protocol import PARTITIONS


def main(port: str, advertised: str, brokers: str) -> None:
    """Run the cluster until the input ends."""
    listener = ListenerConfig(port=int(port), advertised_host="127.0.0.1", advertised_port=int(advertised))
    configs = {**CONFIGS, "auto.create.topics.enable": "false"}
    with EmbeddedBroker(brokers=int(brokers), listeners=(listener,), configs=configs) as broker:
        print("done", flush=True)
        for line in sys.stdin:
            match line.split():
                case ["kill", number]:
                    broker.kill_broker(int(number))
                case ["stop", number]:
                    broker.stop_broker(int(number))
                case ["start", number]:
                    broker.start_broker(int(number))
                case ["lead", shift, *topics]:
                    broker.run(partial(_lead, int(shift), topics))
            print("done", flush=True)
        for problem in broker.problems:
            print(f"problem: {problem!r}", file=sys.stderr)


def _lead(shift: int, topics: list[str], cluster: Cluster) -> None:
    for topic in topics:
        for partition in range(PARTITIONS):
            MoveLeader(topic, partition, (partition + shift) % len(cluster.brokers)).apply(cluster)


if __name__ == "__main__":
    main(*sys.argv[1:])
