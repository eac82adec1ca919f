"""Compares assignors with Kafka's own on many random groups.

    python -m tests.groups.assignors [--inputs 10000] [--seed 1] [ASSIGNOR ...]

Prints the number of differing inputs, and the shortest one for each assignor. Exits with status 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
from random import Random
from time import monotonic

from tests.coordinator.oracle import AssignorOracle
from tests.groups.assignors.inputs import ASSIGNORS, compare, ours


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("assignors", nargs="*", default=ASSIGNORS, metavar="ASSIGNOR")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    oracle = AssignorOracle()
    failed = False
    for name in given.assignors:
        start = monotonic()
        different = compare(name, Random(f"{name} {given.seed}"), given.inputs, lambda each: oracle.assign([each])[0])
        print(f"{name}: {given.inputs} inputs, {len(different)} differences, {monotonic() - start:.0f} s", flush=True)
        if different:
            failed = True
            command, answer = min(different, key=lambda each: len(json.dumps(each)))
            print(f"> {json.dumps(command)}\n< {json.dumps(answer)}\nours {json.dumps(ours(command))}")
    oracle.close()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
