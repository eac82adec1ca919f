"""Values that misrepresent themselves: all executors return the same result or error, never ``InternalError``."""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from kafka_msgs import FetchRequest, OffsetFetchRequest
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.errors import EncodeError, InternalError, KafkaMsgsError
from kafka_msgs.primitives import ZERO_UUID
from kafka_msgs.schema import Struct, field
from tests.support.codecs import codec, message_class, struct_class

ID = UUID(int=2**100 + 7)
Part: Any = struct_class("Part", number=field("Number", "int32", default=0), name=field("Name", "string", default=""))
TAGGED: dict[str, Any] = {
    "flag": field("Flag", "bool", default=False, tag=0, tagged="1+", versions="1+"),
    "number": field("Number", "int64", default=2**40, tag=1, tagged="1+", versions="1+"),
    "real": field("Real", "float64", default=0.5, tag=2, tagged="1+", versions="1+"),
    "text": field("Text", "string", default="some", tag=3, tagged="1+", versions="1+"),
    "data": field("Data", "bytes", default=b"", tag=4, tagged="1+", versions="1+"),
    "id": field("Id", "uuid", default=ZERO_UUID, tag=5, tagged="1+", versions="1+"),
    "items": field("Items", "[]int32", default=(), tag=6, tagged="1+", versions="1+"),
    "part": field("Part", "Part", default=Part(), tag=7, tagged="1+", versions="1+", struct=Part),
    "parts": field("Parts", "[]Part", default=(), tag=8, tagged="1+", versions="1+", struct=Part),
    "maybe": field("Maybe", "string", default=None, nullable="1+", tag=9, tagged="1+", versions="1+"),
}
Tagged: Any = message_class("Tagged", "0-1", "1+", **TAGGED)
POSITIONAL = {
    "flag": field("Flag", "bool", default=False),
    "number": field("Number", "int64", default=0),
    "real": field("Real", "float64", default=0.0),
    "text": field("Text", "string", default=""),
    "data": field("Data", "bytes", default=b""),
    "id": field("Id", "uuid", default=ZERO_UUID),
    "items": field("Items", "[]int32", default=()),
    "part": field("Part", "Part", default=Part(), struct=Part),
    "parts": field("Parts", "[]Part", default=(), struct=Part),
    "maybe": field("Maybe", "string", default=None, nullable="0+"),
}
Positional: Any = message_class("Positional", "0-1", "1+", **POSITIONAL)


class Always:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


class Disguised:
    """Claims to be of another class."""

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls

    @property
    def __class__(self) -> Any:
        return self.cls

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class Miscounting(tuple[Any, ...]):
    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Any:
        return iter(())

    def __eq__(self, other: object) -> bool:
        return True

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]


class MiscountingList(list[Any]):
    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Any:
        return iter((1, 2, 3))

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None


class Text(str):
    def encode(self, *_: Any, **__: Any) -> bytes:
        return b"something else"

    def __len__(self) -> int:
        return 1000

    def __eq__(self, other: object) -> bool:
        return True

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]


class Data(bytes):
    def __bytes__(self) -> bytes:
        return b"something else"

    def __len__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return True

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]


class Number(int):
    def __index__(self) -> int:
        return 99

    def __eq__(self, other: object) -> bool:
        return True

    def to_bytes(self, *_: Any, **__: Any) -> bytes:
        return b"x" * 8

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]


class Real(float):
    def __float__(self) -> float:
        return 99.0

    def __eq__(self, other: object) -> bool:
        return True

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]


class Identity(UUID):
    @property
    def bytes(self) -> Any:
        return b"x" * 16

    def __eq__(self, other: object) -> bool:
        return True

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]


class Elsewhere(Part):  # type: ignore[misc]
    """Returns another number than the stored one."""

    __slots__ = ()

    @property
    def number(self) -> int:
        return 99

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def elsewhere(number: int) -> Any:
    made = object.__new__(Elsewhere)
    for name, value in (("unknown_tagged_fields", ()), ("number", number), ("name", "")):
        getattr(Part, name).__set__(made, value)
    return made


LIARS: dict[str, list[Any]] = {
    "flag": [0, 1, Always(), Disguised(bool), None],
    "number": [Number(7), Number(2**40), Number(2**70), True, Always(), Disguised(int), 2**40, None, 0.0, "7"],
    "real": [Real(0.25), Real(0.5), 1, math.nan, Always(), Disguised(float), None, "7", 10**400],
    "text": [Text("other"), Text("some"), Text(""), Text("\ud800"), Always(), Disguised(str), b"some", None],
    "data": [Data(b"other"), Data(b""), bytearray(b"x"), bytearray(), memoryview(b""), memoryview(b"ab")[::-1],
             Always(), Disguised(bytes), "", None, 0],
    "id": [Identity(int=5), Identity(int=0), ID, UUID(int=0), UUID.__new__(UUID), Always(), Disguised(UUID), 0, None],
    "items": [Miscounting((1, 2)), Miscounting(()), MiscountingList([1, 2]), MiscountingList([]), (Number(3),),
              Always(), (Always(),), Disguised(tuple), "", None, {}],
    "part": [Part(), Part(number=3), elsewhere(0), elsewhere(5), Part(number=Number(0)), Part(number=Always()),
             Part(name=Text("")), Part(unknown_tagged_fields=Miscounting(((9, b"x"),))), Always(), Disguised(Part),
             None],
    "parts": [Miscounting((Part(number=1),)), MiscountingList([Part()]), (elsewhere(5),), (Always(),),
              (Disguised(Part),)],
    "maybe": [Text(""), Text("x"), Always(), Disguised(type(None)), ""],
    "unknown_tagged_fields": [
        Miscounting(((70, b"x"),)), MiscountingList([(70, b"x")]), MiscountingList([]), (Miscounting((70, b"x")),),
        ((Number(70), Data(b"x")),), ((True, b"x"),), ((Number(1), b"x"),), ((70, Always()),), (Always(),), Always(),
        ((Disguised(int), b"x"),), None, 0, (Disguised(tuple),),
    ],
}  # fmt: skip
PLACES = [(name, number) for name, liars in LIARS.items() for number in range(len(liars))]


