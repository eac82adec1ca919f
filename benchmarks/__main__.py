"""``python -m benchmarks [NAME...] [--rounds N]``: run the benchmarks named, or all."""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from typing import Final

from benchmarks.measure import ROUNDS
from kafka_msgs.cli.output import console

NAMES: Final = ("codec_metadata", "small_messages", "import_time", "hostile")


def main() -> None:
    """Run benchmarks one after another and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure kafka-msgs against its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(NAMES)}; default: all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of which the fastest counts (default: 20)")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NAMES)
    if unknown or arguments.rounds < 1:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}" if unknown else "at least one round is needed")
    out = console()
    for name in arguments.names or NAMES:
        start = time.perf_counter()
        benchmark = import_module(f"benchmarks.{name}")
        benchmark.run(out, arguments.rounds)
        out.print(f"repeat with: python -m benchmarks {name} --rounds {arguments.rounds}")
        out.print(f"({time.perf_counter() - start:.0f} s)\n")


if __name__ == "__main__":
    main()
