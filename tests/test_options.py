"""Options of classes and functions: a value of a wrong type or out of range raises an ``OptionError`` with its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from kafka_msgs import CodecOptions, DecodeBudget
from kafka_msgs.capture import CaptureLimits, read_exchanges
from kafka_msgs.codec import DEFAULT_BUDGET
from kafka_msgs.columns import read_record_table
from kafka_msgs.errors import OptionError
from kafka_msgs.log import read_log
from kafka_msgs.records import ReadOptions
from kafka_msgs.wire import Correlation, FrameSplitter, join_frames

CLASSES: tuple[Any, ...] = (ReadOptions, DecodeBudget, CodecOptions, CaptureLimits)
WRONG = {"int": (True, False, 1.0, 1.5, "9", None, -1, 2**63), "bool": (0, 1, 1.0, "no", None)}


def options_of(kind: str) -> list[Any]:
    return [
        pytest.param(cls, field.name, id=f"{cls.__name__}.{field.name}")
        for cls in CLASSES
        for field in attrs.fields(cls)
        if field.type == kind
    ]


def refused(source: str, option: str, value: object, call: Callable[[], object]) -> None:
    with pytest.raises(OptionError) as caught:
        call()
    assert (caught.value.source, caught.value.option, caught.value.value) == (source, option, value)


@pytest.mark.parametrize(("cls", "name"), options_of("int"))
def test_a_number_is_a_whole_number_in_range(cls: Any, name: str) -> None:
    for value in WRONG["int"]:
        refused(cls.__name__, name, value, lambda value=value: cls(**{name: value}))  # type: ignore[misc]
    assert getattr(cls(**{name: 1}), name) == 1


@pytest.mark.parametrize(("cls", "name"), options_of("bool"))
def test_a_flag_is_true_or_false(cls: Any, name: str) -> None:
    for value in WRONG["bool"]:
        refused(cls.__name__, name, value, lambda value=value: cls(**{name: value}))  # type: ignore[misc]
    assert [getattr(cls(**{name: value}), name) for value in (True, False)] == [True, False]


def test_every_option_of_a_class_is_a_number_or_a_flag_or_is_tested_here() -> None:
    others = [field.name for cls in CLASSES for field in attrs.fields(cls) if field.type not in WRONG]
    assert others == ["budget", "utf8_errors"]
    for budget in (5, None, "big", DecodeBudget):
        refused("CodecOptions", "budget", budget, lambda budget=budget: CodecOptions(budget=budget))  # type: ignore[misc]
    for handler in ("ignore", "", None, 1, ["strict"]):
        refused("CodecOptions", "utf8_errors", handler, lambda handler=handler: CodecOptions(utf8_errors=handler))  # type: ignore[misc]
    assert CodecOptions(budget=DEFAULT_BUDGET, utf8_errors="replace").utf8_errors == "replace"


NUMBERS: dict[tuple[str, str], Callable[[Any], object]] = {
    ("FrameSplitter", "limit"): lambda value: FrameSplitter(limit=value),
    ("join_frames", "limit"): lambda value: join_frames(b"", limit=value),
    ("Correlation", "limit"): lambda value: Correlation(limit=value),
    ("Correlation", "limit_bytes"): lambda value: Correlation(limit_bytes=value),
    ("record_table", "max_rows"): lambda value: read_record_table(b"", max_rows=value),
    ("record_table", "max_bytes"): lambda value: read_record_table(b"", max_bytes=value),
    ("read_log", "start"): lambda value: read_log(Path(__file__), start=value),
    ("read_exchanges", "ports"): lambda value: next(read_exchanges(__file__, ports=[9092, value])),
}


@pytest.mark.parametrize(("source", "option"), NUMBERS, ids=".".join)
def test_a_number_of_a_function_is_a_whole_number_in_range(source: str, option: str) -> None:
    for value in WRONG["int"]:
        refused(source, option, value, lambda value=value: NUMBERS[source, option](value))  # type: ignore[misc]


@pytest.mark.parametrize("option", ["max_rows", "max_bytes"])
def test_a_table_of_no_rows_or_bytes_is_refused(option: str) -> None:
    refused("record_table", option, 0, lambda: NUMBERS["record_table", option](0))
    assert list(read_record_table(b"", **{option: 1})) == []  # type: ignore[arg-type]
