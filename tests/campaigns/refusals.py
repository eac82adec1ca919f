"""Refused messages: fast executors resume the reference at the fault, and must raise the same error as a full decode.

``python -m tests.campaigns.refusals --rounds 2 --seed 7`` damages random messages of every version of every message: it
truncates them, flips bits, sets bytes, decodes with a budget that is too small, and inserts values of the wrong type.
For each refusal it compares class, text, path, offset and reason with the error of the reference, which processes the
whole input. It also counts the refusals for which an executor processed the whole input.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any, Final

import attrs
import pytest

from kafka_msgs import iter_message_classes
from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions, DecodeBudget, python, reference
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.error_explanation import trailing_data
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import Plan, compile_plan
from kafka_msgs.errors import DecodeError, EncodeError
from kafka_msgs.testing.random_values import random_message
from tests.support.damage import corrupted, same

FAST: Final = tuple(name for name in EXECUTORS if name != "reference")
VALUES: Final = (0, 1, 2, 127, 128, 255)

decode_all, encode_all = reference.decode, reference.encode


@attrs.frozen
class Damage:
    """The number of damaged variants of a message, by kind of damage."""

    truncations: int = 120
    flips: int = 100
    sets: int = 30
    values: int = 40


@attrs.define
class Tally:
    """The counts of one executor, and a description of each difference."""

    refusals: int = 0
    valid: int = 0
    whole: Counter[str] = attrs.field(factory=Counter)
    differences: list[str] = attrs.field(factory=list)


def pairs() -> list[tuple[Any, int]]:
    """Return every version of every message."""
    classes = sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)
    return [(cls, version) for cls in classes for version in cls.INFO.versions]


def damaged(rng: Random, data: bytes, damage: Damage) -> Iterator[bytes]:
    """Yield a message and its damaged variants."""
    yield data
    for size in rng.sample(range(len(data)), min(damage.truncations, len(data))):
        yield data[:size]
    for flips in range(damage.flips if data else 0):
        changed = bytearray(data)
        for _ in range(1 + flips % 2):
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield bytes(changed)
    for _ in range(damage.sets if data else 0):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.choice(VALUES)
        yield bytes(changed)


def decoded(plan: Plan, options: CodecOptions, data: bytes) -> Any:
    """Decode with the reference only."""
    message, end = decode_all(plan, data, 0, options)
    if end != len(data):
        raise trailing_data(plan, end, len(data))
    return message


def outcome(action: Callable[[Any], Any], subject: Any) -> tuple[Any, ...]:
    """Return a value, or the facts of an error. Any other exception ends the campaign."""
    try:
        return (action(subject),)
    except (DecodeError, EncodeError) as error:
        facts = vars(error)
        return type(error), str(error), facts["path"], facts.get("offset"), facts["reason"]


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the reference's calls that process a whole input, and make Python locate every fault."""
    calls: Counter[str] = Counter()

    def decode(*arguments: Any) -> Any:
        calls["decode"] += 1
        return decode_all(*arguments)

    def encode(*arguments: Any) -> Any:
        calls["encode"] += 1
        return encode_all(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "decode", decode)
        patch.setattr(reference, "encode", encode)
        patch.setattr(python, "_TRACED_FROM", 0)
        yield calls


def small_budget(plan: Plan, data: bytes) -> CodecOptions:
    """Return a budget that the message exceeds, if it consumes any budget."""
    decoder = reference.Decoder(plan, data, 0, DEFAULT_OPTIONS)
    decoder.message()
    budget = DEFAULT_OPTIONS.budget
    elements, size = budget.elements - decoder.elements_left, budget.bytes - decoder.bytes_left
    return CodecOptions(budget=DecodeBudget(elements=elements // 2, bytes=max(0, size - 1)))


def compare(
    cls: Any, version: int, rng: Random, damage: Damage, tallies: dict[str, Tally], calls: Counter[str]
) -> None:
    """Compare the refusals of one random message at one version."""
    plan = compile_plan(cls, version)
    message = random_message(cls, version, rng, max_elements=3)
    data = encode_all(plan, message)
    for options in (DEFAULT_OPTIONS, small_budget(plan, data)):
        codecs: dict[str, Codec[Any]] = {name: Codec(plan, options, EXECUTORS[name]) for name in tallies}
        for each in damaged(rng, data, damage):
            expected = outcome(partial(decoded, plan, options), each)
            for name, tally in tallies.items():
                check(tally, calls, expected, codecs[name].decode, each, f"{plan.name} v{version} {each.hex()}")
    codecs = {name: Codec(plan, DEFAULT_OPTIONS, EXECUTORS[name]) for name in tallies}
    for _ in range(damage.values):
        wrong = corrupted(rng, message)
        expected = outcome(partial(encode_all, plan), wrong)
        for name, tally in tallies.items():
            check(tally, calls, expected, codecs[name].encode, wrong, f"{plan.name} v{version} {wrong!r}")


def check(
    tally: Tally, calls: Counter[str], expected: tuple[Any, ...], action: Callable[[Any], Any], subject: Any, text: str
) -> None:
    """Compare one outcome with the expected one."""
    calls.clear()
    found = outcome(action, subject)
    tally.whole += calls
    if len(expected) == 1:
        tally.valid += 1
    else:
        tally.refusals += 1
    if not same(found, expected):
        tally.differences.append(f"{text}: {found} instead of {expected}")


def run(
    chosen: Sequence[tuple[Any, int]], rounds: int, seed: int, damage: Damage, names: Sequence[str] = FAST
) -> dict[str, Tally]:
    """Compare the refusals of random messages of some versions, determined by the seed and the version."""
    tallies = {name: Tally() for name in names}
    with counted() as calls:
        for cls, version in chosen:
            rng = Random(f"{seed} {cls.INFO.name} {version}")
            for _ in range(rounds):
                compare(cls, version, rng, damage, tallies, calls)
    return tallies


def main() -> None:
    """Run the campaign over every version of every message."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.refusals", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="random messages of each version (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="seed of messages and damage (default: 1)")
    arguments = parser.parse_args()
    tallies = run(pairs(), arguments.rounds, arguments.seed, Damage())
    for name, tally in tallies.items():
        print(
            f"{name}: {tally.refusals:,} refusals, {len(tally.differences)} differ; the reference processed the whole"
            f" input in {tally.whole['decode']:,} decodes and {tally.whole['encode']:,} encodes; {tally.valid:,} valid"
        )
        print(*tally.differences[:10], sep="\n")
    sys.exit(any(tally.differences for tally in tallies.values()))


if __name__ == "__main__":
    main()
