"""An embedded cluster in a separate process: ``PORT ADVERTISED_PORT BROKERS``.

Each line on the standard input is a command: ``kill 0``, ``stop 0``, ``start 0`` or ``lead TOPIC PARTITION 0``. The
process answers ``done``, and ends with its input.
"""

from __future__ import annotations

import sys

from kafka_msgs.broker import EmbeddedBroker, ListenerConfig
from tests.campaigns.chaos.settings import CONFIGS


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
                case ["lead", topic, partition, number]:
                    broker.move_leader(topic, int(partition), int(number))
            print("done", flush=True)
        for problem in broker.problems:
            print(f"problem: {problem!r}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
