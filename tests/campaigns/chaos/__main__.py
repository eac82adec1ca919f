"""Runs chaos for some minutes, one seed at a time. Prints each seed that breaks promises, with a minimal script."""

from __future__ import annotations

import argparse
import logging
import sys
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from tests.campaigns.chaos.simulation import Report, shortened, simulate
from tests.campaigns.chaos.sockets import run_killed, run_with_faults


def main() -> int:
    """Run until the time limit. Return 0 if all promises were kept."""
    options = _options()
    logging.disable()  # third-party clients log every error
    end = monotonic() + options.minutes * 60
    failures = 0
    for seed in count(options.seed):
        begun = monotonic()
        if begun >= end:
            break
        report = _run(seed, options)
        _show(seed, report, monotonic() - begun)
        if report.broken:
            failures += 1
            if options.kind == "simulated":
                print(*shortened(seed, options.seconds), sep="\n", flush=True)
    print(f"{failures} seeds broke promises")
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.chaos")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; the next ones follow")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=30, help="how long a run has faults, in its own time")
    parser.add_argument(
        "--kind",
        choices=["simulated", "real", "killed"],
        default="simulated",
        help="simulated clients; real clients over sockets; real clients of a process that is killed again and again",
    )
    return parser.parse_args()


def _run(seed: int, options: argparse.Namespace) -> Report:
    if options.kind == "simulated":
        return simulate(seed, options.seconds)
    if options.kind == "real":
        return run_with_faults(seed, options.seconds)
    with TemporaryDirectory() as directory:
        return run_killed(seed, options.seconds, Path(directory))


def _show(seed: int, report: Report, took: float) -> None:
    requests = "uncounted" if report.requests is None else report.requests
    print(
        f"seed {seed}: {report.records} records, {requests} requests, {report.lives} lives of clients, "
        f"{report.seconds:.0f} s in {took:.0f} s",
        flush=True,
    )
    for each in report.broken:
        print(f"  {each}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
