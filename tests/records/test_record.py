"""A record is a plain attrs value, whichever type stores its fields."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import weakref
from typing import Any

import attrs
import pytest

from kafka_msgs._backend import backend
from kafka_msgs.records import BatchBuilder, BatchHeader, ConsumerRecord, MessageSetBuilder, Record, read_batches
from tests.support.refcounts import check_balance

ONE = Record(7, 1_700_000_000_000, b"k", None, (("h", b"v"),))


def test_it_has_its_fields_in_their_order() -> None:
    assert [field.name for field in attrs.fields(Record)] == ["offset", "timestamp", "key", "value", "headers"]
    assert attrs.astuple(ONE, recurse=False) == (7, 1_700_000_000_000, b"k", None, (("h", b"v"),))
    assert repr(Record(1, -1, None, b"v")) == "Record(offset=1, timestamp=-1, key=None, value=b'v', headers=())"
    assert not hasattr(ONE, "__dict__")


def test_it_is_compared_hashed_copied_and_pickled_by_its_fields() -> None:
    same = Record(7, 1_700_000_000_000, b"k", None, (("h", b"v"),))
    assert (same, hash(same)) == (ONE, hash(ONE))
    assert attrs.evolve(ONE, offset=8) != ONE
    for way in (copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record)), attrs.evolve):
        assert way(ONE) == ONE
    match ONE:
        case Record(offset, _, key):
            assert (offset, key) == (7, b"k")


@pytest.mark.parametrize("name", ["offset", "timestamp", "key", "value", "headers"])
def test_it_does_not_change(name: str) -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(ONE, name, 5)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        delattr(ONE, name)


class Number(int):
    """An int that is not exactly one."""


@pytest.mark.parametrize("offset", [0, -1, 2**63 - 1, -(2**63), 2**63, 2**200, True, Number(5), "text", None])
def test_whatever_it_is_made_of_is_given_back(offset: Any) -> None:
    made = Record(offset, offset, offset, offset, offset)
    for found in attrs.astuple(made, recurse=False):
        assert found == offset
        assert type(found) is type(offset)


def test_it_keeps_no_reference_that_it_does_not_own() -> None:
    wide, key = 2**200, b"key" * 100

    def make_and_drop() -> None:
        made = [Record(offset, 2**40, key, key, ((str(offset), key),)) for offset in (5, wide, 2**50)]
        copies = [pickle.loads(pickle.dumps(each)) for each in made]
        object.__setattr__(copies[0], "offset", wide)
        object.__setattr__(copies[1], "offset", 5)
        assert [each.offset for each in copies] == [wide, 5, 2**50]

    for _ in range(200):  # CPython keeps some of the first objects that pickle and attrs create
        make_and_drop()
    check_balance(make_and_drop, [wide, key, Record, None])


def test_instances_of_subclasses_are_freed_with_all_that_they_have() -> None:
    content, ended = b"content" * 50, []

    class Noted(Record):
        def __del__(self) -> None:
            ended.append(self.offset)

    class Slotted(Noted):
        __slots__ = ("more",)

    def make_and_drop() -> None:
        for cls in (Noted, Slotted):
            made: Any = cls(7, 2**40, content, content)
            object.__setattr__(made, "more", content)
            reference = weakref.ref(made)
            del made
            assert reference() is None
        assert ended == [7, 7]
        ended.clear()

    check_balance(make_and_drop, [content, Noted, Slotted])


def test_records_of_a_consumer_know_their_partition_and_share_its_name() -> None:
    builder = BatchBuilder(BatchHeader(base_offset=2**40))
    for number in range(3):
        builder.append(b"k%d" % number, None, timestamp=2**41 + number, headers=[("h", b"v")])
    (batch,) = read_batches(builder.build())
    topic, partition = "orders" * 3, 2**20
    found = batch.consumer_records(topic, partition)
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in found] == [
        (r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch.records()
    ]
    assert all(record.topic is topic and record.partition is partition for record in found)
    assert pickle.loads(pickle.dumps(found)) == found
    assert ConsumerRecord(5, -1, None, b"v", (), "t", 1) == ConsumerRecord(5, -1, None, b"v", (), "t", 1)
    assert ConsumerRecord(5, -1, None, b"v", (), "t", 1) != ConsumerRecord(5, -1, None, b"v", (), "t", 2)
    check_balance(lambda: batch.consumer_records(topic, partition), [topic, partition, ConsumerRecord, None])


def test_records_of_older_formats_know_their_partition_too() -> None:
    builder = MessageSetBuilder(magic=1)
    builder.append(b"k", b"v", timestamp=7)
    (batch,) = read_batches(builder.build())
    assert batch.consumer_records("t", 3) == [ConsumerRecord(0, 7, b"k", b"v", (), "t", 3)]


def test_a_finalizer_may_keep_an_instance() -> None:
    kept: list[Any] = []

    class Kept(Record):
        def __del__(self) -> None:
            kept.append(self)

    Kept(7, 2**40, b"k", None)
    (found,) = kept
    assert (found.offset, found.timestamp, found.key) == (7, 2**40, b"k")


def test_an_extension_binds_no_class_but_one_that_adds_nothing() -> None:
    if backend() != "c":
        pytest.skip("the core does not run")
    from kafka_msgs._core import extension

    class Larger(extension.RecordStorage):
        __slots__ = ("more",)

    class LargerPlaced(extension.PlacedRecordStorage):
        __slots__ = ("more",)

    wrong: list[Any] = [
        (Larger, ConsumerRecord, len),
        (int, ConsumerRecord, len),
        (extension.RecordStorage, ConsumerRecord, len),
        (Record, LargerPlaced, len),
        (Record, Record, len),
        (Record, ConsumerRecord),
        (5, ConsumerRecord, len),
    ]
    for arguments in wrong:
        with pytest.raises(TypeError):
            extension.bind_records(*arguments)


@pytest.mark.skipif(backend() == "python", reason="this is that run")
def test_all_of_this_holds_where_python_keeps_the_fields_and_no_extension_is_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "KAFKA_MSGS_BACKEND": "python"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-3000:]
