"""Runs scripts of commands, each on new logs. As a program, it runs the scripts of a range of seeds.

python -m tests.broker.storage.campaign 0 1000
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.broker.storage.lockstep import Lockstep
from tests.broker.storage.oracle import StorageOracle
from tests.broker.storage.scripts import Script

__all__ = ["play"]


def play(script: Script, oracle: StorageOracle, home: Path) -> Counter[tuple[str, int]]:
    """Run a script in a new directory; return how often each command led to each error code.

    Raises ``AssertionError`` with the seed if one of our logs differs from Kafka's.
    """
    home.mkdir()
    both = Lockstep(oracle, home, memory=not script.reopens)
    tally: Counter[tuple[str, int]] = Counter()
    try:
        for command in script.commands():
            answer = both.run(**command)
            script.learn(answer)
            tally[command["do"], answer.get("error", 0)] += 1
        both.compare_files()
    except AssertionError as difference:
        raise AssertionError(f"{script} after {sum(tally.values())} commands: {difference}") from difference
    return tally


def main(first: int, last: int) -> None:
    """Run the scripts of some seeds of each kind, and print the coverage."""
    oracle, tally = StorageOracle(), Counter[tuple[str, int]]()
    with tempfile.TemporaryDirectory() as home:
        for seed in range(first, last):
            tally += play(Script(seed, reopens=False), oracle, Path(home) / f"{seed}-open")
            tally += play(Script(seed), oracle, Path(home) / f"{seed}-again")
            tally += play(Script(seed, compacts=True), oracle, Path(home) / f"{seed}-compact")
    oracle.close()
    print(f"{last - first} seeds, {tally.total()} commands, {dict(sorted(tally.items()))}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
