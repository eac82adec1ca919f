"""The undo log reverts changes of any kind, and temporarily restores the state before them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap, iter_kafka_order
from kafka_msgs.groups.runtime.undo_log import WITHOUT_UNDO, Changes, UndoLog
from tests.coordinator.kafka_changes import KafkaUndoLog

_KEYS = st.sampled_from(["a", "b", "Aa", "BB", "c"])
_CHANGES = st.lists(st.tuples(_KEYS, st.one_of(st.none(), st.integers(0, 9))), max_size=12)


class _Thing:
    def __init__(self) -> None:
        self.value = 0


def _apply(changes: Changes, table: dict[str, int], listed: list[tuple[str, int | None]]) -> None:
    for key, value in listed:
        if value is None:
            changes.delete(table, key)
        else:
            changes.set(table, key, value)


@given(before=_CHANGES, after=_CHANGES)
def test_undo_takes_back_what_came_after_the_mark(
    before: list[tuple[str, int | None]], after: list[tuple[str, int | None]]
) -> None:
    table: dict[str, int] = {}
    journal = UndoLog()
    _apply(journal, table, before)
    mark, present = len(journal), dict(table)

    _apply(journal, table, after)
    journal.undo(mark)

    assert table == present
    assert len(journal) == mark


@pytest.mark.parametrize("log", [UndoLog, KafkaUndoLog])
@given(settled=_CHANGES, waiting=_CHANGES)
def test_the_state_before_the_changes_is_seen_and_then_the_present_again(
    log: type[UndoLog], settled: list[tuple[str, int | None]], waiting: list[tuple[str, int | None]]
) -> None:
    table: TimelineHashMap[str, int] = TimelineHashMap()
    _apply(WITHOUT_UNDO, table, settled)
    before = dict(table)
    journal = log()
    _apply(journal, table, waiting)
    present = dict(table)
    order = list(table)

    with journal.rewound_to() if isinstance(journal, KafkaUndoLog) else journal.rewound():
        assert dict(table) == before

    assert dict(table) == present
    assert log is UndoLog or list(table) == order
    journal.undo(0)
    assert dict(table) == before


@given(settled=_CHANGES, failed=_CHANGES)
def test_what_a_revert_brings_back_is_the_newest_of_its_table(
    settled: list[tuple[str, int | None]], failed: list[tuple[str, int | None]]
) -> None:
    table: TimelineHashMap[str, int] = TimelineHashMap()
    _apply(WITHOUT_UNDO, table, settled)
    before = dict(table)
    journal = KafkaUndoLog()
    _apply(journal, table, failed)
    touched = {key for key, _ in failed}

    journal.revert_as_kafka(0)

    assert dict(table) == before
    untouched = [key for key in table if key not in touched]
    assert list(table)[: len(untouched)] == untouched


def test_an_attribute_is_put_back_too() -> None:
    thing, journal = _Thing(), UndoLog()
    journal.assign(thing, "value", 1)
    journal.assign(thing, "value", 2)

    journal.undo(1)

    assert thing.value == 1


def test_changes_that_are_forgotten_stay() -> None:
    table: dict[str, Any] = {}
    journal = UndoLog()
    journal.set(table, "a", 1)
    journal.set(table, "b", 2)

    journal.forget(1)
    journal.undo(0)

    assert table == {"a": 1}


def test_tables_are_walked_with_the_newest_of_a_slot_first() -> None:
    table: TimelineHashMap[str, None] = TimelineHashMap()
    for key in ("Aa", "BB", "AaAa"):
        table[key] = None
    table["Aa"] = None

    assert [key for key in iter_kafka_order(table) if len(key) == 2] == ["BB", "Aa"]
    table.listed = ["Aa", "BB", "Aa"]
    assert [key for key in iter_kafka_order(table) if len(key) == 2] == ["Aa", "BB", "Aa"]


def test_a_snapshot_lists_what_came_back_to_it_beside_what_is_there() -> None:
    table: TimelineHashMap[str, int] = TimelineHashMap()
    table["a"] = 1
    journal = KafkaUndoLog()
    journal.set(table, "a", 2)
    returned = journal.revert_as_kafka(0)

    with journal.rewound_to([(0, returned)]):
        assert iter_kafka_order(table) == ["a", "a"]
    journal.delete(table, "a")
    with journal.rewound_to([(0, returned), (1, ())]):
        assert iter_kafka_order(table) == ["a", "a"]
    with journal.rewound_to([(1, returned)]):
        assert iter_kafka_order(table) == ["a"]
    with journal.rewound_to([(1, ()), (0, returned)]):
        assert iter_kafka_order(table) == ["a"]
    assert iter_kafka_order(table) == []
