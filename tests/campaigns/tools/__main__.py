"""Runs the invocations and prints the differences: ``python -m tests.campaigns.tools``.

Exits with status 1 if there is an unexplained difference. ``--save`` keeps all outputs, and ``--saved`` compares kept
outputs again.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.broker.differential.clusters import TIMELESS, embedded_side, kafka_side
from tests.campaigns.tools.clusters import ToolCluster
from tests.campaigns.tools.comparison import Outcome, Output, compared, is_repeatable
from tests.campaigns.tools.files import written_files
from tests.campaigns.tools.invocations import Invocation, read_invocations
from tests.support.kafka_cluster import KafkaCluster, cluster_needs
from tests.support.kafka_listeners import Listener

_SECONDS = 90
"""How long a repeatable invocation runs again while its outputs differ."""


def main() -> int:
    """Run the campaign; return 0 without a difference, 1 with a difference, 2 if it cannot run here."""
    options = _options()
    if options.saved is not None:
        return _report([Output.from_json(line) for line in options.saved.read_text(encoding="utf-8").splitlines()])
    reason = cluster_needs()
    if reason is not None:
        print(f"NOT RUN: {reason}")
        return 2
    invocations = [each for each in read_invocations() if each.line.startswith(tuple(options.only or [""]))]
    with clusters() as both, ThreadPoolExecutor(len(both)) as threads:
        outputs = [output for each in invocations for output in _run(threads, each, *both)]
    if options.save is not None:
        options.save.write_text("".join(each.to_json() + "\n" for each in outputs), encoding="utf-8")
    return _report(outputs)


@contextmanager
def clusters() -> Iterator[tuple[ToolCluster, ToolCluster]]:
    """Start a real and an embedded cluster with equal configurations, racks and coordinators."""
    with (
        tempfile.TemporaryDirectory(prefix="kafka-msgs-tools-") as directory,
        KafkaCluster(first=0, settings=TIMELESS) as cluster,
        kafka_side(cluster) as side,
        embedded_side(side, TIMELESS) as (_, broker),
    ):
        files = written_files(Path(directory))
        sasl = Listener.SASL_PLAINTEXT
        kafka = ToolCluster(cluster.bootstrap_servers, cluster.bootstrap(sasl), files)
        ours = ToolCluster(broker.bootstrap_servers, broker.bootstrap_of(sasl.name), files)
        try:
            yield kafka, ours
        finally:
            kafka.close()
            ours.close()
        assert broker.problems == [], broker.problems


def _run(threads: Executor, invocation: Invocation, *both: ToolCluster) -> Iterator[Output]:
    """Run an invocation on both clusters, and yield its output; a repeatable one runs again while it differs."""
    if invocation.is_action:
        for cluster in both:
            cluster.act(invocation.line)
        return
    deadline = time.monotonic() + _SECONDS
    while True:
        output = Output(invocation.line, *threads.map(lambda cluster: cluster.run(invocation), both))
        if compared(output).is_explained or not is_repeatable(invocation.line) or time.monotonic() > deadline:
            break
    print("." if compared(output).is_explained else "x", end="", flush=True)
    yield output


def _report(outputs: list[Output]) -> int:
    outcomes = [compared(each) for each in outputs]
    print(f"\n{len(outputs)} invocations of {len({each.line.split()[0] for each in outputs})} tools")
    for verdict, count in Counter(each.verdict for each in outcomes).items():
        print(f"  {count} {verdict}")
    different = [each for each in outcomes if not each.is_explained]
    for each in different:
        _show(each)
    return int(bool(different))


def _show(outcome: Outcome) -> None:
    print(f"\n{outcome.line}")
    for line in difflib.unified_diff(outcome.kafka, outcome.ours, "Kafka", "embedded", lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            print(f"  {line[:600]}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.tools", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", action="append", help="run only the lines with this beginning, such as kafka-acls")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write all outputs to this file as JSON lines")
    parser.add_argument("--saved", type=Path, metavar="FILE", help="compare the outputs in this file; run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
