"""Random examples of a message, compared with Kafka: values, damaged bytes, and values written at another version.

The tests run a few examples, the campaign many. They depend only on the message, the version and the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final, TypeAlias

from attrs import evolve

from kafka_msgs.message import Message
from kafka_msgs.testing import edge_values
from kafka_msgs.testing.random_values import random_message
from tests.oracle.class_pairs import Subject, subjects_of
from tests.oracle.driver import Oracle
from tests.oracle.mutation import mutations
from tests.oracle.parity import Tally, compare_downgrades, compare_inputs, compare_values

__all__ = ["EXAMPLES", "Examples", "damaged"]

Examples: TypeAlias = Callable[[Oracle, str, int, str], Tally]
"""Compares one message, by name, at each version: this many examples per version, from a seed."""

_CHUNK: Final = 200
"""Examples in memory at a time."""

_DAMAGED: Final = 4
"""Damaged copies per value."""


def values(oracle: Oracle, name: str, count: int, seed: str) -> Tally:
    """Compare values, written and read both ways."""
    tally = Tally()
    for subject, size, rng in _chunks(oracle, name, count, f"values {seed}"):
        tally.add(
            compare_values(oracle, subject, [random_message(subject.cls, subject.version, rng) for _ in range(size)])
        )
    return tally


def damaged_bytes(oracle: Oracle, name: str, count: int, seed: str) -> Tally:
    """Compare the verdicts on damaged bytes, and the values read from accepted bytes."""
    tally = Tally()
    for subject, size, rng in _chunks(oracle, name, count, f"bytes {seed}"):
        tally.add(compare_inputs(oracle, subject, damaged(subject, size, rng)))
    return tally


def other_versions(oracle: Oracle, name: str, count: int, seed: str) -> Tally:
    """Compare the results of writing values at other versions."""
    tally = Tally()
    if not oracle.messages()[name].has_json:
        return tally
    for subject, size, rng in _chunks(oracle, name, count, f"other versions {seed}"):
        others = [other for other in subjects_of(name, oracle) if other is not subject]
        if others:
            written = rng.choice(others)
            tally.add(compare_downgrades(oracle, subject, written, list(_bare_values(subject, size, rng))))
    return tally


EXAMPLES: Final[dict[str, Examples]] = {
    "values": values,
    "damaged bytes": damaged_bytes,
    "other versions": other_versions,
}
"""Every type of example."""


def _chunks(oracle: Oracle, name: str, count: int, seed: str) -> Iterator[tuple[Subject, int, Random]]:
    for subject in subjects_of(name, oracle):
        rng = Random(f"{subject} {seed}")
        for done in range(0, count, _CHUNK):
            yield subject, min(_CHUNK, count - done), rng


def damaged(subject: Subject, count: int, rng: Random) -> Iterator[bytes]:
    """Yield ``count`` damaged encodings of random values; a few of them are still valid."""
    codec = subject.codecs["python"]
    for done in range(0, count, _DAMAGED):
        data = codec.encode(random_message(subject.cls, subject.version, rng))
        yield from mutations(subject.plan, data, min(_DAMAGED, count - done), rng)


def _bare_values(subject: Subject, count: int, rng: Random) -> Iterator[Message]:
    """Yield values that JSON represents completely; half of them set only one field, to test it alone."""
    for number in range(count):
        value = random_message(subject.cls, subject.version, rng, unknown_tags=False)
        yield _with_one_field(subject, value, rng) if number % 2 else value


def _with_one_field(subject: Subject, value: Message, rng: Random) -> Message:
    present = edge_values.present_fields(subject.cls, subject.version)
    kept = rng.choice(present) if present else None
    resets = {
        info.attribute: info.default
        for info in present
        if info is not kept and edge_values.default_is_allowed(info, subject.version)
    }
    return evolve(value, **resets)
