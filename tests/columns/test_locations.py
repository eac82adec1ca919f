"""The core locates the fault of a bad row in the pass that decodes the others; no row is read again from its start."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafka_msgs._backend import backend, backend_module
from kafka_msgs.codec import CodecOptions, DecodeBudget, codec_for, reference
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.columns import arrow_type, decode, decode_column
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.testing.random_values import random_message
from tests.campaigns.refusals import pairs
from tests.oracle.mutation import mutations
from tests.support.columns import facts

PAIRS = pairs()

pytestmark = pytest.mark.skipif(backend() != "c", reason="the implementation in Python keeps no locations")


@pytest.mark.parametrize("start", range(8))
def test_errors_are_those_of_the_codec_in_one_pass(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever columns are wanted; at some versions of all messages."""
    cases = [(cls, version, *damaged_rows(cls, version)) for cls, version in PAIRS[start::32]]
    monkeypatch.setattr(decode, "_IMPLEMENTATION", backend_module("kafka_msgs.columns", "c"))
    monkeypatch.setattr(decode, "row_decoder", lambda *_: lambda _: pytest.fail("the codec read a row again"))
    monkeypatch.setattr(reference, "decode", lambda *_: pytest.fail("the reference read all of a row"))
    for cls, version, rows, options, errors in cases:
        for names in (None, [field.name for field in arrow_type(cls, version)][1::2]):
            assert decode_column(rows, cls, version, columns=names, options=options).errors.to_pylist() == errors


def damaged_rows(cls: Any, version: int) -> tuple[list[bytes], CodecOptions, list[Any]]:
    """Rows that begin as a message, options whose budget many of them exceed, and their errors in the codec's words."""
    rng = Random(f"{cls.INFO.name} {version}")
    sound = random_message(cls, version, rng, max_elements=3).encode(version)
    rows = [*mutations(compile_plan(cls, version), sound, 30, rng), sound, sound + b"\0"]
    rows += [sound[: rng.randrange(len(sound) + 1)] for _ in range(15)]
    budget = DecodeBudget(elements=rng.choice((1, 5, 50, 1000)), bytes=rng.choice((20, 200, 10_000)))
    options = CodecOptions(budget=budget)
    return rows, options, [refusal(cls, version, row, options) for row in rows]


def refusal(cls: Any, version: int, row: bytes, options: CodecOptions) -> Any:
    try:
        codec_for(cls, version, options).decode(row)
    except KafkaMsgsError as error:
        return facts(error)
    return None
