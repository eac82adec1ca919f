"""The differential campaign: random scripts on Kafka's group coordinator and on this library's.

    python -m tests.coordinator.campaign --commands 200000 --seed 1 [--protocol streams] [--kind steered]

Prints the coverage and the first difference of each kind, and saves its shrunk script as JSON lines in ``--save``.
Exits with status 1 if there is a difference. Scripts depend on the seed alone. ``--kafka-only`` prints the coverage of
scripts without a comparison.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from itertools import count, product
from pathlib import Path
from time import monotonic

from attrs import Factory, define

from tests.coordinator.coverage_counts import Tally
from tests.coordinator.history import Coordinator, Difference, History, compare, record
from tests.coordinator.oracle import Command, CoordinatorOracle, OracleUnavailableError, Result
from tests.coordinator.player import play
from tests.coordinator.scripts import KINDS, PROTOCOLS, random_script
from tests.coordinator.shrinking import shrink

__all__ = ["Campaign", "main"]


class Ours:
    """Our coordinator with the quirks of the release."""

    def run(self, commands: Iterable[Command]) -> list[Result]:
        """Return the result of each command."""
        return play(commands)


@define
class Campaign:
    """Scripts on two coordinators, and the differences between them."""

    kafka: Coordinator
    ours: Coordinator | None
    tally: Tally = Factory(Tally)
    differing: int = 0
    """The number of scripts with a difference."""
    found: dict[str, tuple[Difference, History]] = Factory(dict)
    """The first difference of each kind, and the history up to it."""

    def run(self, protocol: str, kind: str, seed: str) -> Difference | None:
        """Run one script; return its first difference."""
        history = record(random_script(protocol, kind, seed), self.kafka)
        wrong = next((result["error"] for result in history.results if "error" in result), None)
        if wrong is not None:
            raise AssertionError(f"{protocol} {kind} {seed} has a command that is wrong in itself: {wrong}")
        self.tally.add(history)
        difference = compare(history, self.ours) if self.ours is not None else None
        if difference is not None:
            self.differing += 1
            until = History(history.commands[: difference.at + 1], history.results[: difference.at + 1])
            self.found.setdefault(f"{protocol} {difference.kind}", (difference, until))
        return difference

    def shrunk(self, difference: Difference, history: History) -> tuple[list[Command], Difference]:
        """Return a short script with a difference of the same kind, and that difference."""
        ours = self.ours
        assert ours is not None
        last = difference

        def still_differs(commands: list[Command]) -> bool:
            nonlocal last
            again = compare(History(commands, self.kafka.run(commands)), ours)
            if again is None or again.kind != difference.kind:
                return False
            last = again
            return True

        return shrink(history.commands, still_differs), last


def main() -> int:
    """Run the campaign; return 0 without a difference, 1 with a difference, 2 without the oracle."""
    options = _options()
    try:
        kafka = CoordinatorOracle.shared()
    except OracleUnavailableError as reason:
        print(f"NOT RUN: {reason}")
        return 2
    campaign = Campaign(kafka, None if options.kafka_only else Ours())
    started = monotonic()
    pairs = list(product(options.protocol or PROTOCOLS, options.kind or KINDS))
    for number in count():
        if sum(campaign.tally.commands.values()) >= options.commands or len(campaign.found) >= options.kinds:
            break
        campaign.run(*pairs[number % len(pairs)], f"{options.seed}-{number}")
    print(campaign.tally.report())
    print(f"{campaign.differing} scripts differ, {monotonic() - started:.0f} s")
    for name, (difference, history) in campaign.found.items():
        _show(name, *campaign.shrunk(difference, history), options.save)
    return 1 if campaign.differing else 0


def _show(name: str, commands: list[Command], difference: Difference, directory: Path) -> None:
    """Print a difference and save its script."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (re.sub(r"\W+", "-", name).strip("-") + ".jsonl")
    path.write_text("".join(json.dumps(command) + "\n" for command in commands), encoding="utf-8")
    print(f"\n{name}: {len(commands)} commands in {path}; the last one:")
    for line in (json.dumps(difference.command), *difference.places[:8]):
        print(f"  {line[:1000]}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=20_000, help="how many commands, at least")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--protocol", action="append", choices=PROTOCOLS, help="all by default; may be repeated")
    parser.add_argument("--kind", action="append", choices=KINDS, help="both by default")
    parser.add_argument("--kinds", type=int, default=10, help="end after so many kinds of differences")
    parser.add_argument("--save", type=Path, default=Path("build/differences"), help="where short scripts go")
    parser.add_argument("--kafka-only", action="store_true", help="only show what scripts reach")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
