"""Runs the scenarios: ``python -m tests.campaigns.connect [--scenario mirror]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from tests.campaigns.connect.clusters import CLUSTERS
from tests.campaigns.connect.file_copies import distributed, standalone
from tests.campaigns.connect.mirrors import mirror
from tests.support.kafka_cluster import cluster_needs


@frozen
class Scenario:
    """A scenario, and the clusters whose addresses it receives."""

    run: Callable[..., str]
    clusters: tuple[str, ...]


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "distributed": Scenario(distributed, ("embedded",)),
    "standalone": Scenario(standalone, ("embedded",)),
    "mirror": Scenario(mirror, ("embedded", "embedded")),
    "mirror-from-kafka": Scenario(mirror, ("kafka", "embedded")),
    "mirror-to-kafka": Scenario(mirror, ("embedded", "kafka")),
}


def main() -> int:
    """Run the scenarios; return 0 if all succeed, 1 if one fails, 2 if they cannot run here."""
    options = _options()
    reason = cluster_needs()
    if reason is not None:
        print(f"NOT RUN: {reason}")
        return 2
    return int(any([not _succeeds(name, options.cluster) for name in options.scenario or SCENARIOS]))


def _succeeds(name: str, clusters: str | None) -> bool:
    scenario, started = SCENARIOS[name], time.monotonic()
    names = [clusters or each for each in scenario.clusters]
    try:
        outcome, succeeds = f"equal: {_run(scenario, names)}", True
    except AssertionError as error:
        traceback.print_exc()
        outcome, succeeds = f"FAILED: {error}", False
    print(f"{name} ({', '.join(names)}): {outcome}; {time.monotonic() - started:.0f} s", flush=True)
    return succeeds


def _run(scenario: Scenario, names: list[str]) -> str:
    with ExitStack() as stack:
        home: Any = stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-msgs-connect-"))
        servers = [stack.enter_context(CLUSTERS[each]()) for each in names]
        return scenario.run(*servers, Path(home))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.connect", description="Kafka Connect and MirrorMaker on embedded brokers."
    )
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="all by default; may be repeated")
    parser.add_argument("--cluster", choices=CLUSTERS, help="use only clusters of this kind")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
