"""Runs the campaign: ``python -m tests.campaigns.soak --minutes 20``. See the package."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime

from rich.console import Console

from tests.campaigns.soak.campaign import soak
from tests.campaigns.soak.clients import CLIENTS
from tests.campaigns.soak.clusters import CLUSTERS
from tests.campaigns.soak.faults import FAULTS
from tests.campaigns.soak.report import broken_promises, print_outcome, slower_than_java


def main() -> int:
    """Run on each cluster, print the tables, and return 0 if this library's clients kept all promises."""
    options = _options()
    console = Console(width=180)
    faults = [each for each in FAULTS if not options.faults or each.name in options.faults.split(",")]
    outcomes = []
    for kind in options.clusters.split(","):
        seconds = options.minutes * 60 / len(options.clusters.split(","))
        outcome = soak(
            kind, options.clients.split(","), faults, seconds, seed=options.seed, settle=options.settle, note=_note
        )
        print_outcome(console, outcome)
        outcomes.append(outcome)
    slower = [text for outcome in outcomes for text in slower_than_java(outcome)]
    broken = broken_promises(outcomes)
    for title, texts in (("recovers more than 0.5 s later than java", slower), ("BROKEN", broken)):
        for text in texts:
            console.print(f"{title}: {text}", markup=False)
    console.print(f"{len(broken)} broken promises of this library's clients")
    return 1 if broken else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.soak")
    parser.add_argument("--minutes", type=float, default=20, help="the time with faults, for all clusters together")
    parser.add_argument("--clusters", default=",".join(CLUSTERS))
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--faults", default="", help="names, separated by commas; all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settle", type=float, default=6.0, help="seconds to recover after each fault")
    return parser.parse_args()


def _note(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