def verdict(work: Callable[[], Any]) -> Any:
    """Return the result of the work, or the type and text of its error."""
    try:
        return work()
    except InternalError:
        raise
    except KafkaMsgsError as error:
        return type(error), str(error)


@pytest.mark.parametrize("cls", [Tagged, Positional], ids=["tagged", "positional"])
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(("name", "number"), PLACES)
def test_a_liar_gets_one_verdict(cls: Any, version: int, name: str, number: int) -> None:
    message = cls(**{name: LIARS[name][number]})
    verdicts = {executor: verdict(lambda: codec(executor, cls, version).encode(message)) for executor in EXECUTORS}  # noqa: B023
    assert len(set(verdicts.values())) == 1, verdicts


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_the_base_class_holds_is_written(executor: str) -> None:
    liar = Positional(number=Number(7), text=Text("other"), data=Data(b"x"), id=Identity(int=5), part=elsewhere(5),
                      items=Miscounting((1, 2)), real=Real(0.25))  # fmt: skip
    meant = Positional(number=7, text="other", data=b"x", id=UUID(int=5), part=Part(number=5), items=(1, 2), real=0.25)
    encode = codec(executor, Positional, 1).encode
    assert encode(liar) == encode(meant)
    with pytest.raises(EncodeError, match="expected int, got Always"):
        encode(Positional(number=Always()))


class Capricious:
    """Raises, once, an exception that executors never raise."""

    asked = 0

    def __index__(self) -> int:
        self.asked += 1
        if self.asked == 1:
            raise TimeoutError("an alarm")
        return 1


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_interrupts_an_executor_from_outside_is_not_called_a_bug(executor: str) -> None:
    with pytest.raises(TimeoutError, match="an alarm"):
        codec(executor, Positional, 1).encode(Positional(number=Capricious()))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("room", range(2, 40))
def test_want_of_stack_is_not_called_a_bug(executor: str, room: int) -> None:
    """With any amount of stack left, the call succeeds, reports the error, or raises ``RecursionError``."""
    made = codec(executor, OffsetFetchRequest, 8)
    data = made.encode(OffsetFetchRequest())
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    limit = sys.getrecursionlimit()
    for work in (lambda: made.encode(OffsetFetchRequest()), lambda: made.decode(data), lambda: made.decode(data[:-1])):
        try:
            sys.setrecursionlimit(depth + room)
            verdict(work)
        except RecursionError:
            pass
        finally:
            sys.setrecursionlimit(limit)


# Equality


def calls_of_equality(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often structs or UUIDs are compared in Python during the work."""
    calls = []

    def counting(self: object, other: object) -> Any:
        calls.append(self)
        return NotImplemented

    with monkeypatch.context() as patch:
        for cls in (Struct, UUID):
            for name in ("__eq__", "__ne__"):
                patch.setattr(cls, name, counting)
        work()
    return len(calls)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_struct_that_is_equal_to_its_default_is_not_compared(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal but not identical values, as after pickling, are omitted like the default itself, without ``__eq__``."""
    encode = codec(executor, Tagged, 1).encode
    plain = encode(Tagged())
    same = [Tagged(part=Part(), id=UUID(int=0), number=int(str(2**40))), pickle.loads(pickle.dumps(Request()))]
    assert same[0].part is not Tagged().part
    assert calls_of_equality(lambda: encode(same[0]), monkeypatch) == 0
    assert encode(same[0]) == plain
    assert encode(Tagged(part=Part(number=1))) != plain


def Request() -> Any:  # noqa: N802
    """Return a Fetch request whose tagged fields contain a struct and UUIDs."""
    return FetchRequest()


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("version", [4, 12, FetchRequest.INFO.versions.highest])
def test_what_was_pickled_is_encoded_without_comparisons(
    executor: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = codec(executor, FetchRequest, version).encode
    message = pickle.loads(pickle.dumps(FetchRequest(replica_id=1) if version < 15 else FetchRequest()))
    assert calls_of_equality(lambda: encode(message), monkeypatch) == 0
    assert encode(message) == encode(FetchRequest(replica_id=1) if version < 15 else FetchRequest())


@pytest.mark.skipif("c" not in EXECUTORS, reason="the C core is not built")
def test_the_core_calls_nothing_for_what_was_pickled() -> None:
    encode = codec("c", FetchRequest, 17).encode
    message = pickle.loads(pickle.dumps(FetchRequest()))
    encode(message)
    called = []
    sys.setprofile(lambda frame, event, arg: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        encode(message)
    finally:
        sys.setprofile(None)
    assert called == []
