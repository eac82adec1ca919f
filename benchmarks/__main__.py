"""``python -m benchmarks [NAME...] [--rounds N] [--save FILE]``: run the named benchmarks, or all."""

from __future__ import annotations

import argparse
import json
import time
from importlib import import_module
from pathlib import Path
from typing import Final

import attrs

from benchmarks.report import Figure
from benchmarks.timing import ROUNDS
from kafka_msgs.cli.render.console import console

NAMES: Final = (
    "codec_metadata",
    "field_access",
    "small_messages",
    "values",
    "held_trees",
    "languages",
    "scan",
    "records",
    "gzip_speed",
    "segment",
    "pipeline_local",
    "columns",
    "consume",
    "spark_sources",
    "spark_jobs",
    "job_plan",
    "tap",
    "requests",
    "admin",
    "produce",
    "broker",
    "groups",
    "streams_groups",
    "assignors",
    "import_time",
    "cold_calls",
    "hostile_input",
    "refusals",
    "threads",
)


def main() -> None:
    """Run benchmarks in sequence and print their tables."""
    arguments = _arguments()
    out = console()
    for name in arguments.names or NAMES:
        start = time.perf_counter()
        figures = import_module(f"benchmarks.{name}").run(out, arguments.rounds)
        if arguments.save:
            save(arguments.save, name, figures)
        out.print(f"repeat with: python -m benchmarks {name} --rounds {arguments.rounds}")
        out.print(f"({time.perf_counter() - start:.0f} s)\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure kafka-msgs against its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(NAMES)}; default: all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of which the fastest counts (default: 20)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="append the figures to FILE, a line a benchmark")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NAMES)
    if unknown or arguments.rounds < 1:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}" if unknown else "at least one round is needed")
    return arguments


def save(file: Path, name: str, figures: list[Figure]) -> None:
    """Append one run of a benchmark to a file of JSON lines: integers unchanged, other numbers with four digits."""
    rows = [attrs.asdict(figure) | {"value": _kept(figure.value)} for figure in figures]
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"benchmark": name, "figures": rows}) + "\n")


def _kept(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.4g}")


if __name__ == "__main__":
    main()
