"""Lifetimes of values and their classes, the maximum depth of values, and cleanup."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from kafka_msgs import MetadataResponse, evolve, iter_message_classes
from kafka_msgs.schema import field
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import struct_class
from tests.support.immortal_classes import if_classes_are_collected
from tests.support.refcounts import check_balance, fail_each, python_survives

Make = Callable[..., type[Any]]
DEEP = 200_000


def nested(cls: type[Any], depth: int, wrap: Callable[[Any], Any]) -> Any:
    value = cls()
    for _ in range(depth):
        value = cls(parts=wrap(value))
    return value


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: (value,)], ids=["structs", "arrays"])
def test_deep_values_are_freed(make: Make, wrap: Any) -> None:
    cls, innermost = make(), list[Any]()
    alive = noticed(innermost)
    value = cls(parts=innermost)
    for _ in range(DEEP):
        value = cls(parts=wrap(value))
    del innermost
    assert alive() is not None
    del value
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: (value,)], ids=["structs", "arrays"])
def test_values_too_deep_to_compare_are_a_recursion_error(make: Make, wrap: Any) -> None:
    cls = make()
    one, two = (nested(cls, DEEP, wrap) for _ in range(2))
    for action in (lambda: one == two, lambda: one != two, lambda: hash(one)):
        with pytest.raises(RecursionError):
            action()
    assert nested(cls, 50, wrap) == nested(cls, 50, wrap)
    assert hash(nested(cls, 50, wrap)) == hash(nested(cls, 50, wrap))


def noticed(value: Any) -> weakref.ref[Any]:
    """Return a weak reference to an object stored in the value."""
    mark = type("Mark", (), {})()
    value.append(mark)
    return weakref.ref(mark)


def test_a_cycle_through_a_value_is_collected(form: Any, make: Make) -> None:
    cls = make()
    for way in range(5):
        inner: list[Any] = []
        alive = noticed(inner)
        value = cls(parts=inner)
        if way == 1:
            value = cls(parts=(1, (value,)))
        elif way == 2:
            value = cls(parts=cls(number=value))
        elif way == 3:
            value = form.evolve(cls(number=2), parts={"key": value})
        elif way == 4:
            value = form.evolve(value, name=value)
        inner.append(value)
        del value, inner
        gc.collect()
        assert alive() is None, way


def test_a_dict_that_was_empty_may_close_a_cycle(make: Make) -> None:
    empty: dict[str, Any] = {}
    value = make()(parts=empty)
    mark = type("Mark", (), {})()
    alive = weakref.ref(mark)
    empty.update(value=value, mark=mark)
    del empty, value, mark
    gc.collect()
    assert alive() is None


def test_a_subclass_in_a_cycle_is_collected(make: Make) -> None:
    class Noted(make()):  # type: ignore[misc]
        pass

    value: Any = Noted(parts=[])
    alive = noticed(value.parts)
    object.__setattr__(value, "itself", value)
    del value
    gc.collect()
    assert alive() is None


def test_values_of_leaves_are_unknown_to_the_collector(form: Any, make: Make) -> None:
    if form.__name__ != "kafka_msgs.instances.native":
        pytest.skip("attrs makes objects that the collector knows")
    cls = make()
    plain = cls(number=1, name="a")
    assert not gc.is_tracked(plain)
    assert not gc.is_tracked(cls(parts=plain))
    assert gc.is_tracked(cls(parts=[]))


@if_classes_are_collected
def test_classes_are_collected(make: Make) -> None:
    part = struct_class("Part", name=field("Name", "string", default=""))
    cls = make(part=field("Part", "Part", default=part(name="p"), struct=part))
    value = cls(parts=(cls(),))
    assert cls.decode(cls(number=3).encode(0), 0) == cls(number=3)
    alive = [weakref.ref(part), weakref.ref(cls)]
    assert evolve(value, number=1) != value
    del part, cls, value
    for _ in range(3):
        gc.collect()
    assert [each() for each in alive] == [None, None]


def test_a_class_works_without_its_layout(form: Any, make: Make) -> None:
    cls = make()
    old = cls(number=1, parts=[(), cls()])
    if cls._layout is not None:
        cls._layout = None
    assert cls(number=1, parts=[(), cls()]) == old
    assert form.evolve(old, number=2).number == 2
    with pytest.raises(TypeError, match="unexpected keyword"):
        cls(other=1)
    assert hash(cls(name="x")) == hash(cls(name="x"))
    inner: list[Any] = [old]
    alive = noticed(inner)
    old.parts.append(inner)
    del old, inner
    gc.collect()
    assert alive() is None


def test_a_comparison_survives_that_its_class_is_unsealed(make: Make) -> None:
    cls = make()

    class Unsealing:
        def __eq__(self, other: object) -> bool:
            cls._layout = None
            gc.collect()
            return True

        def __hash__(self) -> int:
            cls._layout = None
            return 1

        def __del__(self) -> None:
            cls._layout = None

    assert cls(number=Unsealing(), name="a") == cls(number=Unsealing(), name="a")
    assert make()(number=1) != cls(number=1)


def test_a_finalizer_in_freeing_may_unseal(make: Make) -> None:
    cls = make()

    class Unsealing:
        def __del__(self) -> None:
            cls._layout = None

    hash(cls(number=Unsealing(), name="a", parts=(Unsealing(),)))
    assert cls(number=1) == cls(number=1)


def test_memory_that_is_kept_is_bounded(make: Make) -> None:
    cls = make()
    gc.collect()
    before = sys.getallocatedblocks()
    values = [cls(number=0) for _ in range(100_000)]
    del values
    gc.collect()
    assert sys.getallocatedblocks() - before < 5_000


@pytest.mark.parametrize("count", [1, 29, 30, 31, 32, 33, 90])
def test_classes_of_any_size(form: Any, make: Make, count: int) -> None:
    cls = make(**{f"more{n}": field(f"More{n}", "int32", default=n) for n in range(count)})
    for _ in range(3):
        values = [cls(**{f"more{n}": -n}) for n in range(count)]
        assert [getattr(value, f"more{n}") for n, value in enumerate(values)] == [-n for n in range(count)]
        assert all(one != two for one, two in pairwise(values[1:]))
        assert form.evolve(values[0], number=4).number == 4


def test_refused_layouts() -> None:
    extension = pytest.importorskip("kafka_msgs._core.extension")

    class Slots:
        __slots__ = ("a",)

    class Weak:
        __slots__ = ("__weakref__", "a")

    class Finalized:
        __slots__ = ("a",)

        def __del__(self) -> None:
            pass

    fields = (("a", 1),)
    for cls in (int, object, Weak, Finalized, type("Dict", (), {}), type("None", (), {"__slots__": ()})):
        with pytest.raises(TypeError):
            extension.Layout(cls, fields)
    for wrong in ((), (("b", 1),), (("a", 1), ("a", 1)), (("a",),), ((1, 1),)):
        with pytest.raises((TypeError, AttributeError)):
            extension.Layout(Slots, wrong)
    kept = extension.Layout(Slots, fields)
    with pytest.raises(TypeError):
        extension.Layout(Slots, fields)
    made: Any = Slots()
    assert made.a == 1
    del kept
    assert not hasattr(Slots(), "a")


def test_what_is_done_with_values_leaves_the_counts_as_they_were(form: Any, make: Make) -> None:
    cls, shared = make(), [object(), "text" * 3, (1, 2), [], 12345678]
    # The core keeps some memory of freed values: without free room there, refused calls of the class do not add to it.
    [cls() for _ in range(10_000)].clear()

    def actions() -> None:
        one, two = (cls(number=shared[4], name=shared[1], parts=(shared[0],)) for _ in range(2))
        assert one == two
        assert hash(one) == hash(two)
        assert form.evolve(one, parts=shared[3]) != two
        for wrong in ({"other": shared[0]}, {"number": shared[0], "other": shared[3]}):
            with pytest.raises(TypeError):
                cls(**wrong)
        with pytest.raises(TypeError):
            cls(shared[0])
        with pytest.raises(TypeError):
            hash(cls(number=shared[0], name=shared[3]))

    check_balance(actions, [*shared, cls, ()])


def test_an_allocation_that_fails_anywhere_ends_in_memory_error(form: Any, make: Make) -> None:
    if form.__name__ != "kafka_msgs.instances.native":
        pytest.skip("of failures in Python code, CPython itself leaks frames")
    if not python_survives():
        pytest.skip("this CPython crashes itself when an allocation of its interpreter fails")
    cls = make()
    big, other, text = 1 << 40, (1 << 40) + 1, "text"

    def use() -> None:
        kept = [cls(number=big, name=text) for _ in range(40)]
        assert form.evolve(kept[0], number=other) != kept[1]
        assert hash(kept[0]) == hash(kept[1])

    def fail() -> None:
        assert fail_each(use) > 0

    check_balance(fail, [cls, big, other, text, ()])


def test_threads_share_classes(form: Any, make: Make) -> None:
    cls = make()
    start, interval = threading.Barrier(8), sys.getswitchinterval()

    def work(number: int) -> int:
        start.wait()
        for n in range(2000):
            values = [cls(number=number, name=str(n), parts=(cls(number=k),)) for k in range(3)]
            assert [value.number for value in values] == [number] * 3
            assert form.evolve(values[0], parts=values[1].parts) == values[1]
        return number

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == list(range(8))
    finally:
        sys.setswitchinterval(interval)


def test_every_message_is_a_value() -> None:
    """Random messages of every class equal their rebuilt copies, and no other message."""
    rng = Random(4)
    for cls in iter_message_classes():
        version = cls.INFO.versions.highest
        one, other = (random_message(cls, version, rng, max_elements=2) for _ in range(2))
        again = cls.decode(one.encode(version), version)
        names = [name for name in dir(cls) if type(getattr(cls, name)).__name__ == "member_descriptor"]
        assert again == one
        assert hash(again) == hash(one)
        rebuilt = cls(**{name: getattr(one, name) for name in names})
        assert rebuilt == one == evolve(other, **{name: getattr(one, name) for name in names})
        assert (one == other) == (repr(one) == repr(other))


def test_a_large_value_is_quick_to_hold() -> None:
    """The garbage collector does not track decoded trees, even after a change."""
    message = random_message(MetadataResponse, 12, Random(1), max_elements=5)
    decoded = MetadataResponse.decode(message.encode(12), 12)
    assert gc.is_tracked(decoded) == gc.is_tracked(evolve(decoded, controller_id=3))
