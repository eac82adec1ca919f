"""Writes the vectors anew, each confirmed by Kafka's own classes: ``python -m tests.vectors.generate``.

Values and damage come from a seeded generator, so that a second run writes the same files. Where Kafka and this library
differ, nothing more is written; that is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from kafka_msgs.errors import DecodeError
from kafka_msgs.message import Message
from kafka_msgs.testing.random_values import random_message
from tests.oracle.class_pairs import ALL_NAMES, TEST_MESSAGES, Subject, subjects_of
from tests.oracle.driver import Oracle, OracleReject
from tests.oracle.examples import damaged
from tests.oracle.parity import Tally, compare_inputs, compare_values, has_unknown_tags
from tests.vectors.files import FOLDER, REASONS, Invalid, Valid, Vectors, write

_CANDIDATES: Final = 60
"""Values that are made for each version, to choose from."""

_DAMAGED: Final = 120
"""Damaged inputs that are made for each version, to choose from."""

_LONGEST: Final = 240
"""Bytes of a vector at most, where there is a choice: they are for people, too."""


def main() -> None:
    """Write the file of every message of the release."""
    oracle = Oracle.shared()
    FOLDER.mkdir(exist_ok=True)
    for stale in FOLDER.glob("*.json"):
        stale.unlink()
    for name in ALL_NAMES:
        if name not in TEST_MESSAGES:
            write(_vectors(oracle, name))


def _vectors(oracle: Oracle, name: str) -> Vectors:
    found = subjects_of(name, oracle)
    valid = tuple(vector for subject in found for vector in _valid(oracle, subject))
    return Vectors(name, valid, tuple(vector for subject in found for vector in _invalid(oracle, subject)))


def _require_agreement(tally: Tally) -> None:
    if tally.differences:
        raise SystemExit(str(tally.differences[0]))


def _valid(oracle: Oracle, subject: Subject) -> Iterator[Valid]:
    rng = Random(f"valid {subject}")
    values = [random_message(subject.cls, subject.version, rng, max_elements=2) for _ in range(_CANDIDATES)]
    chosen = _chosen(subject, values)
    _require_agreement(compare_values(oracle, subject, chosen))
    for value in chosen:
        data, form = value.encode(subject.version), value.to_json(subject.version)
        yield Valid(subject.version, data.hex(), form, has_unknown_tags(value))


def _chosen(subject: Subject, values: Iterable[Message]) -> list[Message]:
    """Choose the smallest value and the two largest without unknown tags, and the largest with some."""
    sizes = {value: len(value.encode(subject.version)) for value in values if _is_portable(value, subject.version)}
    ordered = sorted(sizes, key=lambda value: sizes[value])
    short = [value for value in ordered if sizes[value] <= _LONGEST] or ordered[:1]
    bare = [value for value in short if not has_unknown_tags(value)]
    tagged = [value for value in short if has_unknown_tags(value)]
    return list(dict.fromkeys([*bare[:1], *bare[-2:], *tagged[-1:]]))


def _is_portable(value: Message, version: int) -> bool:
    """Whether standard JSON can express the value: it has no infinities."""
    try:
        json.dumps(value.to_json(version), allow_nan=False)
    except ValueError:
        return False
    return True


def _invalid(oracle: Oracle, subject: Subject) -> Iterator[Invalid]:
    """Yield the shortest input for each reason, and for each verdict of Kafka's."""
    inputs = sorted(damaged(subject, _DAMAGED, Random(f"invalid {subject}")), key=lambda data: (len(data), data))
    _require_agreement(compare_inputs(oracle, subject, inputs))
    answers = oracle.decode_many((subject.name, subject.version, data) for data in inputs)
    found: dict[tuple[str, str], Invalid] = {}
    for data, answer in zip(inputs, answers, strict=True):
        reason = _reason(subject, data)
        if reason and len(data) <= _LONGEST:
            kafka = "refuses" if isinstance(answer, OracleReject) else "accepts"
            found.setdefault((reason, kafka), Invalid(subject.version, data.hex(), reason, kafka))
    yield from (found[key] for key in sorted(found))


def _reason(subject: Subject, data: bytes) -> str | None:
    try:
        subject.cls.decode(data, subject.version)
    except DecodeError as error:
        return next(reason for reason, kind in REASONS.items() if isinstance(error, kind))
    return None


if __name__ == "__main__":
    main()
