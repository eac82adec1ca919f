"""The differential campaign of the embedded broker.

    python -m tests.broker.differential --seed 1 --commands 10000

Starts a real cluster and runs random scripts on it and on an embedded one. Prints the coverage and the first difference
of each kind, and saves its shrunk script as JSON lines in the directory ``--save``. Exits with status 1 if there is a
difference. ``--cluster`` names a file with the addresses of a running cluster (``ClusterAddresses.to_json``) that has
the configs ``clusters.TIMELESS``. ``--script`` runs a saved script.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.broker.differential.campaign import Campaign
from tests.broker.differential.clusters import TIMELESS, embedded_side, kafka_side
from tests.broker.differential.comparison import Difference
from tests.broker.differential.tested_cluster import Command
from tests.support.kafka_cluster import ClusterAddresses, KafkaCluster, cluster_needs


def main() -> int:
    """Run the campaign; return 0 without a difference, 1 with a difference, 2 without a cluster."""
    options = _options()
    reason = None if options.cluster else cluster_needs()
    if reason is not None:
        print(f"NOT RUN: {reason}")
        return 2
    name = f"d{int(time.time()) % 10**6}x"
    with (
        _cluster(options.cluster) as cluster,
        kafka_side(cluster) as kafka,
        embedded_side(kafka, TIMELESS) as (ours, broker),
    ):
        campaign = Campaign(kafka, ours, name)
        if options.script is not None:
            commands = [json.loads(line) for line in options.script.read_text(encoding="utf-8").splitlines()]
            for difference in campaign.differences(commands):
                _show_places(difference)
            return 0
        _run(campaign, options)
        print(campaign.tally.report(campaign.versions()))
        print(f"{campaign.differing} scripts differ")
        for kind, (difference, commands) in campaign.found.items():
            short = commands if options.whole else campaign.shrunk(difference, commands)
            _save(kind, short, difference, options.save)
        for problem in broker.problems:
            print(f"a problem of the broker: {problem!r}")
        return 1 if campaign.found or broker.problems else 0


def _run(campaign: Campaign, options: argparse.Namespace) -> None:
    started, number = time.monotonic(), 0
    shown: set[str] = set()
    while campaign.tally.commands < options.commands and len(campaign.found) < options.kinds:
        seed = f"{options.seed}-{number}"
        differences = campaign.run(seed, options.length)
        number += 1
        for kind in campaign.found.keys() - shown:
            print(f"    new: {kind}")
            shown.add(kind)
        seconds = time.monotonic() - started
        print(
            f"{seed}: {len(differences)} differences; {campaign.tally.commands} commands, {seconds:.0f} s", flush=True
        )


@contextmanager
def _cluster(path: Path | None) -> Iterator[ClusterAddresses]:
    if path is not None:
        yield ClusterAddresses.from_json(path.read_text(encoding="utf-8"))
        return
    with KafkaCluster(settings=TIMELESS) as cluster:
        yield cluster


def _show_places(difference: Difference) -> None:
    command = difference.command
    print(f"{difference.at} {json.dumps(command)[:500]}")
    for place in difference.places[:4]:
        print(f"    {place.path}\n      Kafka {str(place.kafka)[:300]!r}\n      ours  {str(place.ours)[:300]!r}")


def _save(kind: str, commands: list[Command], difference: Difference, directory: Path) -> None:
    """Print a difference and save its script."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (re.sub(r"\W+", "-", kind).strip("-")[:100] + ".jsonl")
    path.write_text("".join(json.dumps(command) + "\n" for command in commands), encoding="utf-8")
    print(f"\n{kind}: {len(commands)} commands in {path}")
    _show_places(difference)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--commands", type=int, default=5_000, help="how many commands, at least")
    parser.add_argument("--length", type=int, default=60, help="random commands of one script")
    parser.add_argument("--kinds", type=int, default=20, help="end after so many kinds of differences")
    parser.add_argument("--save", type=Path, default=Path("build/differences"), help="where short scripts go")
    parser.add_argument("--whole", action="store_true", help="do not make scripts short")
    parser.add_argument("--cluster", type=Path, help="a file with the addresses of a running cluster")
    parser.add_argument("--script", type=Path, help="run this script instead of random ones")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
