"""Campaign that compares decoded registry payloads with the Java libraries under Confluent's deserializers.

    python -m tests.campaigns.registry_payloads --schemas 20000 [--seed 0]

Each seed is a random Avro schema with a value, which is read with the same schema and with a changed one; for Protobuf
each seed is a value of every message in the test files. Prints the differences; exits with status 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain

from tests.registry.differences import avro_differences, protobuf_differences
from tests.registry.oracle import RegistryOracle
from tests.registry.proto_files import PROTO2, PROTO2_MESSAGES, PROTO3, PROTO3_MESSAGES

__all__ = ["main"]

_CHUNK = 500
"""The number of seeds between two lines of progress."""
_PROTOBUF_SHARE = 10
"""Protobuf has one seed for this many seeds of Avro, because its schemas are fixed."""


def main() -> int:
    """Run the campaign; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=5000, help="the number of Avro schemas")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    oracle, found = RegistryOracle(), 0
    for start in range(options.seed, options.seed + options.schemas, _CHUNK):
        seeds = range(start, min(start + _CHUNK, options.seed + options.schemas))
        few = range(start, start + len(seeds) // _PROTOBUF_SHARE)
        for difference in chain(
            avro_differences(oracle, seeds),
            protobuf_differences(oracle, PROTO2, PROTO2_MESSAGES, few),
            protobuf_differences(oracle, PROTO3, PROTO3_MESSAGES, few),
        ):
            found += 1
            print(difference, end="\n\n")
        print(f"{seeds.stop - options.seed} seeds, {found} differences", flush=True)
    oracle.close()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
