"""Runs scripts of commands on Kafka's share partition and this library's, for a range of seeds.

python -m tests.broker.share.campaign 0 10000
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.broker.share.lockstep import play
from tests.broker.share.oracle import ShareOracle
from tests.broker.share.scripts import Script


def main(first: int, last: int) -> None:
    """Run the scripts of some seeds, and print the coverage."""
    oracle, tally = ShareOracle(), Counter[tuple[str, str]]()
    for seed in range(first, last):
        tally += play(Script(seed), oracle)
    oracle.close()
    print(f"{last - first} seeds, {tally.total()} commands, {dict(sorted(tally.items()))}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
