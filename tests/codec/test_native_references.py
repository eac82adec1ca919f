"""Reference counts of the C core: balanced after every outcome of a call."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

from kafka_msgs import MetadataResponse, VersionRange, evolve, iter_message_classes
from kafka_msgs._backend import BACKENDS
from kafka_msgs.codec import CodecOptions
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.error_explanation import PartFunctions
from kafka_msgs.codec.executors import EXECUTORS, part_functions
from kafka_msgs.codec.options import DEFAULT_OPTIONS
from kafka_msgs.codec.plan import StructPlan, WireValue, compile_plan
from kafka_msgs.codec.selection import select_fields
from kafka_msgs.errors import KafkaMsgsError, UnsupportedVersionError
from kafka_msgs.schema import field
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import codec, message_class, struct_class
from tests.support.damage import corrupted, mutated
from tests.support.refcounts import check_balance, fail_each

pytestmark = pytest.mark.skipif("c" not in BACKENDS, reason="the C core is not built")

CLASSES = sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)
VIEWS = CodecOptions(memoryview_records=True)


def structs(plan: StructPlan) -> Iterator[StructPlan]:
    """Yield a struct and all structs in it."""
    yield plan
    for step in plan.steps + plan.tagged:
        value: WireValue = step.value if step.value.element is None else step.value.element
        if value.struct is not None:
            yield from structs(value.struct)


def shared_objects(plan: StructPlan) -> list[Any]:
    """Return the objects that all decoded messages of a plan share: classes, defaults, constants."""
    found: list[Any] = [None, True, False, (), b"", "", 0, 1, 255]
    for each in structs(plan):
        found += [each.cls, *(step.default for step in each.tagged), *(absent.default for absent in each.absent)]
    return found


def attempt(action: Callable[[Any], Any], subject: Any) -> None:
    with contextlib.suppress(KafkaMsgsError):
        action(subject)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_calls_leave_the_counts_as_they_were(cls: Any) -> None:
    version = cls.INFO.versions.highest
    rng = Random(cls.__name__)
    messages = [random_message(cls, version, rng, max_elements=2) for _ in range(3)]
    valid = [codec("reference", cls, version).encode(message) for message in messages]
    damaged = [mutated(rng, data) for data in valid] + [data[: len(data) // 2] for data in valid]
    broken = [corrupted(rng, message) for message in messages]
    plain, views = codec("c", cls, version), codec("c", cls, version, VIEWS)

    def calls() -> None:
        for data in valid + damaged:
            attempt(plain.decode, data)
            attempt(plain.read, bytearray(data))
            attempt(views.decode, data)
        for message in messages + broken:
            attempt(plain.encode, message)

    check_balance(calls, shared_objects(plain.plan.root))


PATHS = ("brokers[].host", "brokers[].port", "topics[]", "cluster_id")


def patches() -> tuple[PartFunctions, bytes, list[tuple[Any, ...]]]:
    """Return the functions of selected fields, bytes of the message, and edits with all outcomes."""
    rng = Random(0)
    made = (random_message(MetadataResponse, 12, rng, max_elements=3) for _ in range(20))
    message = max(made, key=lambda each: len(repr(each)))

    def keep(old: Any) -> Any:
        return old

    def fail(_: Any) -> Any:
        raise UnsupportedVersionError(message="", version=0, supported=VersionRange.parse("0"))

    other = (lambda _: "other", lambda port: port ^ 1, lambda topic: evolve(topic, is_internal=True), lambda _: None)
    outcomes: list[tuple[Any, ...]] = [
        (keep,) * 4,
        other,
        (fail,) * 4,
        (*other[:3], fail),
        (str,) * 4,
        (keep, str, keep, keep),
    ]
    functions = part_functions(select_fields(compile_plan(MetadataResponse, 12), PATHS), DEFAULT_OPTIONS, "c")
    return functions, message.encode(12), outcomes


def test_patches_leave_the_counts_as_they_were() -> None:
    functions, data, outcomes = patches()

    def patched(edits: Any, subject: Any) -> None:
        functions.patch(subject, 0, edits)

    def calls() -> None:
        for subject in (data, bytearray(data), data[: len(data) // 2]):
            attempt(functions.read, subject)
            for edits in outcomes:
                attempt(partial(patched, edits), subject)

    check_balance(calls, shared_objects(compile_plan(MetadataResponse, 12).root))


def make_class(number: int) -> Any:
    part = struct_class("Part", name=field("Name", "string", default=""))
    return message_class(
        f"Made{number}",
        versions="0-1",
        flexible="0+",
        parts=field("Parts", "[]Part", default=(), struct=part),
        part=field("Part", "Part", default=part(name="p"), struct=part, tag=0, tagged="0+"),
        later=field("Later", "int32", default=1000, versions="1+"),
    )


def test_codecs_are_freed() -> None:
    cls = make_class(0)
    plan = compile_plan(cls, 0)

    def make_and_drop() -> None:
        made: Codec[Any] = Codec(plan, executor=EXECUTORS["c"])
        assert made.decode(made.encode(cls())) == cls()

    check_balance(make_and_drop, shared_objects(plan.root))


def new_cores() -> int:
    """Return the number of C codecs that the garbage collector tracks."""
    from kafka_msgs._core import extension

    gc.collect()
    return sum(type(each) is extension.Codec for each in gc.get_objects())


def test_a_codec_in_a_cycle_is_freed() -> None:
    cls = make_class(1)
    gc.freeze()
    made: Codec[Any] = Codec(compile_plan(cls, 0), executor=EXECUTORS["c"])
    cls.codec_of_its_own = made
    assert made.decode(made.encode(cls())) == cls()
    assert new_cores() == 1
    del cls.codec_of_its_own, made
    assert new_cores() == 0


def test_refused_plans_leak_no_references() -> None:
    from kafka_msgs._core import extension

    cls = make_class(2)
    member = cls.later
    good = (3, 0, member, 3, 0, 4, -1, 0, 0, False, 0)
    bad_ops = [
        (14, *good[1:]), (-1, *good[1:]), (3, 0, cls, *good[3:]), (12, 0, member, 12, *good[4:]),
        (12, 0, member, 3, 0, 3, *good[6:]), (13, 0, member, 13, 0, 1, *good[6:]),
        (13, 0, member, 13, 0, 1, 9, *good[7:]), (3, 0, member, 3, 0, 4, -1, 0, 0, False, -1),
        (3, 0, MetadataResponse.brokers, *good[3:]), good[:5], "op",
    ]  # fmt: skip
    unknown = cls.unknown_tagged_fields
    rest: tuple[Any, ...] = (1, 1, False, False, None, len, len, len)

    def refuse_all() -> None:
        for op in bad_ops:
            for steps, tagged in (((good, op), ()), ((), (good, op))):
                with pytest.raises((TypeError, ValueError, SystemError)):
                    extension.Codec(((cls, unknown, True, False, steps, tagged, (), ()),), *rest)
        for specs in (
            (),
            (1,),
            ((int, unknown, True, False, (), (), (), ()),),
            ((cls, 5, True, False, (), (), (), ()),),
        ):
            with pytest.raises((TypeError, ValueError, SystemError)):
                extension.Codec(specs, *rest)

    check_balance(refuse_all, [cls, member, unknown, len, None, ()])


def test_a_codec_is_made_whole() -> None:
    from kafka_msgs._core import extension

    with pytest.raises(TypeError):
        extension.Codec.__new__(extension.Codec)
    made: Any = codec("c", MetadataResponse, 1)
    made.decode.__self__.__init__((), 1, 1, False, False, None, len, len, len)  # changes nothing
    assert made.decode(made.encode(MetadataResponse())) == MetadataResponse()


# Without tagged structs: comparing them with their defaults runs Python code, in which CPython itself leaks frames.
ALLOCATING = [cls for cls in CLASSES if cls.__name__ in ("ApiVersionsResponse", "MetadataResponse", "VotersRecord")]


@pytest.mark.parametrize("cls", ALLOCATING, ids=lambda cls: cls.__name__)
def test_an_allocation_that_fails_anywhere_ends_in_memory_error(cls: Any) -> None:
    """The n-th allocation of a call fails, for every n. Reference counts are unchanged afterwards."""
    version = cls.INFO.versions.highest
    message = max(
        (random_message(cls, version, Random(n), max_elements=3) for n in range(20)), key=lambda made: len(repr(made))
    )
    made = codec("c", cls, version)
    data = made.encode(message)

    def fail() -> None:
        assert fail_each(partial(made.decode, data)) > 5
        assert fail_each(partial(made.encode, message)) > 0

    check_balance(fail, shared_objects(made.plan.root))


@pytest.mark.parametrize("number", [0, 1])
def test_an_allocation_that_fails_in_a_patch_ends_in_memory_error(number: int) -> None:
    functions, data, outcomes = patches()

    def fail() -> None:
        assert fail_each(partial(functions.patch, data, 0, outcomes[number])) > 3

    check_balance(fail, shared_objects(compile_plan(MetadataResponse, 12).root))
