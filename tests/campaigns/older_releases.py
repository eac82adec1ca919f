"""Campaign over every release of Kafka since 2.2: import, compile, error codes, and random values with its own classes.

    python -m tests.campaigns.older_releases --examples 20 [RELEASE ...]

The first run downloads about 30 MB per release with Maven. Exits with status 1 if a release differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator

from kafka_msgs_generator.compiler import CompileOptions, compile_paths
from tests.oracle.examples import values
from tests.oracle.older_releases import RELEASES, definitions_of, error_codes_by_java, oracle_of
from tests.oracle.schemas_before_28 import compare_by_schemas

__all__ = ["differences_of", "main"]


def differences_of(release: str, examples: int, seed: str = "1") -> Iterator[str]:
    """Yield the differences between a release and our import of it, and print counts of equal results."""
    definitions = definitions_of(release)
    compiled = compile_paths([definitions], CompileOptions(), partial=False)
    codes = json.loads((definitions / "errors.json").read_text(encoding="utf-8"))
    if codes != error_codes_by_java(release):
        yield f"{release}: other error codes than those that Java prints"
    counts, found = _compare(release, examples, seed)
    print(f"{release}: {len(compiled)} definitions, {len(codes)} error codes, {dict(counts)}", flush=True)
    yield from (f"{release}: {each}" for each in found)


def _compare(release: str, examples: int, seed: str) -> tuple[Counter[str], list[str]]:
    if tuple(map(int, release.split(".")[:2])) < (2, 8):
        return compare_by_schemas(release, examples, seed)
    oracle = oracle_of(release)
    counts, found = Counter[str](), []
    for name in sorted(oracle.classes or ()):
        tally = values(oracle, name, examples, seed)
        counts += tally.counts
        found += [str(each) for each in tally.differences]
    oracle.close()
    return counts, found


def main() -> int:
    """Run the campaign; return 0 without a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.older_releases")
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE")
    parser.add_argument("--examples", type=int, default=20, help="examples for each (message, version)")
    options = parser.parse_args()
    found = [each for release in options.releases for each in differences_of(release, options.examples)]
    print("\n".join([*found[:20], f"{len(found)} differences"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
