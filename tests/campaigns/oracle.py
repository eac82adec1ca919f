"""Campaign that compares every message at every version with Kafka's own classes, on any number of examples.

    python -m tests.campaigns.oracle --examples 1000 [--release 2.8.2]

With ``--release``, the classes of that Kafka release (2.8 or newer) check our classes compiled from its definitions.
Prints tables of counts and the first differences of each kind; exits with status 1 if there is a difference. The
examples depend only on ``--seed``, not on the number of processes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from time import monotonic
from typing import Final

from attrs import Factory, define
from rich.console import Console
from rich.progress import track
from rich.table import Table

from kafka_msgs.messages import RELEASE
from tests.oracle.build import OracleUnavailableError
from tests.oracle.class_pairs import ALL_NAMES, subjects_of
from tests.oracle.driver import Oracle
from tests.oracle.examples import EXAMPLES
from tests.oracle.older_releases import oracle_of
from tests.oracle.parity import UNREAD_BYTES, Difference, Tally

_SHOWN: Final = 3
"""The maximum number of printed differences of each kind."""

_VALUES: Final = {
    "values": "values",
    "our bytes read and written back by Kafka": "read alike",
    "bytes equal": "written alike",
    "JSON equal": "JSON equal",
    "written at another version": "written at another version",
    "refused at another version": "refused at another version",
}
"""The counts for values, with their column headings."""

_VERDICTS: Final = ("inputs", "both refuse", "both accept", "values equal")
"""The counts for possibly invalid bytes, in addition to the reasons for which this library is stricter."""


@define
class Row:
    """A row of the tables: the numbers of messages and of (message, version) pairs, and their results."""

    messages: int = 0
    pairs: int = 0
    tally: Tally = Factory(Tally)

    def add(self, other: Row) -> None:
        """Add the counts of another row."""
        self.messages += other.messages
        self.pairs += other.pairs
        self.tally.add(other.tally)


def main() -> int:
    """Run the campaign; return 0 without a difference, 1 with a difference, 2 without the oracle."""
    options = _options()
    try:
        names = _names(_oracle(options.release))
    except OracleUnavailableError as reason:
        print(f"NOT RUN: {reason}")
        return 2
    started = monotonic()
    rows = _compare(names, options)
    console = Console()
    title = f"Kafka {options.release or RELEASE}, {options.examples} examples of each kind a pair, seed {options.seed}"
    console.print(_value_table(title, rows), _verdict_table(rows["all"].tally.counts))
    _print_differences(rows["all"].tally.differences)
    print(
        f"{len(rows['all'].tally.differences)} differences, {monotonic() - started:.0f} s in {options.jobs} processes"
    )
    return 1 if rows["all"].tally.differences else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.oracle")
    parser.add_argument("--examples", type=int, default=1000, help="examples of each kind for each (message, version)")
    parser.add_argument("--seed", default="1", help="any text; the same seed gives the same examples")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, each with a Java of its own")
    parser.add_argument("--release", help="an older release of Kafka, such as 2.8.2")
    return parser.parse_args()


def _oracle(release: str | None) -> Oracle:
    return Oracle.shared() if release is None else oracle_of(release)


def _names(oracle: Oracle) -> tuple[str, ...]:
    return ALL_NAMES if oracle.classes is None else tuple(sorted(oracle.classes))


def _compare(names: Sequence[str], options: argparse.Namespace) -> dict[str, Row]:
    """Compare every message; return a row for each artifact, and a total row."""
    rows: dict[str, Row] = {}
    total = Row()
    compare = partial(_compare_message, release=options.release, examples=options.examples, seed=options.seed)
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        results = pool.imap_unordered(compare, names)
        for artifact, row in track(results, "messages", len(names), console=Console(stderr=True)):
            rows.setdefault(artifact, Row()).add(row)
            total.add(row)
    return dict(sorted(rows.items())) | {"all": total}


def _compare_message(name: str, release: str | None, examples: int, seed: str) -> tuple[str, Row]:
    oracle = _oracle(release)
    found = subjects_of(name, oracle)
    row = Row(1, len(found))
    for compare in EXAMPLES.values():
        row.tally.add(compare(oracle, name, examples, seed))
    return found[0].artifact, row


def _value_table(title: str, rows: dict[str, Row]) -> Table:
    table = Table(title=title)
    table.add_column("artifact")
    for heading in ("messages", "pairs", *_VALUES.values(), "differences"):
        table.add_column(heading, justify="right")
    for artifact, row in rows.items():
        counts = [row.messages, row.pairs, *(row.tally.counts[name] for name in _VALUES), len(row.tally.differences)]
        table.add_row(artifact, *(f"{count:,}" for count in counts), end_section=artifact == list(rows)[-2])
    return table


def _verdict_table(counts: Counter[str]) -> Table:
    table = Table("damaged bytes", title="Bytes that may be wrong")
    table.add_column("count", justify="right")
    reasons = sorted(
        name for name in counts if name.startswith(("stricter: ", "written back by us alone", UNREAD_BYTES))
    )
    for name in (*_VERDICTS, *reasons):
        table.add_row(name, f"{counts[name]:,}", end_section=name == _VERDICTS[-1])
    return table


def _print_differences(differences: Iterable[Difference]) -> None:
    shown = Counter[str]()
    for difference in differences:
        shown[difference.what] += 1
        if shown[difference.what] <= _SHOWN:
            print(difference)
    for what, count in shown.items():
        print(f"{count} differences: {what}")


if __name__ == "__main__":
    sys.exit(main())
