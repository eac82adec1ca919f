"""Both forms of a class behave alike: attributes, order of evaluation, and every error."""

from __future__ import annotations

import copy
import inspect
import operator
import weakref
from collections.abc import Callable
from typing import Any
from uuid import UUID

import attrs
import pytest

from kafka_msgs._backend import backend
from kafka_msgs.schema import field
from tests.instances.conftest import FORMS

Make = Callable[..., type[Any]]
NAN = float("nan")


def outcome(action: Callable[[], Any]) -> Any:
    """Return the result of an action, or the type and text of its exception."""
    try:
        return action()
    except Exception as error:
        return type(error), str(error)


def test_a_class_is_sealed_where_the_core_runs(form: Any, make: Make) -> None:
    assert make()._sealed
    assert (make()._layout is not None) == (form.__name__ == "kafka_msgs.instances.native")
    assert set(FORMS) == ({"python", "native"} if backend() == "c" else {"python"})


def test_fields_have_what_was_given_or_their_defaults(make: Make) -> None:
    cls = make()
    names = ("unknown_tagged_fields", "number", "name", "parts")
    given: tuple[Any, ...] = (((1, b""),), 7, None, (1, 2))
    for chosen in range(16):
        arguments = {name: value for i, (name, value) in enumerate(zip(names, given, strict=True)) if chosen >> i & 1}
        made = cls(**dict(reversed(arguments.items())))
        defaults = {"unknown_tagged_fields": (), "number": 0, "name": "", "parts": ()}
        assert {name: getattr(made, name) for name in names} == defaults | arguments
        assert made == cls(**arguments)
        assert hash(made) == hash(cls(**arguments))


def test_names_need_not_be_interned(make: Make) -> None:
    assert make()(**{"".join(["num", "ber"]): 3}).number == 3


