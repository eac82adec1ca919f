"""Results of operations: one outcome per item, and lists that require every broker."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.admin import (
    AclOperation,
    PartialList,
    Results,
)
from kafka_msgs.enums import decode_authorized_operations


def test_results_hold_values_and_errors() -> None:
    late = TimeoutError("late")
    results = Results({"a": 1, "b": late, "c": None})
    assert results["a"] == 1
    assert results["c"] is None
    assert (list(results), len(results), "b" in results, "d" in results) == (["a", "b", "c"], 3, True, False)
    assert (results.ok, results.errors) == ({"a": 1, "c": None}, {"b": late})
    for fails in (lambda: results["b"], results.all, lambda: dict(results), lambda: list(results.values())):
        with pytest.raises(TimeoutError):
            fails()
    with pytest.raises(KeyError):
        _ = results["d"]
    assert Results({"a": 1}).all() == {"a": 1} == dict(Results({"a": 1}))


def test_gathered_lists_need_every_broker_unless_one_asks_for_what_was_found() -> None:
    partial = PartialList(("a", "b"), {3: TimeoutError("late")})
    assert partial.items == ("a", "b")
    for fails in (partial.all, lambda: list(partial), lambda: len(partial)):
        with pytest.raises(TimeoutError):
            fails()
    whole = PartialList(("a", "b"), {})
    assert (list(whole), len(whole), whole.all()) == (["a", "b"], 2, ("a", "b"))


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (-(2**31), None),
        (0, frozenset()),
        (1 << 3 | 1 << 4, {AclOperation.READ, AclOperation.WRITE}),
        (1 << 30, {AclOperation.UNKNOWN}),
    ],
)
def test_authorized_operations_are_bits(bits: int, expected: Any) -> None:
    assert decode_authorized_operations(bits) == expected
