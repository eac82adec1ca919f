"""A class stays sealed only while its instances consist of nothing but fields, and cycles through it do not leak."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from random import Random
from typing import Any

import attrs
import pytest

from kafka_msgs import FetchResponse, compile_schema
from kafka_msgs._backend import BACKENDS
from kafka_msgs.codec import CodecOptions
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.schema import field
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import message_class, struct_class
from tests.support.immortal_classes import if_classes_are_collected

Make = Callable[..., type[Any]]
VIEWS = CodecOptions(memoryview_records=True)


def double_number(cls: type[Any]) -> None:
    """Give a class an ``__init__`` that calls the generated one."""
    generated = cls.__init__

    def init(self: Any, **values: Any) -> None:
        generated(self, **values | {"number": 2 * values.get("number", 0)})

    cls.__init__ = init


def test_a_replaced_init_is_called(form: Any, make: Make) -> None:
    cls = make()
    before = cls(number=3)
    double_number(cls)
    assert cls(number=3).number == 6
    assert form.evolve(before, number=4).number == attrs.evolve(before, number=4).number == 8
    assert cls(number=3) == cls(number=3) != before
    assert hash(cls(number=3)) == hash(cls(number=3))


def test_a_replaced_init_is_called_by_evolve_first(form: Any, make: Make) -> None:
    cls = make()
    before = cls(number=3)
    double_number(cls)
    assert form.evolve(before, number=4).number == 8


def test_a_replaced_init_of_a_base_is_called_in_a_subclass(make: Make) -> None:
    cls = make()
    double_number(cls)

    class Mine(cls):  # type: ignore[misc, valid-type]
        __slots__ = ()

    assert Mine(number=3).number == 6


def test_other_attributes_of_a_class_may_change(form: Any, make: Make) -> None:
    cls = make()
    for number in range(50):
        cls.note = number
        assert cls(number=number).number == number
        assert form.evolve(cls(), number=number) == cls(number=number)
    assert cls._sealed == ("__init__" in vars(cls))


def test_copies_of_a_class_with_a_replaced_init_are_rebuilt(make: Make) -> None:
    cls = make()
    shared = cls(number=1)
    assert copy.copy(shared) is shared
    assert copy.deepcopy(shared) is shared
    double_number(cls)
    cls()
    again = copy.copy(shared)
    assert again.number in {1, 2}
    assert type(again) is cls


@pytest.mark.parametrize("parts", [[1], bytearray(b"x"), {"a": 1}], ids=repr)
def test_a_deep_copy_shares_only_what_cannot_change(make: Make, parts: Any) -> None:
    cls = make()
    fixed, mutable = cls(number=1), cls(parts=parts)
    outer = cls(parts=(fixed, mutable))
    again = copy.deepcopy(outer)
    assert again == outer
    assert again is not outer
    assert again.parts[0] is fixed
    assert again.parts[1].parts is not parts


@pytest.mark.parametrize("name", BACKENDS)
def test_a_cycle_through_the_buffer_of_a_view_is_collected(name: str) -> None:
    class Frame(bytes):
        message: Any
        mark: Any

    cls = message_class("Batch", "0", "0+", records=field("Records", "records", default=b""))
    codec: Codec[Any] = Codec(compile_plan(cls, 0), VIEWS, EXECUTORS[name])
    frame = Frame(codec.encode(cls(records=b"abc")))
    frame.message, frame.mark = codec.decode(frame), type("Mark", (), {})()
    assert bytes(frame.message.records) == b"abc"
    alive = weakref.ref(frame.mark)
    del frame
    gc.collect()
    assert alive() is None


DEFINITION = """{
  "name": "Node", "type": "data", "validVersions": "0", "flexibleVersions": "0+",
  "fields": [{"name": "Leaves", "type": "[]Leaf", "versions": "0+", "fields": [
    {"name": "Size", "type": "int32", "versions": "0+"}]}]
}"""


@if_classes_are_collected
@pytest.mark.parametrize("kept", ["instance", "decoded", "elements", "element", "evolved"])
def test_a_compiled_class_that_holds_its_own_values_is_collected(kept: str) -> None:
    cls: Any = compile_schema(DEFINITION)
    leaf = attrs.fields(attrs.resolve_types(cls)).leaves.type.__args__[0]
    decoded = cls.decode(cls(leaves=(leaf(size=1), leaf(size=2))).encode(0), 0)
    cls.kept = {
        "instance": cls(),
        "decoded": decoded,
        "elements": decoded.leaves,
        "element": decoded.leaves[0],
        "evolved": attrs.evolve(decoded, leaves=()),
    }[kept]
    leaf.kept = (decoded.leaves[1], cls)
    alive = weakref.ref(cls)
    del cls, leaf, decoded
    gc.collect()
    assert alive() is None


def test_released_classes_stay_unknown_to_the_collector() -> None:
    if "c" not in BACKENDS:
        pytest.skip("attrs makes objects that the collector knows")
    message = random_message(FetchResponse, 12, Random(4), max_elements=3)
    codec: Codec[Any] = Codec(compile_plan(FetchResponse, 12), executor=EXECUTORS["c"])
    decoded = codec.decode(message.encode(12))
    assert not gc.is_tracked(decoded)
    assert not gc.is_tracked(decoded.responses)


@pytest.mark.parametrize("name", BACKENDS)
def test_views_of_empty_content_can_be_released_one_by_one(name: str) -> None:
    part = struct_class("Part", records=field("Records", "records", default=b"", nullable="0+"))
    cls = message_class("Parts", "0", "0+", parts=field("Parts", "[]Part", default=(), struct=part))
    codec: Codec[Any] = Codec(compile_plan(cls, 0), VIEWS, EXECUTORS[name])
    parts = tuple(part(records=content) for content in (b"", b"", b"abc", None, b""))
    for _ in range(2):
        decoded = codec.decode(codec.encode(cls(parts=parts)))
        assert decoded == cls(parts=parts)
        for each in decoded.parts:
            if each.records is not None:
                with each.records as view:
                    assert bytes(view) in {b"", b"abc"}
