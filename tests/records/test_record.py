"""A record is a plain attrs value, whatever keeps its fields."""

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
from kafka_msgs.records import Record
from tests.support.references import check_balance

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

    for _ in range(200):  # CPython keeps some of what pickle and attrs do at first
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

    wrong: list[Any] = [(Larger, len), (int, len), (extension.RecordStorage, len), (Record,), (5, len)]
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
