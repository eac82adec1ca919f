"""Generated classes and errors with a deferred attrs part equal those that attrs creates immediately."""

from __future__ import annotations

import copy
import inspect
import linecache
import sys
import typing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import ModuleType
from typing import Any

import attrs
import pytest

from kafka_msgs import backend, messages
from kafka_msgs.deferred_attrs import DeferredAttribute, define
from kafka_msgs.schema import Struct, field, frozen
from tests.support.codecs import message_class

OPTIONS = {"kw_only": True, "repr": False, "eq": False, "weakref_slot": False}
MADE_LATE = {"__attrs_attrs__", "__attrs_props__", "__init__", "__getstate__", "__setstate__"} & {*vars(Struct)}


@pytest.fixture
def cls() -> type[Any]:
    return message_class("Made", number=field("Number", "int32", default=0), name=field("Name", "string", default="a"))


def made_late(cls: type[Any]) -> set[str]:
    """Return the names of the attributes that attrs will create later."""
    return {name for name, value in vars(cls).items() if isinstance(value, DeferredAttribute)}


def structs(module: ModuleType) -> Iterator[type[Any]]:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Struct) and value.__module__ == module.__name__:
            yield value


def made_at_once(module: ModuleType) -> dict[str, Any]:
    """Return the names in the module, with classes that attrs creates at definition time."""
    before = set(linecache.cache)
    namespace: dict[str, Any] = {"__name__": module.__name__, "__package__": module.__package__}
    source = inspect.getsource(module).replace(", frozen\n", "\nfrom attrs import frozen\n", 1)
    exec(compile(source, "<made at once>", "exec", dont_inherit=True), namespace)
    for added in set(linecache.cache) - before:
        del linecache.cache[added]
    return namespace


def facts(cls: type[Any]) -> dict[str, Any]:
    """Return the information that attrs, ``inspect`` and ``typing`` have about a class."""
    kept = [*inspect.signature(cls).parameters]
    return {
        "fields": [str(each) for each in attrs.fields(cls)],
        "kind of fields": type(attrs.fields(cls)).__name__,
        "properties": getattr(cls, "__attrs_props__", None),
        "signature": str(inspect.signature(cls)),
        "method": str(inspect.signature(cls.__init__)),
        "hints": str(typing.get_type_hints(cls.__init__)),
        "own hints": str(typing.get_type_hints(cls)),
        "text": inspect.getdoc(cls),
        "names": [(cls.__init__.__module__, cls.__init__.__qualname__, cls.__init__.__doc__), cls.__match_args__],
        "values": {name: repr(value) for name, value in cls().__getstate__().items()},
        "slots": cls.__slots__,
        "sealed": cls._sealed and hasattr(attrs, "inspect"),  # earlier attrs releases do not record this
        "as a dict": repr(attrs.asdict(cls())),
        "kept": kept,
    }


@pytest.mark.parametrize("name", ["request", "response", "record", "value", "key"])
def test_generated_classes_are_those_of_attrs(name: str) -> None:
    modules = [module for module in sorted(messages.MODULES.values()) if module.endswith(name)][::9]
    assert modules
    for module in [import_module(f"kafka_msgs.messages.{each}") for each in modules]:
        expected = made_at_once(module)
        for cls in structs(module):
            other = expected[cls.__name__]
            assert other is not cls
            assert not made_late(other)
            assert facts(cls) == facts(other)
            assert not made_late(cls)
            inherited = {*vars(other)} - {*vars(cls)}
            assert inherited <= {"__setattr__", "__delattr__", "__match_args__", "__replace__"}
            assert all(getattr(cls, each) == getattr(other, each) for each in inherited)


@pytest.mark.skipif(backend() == "reference", reason="the reference decoder makes values by calling their class")
def test_what_most_programs_do_needs_nothing_of_attrs(cls: type[Any]) -> None:
    message = cls.decode(b"\0\0\0\1\0\1b", 0)
    assert message.encode(0) == b"\0\0\0\1\0\1b"
    assert message == cls.decode(b"\0\0\0\1\0\1b", 0)
    assert hash(message) == hash(cls.decode(b"\0\0\0\1\0\1b", 0))
    assert repr(message) == "Made(number=1, name='b')"
    assert message.__reduce_ex__(4)[1][0] is cls
    assert made_late(cls) == MADE_LATE


def refuses_a_wrong_name(cls: type[Any]) -> None:
    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'wrong'"):
        cls(wrong=1)


