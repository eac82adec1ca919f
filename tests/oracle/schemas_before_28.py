"""Kafka 2.2 to 2.7 as an oracle: their clients read and write requests and responses by hand-written schemas.

Those schemas read and write back this library's bytes of random values without unknown tags.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from kafka_msgs.schema_compiler import compile_schemas
from kafka_msgs.testing import random_message
from tests.oracle.build import java_command
from tests.oracle.older_releases import definitions_of, jars_of

__all__ = ["compare_by_schemas"]

_PROGRAM: Final = Path(__file__).with_name("SchemasBefore28.java")
_NULL_RECORDS: Final = "buffer should not be null"
"""The reason why these releases reject null records, which their own definitions allow."""


def compare_by_schemas(release: str, examples: int, seed: str) -> tuple[Counter[str], list[str]]:
    """Return how many values a release wrote back unchanged, and a line for each other outcome."""
    classes = [cls for cls in compile_schemas(definitions_of(release)) if cls.INFO.kind in ("request", "response")]
    random = Random(f"schemas {seed}")
    lines = [
        (f"{cls.INFO.name} v{version}", f"{cls.INFO.api_key} {cls.INFO.kind} {version} x{data}", data)
        for cls in classes
        for version in cls.INFO.versions
        for data in (
            random_message(cls, version, random, unknown_tags=False).encode(version).hex() for _ in range(examples)
        )
    ]
    *command, _ = java_command(jars_of(release))
    question = "\n".join(line for _, line, _ in lines)
    done = subprocess.run([*command, str(_PROGRAM)], input=question, capture_output=True, text=True, check=True)
    counts, differences = Counter[str](pairs=len({subject for subject, *_ in lines})), []
    for (subject, _, data), answer in zip(lines, done.stdout.splitlines(), strict=True):
        if answer == f"0 {data}":
            counts["read and written alike"] += 1
        elif answer.endswith(_NULL_RECORDS):
            counts["null records, unread by this release"] += 1
        else:
            differences.append(f"{subject}: {answer}\n  ours {data}")
    return counts, differences
