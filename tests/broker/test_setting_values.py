"""Conversion of config values from and to text, with the rules of Java's ``Integer`` and ``Double``."""

from __future__ import annotations

import pytest

from kafka_msgs.broker.controller.config_defs import TOPIC, config_keys
from kafka_msgs.errors import RequestRefusedError

RATIO = config_keys(TOPIC)["min.cleanable.dirty.ratio"]
BYTES = config_keys(TOPIC)["segment.bytes"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.50", "0.5"),
        (" .5 ", "0.5"),
        ("5.", "5.0"),
        ("+1.5f", "1.5"),
        ("1e-4", "1.0E-4"),
        ("0.001", "0.001"),
        ("9999999", "9999999.0"),
        ("12345678", "1.2345678E7"),
        ("-1e400", "-Infinity"),
        ("NaN", "NaN"),
    ],
)
def test_a_number_with_a_fraction_is_written_as_java_writes_it(text: str, value: str) -> None:
    assert RATIO.normalize(text) == value


@pytest.mark.parametrize("text", ["", ".", "1e", "1.5.", "--1", "1_0", "nan", "1" * 32_000 + "x"])
def test_what_is_not_a_number_is_refused(text: str) -> None:
    with pytest.raises(RequestRefusedError, match="Not a number of type DOUBLE"):
        RATIO.normalize(text)


def test_whole_numbers_have_the_bits_of_their_type() -> None:
    assert BYTES.normalize(" +0000000000000000000007\t") == "7"
    assert BYTES.normalize("-2147483648") == "-2147483648"
    for text in ("2147483648", "1.0", "", "1" * 32_000):
        with pytest.raises(RequestRefusedError, match="Not a number of type INT"):
            BYTES.normalize(text)
