"""Runs the test suites of Kafka clients against an embedded and a real broker, and compares the results per test.

    python -m tests.campaigns.client_suites franz-go
    python -m tests.campaigns.client_suites aiokafka --source PATH

Packaged suites come from their package, at a pinned version. The other suites are only in their project's repository;
``--source`` is a checkout of it. The campaign stores no copy of a suite. It exits with status 1 if a test passes with
the real broker but not with the embedded one. The real broker requires Java and Maven, and Go suites require Go.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from kafka_msgs.cli.render.console import console
from tests.campaigns.client_suites.brokers import BROKERS
from tests.campaigns.client_suites.known_failures import REMARKS
from tests.campaigns.client_suites.outcomes import FAILED, PASSED, SKIPPED, Run, differences
from tests.campaigns.client_suites.runner import run_suite
from tests.campaigns.client_suites.suites import SUITES, Suite

__all__ = ["main"]


def main() -> int:
    """Run the campaign; return 1 if the embedded broker fails a test that the real broker passes."""
    options = _options()
    out, suite = console(), SUITES[options.suite]
    if suite.needs_source and options.source is None:
        sys.exit(f"{suite.name} {suite.version}: its tests are in no package; name a checkout with --source")
    source = options.source and options.source.resolve()
    runs = {
        broker: run_suite(out, suite, broker, source=source, seconds=options.minutes * 60, tests=options.tests)
        for broker in options.broker or BROKERS
    }
    if options.save is not None:
        with options.save.open("a", encoding="utf-8") as file:
            file.writelines(run.to_json() + "\n" for run in runs.values())
    return _report(out, suite, runs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.client_suites", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--source", type=Path, metavar="PATH", help="a checkout of the client's repository")
    parser.add_argument("--broker", action="append", choices=BROKERS, help="run with this one only")
    parser.add_argument("--minutes", type=float, default=30, help="end a run after this time (default: 30)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="append the results to this file, for the page")
    parser.add_argument(
        "--tests", help="only those that match: an expression for pytest -k, a pattern for go test -run"
    )
    return parser.parse_args()


def _report(out: Console, suite: Suite, runs: Mapping[str, Run]) -> int:
    for run in runs.values():
        counts = ", ".join(f"{run.count(verdict)} {verdict}" for verdict in (PASSED, FAILED, SKIPPED))
        out.print(f"\n{run.suite} {run.version}, {run.broker}: {counts}{'' if run.ended else ', cut short'}")
        for test, outcome in run.others.items():
            out.print(f"  {outcome.verdict}: {test}: {outcome.reason}", markup=False)
    if set(runs) != set(BROKERS):
        return 0
    found = differences(runs["kafka"], runs["embedded"], REMARKS.get(suite.name, {}))
    alone = [each for each in found if each.ours_alone]
    for each in alone:
        out.print(f"ours alone: {each.test}: {each.ours.reason}{f' ({each.why})' * bool(each.why)}", markup=False)
    return bool(alone)


if __name__ == "__main__":
    sys.exit(main())