@pytest.mark.parametrize(
    ("arguments", "named", "error"),
    [
        ((1,), {}, r"Made.__init__\(\) takes 1 positional argument but 2 were given"),
        ((), {"other": 1}, r"Made.__init__\(\) got an unexpected keyword argument 'other'"),
        ((), {"number": 1, "other": 1}, r"Made.__init__\(\) got an unexpected keyword argument 'other'"),
        ((1,), {"other": 1}, r"Made.__init__\(\) got an unexpected keyword argument 'other'"),
    ],
)
def test_wrong_arguments_raise_what_attrs_raises(make: Make, arguments: Any, named: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        make()(*arguments, **named)


def test_evolve_changes_a_copy(form: Any, make: Make) -> None:
    message = make()(number=1, parts=[1])
    changed = form.evolve(message, name="b")
    assert (changed.number, changed.name, message.name) == (1, "b", "")
    assert changed.parts is message.parts
    assert form.evolve(message) == message
    assert form.evolve(message) is not message
    with pytest.raises(TypeError, match=r"Made.__init__\(\) got an unexpected keyword argument 'other'"):
        form.evolve(message, other=1)
    for wrong in ((3,), (), (message, message)):
        with pytest.raises((TypeError, attrs.exceptions.NotAnAttrsClassError)):
            form.evolve(*wrong)


def test_only_the_same_class_can_be_equal(make: Make) -> None:
    first, second = make(), make()
    assert first() != second()
    assert first().__eq__(second()) is NotImplemented
    assert first() != 0
    for compare in (operator.lt, operator.ge):
        with pytest.raises(TypeError, match="not supported between instances of 'Made' and 'Made'"):
            compare(first(), first())


class Watched:
    """A value that records comparisons and hash calls."""

    def __init__(self, name: str, log: list[str], *, equal: Any = True) -> None:
        self.name, self.log, self.equal = name, log, equal

    def __eq__(self, other: object) -> Any:
        self.log.append(self.name)
        if isinstance(self.equal, Exception):
            raise self.equal
        return self.equal

    def __hash__(self) -> int:
        self.log.append(f"hash {self.name}")
        return 5


@pytest.mark.parametrize(
    ("equals", "looked_at"),
    [
        ([True, True, True], ["number", "name", "parts"]),
        ([True, 0, True], ["number", "name"]),
        ([True, ValueError("no"), True], ["number", "name"]),
        ([[], True, True], ["number"]),
    ],
)
def test_fields_are_compared_in_the_order_of_the_definition(make: Make, equals: Any, looked_at: list[str]) -> None:
    log: list[str] = []
    names = ("number", "name", "parts")
    cls = make()
    one, two = (
        cls(**{name: Watched(name, log, equal=equal) for name, equal in zip(names, equals, strict=True)})
        for _ in range(2)
    )
    found = outcome(lambda: one == two)
    assert found in (all(equals), (ValueError, "no"))
    assert log == looked_at
    log.clear()
    hash(one)
    assert log == [f"hash {name}" for name in names]


def test_what_does_not_equal_itself(make: Make) -> None:
    cls = make()
    one, log = cls(number=NAN), list[str]()
    assert one != one
    assert cls(parts=(NAN,)) == cls(parts=(NAN,))
    assert cls(parts=one) != cls(parts=one)
    never = Watched("never", log, equal=False)
    assert cls(number=never) != cls(number=never)
    assert cls(number=1) == cls(number=1.0) == cls(number=True)
    assert len({cls(number=1), cls(number=1.0), cls(number=True)}) == 1


def test_uuids_are_compared_by_their_number(make: Make) -> None:
    cls, text = make(), "00112233-4455-6677-8899-aabbccddeeff"
    assert cls(name=UUID(text)) == cls(name=UUID(text))
    assert hash(cls(name=UUID(text))) == hash(cls(name=UUID(text)))
    assert cls(name=UUID(text)) != cls(name=UUID(int=1))
    assert cls(name=UUID(text)) != cls(name=text)


def test_what_cannot_be_hashed(make: Make) -> None:
    assert outcome(lambda: hash(make()(number=[]))) == (TypeError, "unhashable type: 'list'")


def test_an_instance_without_values(make: Make) -> None:
    """Unpickling old pickles creates such an instance before it has state."""
    cls = make()
    empty = object.__new__(cls)
    for action in (lambda: empty == cls(), lambda: cls() == empty, lambda: hash(empty), lambda: repr(empty)):
        with pytest.raises(AttributeError):
            action()
    with pytest.raises(AttributeError):
        attrs.evolve(empty, number=1)


def test_evolve_of_an_instance_without_values(form: Any, make: Make) -> None:
    with pytest.raises(AttributeError):
        form.evolve(object.__new__(make()), number=1)


def test_attrs_knows_the_class(make: Make) -> None:
    cls = make()
    message = cls(number=1)
    assert [each.name for each in attrs.fields(cls)] == ["unknown_tagged_fields", "number", "name", "parts"]
    assert attrs.asdict(message) == {"unknown_tagged_fields": (), "number": 1, "name": "", "parts": ()}
    assert attrs.evolve(message, name="b") == cls(number=1, name="b")
    assert repr(message) == "Made(number=1, name='', parts=())"
    assert list(inspect.signature(cls).parameters) == ["unknown_tagged_fields", "number", "name", "parts"]
    match message:
        case cls(number=1, name=name):
            assert name == ""
        case _:
            pytest.fail("it does not match")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        message.number = 2
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del message.number
    with pytest.raises(TypeError, match="cannot create weak reference"):
        weakref.ref(message)


def test_copies(make: Make) -> None:
    message = make()(number=1, parts=[1])
    assert copy.copy(message) == message
    assert copy.copy(message).parts is message.parts
    deep = copy.deepcopy(message)
    assert deep == message
    assert deep.parts is not message.parts


# User subclasses


def subclass_with_a_dict(cls: type[Any]) -> type[Any]:
    class Noted(cls):  # type: ignore[misc]
        pass

    return Noted


def subclass_with_weak_references(cls: type[Any]) -> type[Any]:
    class Weak(cls):  # type: ignore[misc]
        __slots__ = ("__weakref__",)

    return Weak


def subclass_of_attrs(cls: type[Any]) -> type[Any]:
    @attrs.frozen(kw_only=True, eq=False, repr=False)
    class More(cls):  # type: ignore[misc]
        extra: int = 3

    return More


def subclass_that_checks(cls: type[Any]) -> type[Any]:
    @attrs.frozen(kw_only=True, eq=False, repr=False, weakref_slot=False)
    class Checked(cls):  # type: ignore[misc]
        number: int = attrs.field(default=0, converter=int)

    return Checked


def subclass_with_an_init(cls: type[Any]) -> type[Any]:
    @attrs.frozen(kw_only=True, eq=False, repr=False, weakref_slot=False)
    class Own(cls):  # type: ignore[misc]
        extra: int = 0

        def __init__(self, **values: Any) -> None:
            self.__attrs_init__(**values | {"extra": 9})

    return Own


@pytest.mark.parametrize(
    "subclass",
    [
        subclass_with_a_dict,
        subclass_with_weak_references,
        subclass_of_attrs,
        subclass_that_checks,
        subclass_with_an_init,
    ],
)
def test_subclasses_work_as_without_the_core(form: Any, make: Make, subclass: Any) -> None:
    base = make()
    cls = subclass(base)
    assert not cls._sealed
    one, two = cls(number=1, parts=["x"]), cls(number=1, parts=["x"])
    assert one == two
    assert one != base(number=1, parts=["x"])
    assert form.evolve(one, number=2) != one
    assert form.evolve(one, number=2).number == 2
    assert copy.copy(one) == one
    assert copy.deepcopy(one) == one
    assert hash(cls(name="n")) == hash(cls(name="n"))


def test_what_a_subclass_adds_is_kept(make: Make) -> None:
    base = make()
    noted, own, checked = subclass_with_a_dict(base)(), subclass_with_an_init(base)(), subclass_that_checks(base)
    object.__setattr__(noted, "note", "n")
    assert noted.note == "n"
    assert own.extra == 9
    assert checked(number="12").number == 12


def test_a_subclass_may_have_an_equality_of_its_own(make: Make) -> None:
    class Equal(make()):  # type: ignore[misc]
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    assert Equal(number=1) == 5
    with pytest.raises(TypeError, match="unhashable type: 'Equal'"):
        hash(Equal())


def test_an_equality_that_is_put_into_the_class_counts(make: Make) -> None:
    cls: Any = make()
    cls.__eq__ = lambda self, other: "mine"
    assert (cls() == 1) == "mine"
    del cls.__eq__
    assert cls() == cls()


def test_a_field_of_a_default_that_is_made_anew(make: Make) -> None:
    @attrs.frozen(kw_only=True, eq=False, repr=False, weakref_slot=False)
    class Fresh(make()):  # type: ignore[misc]
        values: list[int] = attrs.field(factory=list)

    assert not Fresh._sealed
    assert Fresh().values is not Fresh().values


def test_two_structs_of_one_name(make: Make) -> None:
    more = make("More", extra=field("Extra", "int8", default=4))
    assert make("More")() != more()
    assert more().extra == 4