@pytest.mark.parametrize(
    "access",
    [
        attrs.fields,
        attrs.has,
        inspect.signature,
        lambda cls: cls.__init__,
        lambda cls: cls().__getstate__(),
        lambda cls: object.__new__(cls).__init__(number=1),
        refuses_a_wrong_name,
    ],
)
def test_the_first_access_completes_the_class(cls: type[Any], access: Any) -> None:
    access(cls)
    assert made_late(cls) == set()


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is new in 3.13")
def test_replace_makes_a_changed_copy(cls: type[Any]) -> None:
    replace: Any = vars(copy)["replace"]
    assert replace(cls(number=1, name="b"), number=2) == cls(number=2, name="b")


def test_a_class_is_completed_once(cls: type[Any]) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = {id(each) for each in pool.map(attrs.fields, [cls] * 40)}
    assert len(found) == 1


def test_state_as_attrs_sets_it(cls: type[Any]) -> None:
    message = object.__new__(cls)
    message.__setstate__({"unknown_tagged_fields": (), "number": 5, "name": "c"})
    assert message == cls(number=5, name="c")


def test_a_subclass_finds_what_attrs_makes_for_its_base(cls: type[Any]) -> None:
    class Sub(cls):  # type: ignore[misc]
        def __init__(self, number: int) -> None:
            super().__init__(number=2 * number)

    assert Sub(4).number == 8
    assert made_late(cls) == set()
    assert attrs.fields(Sub) is attrs.fields(cls)


def test_a_subclass_by_attrs_has_the_fields_of_its_base(cls: type[Any]) -> None:
    sub: Any = attrs.make_class("Sub", {"more": attrs.field(default=7)}, (cls,), kw_only=True, eq=False, repr=False)
    assert [each.name for each in attrs.fields(sub)] == ["unknown_tagged_fields", "number", "name", "more"]
    assert repr(sub(number=1)) == "Sub(number=1, name='a', more=7)"


def test_what_somebody_put_in_its_place_stays(cls: type[Any]) -> None:
    def init(self: Any) -> None:
        object.__setattr__(self, "number", 3)

    cls.__init__ = init
    assert len(attrs.fields(cls)) == 3
    assert cls.__init__ is init


def test_a_class_written_by_hand() -> None:
    @frozen(kw_only=True, repr=False, eq=False, weakref_slot=False)
    class Written(Struct):
        """Text."""

        size: int = field("Size", "int32", default=2)

    assert Written().size == 2
    assert Written(size=3) == attrs.evolve(Written(), size=3)
    assert Written.__doc__ == "Text."
    assert Written.__qualname__.endswith("<locals>.Written")
    assert Written.__module__ == __name__


def test_a_field_is_what_attrs_takes_for_one() -> None:
    made: Any = field("Size", "int32", default=2)
    assert made.__class__ is type(attrs.field())

    @attrs.frozen(kw_only=True, repr=False, eq=False, weakref_slot=False)
    class Checked(Struct):
        size: int = made

        @made.validator  # type: ignore[untyped-decorator]
        def _check(self, attribute: Any, value: int) -> None:
            if value < 0:
                raise ValueError(attribute.name)

    assert Checked().size == 2
    with pytest.raises(ValueError, match="size"):
        Checked(size=-1)


def errors() -> list[type[Any]]:
    """Two error classes that differ only in when attrs creates them: immediately or late."""
    made = []
    for by in (attrs.define, define):

        @by(kw_only=True, slots=False, repr=False)
        class FaultError(Exception):
            """Text."""

            where: str
            size: int | None = None

        made.append(FaultError)
    return made


def test_an_error_becomes_what_attrs_makes() -> None:
    at_once, late = errors()
    assert not made_late(at_once)
    assert made_late(late)
    one, other = at_once(where="here"), late(where="here")
    assert (vars(other), other.args) == (vars(one), one.args)
    assert other != late(where="here")
    assert not made_late(late)
    assert vars(late).keys() == vars(at_once).keys()
    assert str(attrs.fields(late)) == str(attrs.fields(at_once))
    assert inspect.signature(late) == inspect.signature(at_once)


def test_an_error_with_an_init_of_its_own_keeps_it() -> None:
    _, late = errors()

    def init(self: Any) -> None:
        self.where = "there"

    late.__init__ = init
    assert [each.name for each in attrs.fields(late)] == ["where", "size"]
    assert late().where == "there"


def test_threads_complete_an_error_once() -> None:
    _, late = errors()
    with ThreadPoolExecutor(4) as pool:
        assert [each.where for each in pool.map(lambda number: late(where=number), range(40))] == list(range(40))
